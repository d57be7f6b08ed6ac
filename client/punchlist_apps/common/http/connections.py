"""Limits on the connections of the HTTP server: their number, and timeouts for peers that don't send or read.

Every process on this machine can connect to a loopback port, from any loopback address. Only a valid token
distinguishes a client from an attacker. Therefore a connection whose newest request had no valid token counts as a
stranger's: it gets one response, and newer connections can evict it at any time. Connections with valid tokens share
the other slots.
"""

import asyncio
import resource
import socket
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from punchlist_apps.common.http.guard import Message, Receive, Scope, Send, get_bearer_token
from punchlist_apps.common.http.problem import Problem
from punchlist_apps.common.http.shares import pick_to_evict
from punchlist_schemas.system import os_calls

MAX_CONNECTIONS = 512
"""Upper limit for connections."""

ARRIVAL_S = 10.0
"""Timeout from the first byte of a request, or from the start of its connection, to its last byte, in seconds."""

STALL_S = 10.0
"""Timeout for a peer to read a piece of a response, in seconds."""

_PIECE_BYTES = 16 << 10
"""Size of the pieces of a response. Each piece is written after the peer has read the previous one."""

_LINGER_S = 1.0
"""Delay before a connection is closed after an invalid request, in seconds, because the peer may still be sending."""

_SEND_BUFFER_BYTES = 64 << 10
"""Size of the kernel's send buffer. With its default of up to 4 MiB, slow readers would go unnoticed."""

_READ_BYTES = 16 << 10
"""Size of a read, which limits the number of bytes buffered for a peer that pipelines requests."""

_SPARE = 256
"""Number of descriptors reserved for other uses, including connections that two sockets accept before others are
closed."""


