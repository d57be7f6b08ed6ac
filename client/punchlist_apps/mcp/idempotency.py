"""Answers a repeated request with the reply to its first, so that a host that tries again does nothing twice.

A host repeats a call when its time is over, perhaps while the first one is still running. A repetition has the id of
the first request, or the same key in `_meta`, and the same tool and arguments.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")

KEY = "punchlist/key"
"""A member of a request's `_meta`: requests of one agent with the same key are one request."""

_MAX_REPLIES = 256


class RepeatedRequests(Generic[T]):
    """The newest requests and their replies."""

    def __init__(self) -> None:
        self._running: dict[str, anyio.Event] = {}
        self._replies: OrderedDict[str, T] = OrderedDict()

    async def once(self, request: str, run: Callable[[], Awaitable[T]], is_kept: Callable[[T], bool]) -> T:
        """The reply to a request, which runs once.

        Args:
            request: What tells requests apart.
            run: Does what is asked for.
            is_kept: Whether a reply may answer a repetition; otherwise the repetition runs again.
        """
        while (running := self._running.get(request)) is not None:
            await running.wait()
        if request in self._replies:
            return self._replies[request]
        self._running[request] = anyio.Event()
        try:
            reply = await run()
        finally:
            self._running.pop(request).set()
        if is_kept(reply):
            self._replies[request] = reply
            if len(self._replies) > _MAX_REPLIES:
                self._replies.popitem(last=False)
        return reply
