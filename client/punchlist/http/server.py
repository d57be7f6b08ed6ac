"""How every server of ours is set up: bounds on heads and connections, no access log, since heads hold tokens."""

from functools import partial
from types import FrameType
from typing import Any

import anyio
import uvicorn

from punchlist.http.connections import AT_ONCE, Connection, Places, most_places
from punchlist.http.guard import App

_HEAD = 16 << 10


class Server(uvicorn.Server):
    """Serves until SIGINT or SIGTERM, or until `end`; then `ending` is set, so that open streams end by themselves."""

    def __init__(self, config: uvicorn.Config, ending: anyio.Event) -> None:
        super().__init__(config)
        self._ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, for a signal."""
        self._ending.set()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """Begin to end, without a signal."""
        self._ending.set()
        self.should_exit = True


def http_server(app: App, places: Places | None = None, ending: anyio.Event | None = None) -> Server:
    """A server for an application; `places` bounds its connections."""
    protocol: Any = partial(Connection, places or Places(most_places()))
    config = uvicorn.Config(
        app,
        backlog=AT_ONCE,
        http=protocol,  # uvicorn calls it as it would one of its own classes
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_HEAD,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    return Server(config, ending or anyio.Event())
