"""The daemon's middle over a log in memory that can be held up and refused, and a hand-made asyncio client."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec

from punchlist_testing.memory_log import MemoryLog
from punchlistd.app import app
from punchlistd.app.machines import Machines
from punchlistd.engine.reading.queries import Queries
from punchlistd.net.connection import Connection
from punchlistd.settings import Settings
from punchlistd.store.port import Damaged, Loaded, Sealed, StorageFailed, Stored

PATIENCE_S = 30.0
"""How long a test waits for anything, in seconds."""


TURNS = 3
"""How many turns of the loop a commit takes, as one in a thread would."""


async def until(check: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not check():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0)


class TouchyLog(MemoryLog):
    """A log in memory whose appends can be held up, before or after they are durable, and refused."""

    def __init__(self) -> None:
        """A log that does as it is told until told otherwise."""
        super().__init__()
        self.refusal: Exception | None = None
        self.erase_refusal: Exception | None = None
        self.damaged_at: dict[str, int] = {}
        self.sizes_of_appends: list[int] = []
        self._gate_before = _Gate()
        self._gate_after = _Gate()
        self._gate_reads = _Gate()
        self._gate_loads = _Gate()

    def hold(self, after: bool = False) -> "_Gate":
        """Hold up appends from now on, before (or right after) they are durable."""
        gate = self._gate_after if after else self._gate_before
        gate.shut()
        return gate

    def hold_reads(self) -> "_Gate":
        """Hold up the results of reads."""
        self._gate_reads.shut()
        return self._gate_reads

    def hold_loads(self) -> "_Gate":
        """Hold up the loading of conversations."""
        self._gate_loads.shut()
        return self._gate_loads

    def let_go(self) -> None:
        for gate in (self._gate_before, self._gate_after, self._gate_reads, self._gate_loads):
            gate.open()

    async def load(self, conversation: str) -> Loaded:
        await self._gate_loads.passed()
        return await super().load(conversation)

    async def append(self, entries: Sequence[Sealed]) -> None:
        self.sizes_of_appends.append(len(entries))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await self._gate_before.passed()
        if self.refusal is not None:
            raise self.refusal
        await super().append(entries)
        await self._gate_after.passed()

    async def erase(self, conversation: str) -> None:
        if self.erase_refusal is not None:
            raise self.erase_refusal
        await super().erase(conversation)

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        """Read, unless it is damaged there; the result may come late."""
        if conversation in self.damaged_at:
            raise Damaged(conversation, self.damaged_at[conversation], "a test said so")
        found = await super().read(after, limit, conversation=conversation, max_bytes=max_bytes)
        await self._gate_reads.passed()
        return found


class _Gate:
    """Open until shut; `reached` once somebody waits at it."""

    def __init__(self) -> None:
        self._open: anyio.Event | None = None
        self._arrived = anyio.Event()

    def shut(self) -> None:
        self._open = anyio.Event()
        self._arrived = anyio.Event()

    def open(self) -> None:
        """Let everybody through from now on."""
        if self._open is not None:
            self._open.set()
        self._open = None

    async def passed(self) -> None:
        if self._open is not None:
            self._arrived.set()
            await self._open.wait()

    async def reached(self) -> None:
        """Wait until somebody waits here."""
        with anyio.fail_after(PATIENCE_S):
            await self._arrived.wait()


class Peer:
    """A client of a few lines over asyncio; pushes that come between answers are kept in `pushes`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: bool) -> None:
        self.pushes: list[Any] = []
        self.reader = reader
        self.writer = writer
        self._headers = headers
        self._next = 1000

    @classmethod
    async def open(cls, path: str, headers: bool = False) -> "Peer":
        """Connect to a socket, to speak in lines or with headers."""
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 26)
        return cls(reader, writer, headers)

    def request(self, method: str, params: Any = None, *, id: Any = 0) -> bytes:
        """A framed request; id None makes it a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if id is not None:
            message["id"] = id
        return self.frame(message)

    def stop_reading(self) -> None:
        """Take no bytes any more, as a program that hangs."""
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def read_on(self) -> None:
        """Take bytes again."""
        cast(asyncio.Transport, self.writer.transport).resume_reading()

    def frame(self, message: Any) -> bytes:
        """A framed message."""
        payload = msgspec.json.encode(message)
        return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload) if self._headers else payload + b"\n"

    def send(self, method: str, params: Any = None, *, id: Any = 0) -> None:
        self.writer.write(self.request(method, params, id=id))

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def raw(self) -> bytes:
        """The next payload, b"" at the end of the stream."""
        with anyio.fail_after(PATIENCE_S):
            if not self._headers:
                return await self.reader.readline()
            head = await self.reader.readuntil(b"\r\n\r\n")
            return await self.reader.readexactly(int(head.split(b":")[1]))

    async def receive(self) -> Any:
        """The next message; None at the end of the stream."""
        payload = await self.raw()
        return msgspec.json.decode(payload) if payload else None

    async def answer(self, id: Any) -> Any:
        while (message := await self.receive()) is not None:
            if "method" not in message:
                assert message["id"] == id, message
                return message
            self.pushes.append(message)
        raise EOFError("the daemon closed the connection")

    async def call(self, method: str, **params: Any) -> Any:
        self._next += 1
        self.send(method, params, id=self._next)
        return await self.answer(self._next)

    async def result(self, method: str, **params: Any) -> Any:
        answer = await self.call(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def refusal(self, method: str, **params: Any) -> Any:
        """Send a request that is refused; the error's data, with its code as `code`."""
        answer = await self.call(method, **params)
        assert "error" in answer, answer
        return {**answer["error"]["data"], "code": answer["error"]["code"]}

    async def push(self) -> Any:
        if self.pushes:
            return self.pushes.pop(0)
        message = await self.receive()
        assert message is not None and "method" in message, message
        return message

    async def events(self, count: int) -> list[Any]:
        events: list[Any] = []
        while len(events) < count:
            events += (await self.push())["params"]["events"]
        assert len(events) == count, "groups and tests agree"
        return events

    async def quiet(self) -> None:
        """Check that nothing but the answer to a ping is under way."""
        assert (await self.call("daemon.hello"))["result"] and not self.pushes, self.pushes

    async def closed(self) -> None:
        assert await self.raw() == b""

    def close(self) -> None:
        self.writer.close()


