"""The bounds of the HTTP server, with real sockets."""

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

from punchlist.http.connections import Places, most_places
from punchlist.http.server import http_server
from punchlist_testing.terminal import environment

OK = b"HTTP/1.1 200 OK"


async def reply(scope: Any, receive: Any, send: Any) -> None:
    """An application: /wait holds its answer back until the client leaves."""
    if scope["path"] == "/wait":
        while (await receive())["type"] != "http.disconnect":
            pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Site:
    """A served application and its clients."""

    def __init__(self, port: int, places: Places, stack: AsyncExitStack) -> None:
        self.port, self.places, self._stack = port, places, stack

    async def connect(self, text: bytes = b"") -> Any:
        stream = await self._stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", self.port))
        if text:
            await stream.send(text)
        return stream

    async def get(self, path: str = "/") -> bytes:
        stream = await self.connect(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        return await stream.receive()


async def ended(stream: Any) -> bool:
    with anyio.fail_after(30):
        try:
            await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
    return False


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """Client and server share this process: together they need more descriptors than most users have by default."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    most_places()  # raises the limit
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    places = Places(**getattr(request, "param", {"most": 4}))
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    server = http_server(reply, places)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        async with AsyncExitStack() as stack:
            made = Site(listener.getsockname()[1], places, stack)
            assert (await made.get()).startswith(OK)
            yield made
        server.should_exit = True


async def test_a_thousand_idle_connections_keep_nobody_out(site: Site) -> None:
    first = await site.connect()
    for _ in range(1_000):
        await site.connect()
    assert (await site.get()).startswith(OK)
    assert await ended(first)
    assert site.places.taken <= site.places.most + 1


FEW = 700
SERVER = f"""
import asyncio, resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, ({FEW}, {FEW}))
from punchlist.http.server import http_server
async def reply(scope, receive, send):
    await send({{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}})
    await send({{"type": "http.response.body", "body": b"ok"}})
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
asyncio.run(http_server(reply).serve([listener]))
"""


def _ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=8) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert link.recv(100).startswith(OK)


def test_a_flood_of_connections_keeps_nobody_out_of_a_server_with_few_descriptors() -> None:
    """They come faster than the server can close them; what it accepts in one turn must leave it some."""
    with (
        ExitStack() as stack,
        subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
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


@pytest.mark.parametrize("site", [{"most": 3}], indirect=True)
async def test_a_request_that_is_being_answered_never_gives_way(site: Site) -> None:
    waiting = await site.connect(b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
    for _ in range(20):
        assert (await site.get()).startswith(OK)
    with anyio.move_on_after(0.05) as still_there:
        await waiting.receive()
    assert still_there.cancelled_caught


@pytest.mark.parametrize("site", [{"arrival_s": 0.2}], indirect=True)
@pytest.mark.parametrize(
    "text",
    [b"", b"GET / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc"],
    ids=["nothing", "half a head", "half a body"],
)
async def test_a_request_that_does_not_arrive_in_time_ends_its_connection(text: bytes, site: Site) -> None:
    stream = await site.connect(text)
    with anyio.fail_after(30):
        while not await ended(stream):
            pass
    assert (await site.get()).startswith(OK)


async def test_what_is_sent_leaves_at_once(site: Site) -> None:
    await site.get()
    [connection, *_] = site.places.idle
    served = connection.transport.get_extra_info("socket")
    assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
