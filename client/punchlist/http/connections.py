"""Bounds on the connections of the HTTP server: how many there are, and how long a request may take to arrive.

Whoever is on this machine can connect to a loopback port, with or without the token. So a connection that has shown no
whole request has 10 seconds for it, and gives way to newer ones when all places are taken; one whose request is being
answered never does.
"""

import asyncio
import resource
import socket
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from punchlist_schemas.system import os_calls

MOST = 512
"""How many connections there are at most."""

ARRIVAL_S = 10.0
"""How long a request may take from its first byte, or from the connection's begin, to its last byte, in seconds."""

_AHEAD = 16 << 10
"""How many bytes may wait for a client that does not read, before what makes them waits."""

AT_ONCE = 32
"""How many connections a listening socket accepts in one turn of the loop: as many as its queue is long."""

_SPARE = 256
"""Descriptors for all else, among them what two sockets accept in two turns of the loop before anything is closed."""


def most_places() -> int:
    """How many connections there may be, after raising this process's limit of descriptors as far as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (os_calls.most_descriptors(hard), hard))
    return MOST if hard == resource.RLIM_INFINITY else max(16, min(MOST, hard - _SPARE))


class Places:
    """The connections of one server; `idle` are those without a whole request, oldest first.

    Args:
        most: How many connections there may be.
        arrival_s: How long a request may take to arrive, in seconds.
    """

    def __init__(self, most: int = MOST, arrival_s: float = ARRIVAL_S) -> None:
        self.most = most
        self.arrival_s = arrival_s
        self.idle: dict[Connection, None] = {}
        self.taken = 0
        self.used_at = time.monotonic()

    async def until_idle(self, idle_s: float, then: Callable[[], None]) -> None:
        """Call `then` once there was no connection for `idle_s` seconds."""
        rest_s = idle_s
        while rest_s > 0:
            await asyncio.sleep(rest_s)  # once in that time, whatever happens
            rest_s = idle_s if self.taken else self.used_at + idle_s - time.monotonic()
        then()


class Connection(H11Protocol):
    """One connection of a client."""

    def __init__(self, places: Places, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = places
        self._arrival: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take a place, from the connection that has been idle for longest if there is no free one."""
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(_AHEAD)
        self._places.taken += 1
        self._await_request()
        if self._places.taken > self._places.most:
            next(iter(self._places.idle)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._places.taken -= 1
        self._places.used_at = time.monotonic()
        self._request_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        if self._arrival is None and self.conn.their_state is h11.IDLE:
            self._await_request()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request_is_here()

    def on_response_complete(self) -> None:
        """A kept connection is idle again; uvicorn ends it after its own time-out."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
            self._places.idle[self] = None

    def _await_request(self) -> None:
        self._places.idle[self] = None
        self._arrival = self.loop.call_later(self._places.arrival_s, self.transport.abort)

    def _request_is_here(self) -> None:
        self._places.idle.pop(self, None)
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None
