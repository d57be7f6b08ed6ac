"""Setup of the HTTP servers: limits on heads and connections, and no access log, because heads contain tokens."""

import socket
from functools import partial
from types import FrameType
from typing import Any

import anyio
import uvicorn

from punchlist_apps.common.http.connections import Connection, ConnectionSlots, raise_connection_limit
from punchlist_apps.common.http.guard import App

_HEAD_BYTES = 16 << 10
"""Upper limit for the head of a request, in bytes."""

_QUEUE = 1_024
"""Length of the accept queue of a listening socket."""


class Server(uvicorn.Server):
    """Serves until SIGINT, SIGTERM or `end`. Then sets `ending`, which ends open streams."""

    def __init__(self, config: uvicorn.Config, ending: anyio.Event) -> None:
        super().__init__(config)
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with a long queue, because a connection that arrives when the queue is full waits for seconds."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_QUEUE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._ending.set()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """Start a graceful shutdown."""
        self._ending.set()
        self.should_exit = True


def build_server(app: App, slots: ConnectionSlots | None = None, ending: anyio.Event | None = None) -> Server:
    """Return a server for an application; `slots` limits its connections."""
    slots = slots or ConnectionSlots(raise_connection_limit())
    protocol: Any = partial(Connection, slots)
    config = uvicorn.Config(
        app,
        backlog=slots.accept_batch,
        http=protocol,  # called in the same way as uvicorn's own classes
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    return Server(config, ending or anyio.Event())
