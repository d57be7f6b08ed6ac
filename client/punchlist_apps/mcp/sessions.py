"""Limits the sessions of MCP over HTTP, and tells the SDK whose each is.

The SDK keeps the sessions, and answers a request for another principal's as one for a session that never was. Here each
token is a principal. When there are too many sessions, the token with the most loses one; its client gets 404 for it,
and begins another, as the protocol says.
"""

import asyncio
import time
from collections.abc import Callable
from hashlib import sha256

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from punchlist_apps.common.http.guard import App, Headers, Message, Receive, Scope, Send, get_bearer_token, get_values
from punchlist_apps.common.http.shares import pick_to_evict

MOST = 256
"""Upper limit for sessions."""

IDLE_S = 900
"""A session without a request or an open stream for this long ends, in seconds."""

_ID = b"mcp-session-id"
_ERRORS = 400
_LATE_S = 0.1
"""How much later than the application's own timer a session is taken for ended, in seconds."""


class _Session:
    """A session, and how many requests of it are being answered."""

    def __init__(self, token: bytes) -> None:
        self.token = token
        self.requests = 0
        self.used_at = time.monotonic()


class Sessions:
    """Wraps an application of the SDK.

    Args:
        most: Upper limit for sessions.
        idle_s: How long a session lasts without a request, by the application's own timer, in seconds.
        ended: Called with the id of each session that has ended.
    """

    def __init__(
        self, app: App, most: int = MOST, idle_s: float = IDLE_S, ended: Callable[[str], None] = lambda _session: None
    ) -> None:
        self._app = app
        self._most = most
        self._idle_s = idle_s
        self._ended = ended
        self._timer: asyncio.TimerHandle | None = None
        self._sessions: dict[bytes, _Session] = {}
        """By their ids, least recently used first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token, id = get_bearer_token(scope["headers"]), _id(scope["headers"])
        session = self._sessions.get(id)
        if session is None or session.token != token:
            session = _Session(token)  # One that this request may begin.
        else:
            self._sessions[id] = self._sessions.pop(id)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._note(scope, session, id, message)
            await send(message)

        session.requests += 1
        try:
            await self._app({**scope, "user": _principal(token)}, receive, watched)
        finally:
            session.requests -= 1
            session.used_at = time.monotonic()
            self._watch_idle()

    async def _note(self, scope: Scope, session: _Session, id: bytes, answer: Message) -> None:
        status, begun = answer["status"], _id(answer["headers"])
        if not id and begun and status < _ERRORS:
            self._sessions[begun] = session
            await self._make_room(scope)
        elif scope["method"] == "DELETE" and status < _ERRORS:
            self._forget(id)

    def _forget(self, id: bytes) -> None:
        if self._sessions.pop(id, None) is not None:
            self._ended(id.decode("latin-1"))

    def _watch_idle(self) -> None:
        if self._timer is None and self._sessions:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s + _LATE_S, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._expire()
        self._watch_idle()

    def _expire(self) -> None:
        """Forget the sessions that the application has ended by its own timer."""
        ended_at = time.monotonic() - self._idle_s
        for id, session in list(self._sessions.items()):
            if not session.requests and session.used_at < ended_at:
                self._forget(id)

    async def _make_room(self, scope: Scope) -> None:
        self._expire()
        while len(self._sessions) > self._most:
            await self._end(self._first_to_go(), scope)

    def _first_to_go(self) -> bytes:
        """Return the least recently used session; prefer one without open requests."""
        return pick_to_evict(
            (id, each.token, (each.requests > 0, at)) for at, (id, each) in enumerate(self._sessions.items())
        )

    async def _end(self, id: bytes, scope: Scope) -> None:
        session = self._sessions[id]
        self._forget(id)
        headers = [(b"host", *get_values(scope["headers"], b"host")), (_ID, id)]
        request = {**scope, "method": "DELETE", "headers": headers, "user": _principal(session.token)}
        await self._app(request, _no_body, _ignore)


def _id(headers: Headers) -> bytes:
    return next(iter(get_values(headers, _ID)), b"")


def _principal(token: bytes) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=sha256(token).hexdigest(), scopes=[]))


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignore(message: Message) -> None:
    pass
