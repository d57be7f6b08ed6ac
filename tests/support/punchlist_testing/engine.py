"""The daemon between socket and log, over an in-memory log with injectable faults, and a minimal asyncio client."""

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
"""Timeout for each wait, in seconds."""

TURNS = 3
"""Number of event loop iterations that a commit takes, to imitate a commit in a thread."""


async def until(check: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not check():  # noqa: ASYNC110 - any condition, without an event to wait for
            await asyncio.sleep(0)


class TouchyLog(MemoryLog):
    """An in-memory log whose operations can be blocked or made to fail.

    Attributes:
        refusal: Error raised by appends.
        erase_refusal: Error raised by `erase`.
        damaged: Conversation -> position at which its reads raise `Damaged`.
        sizes_of_appends: Number of entries of each append.
    """

    def __init__(self) -> None:
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
        """Block appends before or, with `after`, right after they are durable."""
        gate = self._gate_after if after else self._gate_before
        gate.shut()
        return gate

    def hold_reads(self) -> "_Gate":
        """Block reads before they return."""
        self._gate_reads.shut()
        return self._gate_reads

    def hold_loads(self) -> "_Gate":
        """Block the loading of conversations."""
        self._gate_loads.shut()
        return self._gate_loads

    def release_all(self) -> None:
        for gate in (self._gate_before, self._gate_after, self._gate_reads, self._gate_loads):
            gate.open()

    async def load(self, conversation: str) -> Loaded:
        await self._gate_loads.pass_through()
        return await super().load(conversation)

    async def append(self, entries: Sequence[Sealed]) -> None:
        self.sizes_of_appends.append(len(entries))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await self._gate_before.pass_through()
        if self.refusal is not None:
            raise self.refusal
        await super().append(entries)
        await self._gate_after.pass_through()

    async def erase(self, conversation: str) -> None:
        if self.erase_refusal is not None:
            raise self.erase_refusal
        await super().erase(conversation)

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        if conversation in self.damaged_at:
            raise Damaged(conversation, self.damaged_at[conversation], "set by a test")
        events = await super().read(after, limit, conversation=conversation, max_bytes=max_bytes)
        await self._gate_reads.pass_through()
        return events


class _Gate:
    """A gate that is open until it is closed."""

    def __init__(self) -> None:
        self._open: anyio.Event | None = None
        self._arrived = anyio.Event()

    def shut(self) -> None:
        self._open = anyio.Event()
        self._arrived = anyio.Event()

    def open(self) -> None:
        if self._open is not None:
            self._open.set()
        self._open = None

    async def pass_through(self) -> None:
        if self._open is not None:
            self._arrived.set()
            await self._open.wait()

    async def reached(self) -> None:
        """Wait until the gate blocks an operation."""
        with anyio.fail_after(PATIENCE_S):
            await self._arrived.wait()


class Peer:
    """A minimal asyncio client. Pushes that arrive before a response are kept in `pushes`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: bool) -> None:
        self.pushes: list[Any] = []
        self.reader = reader
        self.writer = writer
        self._headers = headers
        self._next = 1000

    @classmethod
    async def open(cls, path: str, headers: bool = False) -> "Peer":
        """Connect to a socket, with frames as lines or with headers."""
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 26)
        return cls(reader, writer, headers)

    def request(self, method: str, params: Any = None, *, id: Any = 0) -> bytes:
        """Return a framed request, or a notification if `id` is None."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if id is not None:
            message["id"] = id
        return self.frame(message)

    def stop_reading(self) -> None:
        """Stop reading from the socket, like a program that hangs."""
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def resume_reading(self) -> None:
        cast(asyncio.Transport, self.writer.transport).resume_reading()

    def frame(self, message: Any) -> bytes:
        payload = msgspec.json.encode(message)
        return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload) if self._headers else payload + b"\n"

    def send(self, method: str, params: Any = None, *, id: Any = 0) -> None:
        self.writer.write(self.request(method, params, id=id))

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def raw(self) -> bytes:
        """Return the next payload, or b"" at the end of the stream."""
        with anyio.fail_after(PATIENCE_S):
            if not self._headers:
                return await self.reader.readline()
            head = await self.reader.readuntil(b"\r\n\r\n")
            return await self.reader.readexactly(int(head.split(b":")[1]))

    async def receive(self) -> Any:
        """Return the next message, or None at the end of the stream."""
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
        """Send a request that must be rejected; return the error's data, with its code as `code`."""
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
        """Send a ping and check that nothing arrives but its response."""
        assert (await self.call("daemon.hello"))["result"] and not self.pushes, self.pushes

    async def closed(self) -> None:
        assert await self.raw() == b""

    def close(self) -> None:
        self.writer.close()


class Engine(app.Engine):
    """The daemon's components between socket and log.

    Args:
        log: The log.
        settings: The daemon's settings.
        background: Task group for background work.
    """

    def __init__(self, log: MemoryLog, settings: Settings, background: Any) -> None:
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
        """Return the number of bytes in a connection's write buffer."""
        transport = connection.output.transport
        return transport.get_write_buffer_size() if transport is not None else 0

    async def _no_answer(self, *_params: Any) -> Any:
        raise NotImplementedError("only the app implements this")

    async def connect(self, headers: bool = False, **hello: Any) -> Peer:
        """Connect a client; with `hello`, send `daemon.hello`."""
        peer = await Peer.open(self.settings.socket, headers)
        self._peers.append(peer)
        if hello:
            await peer.result("daemon.hello", **hello)
        return peer

    async def run(self) -> None:
        """Run the writer; keep a disk failure in `failure`."""
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
    """Run an engine that serves a socket; with `kill`, end it without finishing pending work."""
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
                    log.release_all()  # Otherwise a failed test that blocks a commit would wait for the commit forever.
                running.inbox.close()
        running.close()
        if not kill:
            await running.search.close()
        elif (index := vars(running.search)["_index"]) is not None:
            # Python 3.13 warns about connections that aren't closed. The index file stays marked as in use.
            index.abandon()
        for session in list(running.connections.live):
            session.abort()
        background.cancel_scope.cancel()
