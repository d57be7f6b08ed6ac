"""A connection to the daemon that is read when asked and never ahead, for those who pass on what they get.

What the reader does not take stays in the socket, where the daemon holds it up; so it costs a position and a frame.
"""

from collections import deque

import anyio
from anyio.abc import UNIXSocketStream

from punchlist.aio_link import dial
from punchlist.core import Profile, Request, Wire, met, result_of
from punchlist.errors import ConnectionLost
from punchlist.options import Options
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

    async def __aenter__(self) -> "PullLink":
        """Connect, starting a daemon if need be.

        Raises:
            PunchlistError: That was not possible in the time that a call may take.
        """
        profile = self._profile
        with anyio.move_on_after(profile.timeout_s):
            self._stream = await UNIXSocketStream.from_socket(await dial(profile))
            try:
                greeting = result_of(await self.exchange(profile.hello), HelloResult)
                self.hello = met(profile.target, self._wire.greeted(greeting))
            except BaseException:
                await self._close()
                raise
            return self
        raise profile.target.too_late()

    async def __aexit__(self, *exception: object) -> None:
        """Hang up."""
        await self._close()

    async def exchange(self, request: Request) -> Reply:
        """Send a request and wait for its answer; notifications that come meanwhile are kept.

        Raises:
            PunchlistError: The connection ended.
        """
        request_id, data = self._wire.send(request)
        try:
            await self._stream.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
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
            try:
                data = await self._stream.receive(_PIECE)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise ConnectionLost("The daemon closed the connection.") from error
            self._ready.extend(self._wire.receive(data))
        return self._ready.popleft()

    async def _close(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(self._stream)