class Engine(app.Engine):
    """Everything between the socket and the log, connected."""

    def __init__(self, log: MemoryLog, settings: Settings, background: Any) -> None:
        """`background` is the task group for what runs beside."""

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            background.start_soon(lambda: work)

        super().__init__(log, settings, spawn=spawn, show=self._note_totals)
        self.settings = settings
        self.totals: list[tuple[int, int]] = []
        self.stopping = anyio.Event()
        self.failure: BaseExceptionGroup[StorageFailed] | None = None
        self.queries = Queries(
            log,
            self.conversations,
            self.access,
            self.history,
            self.subscriptions,
            data_dir=settings.data_dir,
            refresh=self.maintenance.refresh,
            status=self._no_answer,
            backup=self._no_answer,
        )
        self.router = self.build_router(
            self.queries, self.stopping.set, Machines(settings, {}, self, spawn), spawn=spawn
        )
        self.background = background
        self._peers: list[Peer] = []

    def _note_totals(self, unfinished: int, in_progress: int) -> None:
        self.totals.append((unfinished, in_progress))

    def unsent(self, connection: Connection) -> int:
        """How many bytes wait for a peer to take them."""
        transport = connection.output.transport
        return transport.get_write_buffer_size() if transport is not None else 0

    async def _no_answer(self, *_params: Any) -> Any:
        raise NotImplementedError("the app answers that")

    async def connect(self, headers: bool = False, **hello: Any) -> Peer:
        """A new client, introduced if it has something to say."""
        peer = await Peer.open(self.settings.socket, headers)
        self._peers.append(peer)
        if hello:
            await peer.result("daemon.hello", **hello)
        return peer

    async def run(self) -> None:
        """The writer; that its disk failed is noted."""
        try:
            await self.writer.run()
        except* StorageFailed as failure:
            self.failure = failure

    def hang_up(self) -> None:
        for peer in self._peers:
            peer.close()


@asynccontextmanager
async def engine(
    directory: Path, log: MemoryLog | None = None, *, kill: bool = False, recover: bool = True, **settings: Any
) -> AsyncGenerator[Engine]:
    """An engine that serves a socket; `kill`: it ends without doing what is left to do."""
    path = str(directory / f"{os.urandom(4).hex()}.sock")
    chosen = msgspec.structs.replace(Settings(socket=path, data_dir=str(directory)), **settings)
    async with anyio.create_task_group() as background:
        log = TouchyLog() if log is None else log
        running = Engine(log, chosen, background)
        loop = asyncio.get_running_loop()
        acceptor = await loop.create_unix_server(lambda: Connection(running.connections, running.router.begin), path)
        async with anyio.create_task_group() as writing:
            writing.start_soon(running.run)
            if recover:
                await running.maintenance.recover()
            try:
                yield running
            finally:
                running.hang_up()
                acceptor.close()
                running.connections.close()
                if kill:
                    writing.cancel_scope.cancel()
                elif isinstance(log, TouchyLog):
                    log.let_go()  # a test that failed while it held up a commit would wait for that commit for ever
                running.inbox.close()
        running.close()
        if not kill:
            await running.search.close()
        elif (index := vars(running.search)["_index"]) is not None:
            index.abandon()  # Python 3.13 warns of a connection that is not closed; the file stays marked as in use
        for session in list(running.connections.live):
            session.abort()
        background.cancel_scope.cancel()
