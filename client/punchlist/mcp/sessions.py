"""Limits the sessions of MCP over HTTP, and tells the SDK whose each is.

The SDK keeps the sessions, and answers a request for another principal's as one for a session that never was. Here each
token is a principal. When there are too many sessions, the token with the most loses one; its client gets 404 for it,
and begins another, as the protocol says.
"""

import time
from hashlib import sha256

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from punchlist.http.guard import App, Headers, Message, Receive, Scope, Send, bearer, values
from punchlist.http.shares import first_to_go

MOST = 256
"""Upper limit for sessions."""

IDLE_S = 900
"""A session without a request or an open stream for this long ends, in seconds."""

_ID = b"mcp-session-id"
_ERRORS = 400


class _Session:
    """A session, and how many requests of it are being answered."""

    def __init__(self, token: bytes) -> None:
        self.token = token
        self.requests = 0
        self.used_at = time.monotonic()


class Sessions:
    """Wraps an application of the SDK.

    Args:
        app: The application.
        most: Upper limit for sessions.
        idle_s: How long a session lasts without a request, by the application's own timer, in seconds.
    """

    def __init__(self, app: App, most: int = MOST, idle_s: float = IDLE_S) -> None:
        self._app = app
        self._most = most
        self._idle_s = idle_s
        self._sessions: dict[bytes, _Session] = {}
        """By their ids, least recently used first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token, id = bearer(scope["headers"]), _id(scope["headers"])
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

    async def _note(self, scope: Scope, session: _Session, id: bytes, answer: Message) -> None:
        """Record what an answer has begun or ended."""
        status, begun = answer["status"], _id(answer["headers"])
        if not id and begun and status < _ERRORS:
            self._sessions[begun] = session
            await self._make_room(scope)
        elif scope["method"] == "DELETE" and status < _ERRORS:
            self._sessions.pop(id, None)

    async def _make_room(self, scope: Scope) -> None:
        ended_at = time.monotonic() - self._idle_s
        for id, session in list(self._sessions.items()):
            if not session.requests and session.used_at < ended_at:
                del self._sessions[id]
        while len(self._sessions) > self._most:
            await self._end(self._first_to_go(), scope)

    def _first_to_go(self) -> bytes:
        """Return the least recently used session; prefer one without open requests."""
        return first_to_go(
            (id, each.token, (each.requests > 0, at)) for at, (id, each) in enumerate(self._sessions.items())
        )

    async def _end(self, id: bytes, scope: Scope) -> None:
        """End a session as its client would."""
        session = self._sessions.pop(id)
        headers = [(b"host", *values(scope["headers"], b"host")), (_ID, id)]
        request = {**scope, "method": "DELETE", "headers": headers, "user": _principal(session.token)}
        await self._app(request, _no_body, _ignore)


def _id(headers: Headers) -> bytes:
    return next(iter(values(headers, _ID)), b"")


def _principal(token: bytes) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=sha256(token).hexdigest(), scopes=[]))


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignore(message: Message) -> None:
    pass
