"""Limits on the connections of the HTTP server: how many there are, and how long a peer may send or read nothing.

Every process on this machine can connect to a loopback port, from any loopback address. Only a valid token tells a
client from an attacker. So a connection whose newest request had none is a stranger's: it gets one answer, and gives
its place to a newer connection, whatever it does. Holders of tokens share the other places.
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

from punchlist_apps.common.http.guard import Message, Receive, Scope, Send, bearer
from punchlist_apps.common.http.problem import Problem
from punchlist_apps.common.http.shares import first_to_go
from punchlist_schemas.system import os_calls

MOST = 512
"""Upper limit for connections."""

ARRIVAL_S = 10.0
"""How long a request may take from its first byte, or from the connection's start, to its last byte, in seconds."""

STALL_S = 10.0
"""How long a peer may take to read a piece of an answer, in seconds."""

_PIECE_BYTES = 16 << 10
"""An answer is written in pieces of this size, each once the peer has read the one before."""

_LINGER_S = 1.0
"""How long a connection stays after an answer to what is no request, in seconds: the peer may still be sending it."""

_SEND_BUFFER_BYTES = 64 << 10
"""The kernel's buffer for what a peer hasn't read. In its default of up to 4 MiB a slow reader looks like none."""

_READ_BYTES = 16 << 10
"""How much is read at once: as much may wait of a peer that sends requests without waiting for answers."""

_SPARE = 256
"""Descriptors for all else, among them what two sockets accept in two turns of the loop before anything is closed."""


def most_places() -> int:
    """How many connections there may be, after raising this process's limit of descriptors as far as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (os_calls.max_descriptors(hard), hard))
    return MOST if hard == resource.RLIM_INFINITY else max(16, min(MOST, hard - _SPARE))


class Places:
    """The connections of one server. A quarter of the places is for strangers, among them every new connection.

    Args:
        most: Upper limit for connections.
        is_valid: Whether a bearer token is valid.
        arrival_s: How long a request may take to arrive, in seconds.
        stall_s: How long a peer may read nothing of an answer, in seconds.

    Attributes:
        at_once: How many connections a listening socket accepts in one turn of the loop. A new one keeps its place for
            8 turns or more, even if two sockets are flooded: it takes about 4 until its request is read.
    """

    def __init__(
        self,
        most: int = MOST,
        is_valid: Callable[[bytes], bool] = lambda token: False,
        *,
        arrival_s: float = ARRIVAL_S,
        stall_s: float = STALL_S,
    ) -> None:
        self.most = most
        self.at_once = max(1, most // 64)
        self.arrival_s = arrival_s
        self.stall_s = stall_s
        self.read_buffer = memoryview(bytearray(_READ_BYTES))
        self._is_valid = is_valid
        self._strangers: dict[Connection, None] = {}
        """Oldest first."""
        self._tokens: dict[Connection, bytes] = {}
        """The tokens of the others, by their newest request, oldest first."""
        self._used_at = time.monotonic()

    @property
    def taken(self) -> int:
        return len(self._strangers) + len(self._tokens)

    def enter(self, connection: "Connection") -> None:
        """Give a new connection a place, which the oldest stranger loses if all are taken."""
        self._strangers[connection] = None
        if self.taken > self.most:
            self._end(next(iter(self._strangers)))

    def recognize(self, connection: "Connection", token: bytes) -> bool:
        """Return whether the token of a connection's newest request is valid, and give it the place that goes with it.

        A request makes no stranger newer: an attacker could outlast a client that has just connected.
        """
        is_valid = self._is_valid(token)
        was_valid = self._tokens.pop(connection, None) is not None
        if is_valid and (was_valid or connection in self._strangers):  # One that gave way has no place.
            self._strangers.pop(connection, None)
            self._tokens[connection] = token
            if len(self._tokens) > self.most - max(1, self.most // 4):
                self._end(self._first_to_go())
        elif was_valid:
            self._strangers[connection] = None
        return is_valid

    def leave(self, connection: "Connection") -> None:
        self._strangers.pop(connection, None)
        self._tokens.pop(connection, None)
        self._used_at = time.monotonic()

    async def until_idle(self, idle_s: float, then: Callable[[], None]) -> None:
        """Call `then` once there was no connection for `idle_s` seconds."""
        rest_s = idle_s
        while rest_s > 0:
            await asyncio.sleep(rest_s)  # once in that time, whatever happens
            rest_s = idle_s if self.taken else self._used_at + idle_s - time.monotonic()
        then()

    def _first_to_go(self) -> "Connection":
        """Return the connection without a request for longest, or else the one whose request is the newest.

        What has begun first is finished: the outcome of a request that is cut off is unknown.
        """
        return first_to_go(
            (connection, token, (True, -at) if connection.is_answering else (False, at))
            for at, (connection, token) in enumerate(self._tokens.items())
        )

    def _end(self, connection: "Connection") -> None:
        self.leave(connection)
        connection.give_way()


class Connection(H11Protocol, asyncio.BufferedProtocol):
    """One connection of a client."""

    def __init__(self, places: Places, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = places
        self._application: Any = self.app
        self.app: Any = self._answer
        self._arrival: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._gave_way = False
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
        transport.set_write_buffer_limits(0)  # A peer may stall over any byte.
        self._await_request()
        self._places.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.leave(self)
        self._request_is_here()
        self._peer_has_read()
        super().connection_lost(exc)

    def give_way(self) -> None:
        """End now, without beginning another request."""
        self._gave_way = True
        self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Read into one buffer for all connections."""
        return self._places.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._places.read_buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._arrival is None and self.conn.their_state is h11.IDLE:
            self._await_request()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request_is_here()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has a head that is too long, in the form of all refusals."""
        said = "This is not an HTTP request, or its address and headers are too long."
        status, headers, body = Problem("invalid_request", said).answer()
        length = (b"content-length", b"%d" % len(body))
        response = h11.Response(status_code=status, headers=[*headers, length, CLOSE_HEADER])
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        # With bytes left to read a close would reset the connection, and the peer lose the answer.
        self._is_refused = True
        self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)

    def on_response_complete(self) -> None:
        """Go on with what the peer has sent in advance, which may be a request without the end of its body."""
        super().on_response_complete()
        if self._arrival is None and self.conn.their_state is h11.SEND_BODY:
            self._await_request()

    def pause_writing(self) -> None:
        """Wait for the peer to read what is written, which is a piece of an answer at most."""
        super().pause_writing()
        self._stall = self.loop.call_later(self._places.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._peer_has_read()

    def _await_request(self) -> None:
        self._arrival = self.loop.call_later(self._places.arrival_s, self.transport.abort)

    def _request_is_here(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _peer_has_read(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a stranger's is the last of its connection."""
        is_known = self._places.recognize(self, bearer(scope["headers"]))
        if self._gave_way:
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        if not is_known and self.conn.their_state is not h11.SEND_BODY:  # Closing before the end would reset it.
            scope["headers"].append(CLOSE_HEADER)
        await self._application(scope, receive, _in_pieces(send))


def _in_pieces(send: Send) -> Send:
    async def send_in_pieces(message: Message) -> None:
        body = message.get("body", b"")
        last = max(0, len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
        for begin in range(0, last, _PIECE_BYTES):
            await send({**message, "body": body[begin : begin + _PIECE_BYTES], "more_body": True})
        await send({**message, "body": body[last:]} if last else message)

    return send_in_pieces
