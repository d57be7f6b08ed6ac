"""Cancels the work of a token as soon as the token loses rights: streams, waiting calls, chat turns.

Slow work runs within `run_while_valid`. One timer checks all tokens in use, so handlers don't need their own checks.
The timer uses the event loop's clock, while `is_valid` decides whether a token has expired.
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
"""Time between checks of the tokens in use, in seconds."""

LAST_WORDS_S = 0.4
"""Timeout for sending the last event of a stream, in seconds, because the client may not read it."""

ENDED = "This sign-in has ended: its time is over, or it was revoked. `punch web --link` makes a new link."

_RUN = "punchlist.run"
_LAST_BYTES = "punchlist.last_bytes"


class TokenWatch(Generic[T]):
    """Cancels the work of tokens that were revoked, have expired or lost rights.

    Args:
        is_valid: Returns whether a token still has the given rights.
        refuse: Responds to a request whose token is revoked before the response has started.
    """

    def __init__(self, is_valid: Callable[[bytes, T], bool], refuse: Callable[[Send], Awaitable[None]]) -> None:
        self._is_valid = is_valid
        self._refuse = refuse
        self._running: dict[tuple[bytes, T], set[anyio.CancelScope]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def run_while_valid(self, token: bytes, allowed: T) -> Generator[anyio.CancelScope]:
        """Run the body until the token loses any of the rights in `allowed`, then cancel the scope."""
        scope = anyio.CancelScope()
        scopes = self._running.setdefault((token, allowed), set())
        scopes.add(scope)
        self._arm()
        try:
            with scope:
                yield scope
        finally:
            scopes.remove(scope)
            if not scopes:
                del self._running[token, allowed]

    async def serve(  # noqa: PLR0913 - an ASGI call and its token
        self, app: App, scope: Scope, receive: Receive, send: Send, token: bytes, allowed: T
    ) -> None:
        """Respond to a request within `run_while_valid`.

        Handlers can get that method from the ASGI scope, for work that outlives the response.
        """
        scope[_RUN] = partial(self.run_while_valid, token, allowed)
        response = _Response(send)
        with self.run_while_valid(token, allowed) as running:
            await app(scope, receive, response.send)
        if not running.cancelled_caught or response.is_complete:
            return
        if not response.is_started:
            await self._refuse(send)
            return
        with anyio.move_on_after(LAST_WORDS_S):
            await send({"type": "http.response.body", "body": scope.get(_LAST_BYTES, b"")})

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHECK_S, self._check)

    def _check(self) -> None:
        self._timer = None
        for (token, allowed), scopes in self._running.items():
            if not self._is_valid(token, allowed):
                for scope in scopes:
                    scope.cancel()
        if self._running:
            self._arm()


class _Response:
    """Sends a response and records its progress."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_started = False
        self.is_complete = False

    async def send(self, message: Message) -> None:
        await self._send(message)
        self.is_started = True
        self.is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)


def run_while_valid(scope: Scope) -> AbstractContextManager[anyio.CancelScope]:
    """Run the body while the token of this request is valid, then cancel the scope."""
    run: Any = scope.get(_RUN, anyio.CancelScope)
    return run()


def set_last_bytes(scope: Scope, last: bytes) -> None:
    """Set the bytes to send at the end of this request's stream if its token is revoked."""
    scope[_LAST_BYTES] = last
