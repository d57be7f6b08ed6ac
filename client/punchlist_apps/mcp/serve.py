"""Runs the server: over standard input and output, or over HTTP on this machine."""

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from mcp.server import Server
from mcp.server.stdio import stdio_server

from punchlist.clients.aio import AsyncClient
from punchlist_apps.common import autostart
from punchlist_apps.common.http.connections import ConnectionSlots, raise_connection_limit
from punchlist_apps.common.http.guard import App
from punchlist_apps.common.http.server import build_server
from punchlist_apps.common.http.sockets import open_loopback_sockets, take_systemd_sockets
from punchlist_apps.mcp.http_auth import Grants, Guard
from punchlist_apps.mcp.presence import Presence
from punchlist_apps.mcp.server import build
from punchlist_apps.mcp.server_process import ServerProcess
from punchlist_apps.mcp.sessions import IDLE_S, MAX_SESSIONS, Sessions
from punchlist_apps.mcp.stdio import build_options, build_setup, build_target, open_session
from punchlist_apps.mcp.webhook_post import Poster
from punchlist_apps.mcp.webhooks import Receivers

_BODY = 1 << 20


async def serve_stdio(args: Namespace, process: ServerProcess) -> None:
    """Serve one host until it closes standard input."""
    async with open_session(args, process) as server, stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def serve_http(args: Namespace, process: ServerProcess, token: Grants) -> None:
    """Serve hosts over HTTP on the loopback interface until a signal stops the server."""
    target = build_target(args, process)
    autostart.ensure_mirrors_run(target)
    client = AsyncClient(**build_options(args, target))
    try:
        sockets = take_systemd_sockets() or open_loopback_sockets(args.port)
        presence = Presence(client)
        receivers = Receivers(token, Poster(is_private_allowed=args.private_webhooks))
        server = build(client, build_setup(args, process, target), presence, receivers=receivers)
        app = build_http_app(server, sockets[0].getsockname()[1], token, on_session_end=presence.end_session)
        places = ConnectionSlots(raise_connection_limit(), lambda value: token.find_grant(value) is not None)
        await build_server(app, places).serve(sockets=sockets)
    finally:
        await client.aclose()


def build_http_app(
    server: Server[Any],
    port: int,
    token: Grants | None,
    *,
    max_sessions: int = MAX_SESSIONS,
    idle_s: float = IDLE_S,
    on_session_end: Callable[[str], None] = lambda _session: None,
) -> App:
    """Build the application that serves `/mcp`, protected by its guard.

    Args:
        on_session_end: Called with the id of each session that has ended.
    """
    app = server.streamable_http_app(
        host="127.0.0.1", max_request_body_size=_BODY, session_idle_timeout=idle_s, max_sessions=None
    )
    return Guard(Sessions(app, max_sessions, idle_s, on_session_end), port, token)
