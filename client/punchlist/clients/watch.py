"""Subscriptions of the asyncio client. Each has its own connection, and a cursor that survives reconnects."""

from collections import deque
from typing import Any, Generic, Self, TypeVar

import anyio

from punchlist.calls.cursor import Cursor
from punchlist.connection.core import PAUSES_S, Profile, Request, Retry, result_of
from punchlist.connection.link import Link
from punchlist.errors import ConnectionLost, DaemonStopped, PunchlistError, TimedOut
from punchlist_schemas.results import SubscribeResult

T = TypeVar("T")


class AsyncWatch(Generic[T]):
    """A subscription for `async for`. It starts with `async with`, or otherwise when the first item is requested.

    It ends when the `async with` block is left, with `aclose`, or when the client is closed.
    """

    def __init__(self, profile: Profile, cursor: Cursor[T], siblings: "set[AsyncWatch[Any]]") -> None:
        self._profile = profile
        self._cursor = cursor
        self._siblings = siblings
        self._ready: deque[T] = deque()
        self._link: Link | None = None
        self._retry: Retry | None = None
        self._closed = False

    async def next(self, timeout_s: float | None = None) -> T:
        """Wait for the next item and return it.

        Raises:
            TimedOut: No item arrived within `timeout_s` seconds. The watch continues.
            ConnectionLost: The watch is closed.
        """
        with anyio.move_on_after(timeout_s):
            while not self._ready:
                await self._step()
            return self._ready.popleft()
        raise TimedOut(f"Nothing happened within {timeout_s:g} s.")

    def put_back(self, item: T) -> None:
        """Put an item back at the front of the queue, for the next call to `next`. Must be called on the loop."""
        self._ready.appendleft(item)

    async def aclose(self) -> None:
        """End the subscription and any loop over it, even in another task."""
        link = self._link
        self.drop()
        if link is not None:
            with anyio.CancelScope(shield=True):
                await link.aclose()

    def drop(self) -> None:
        """End the subscription without waiting. Must be called on the loop."""
        self._closed = True
        self._siblings.discard(self)
        link, self._link = self._link, None
        if link is not None:
            link.close()

    async def _step(self) -> None:
        try:
            await self._advance()
            self._retry = None
        except DaemonStopped:
            # There is no deadline here: the watch continues with the next daemon, no matter how long the user keeps
            # this one stopped.
            self._retry = None
            await anyio.sleep(PAUSES_S[-1])
        except PunchlistError as error:
            if self._closed:
                raise
            self._retry = self._retry or Retry(anyio.current_time() + self._profile.timeout_s)
            pause_s = self._retry.pause_s(error, anyio.current_time())
            if self._link is not None:
                self._link.close()
                self._link = None
            await anyio.sleep(pause_s)

    async def _advance(self) -> None:
        if self._closed:
            raise ConnectionLost("The watch is closed.")
        if self._link is not None:
            self._ready.extend(self._cursor.take(await self._link.receive()))
            return
        with anyio.move_on_after(self._profile.timeout_s):
            link = await Link.open(self._profile)
            try:
                subscribe = self._cursor.subscribe(link.hello.epoch)
                reply = await link.exchange(Request.of("event.subscribe", subscribe))
                if self._closed:
                    raise ConnectionLost("The watch is closed.")
                self._ready.extend(self._cursor.begin(result_of(reply, SubscribeResult)))
            except BaseException:
                link.close()
                raise
            self._link = link
            self._siblings.add(self)
            return
        raise self._profile.target.build_timeout_error()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.next()
        except ConnectionLost:
            if self._closed:
                raise StopAsyncIteration from None
            raise

    async def __aenter__(self) -> Self:
        while self._link is None:
            await self._step()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()
