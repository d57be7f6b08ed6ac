"""How every server of ours is set up: bounds on heads and connections, no access log, since heads hold tokens."""

import socket
from functools import partial
from types import FrameType
from typing import Any

import anyio
import uvicorn

from punchlist_apps.common.http.connections import Connection, Places, most_places
from punchlist_apps.common.http.guard import App

_HEAD = 16 << 10

_QUEUE = 1_024
"""How many connections wait for a listening socket to accept them."""


class Server(uvicorn.Server):
    """Serves until SIGINT or SIGTERM, or until `end`; then `ending` is set, so that open streams end by themselves."""

    def __init__(self, config: uvicorn.Config, ending: anyio.Event) -> None:
        super().__init__(config)
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, with a queue that is long: whose connection finds it full has to wait for seconds."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_QUEUE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, for a signal."""
        self._ending.set()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """Start a graceful shutdown."""
        self._ending.set()
        self.should_exit = True


def http_server(app: App, places: Places | None = None, ending: anyio.Event | None = None) -> Server:
    """A server for an application; `places` bounds its connections."""
    places = places or Places(most_places())
    protocol: Any = partial(Connection, places)
    config = uvicorn.Config(
        app,
        backlog=places.at_once,
        http=protocol,  # uvicorn calls it as it would one of its own classes
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_HEAD,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    return Server(config, ending or anyio.Event())
