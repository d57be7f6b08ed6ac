"""One connection to the daemon on asyncio's event loop."""

import asyncio
import socket
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, cast
from weakref import WeakSet

import anyio

from punchlist.connection.core import Profile, Request, Wire, build_releases, error_of, result_of
from punchlist.connection.forks import on_fork
from punchlist.errors import ConnectionLost, ProtocolError, PunchlistError
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_schemas.results import HelloResult

_READ_AHEAD = 64
_READ_AHEAD_BYTES = 64 << 10
"""Limits on the notifications buffered for a consumer: their number, and their size in bytes. The rest stays in the
socket.
"""


class Link(asyncio.Protocol):
    """One connection. It passes replies to the waiting calls, and queues notifications for `receive`."""

    hello: HelloResult
    _all: "ClassVar[WeakSet[Link]]" = WeakSet()

    def __init__(self, sock: socket.socket | None = None) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()
        self._wire = Wire()
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._abandoned: dict[int, Request] = {}
        self._unread: dict[int, Reply] = {}
        self._answered = 0
        self._notices: deque[Notice] = deque()
        self._unread_bytes = 0  # bytes received since the queue of notifications was last empty
        self._news = asyncio.Event()
        self._lost: PunchlistError | None = None
        self._ended = asyncio.Event()
        self._all.add(self)
        on_fork(self, Link._reset_after_fork)

    @classmethod
    async def open(cls, profile: Profile) -> "Link":
        """Connect, starting a daemon if needed, and send `daemon.hello`.

        Raises:
            TimedOut, DaemonUnavailable: Connecting failed, or took longer than the limit for a call (`timeout_s`).
        """
        with anyio.move_on_after(profile.timeout_s):
            sock = await dial(profile)
            link = cls(sock)
            await link._loop.create_unix_connection(lambda: link, sock=sock)
            try:
                link.hello = link._wire.greet(profile.target, await link.exchange(profile.hello))
            except BaseException:
                link.close()
                raise
            return link
        raise profile.target.build_timeout_error()

    @classmethod
    async def close_all(cls) -> None:
        for link in list(cls._all):
            if link._loop is asyncio.get_running_loop():
                await link.aclose()

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    async def exchange(self, request: Request) -> Reply:
        """Send a request and return its reply. Cancelling the wait cancels the call in the daemon."""
        if self._lost is not None:
            raise self._lost
        request_id, data = self._wire.send(request)
        answer = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        # The reply comes after the notifications that filled the buffer, so reading must be resumed.
        self._transport.resume_reading()
        self._transport.write(data)
        try:
            return await answer
        except asyncio.CancelledError:
            reply = self._unread.pop(request_id, None)
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                reply = answer.result()
            if self._lost is None and reply is not None:
                self._release_claimed(request, reply)
            elif self._lost is None:
                self._transport.write(self._wire.cancel(request_id))
                self._abandoned[request_id] = request
            raise
        finally:
            del self._waiting[request_id]

    def post(self, request: Request) -> None:
        self._transport.write(self._wire.send(request)[1])

    async def receive(self) -> Notice:
        """Wait for the next notification and return it."""
        while not self._notices:
            if self._lost is not None:
                raise self._lost
            self._unread_bytes = 0
            self._news.clear()
            self._transport.resume_reading()
            await self._news.wait()
        return self._notices.popleft()

    def close(self) -> None:
        """Close the connection. Waiting calls fail with `ConnectionLost`, and may be retried on another connection."""
        self._fail(ConnectionLost("The connection was closed."))

    def abandon(self) -> None:
        """Close the connection from any thread without waiting. For finalizers."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.close)

    def _reset_after_fork(self) -> None:
        # The connection still belongs to the parent: close only the descriptor, and leave the transport and its loop
        # alone.
        self._lost = ConnectionLost("The connection belongs to the process that this one was forked from.")
        if self._socket is not None:
            self._socket.close()

    async def aclose(self) -> None:
        """Close the connection permanently, and wait until it is closed. Waiting calls fail and are not retried."""
        self._fail(ConnectionLost("The connection was closed.", final=True))
        await self.wait_closed()

    async def wait_closed(self) -> None:
        await self._ended.wait()

    def _fail(self, error: PunchlistError) -> None:
        if self._lost is None:
            self._lost = error
            self._transport.abort()
            self._news.set()
            for answer in self._waiting.values():
                _fail_unless_done(answer, error)

    def _deliver(self, request_id: int, reply: Reply) -> None:
        self._answered = max(self._answered, request_id)
        if (request := self._abandoned.pop(request_id, None)) is not None:
            self._release_claimed(request, reply)
        elif (answer := self._waiting.get(request_id)) is None:
            return
        elif answer.cancelled():
            # The caller was cancelled in this iteration of the event loop and hasn't run since: `exchange` handles the
            # reply.
            self._unread[request_id] = reply
        elif not answer.done():
            answer.set_result(reply)

    def _release_claimed(self, request: Request, reply: Reply) -> None:
        if error_of(reply) is None:
            for release in build_releases(request, result_of(reply, object)):
                self.post(release)

    def _fail_unanswered(self, reply: Reply) -> None:
        """Fail the calls that a rejected frame may belong to. The daemon replies to such a frame without an id."""
        # The daemon reads frames in order, so all frames up to the latest answered call were valid.
        error = error_of(reply) or ProtocolError("The daemon replied to an unknown call.")
        for request_id, answer in self._waiting.items():
            if request_id > self._answered:
                _fail_unless_done(answer, error)

    # called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._unread_bytes += len(data)
        try:
            messages = self._wire.receive(data)
        except PunchlistError as error:
            self._fail(error)
            return
        for message in messages:
            if isinstance(message, Notice):
                self._notices.append(message)
            elif message.id is None:
                self._fail_unanswered(message)
            else:
                self._deliver(cast(int, message.id), message)
        if self._notices:
            self._news.set()
            is_ahead = len(self._notices) > _READ_AHEAD or self._unread_bytes > _READ_AHEAD_BYTES
            if is_ahead and not self._waiting:
                self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionLost("The daemon closed the connection."))
        self._ended.set()


async def dial(profile: Profile) -> socket.socket:
    """Run `Target.dial` in a thread. If the call is cancelled first, the new connection is closed."""
    # A daemon thread, so that the interpreter can exit while the thread is connecting.
    loop = asyncio.get_running_loop()
    connection: asyncio.Future[socket.socket] = loop.create_future()

    def report(sock: socket.socket) -> None:
        if connection.done():
            sock.close()
        else:
            connection.set_result(sock)

    def connect() -> None:
        sock: socket.socket | None = None
        try:
            sock = socket.socket(fileno=profile.target.dial(profile.timeout_s).detach())
            sock.setblocking(False)
            action = partial(report, sock)
        except Exception as error:
            action = partial(_fail_unless_done, connection, error)
        try:
            loop.call_soon_threadsafe(action)
        except RuntimeError:  # the loop is closed
            if sock is not None:
                sock.close()

    threading.Thread(target=connect, name="punchlist-dial", daemon=True).start()
    try:
        return await connection
    except asyncio.CancelledError:
        if connection.done() and not connection.cancelled() and connection.exception() is None:
            connection.result().close()
        raise


def _fail_unless_done(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
