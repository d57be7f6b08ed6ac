"""Ends what runs for a token as soon as the token allows less: streams, waiting calls, the turns of a chat.

Whatever may take long runs within `hold`. One timer checks the tokens of all that runs, so an answer needs no check of
its own. Time is the event loop's, but whether a token has expired is for `is_valid` to say.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

import anyio

from punchlist_apps.common.http.guard import App, Message, Receive, Scope, Send

T = TypeVar("T")

CHECK_S = 0.4
"""Time between two checks while something runs for a token, in seconds."""

LAST_WORDS_S = 0.4
"""Upper limit for sending the last event of a stream that its client doesn't read, in seconds."""

ENDED = "This sign-in has ended: its time is over, or it was revoked. `punch web --link` makes a new link."

_HOLD = "punchlist.hold"
_LAST = "punchlist.last"


class Watch(Generic[T]):
    """Cancels what runs for a token that was revoked, has expired or was narrowed.

    Args:
        is_valid: Returns whether a token still allows all that it allowed before.
        refuse: Answers a request whose token is revoked before its answer has begun.
    """

    def __init__(self, is_valid: Callable[[bytes, T], bool], refuse: Callable[[Send], Awaitable[None]]) -> None:
        self._is_valid = is_valid
        self._refuse = refuse
        self._held: dict[tuple[bytes, T], set[anyio.CancelScope]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def hold(self, token: bytes, allowed: T) -> Generator[anyio.CancelScope]:
        """Run the body until the token allows less than `allowed`; then the scope is cancelled."""
        scope = anyio.CancelScope()
        held = self._held.setdefault((token, allowed), set())
        held.add(scope)
        self._arm()
        try:
            with scope:
                yield scope
        finally:
            held.remove(scope)
            if not held:
                del self._held[token, allowed]

    async def serve(  # noqa: PLR0913 - an ASGI application, and for whom it is called
        self, app: App, scope: Scope, receive: Receive, send: Send, token: bytes, allowed: T
    ) -> None:
        """Answer a request within `hold`. Handlers find it by the ASGI scope, for work that outlives the answer."""
        scope[_HOLD] = partial(self.hold, token, allowed)
        answer = _Answer(send)
        with self.hold(token, allowed) as running:
            await app(scope, receive, answer.send)
        if not running.cancelled_caught or answer.is_complete:
            return
        if not answer.is_begun:
            await self._refuse(send)
            return
        with anyio.move_on_after(LAST_WORDS_S):
            await send({"type": "http.response.body", "body": scope.get(_LAST, b"")})

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHECK_S, self._check)

    def _check(self) -> None:
        self._timer = None
        for (token, allowed), scopes in self._held.items():
            if not self._is_valid(token, allowed):
                for scope in scopes:
                    scope.cancel()
        if self._held:
            self._arm()


class _Answer:
    """How far an answer has come."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_begun = False
        self.is_complete = False

    async def send(self, message: Message) -> None:
        await self._send(message)
        self.is_begun = True
        self.is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)


def hold(scope: Scope) -> AbstractContextManager[anyio.CancelScope]:
    """Run the body as long as the token of this request stays valid; the scope is cancelled then."""
    held: Any = scope.get(_HOLD, anyio.CancelScope)
    return held()


def end_with(scope: Scope, last: bytes) -> None:
    """Set the bytes that end this request's stream if its token is revoked."""
    scope[_LAST] = last