def raise_connection_limit() -> int:
    """Raise this process's limit on descriptors as far as allowed. Return the resulting limit on connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (os_calls.max_descriptors(hard), hard))
    return MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else max(16, min(MAX_CONNECTIONS, hard - _SPARE))


class ConnectionSlots:
    """The connections of one server.

    A quarter of the slots is reserved for strangers, which include every new connection.

    Args:
        maximum: Upper limit for connections.
        is_valid: Whether a bearer token is valid.
        arrival_s: Timeout for a request to arrive completely, in seconds.
        stall_s: Timeout for a peer that doesn't read a response, in seconds.

    Attributes:
        accept_batch: Number of connections that a listening socket accepts in one iteration of the event loop. Even if
            two sockets are flooded, a new connection keeps its slot for at least 8 iterations. Its request is read
            after about 4 iterations.
    """

    def __init__(
        self,
        maximum: int = MAX_CONNECTIONS,
        is_valid: Callable[[bytes], bool] = lambda token: False,
        *,
        arrival_s: float = ARRIVAL_S,
        stall_s: float = STALL_S,
    ) -> None:
        self.maximum = maximum
        self.accept_batch = max(1, maximum // 64)
        self.arrival_s = arrival_s
        self.stall_s = stall_s
        self.read_buffer = memoryview(bytearray(_READ_BYTES))
        self._is_valid = is_valid
        self._strangers: dict[Connection, None] = {}
        """Oldest first."""
        self._tokens: dict[Connection, bytes] = {}
        """Connection -> the token of its newest request, oldest request first."""
        self._used_at = time.monotonic()

    @property
    def count(self) -> int:
        return len(self._strangers) + len(self._tokens)

    def add(self, connection: "Connection") -> None:
        """Add a new connection, and evict the oldest stranger if all slots are taken."""
        self._strangers[connection] = None
        if self.count > self.maximum:
            self._end(next(iter(self._strangers)))

    def recognize(self, connection: "Connection", token: bytes) -> bool:
        """Return whether the token of a connection's newest request is valid.

        Without a valid token, count the connection as a stranger's.

        A request doesn't renew a stranger's slot, because an attacker could then outlast a client that has just
        connected.
        """
        is_valid = self._is_valid(token)
        was_valid = self._tokens.pop(connection, None) is not None
        if is_valid and (was_valid or connection in self._strangers):  # An evicted connection has no slot.
            self._strangers.pop(connection, None)
            self._tokens[connection] = token
            if len(self._tokens) > self.maximum - max(1, self.maximum // 4):
                self._end(self._pick_to_evict())
        elif was_valid:
            self._strangers[connection] = None
        return is_valid

    def remove(self, connection: "Connection") -> None:
        self._strangers.pop(connection, None)
        self._tokens.pop(connection, None)
        self._used_at = time.monotonic()

    async def call_when_idle(self, idle_s: float, on_idle: Callable[[], None]) -> None:
        """Call `on_idle` after `idle_s` seconds without a connection."""
        rest_s = idle_s
        while rest_s > 0:
            await asyncio.sleep(rest_s)
            rest_s = idle_s if self.count else self._used_at + idle_s - time.monotonic()
        on_idle()

    def _pick_to_evict(self) -> "Connection":
        """Return the connection that has been idle longest, or the one with the newest request if all are busy.

        Older requests are allowed to finish, because the outcome of an interrupted request is unknown.
        """
        return pick_to_evict(
            (connection, token, (True, -at) if connection.is_answering else (False, at))
            for at, (connection, token) in enumerate(self._tokens.items())
        )

    def _end(self, connection: "Connection") -> None:
        self.remove(connection)
        connection.evict()


class Connection(H11Protocol, asyncio.BufferedProtocol):
    """One connection of a client."""

    def __init__(self, slots: ConnectionSlots, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._slots = slots
        self._application: Any = self.app
        self.app: Any = self._answer
        self._arrival: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._is_evicted = False
        self._is_refused = False

    @property
    def is_answering(self) -> bool:
        return not self.cycle.response_complete

    def connection_made(  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn does
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        transport.set_write_buffer_limits(0)  # A peer may stall at any byte.
        self._start_arrival_timer()
        self._slots.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._slots.remove(self)
        self._stop_arrival_timer()
        self._stop_stall_timer()
        super().connection_lost(exc)

    def evict(self) -> None:
        """Abort the connection without starting another request."""
        self._is_evicted = True
        self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Read into one buffer that all connections share."""
        return self._slots.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._slots.read_buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._arrival is None and self.conn.their_state is h11.IDLE:
            self._start_arrival_timer()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_arrival_timer()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid HTTP and heads that are too long, in the same format as all other errors."""
        detail = "This is not an HTTP request, or its address and headers are too long."
        status, headers, body = Problem("invalid_request", detail).build_response()
        length = (b"content-length", b"%d" % len(body))
        response = h11.Response(status_code=status, headers=[*headers, length, CLOSE_HEADER])
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        # If the connection were closed with unread bytes, it would be reset, and the peer would lose the response.
        self._is_refused = True
        self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)

    def on_response_complete(self) -> None:
        """Continue with pipelined bytes, which may contain a request whose body is incomplete."""
        super().on_response_complete()
        if self._arrival is None and self.conn.their_state is h11.SEND_BODY:
            self._start_arrival_timer()

    def pause_writing(self) -> None:
        """Start the stall timer. At most one piece of a response is waiting to be read by the peer."""
        super().pause_writing()
        self._stall = self.loop.call_later(self._slots.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall_timer()

    def _start_arrival_timer(self) -> None:
        self._arrival = self.loop.call_later(self._slots.arrival_s, self.transport.abort)

    def _stop_arrival_timer(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _stop_stall_timer(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Close a stranger's connection afterwards."""
        has_token = self._slots.recognize(self, get_bearer_token(scope["headers"]))
        if self._is_evicted:
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        # Closing before the end of the body would reset the connection.
        if not has_token and self.conn.their_state is not h11.SEND_BODY:
            scope["headers"].append(CLOSE_HEADER)
        await self._application(scope, receive, _send_in_pieces(send))


def _send_in_pieces(send: Send) -> Send:
    async def send_in_pieces(message: Message) -> None:
        body = message.get("body", b"")
        last = max(0, len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
        for begin in range(0, last, _PIECE_BYTES):
            await send({**message, "body": body[begin : begin + _PIECE_BYTES], "more_body": True})
        await send({**message, "body": body[last:]} if last else message)

    return send_in_pieces
