"""One connection to the daemon on asyncio's event loop."""

import asyncio
import socket
from collections import deque
from typing import cast

import anyio.to_thread

from punchlist.core import Profile, Request, Wire, given_back, result_of
from punchlist.errors import ConnectionLost, PunchlistError
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_schemas.results import HelloResult

_READ_AHEAD = 64
"""Notifications taken before the loop that watches asks for more."""


class Link(asyncio.Protocol):
    """One connection: it hands answers to the calls that wait for them and keeps notifications for `receive`."""

    hello: HelloResult

    def __init__(self) -> None:
        self._wire = Wire()
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._abandoned: dict[int, Request] = {}
        self._notices: deque[Notice] = deque()
        self._news = asyncio.Event()
        self._lost: PunchlistError | None = None
        self._ended = asyncio.Event()

    @classmethod
    async def open(cls, profile: Profile) -> "Link":
        """Connect, starting a daemon if need be, and introduce ourselves."""
        dialled = await anyio.to_thread.run_sync(profile.target.dial)
        sock = socket.socket(fileno=dialled.detach())
        sock.setblocking(False)
        _, link = await asyncio.get_running_loop().create_unix_connection(cls, sock=sock)
        try:
            link.hello = link._wire.greeted(result_of(await link.exchange(profile.hello), HelloResult))
        except BaseException:
            link.close()
            raise
        return link

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked here any more."""
        return self._lost is not None

    async def exchange(self, request: Request) -> Reply:
        """Send a request and wait for its answer; if the wait is cancelled, the daemon is told."""
        if self._lost is not None:
            raise self._lost
        request_id, data = self._wire.send(request)
        answer = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        try:
            return await answer
        except asyncio.CancelledError:
            if self._lost is None:
                self._transport.write(self._wire.cancel(request_id))
                self._abandoned[request_id] = request
            raise
        finally:
            del self._waiting[request_id]

    def post(self, request: Request) -> None:
        """Send a request whose answer nobody waits for."""
        self._transport.write(self._wire.send(request)[1])

    async def receive(self) -> Notice:
        """The next notification."""
        while not self._notices:
            if self._lost is not None:
                raise self._lost
            self._news.clear()
            self._transport.resume_reading()
            await self._news.wait()
        return self._notices.popleft()

    def close(self) -> None:
        """End the connection; whoever waits on it gets `ConnectionLost`."""
        self._fail(ConnectionLost("The connection was closed."))

    async def aclose(self) -> None:
        """End the connection and wait until it is gone."""
        self.close()
        await self._ended.wait()

    def _fail(self, error: PunchlistError) -> None:
        if self._lost is None:
            self._lost = error
            self._transport.abort()
            self._news.set()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(error)

    # called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand out what is complete."""
        try:
            messages = self._wire.receive(data)
        except PunchlistError as error:
            self._fail(error)
            return
        for message in messages:
            if isinstance(message, Notice):
                self._notices.append(message)
            elif (request := self._abandoned.pop(cast(int, message.id), None)) is not None:
                for release in given_back(request, message):
                    self.post(release)
            elif (answer := self._waiting.get(cast(int, message.id))) is not None and not answer.done():
                answer.set_result(message)
        if self._notices:
            self._news.set()
        if len(self._notices) > _READ_AHEAD:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail whatever still waits."""
        self._fail(ConnectionLost("The daemon closed the connection."))
        self._ended.set()
