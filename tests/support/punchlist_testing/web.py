"""`punch web` in this process, on a free port and connected to a daemon, and a minimal HTTP client."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec

from punchlist import AsyncClient
from punchlist_apps.common.http.connections import ConnectionSlots
from punchlist_apps.common.http.keys import SESSION_S, Keys, Scope
from punchlist_apps.common.http.secret_file import SecretFile
from punchlist_apps.common.http.server import Server, build_server
from punchlist_apps.common.http.sockets import open_loopback_sockets
from punchlist_apps.web.app import Setup, build_app
from punchlist_testing.daemon import Running, Spawned, running_daemon

PATIENCE_S = 30


class Answer(NamedTuple):
    """An HTTP response; `value` is its decoded JSON body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return msgspec.json.decode(self.body)


class Event(NamedTuple):
    """A server-sent event."""

    id: str
    event: str
    data: Any


class Stream:
    """A streamed response with chunked encoding.

    Attributes:
        head: The response's head, without the blank line.
        rest: Decoded bytes that aren't consumed yet.
        ended: Whether the last chunk was read.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.rest = b""
        self.head = b""
        self.ended = False

    async def begin(self) -> int:
        with anyio.fail_after(PATIENCE_S):
            while b"\r\n\r\n" not in self.rest:
                self.rest += await self.stream.receive()
        self.head, _, rest = self.rest.partition(b"\r\n\r\n")
        self.rest = b""
        self._chunks = rest
        return int(self.head.split()[1])

    async def next(self) -> Event:
        """Return the next event; skip comments."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                block, separator, rest = self.rest.partition(b"\n\n")
                if separator:
                    self.rest = rest
                    lines = (line.partition(": ") for line in block.decode().split("\n"))
                    fields = {name: value for name, _, value in lines}
                    if "event" in fields:
                        return Event(fields.get("id", ""), fields["event"], msgspec.json.decode(fields["data"]))
                    continue
                await self.more()

    async def to_end(self) -> bytes:
        with anyio.fail_after(PATIENCE_S):
            while not self.ended:
                try:
                    await self.more()
                except EOFError:
                    pass
        return self.rest

    async def more(self) -> None:
        while b"\r\n" not in self._chunks:
            self._chunks += await self.stream.receive()
        size, _, rest = self._chunks.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            self.ended = True
            raise EOFError("the stream ended")
        while len(rest) < length + 2:
            rest += await self.stream.receive()
        self.rest += rest[:length]
        self._chunks = rest[length + 2 :]


class Web:
    """A server and its clients."""

    def __init__(self, daemon: Running | Spawned, server: Server, port: int, keys: Keys, secret: SecretFile) -> None:
        self.daemon, self.server, self.port, self.keys, self.secret = daemon, server, port, keys, secret
        self.stack = AsyncExitStack()

    @property
    def token(self) -> str:
        return self.secret.value.decode()

    def session(self, **scope: Any) -> str:
        return self.get_session(SESSION_S, **scope)

    def get_session(self, lasts_s: int, **scope: Any) -> str:
        """Return a session token that expires after `lasts_s` seconds."""
        session = self.keys.redeem(self.keys.issue_ticket(Scope(**scope), lasts_s))
        assert session is not None
        return session.token

    def head(self, verb: str, path: str, headers: dict[str, str | None]) -> bytes:
        """Build the head of a request; headers that are None are omitted."""
        common = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}"}
        lines = [f"{name}: {value}" for name, value in {**common, **headers}.items() if value is not None]
        return "\r\n".join([f"{verb} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")

    async def ask(self, verb: str, path: str, body: Any = None, /, **headers: str | None) -> Answer:
        """Send a request on a new connection; `_` in header names stands for `-`."""
        return await self.send(verb, path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    async def send(self, verb: str, path: str, body: Any, headers: dict[str, str | None]) -> Answer:
        """Send a request on a new connection and return the response."""
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        if data:
            headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}
        with anyio.fail_after(PATIENCE_S):
            async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
                await stream.send(self.head(verb, path, {"Connection": "close", **headers}))
                if data:
                    try:
                        await stream.send(data)
                    except anyio.BrokenResourceError:
                        pass
                received = b""
                try:
                    while True:
                        received += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    pass
        return parse_answer(received)

    async def stream(self, path: str, body: Any = None, /, **headers: str | None) -> Stream:
        """Open a stream and read its head: with a POST if there is a body, else with a GET."""
        data = b"" if body is None else msgspec.json.encode(body)
        if data:
            headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}
        tcp = await self.stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", self.port))
        head = {name.replace("_", "-"): value for name, value in headers.items()}
        await tcp.send(self.head("POST" if data else "GET", path, head) + data)
        stream = Stream(tcp)
        assert await stream.begin() == 200, (stream.head, stream.rest, await stream.stream.receive())
        return stream


def in_process(web: Web) -> Running:
    """Return the server's daemon, which must run in this process."""
    assert isinstance(web.daemon, Running)
    return web.daemon


def parse_answer(response: bytes) -> Answer:
    head, _, body = response.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


@asynccontextmanager
async def served(
    tmp_path: Path, *, daemon: Spawned | None = None, timeout_s: float = PATIENCE_S, **setup: Any
) -> AsyncGenerator[Web]:
    """Run a server for a daemon, by default a new one in this process."""
    secret = SecretFile(str(tmp_path / "web.token"))
    keys = Keys(secret, tmp_path / "used")
    ending = anyio.Event()
    async with AsyncExitStack() as stack:
        target = daemon or await stack.enter_async_context(running_daemon(tmp_path))
        client = AsyncClient(socket=target.socket, autostart=False, name="punch web", timeout_s=timeout_s)
        sockets = open_loopback_sockets(0)
        places = ConnectionSlots(600, lambda token: keys.read_scope(token) is not None)
        server = build_server(build_app(client, keys, ending, Setup(**setup)), places, ending)
        web = Web(target, server, sockets[0].getsockname()[1], keys, secret)
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, sockets)
            async with web.stack:
                yield web
            server.end()
        await client.aclose()
