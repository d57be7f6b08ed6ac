"""Runs the server: over standard input and output, or over HTTP on this machine."""

import os
import socket
from functools import partial
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server

from punchlist.aio import AsyncClient
from punchlist.mcp.connections import Connection, Places, most_places
from punchlist.mcp.guard import App, Grants, Guard
from punchlist.mcp.server import Setup, build
from punchlist.options import Options

_BODY = 1 << 20
_HEAD = 16 << 10
_FIRST_FD = 3

SESSION_IDLE_S = 900
"""A session without a request or an open stream for this long ends, in seconds."""

MOST_SESSIONS = 256
"""How many sessions there are at most."""


async def over_stdio(options: Options, setup: Setup) -> None:
    """Serve one host until it closes our standard input."""
    client = AsyncClient(**options)
    try:
        server = build(client, setup)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await client.aclose()


async def over_http(options: Options, setup: Setup, port: int, token: Grants) -> None:
    """Serve many hosts on this machine's loopback until told to stop by a signal."""
    client = AsyncClient(**options)
    try:
        sockets = given_sockets() or loopback_sockets(port)
        app = http_app(build(client, setup), sockets[0].getsockname()[1], token)
        await http_server(app).serve(sockets=sockets)
    finally:
        await client.aclose()


def http_app(server: Server[Any], port: int, token: Grants | None) -> App:
    """The guarded application that serves `/mcp`."""
    app = server.streamable_http_app(
        host="127.0.0.1", max_request_body_size=_BODY, session_idle_timeout=SESSION_IDLE_S, max_sessions=MOST_SESSIONS
    )
    return Guard(app, port, token)


def http_server(app: App, places: Places | None = None) -> uvicorn.Server:
    """A server for an application; it serves until SIGINT or SIGTERM. `places` bounds its connections."""
    protocol: Any = partial(Connection, places or Places(most_places()))
    config = uvicorn.Config(
        app,
        http=protocol,  # uvicorn calls it as it would one of its own classes
        log_level="warning",
        access_log=False,  # heads hold tokens
        server_header=False,
        h11_max_incomplete_event_size=_HEAD,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    return uvicorn.Server(config)


def loopback_sockets(port: int) -> list[socket.socket]:
    """Sockets on 127.0.0.1 and, where there is one, on ::1; never on another address. Port 0 takes a free one."""
    first = _listening(socket.AF_INET, "127.0.0.1", port)
    try:
        return [first, _listening(socket.AF_INET6, "::1", first.getsockname()[1])]
    except OSError:
        return [first]


def _listening(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def given_sockets() -> list[socket.socket]:
    """The sockets that systemd has opened for us, if it has.

    Raises:
        ValueError: One of them is not on the loopback.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = int(os.environ.get("LISTEN_FDS", "0"))
    sockets = [socket.socket(fileno=_FIRST_FD + number) for number in range(count)]
    for one in sockets:
        if one.getsockname()[0] not in ("127.0.0.1", "::1"):
            raise ValueError("the sockets from systemd must be on 127.0.0.1 or ::1")
    return sockets
