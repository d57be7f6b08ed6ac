"""A connection to the daemon that is read when asked and never ahead, for those who pass on what they get.

What the reader does not take stays in the socket, where the daemon holds it up; so it costs a position and a frame.
"""

import asyncio
from collections import deque

import anyio

from punchlist.connection.core import Profile, Request, Wire, met, result_of
from punchlist.connection.link import dial
from punchlist.connection.options import Options
from punchlist.errors import ConnectionLost, PunchlistError
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_schemas.results import HelloResult

_PIECE = 16 << 10


class PullLink:
    """One connection. Use it with `async with`, one task at a time.

    Args:
        **options: See `Options`.
    """

    hello: HelloResult

    def __init__(self, options: Options) -> None:
        self._profile = Profile(options)
        self._wire = Wire()
        self._ready: deque[Reply | Notice] = deque()
        self._kept: deque[Notice] = deque()
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] = self._loop.create_future()
        self._is_watched = False

    async def __aenter__(self) -> "PullLink":
        """Connect, starting a daemon if need be.

        Raises:
            PunchlistError: That was not possible in the time that a call may take.
        """
        profile = self._profile
        with anyio.move_on_after(profile.timeout_s):
            self._socket = await dial(profile)
            try:
                greeting = result_of(await self.exchange(profile.hello), HelloResult)
                self.hello = met(profile.target, self._wire.greeted(greeting))
            except BaseException:
                self._close()
                raise
            return self
        raise profile.target.too_late()

    async def __aexit__(self, *exception: object) -> None:
        """Hang up."""
        self._close()

    async def exchange(self, request: Request) -> Reply:
        """Send a request and wait for its answer; notifications that come meanwhile are kept.

        Raises:
            PunchlistError: The connection ended.
        """
        request_id, data = self._wire.send(request)
        try:
            await self._loop.sock_sendall(self._socket, data)
        except OSError as error:
            raise ConnectionLost("The daemon closed the connection.") from error
        while True:
            message = await self._next()
            if isinstance(message, Notice):
                self._kept.append(message)
            elif message.id == request_id or message.id is None:
                return message

    async def receive(self) -> Notice:
        """The next notification.

        Raises:
            PunchlistError: The connection ended.
        """
        while not self._kept:
            message = await self._next()
            if isinstance(message, Notice):
                self._kept.append(message)
        return self._kept.popleft()

    async def _next(self) -> Reply | Notice:
        while not self._ready:
            self._news = self._loop.create_future()
            if not self._is_watched:
                self._is_watched = True
                self._loop.add_reader(self._socket, self._on_readable)
            await self._news
        return self._ready.popleft()

    def _on_readable(self) -> None:
        """Read for the waiting task; without one, stop watching: a watch per message costs more than the message."""
        if self._news.done():
            self._unwatch()
            return
        try:
            self._take(self._socket.recv(_PIECE))
        except BlockingIOError:
            return
        except OSError as error:
            lost = ConnectionLost("The daemon closed the connection.")
            lost.__cause__ = error
            self._news.set_exception(lost)
        except PunchlistError as error:
            self._news.set_exception(error)

    def _take(self, data: bytes) -> None:
        if not data:
            raise ConnectionLost("The daemon closed the connection.")
        self._ready.extend(self._wire.receive(data))
        if self._ready:
            self._news.set_result(None)

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._socket)

    def _close(self) -> None:
        self._unwatch()
        self._socket.close()
