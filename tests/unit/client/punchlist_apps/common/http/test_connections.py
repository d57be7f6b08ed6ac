"""Limits of the HTTP server, with real sockets."""

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import anyio
import pytest

from punchlist_apps.common.http.connections import ConnectionSlots, raise_connection_limit
from punchlist_apps.common.http.server import Server, build_server
from punchlist_testing.terminal import environment

OK = b"HTTP/1.1 200 OK"

LARGE = 8 << 20

begun = list[str]()
"""Paths of the requests that reached the application."""


async def reply(scope: Any, receive: Any, send: Any) -> None:
    """Application: /wait never finishes its response, /body reads a body, /NUMBER sends a body of this size."""
    begun.append(scope["path"])
    if scope["path"] == "/wait":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    while scope["path"] == "/body" and (await receive()).get("more_body"):
        pass
    size = int(scope["path"][1:]) if scope["path"][1:].isdigit() else 2
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    await send({"type": "http.response.body", "body": bytes(size)})


class Site:
    """An application behind the server, and its clients."""

    def __init__(self, port: int, slots: ConnectionSlots, server: Server, stack: AsyncExitStack) -> None:
        self.port, self.slots, self.server, self._stack = port, slots, server, stack

    async def connect(self, text: bytes = b"") -> Any:
        stream = await self._stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", self.port))
        if text:
            await stream.send(text)
        return stream

    async def ask(self, path: str = "/", token: str = "") -> Any:
        return await self.connect(asked(path, token))

    async def hold(self, token: str = "") -> Any:
        """Send a request, and wait until its response has started."""
        stream = await self.ask("/wait", token)
        assert (await stream.receive()).startswith(OK)
        return stream

    async def get(self, path: str = "/", token: str = "") -> bytes:
        return await (await self.ask(path, token)).receive()


def asked(path: str = "/", token: str = "") -> bytes:
    shown = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nHost: h\r\n{shown}\r\n".encode()


HALF_BODY = b"POST /body HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ann\r\nContent-Length: 90\r\n\r\nabc"


async def is_open(stream: Any) -> bool:
    """Return whether a silent connection is still open."""
    with anyio.move_on_after(0.05) as patience:
        assert await ended(stream)
    return patience.cancelled_caught


