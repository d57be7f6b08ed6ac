"""Runs the server until a signal arrives or the server has been idle for too long."""

import socket

import anyio

from punchlist.clients.aio import AsyncClient
from punchlist.connection.options import Options
from punchlist_apps.common.http.connections import ConnectionSlots, raise_connection_limit
from punchlist_apps.common.http.keys import Keys
from punchlist_apps.common.http.server import build_server
from punchlist_apps.web.app import Setup, build_app


async def serve(options: Options, keys: Keys, sockets: list[socket.socket], setup: Setup) -> None:
    """Serve on the given sockets. `options` configure the connection to the daemon."""
    ending, places = (
        anyio.Event(),
        ConnectionSlots(raise_connection_limit(), lambda token: keys.read_scope(token) is not None),
    )
    client = AsyncClient(**options)
    try:
        app = build_app(client, keys, ending, setup)
        server = build_server(app, places, ending)
        async with anyio.create_task_group() as group:
            if setup.idle_s is not None:
                group.start_soon(places.call_when_idle, setup.idle_s, server.end)
            await server.serve(sockets=sockets)
            group.cancel_scope.cancel()
    finally:
        await client.aclose()
