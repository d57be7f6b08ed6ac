"""Returns the first reply to a repeated request, so that a retry has no second effect.

A host repeats a call after a timeout, possibly while the first one is still running. A repetition has the same id as
the first request or the same key in `_meta`, and the same tool and arguments.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")

KEY = "punchlist/key"
"""Member of a request's `_meta` with an idempotency key. The key applies only to requests from the same agent."""

_MAX_REPLIES = 256


class RepeatedRequests(Generic[T]):
    """The newest requests and their replies."""

    def __init__(self) -> None:
        self._running: dict[str, anyio.Event] = {}
        self._replies: OrderedDict[str, T] = OrderedDict()

    async def once(self, request: str, run: Callable[[], Awaitable[T]], is_kept: Callable[[T], bool]) -> T:
        """Run a request unless it is a repetition, and return its reply.

        Args:
            request: Key of the request.
            run: Runs the request.
            is_kept: Returns whether repetitions of the request get this reply. If not, a repetition runs the request
                again.
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