async def ended(stream: Any) -> bool:
    with anyio.fail_after(30):
        try:
            await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
    return False


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """Raise the limit on file descriptors, since client and server share this process."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_connection_limit()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    limits = getattr(request, "param", {"maximum": 4})
    slots = ConnectionSlots(is_valid=lambda token: token in (b"ann", b"bob"), **limits)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    server = build_server(reply, slots)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        async with AsyncExitStack() as stack:
            made = Site(listener.getsockname()[1], slots, server, stack)
            assert (await made.get()).startswith(OK)
            yield made
        server.should_exit = True


async def test_thousand_idle_connections_block_no_client(site: Site) -> None:
    first = await site.connect()
    for _ in range(1_000):
        await site.connect()
    assert (await site.get()).startswith(OK)
    assert await ended(first)
    assert site.slots.count <= site.slots.maximum


FEW = 700
SERVER = f"""
import asyncio, resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, ({FEW}, {FEW}))
from punchlist_apps.common.http.server import build_server
async def reply(scope, receive, send):
    await send({{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}})
    await send({{"type": "http.response.body", "body": b"ok"}})
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
asyncio.run(build_server(reply).serve([listener]))
"""


def _ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=8) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert link.recv(100).startswith(OK)


def test_flood_does_not_exhaust_few_descriptors() -> None:
    """The server must not use all its file descriptors for connections accepted in one turn of the loop."""
    with (
        ExitStack() as stack,
        subprocess.Popen(
            [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        ) as process,
    ):
        assert process.stdout is not None and process.stderr is not None
        port = int(process.stdout.readline())
        _ask(port)
        for _ in range(FEW + 300):
            flood = stack.enter_context(socket.socket())
            flood.setblocking(False)
            flood.connect_ex(("127.0.0.1", port))
        began = time.monotonic()
        _ask(port)
        assert time.monotonic() - began < 8
        process.kill()
        assert process.stderr.read() == b""


async def test_stranger_gets_one_response(site: Site) -> None:
    for text in (asked() * 3, asked("/", "eve") * 3):
        stream = await site.connect(text)
        answers = b""
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                answers += await stream.receive()
        assert answers.count(OK) == 1 and b"connection: close" in answers


async def test_busy_stranger_is_evicted_too(site: Site) -> None:
    busy = [await site.hold() for _ in range(4)]
    assert (await site.get()).startswith(OK)
    assert await ended(busy[0])


async def test_strangers_evict_no_token_holder(site: Site) -> None:
    waiting = [await site.hold("ann") for _ in range(3)]
    for _ in range(20):
        assert (await site.get()).startswith(OK)
    assert [await is_open(each) for each in waiting] == [True] * 3


async def test_request_without_token_makes_connection_a_stranger(site: Site) -> None:
    stream = await site.ask("/", "ann")
    await stream.receive()
    await stream.send(asked("/wait", "eve"))
    await stream.receive()
    for _ in range(4):
        await site.hold()
    assert await ended(stream)


@pytest.mark.parametrize("site", [{"maximum": 8}], indirect=True)
async def test_token_with_most_connections_loses_one(site: Site) -> None:
    bobs = [await site.hold("bob") for _ in range(6)]
    anns = [await site.hold("ann") for _ in range(3)]
    assert [await is_open(each) for each in anns] == [True] * 3
    assert [await is_open(each) for each in bobs] == [True] * 3 + [False] * 3, (
        "requests that started first are finished"
    )


async def test_idle_connection_is_evicted_before_busy_one(site: Site) -> None:
    busy = await site.hold("ann")
    idle = await site.ask("/", "ann")
    await idle.receive()
    more = [await site.hold("ann") for _ in range(2)]
    assert await ended(idle)
    assert [await is_open(each) for each in (busy, *more)] == [True] * 3


async def test_evicted_connection_starts_no_request(site: Site) -> None:
    for _ in range(3):
        await site.hold("ann")
    begun.clear()
    assert await ended(await site.ask("/", "ann"))
    assert not begun


async def test_stranger_with_partial_body_gets_response(site: Site) -> None:
    """Closing the connection before the body has been read resets it, and the response may be lost."""
    stream = await site.connect(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n")
    assert (await stream.receive()).startswith(OK)
    await stream.send(bytes(300_000))
    await stream.send(asked())
    assert (await stream.receive()).startswith(OK)


@pytest.mark.parametrize("token", ["", "ann"])
@pytest.mark.parametrize("site", [{"stall_s": 0.2, "maximum": 100}], indirect=True)
async def test_a_peer_that_reads_nothing_is_disconnected(token: str, site: Site) -> None:
    """This holds even if only a few bytes of the response remain."""
    sizes = (LARGE, *range(64 << 10, 1 << 20, 15_000))
    texts = [asked(f"/{size}", token).replace(b"Host", b"Connection: close\r\nHost") for size in sizes]
    streams = [await site.connect(text) for text in texts]
    with anyio.fail_after(30):
        while site.slots.count:  # noqa: ASYNC110 - a client that reads nothing gets no event
            await anyio.sleep(0.01)
    received = 0
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            received += len(await streams[0].receive())
    assert received < LARGE


@pytest.mark.parametrize("site", [{"stall_s": 0.4}], indirect=True)
async def test_a_slow_reader_gets_everything(site: Site) -> None:
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        reader.setblocking(False)
        loop, received = asyncio.get_running_loop(), 0
        await loop.sock_connect(reader, ("127.0.0.1", site.port))
        await loop.sock_sendall(reader, asked(f"/{LARGE}"))
        with anyio.fail_after(30):
            while received < LARGE:
                received += (got := len(await loop.sock_recv(reader, 32 << 10)))
                assert got
                if received < 1 << 20:
                    await anyio.sleep(0.04)  # the reader is this slow at first


@pytest.mark.parametrize("site", [{"stall_s": 0.05, "arrival_s": 0.05}], indirect=True)
async def test_silent_response_is_not_a_stall(site: Site) -> None:
    waiting = await site.hold("ann")
    with anyio.move_on_after(0.3) as patience:
        await ended(waiting)
    assert patience.cancelled_caught


@pytest.mark.parametrize("site", [{"arrival_s": 0.2}], indirect=True)
@pytest.mark.parametrize(
    "text",
    [b"", b"GET / HTTP/1.1\r\nHo", HALF_BODY, asked("/", "ann") + HALF_BODY],
    ids=["nothing", "half a head", "half a body", "half a body in advance"],
)
async def test_slow_request_times_out(text: bytes, site: Site) -> None:
    stream = await site.connect(text)
    with anyio.fail_after(30):
        while not await ended(stream):
            pass
    assert (await site.get()).startswith(OK)


async def test_response_is_sent_immediately(site: Site) -> None:
    await site.ask("/", "ann")
    [connection] = site.server.server_state.connections
    served = connection.transport.get_extra_info("socket")
    assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


@pytest.mark.parametrize("text", [b"nonsense\r\n\r\n", asked("/" + "x" * (1 << 17))], ids=["no HTTP", "too long"])
async def test_invalid_request_gets_a_problem(text: bytes, site: Site) -> None:
    stream = await site.connect(text)
    answer = b""
    with anyio.fail_after(30):
        while b'"kind":"invalid_request"' not in answer:
            answer += await stream.receive()
    assert answer.startswith(b"HTTP/1.1 400 ") and b"content-type: application/problem+json" in answer
