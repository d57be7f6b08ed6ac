"""Limits the sessions of MCP over HTTP, and sets the principal of each request to its token.

The SDK stores the sessions, and responds to a request for another principal's session as if that session didn't exist.
If there are too many sessions, the token with the most sessions loses one. The client of that session gets a 404 and
starts another session, as the protocol requires.
"""

import asyncio
import time
from collections.abc import Callable
from hashlib import sha256

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from punchlist_apps.common.http.guard import App, Headers, Message, Receive, Scope, Send, get_bearer_token, get_values
from punchlist_apps.common.http.shares import pick_to_evict

MAX_SESSIONS = 256
"""Upper limit for sessions."""

IDLE_S = 900
"""Time without a request or an open stream after which a session ends, in seconds."""

_ID_HEADER = b"mcp-session-id"
_FIRST_ERROR = 400
_LATE_S = 0.1
"""Delay between the application's own timer and the time when a session counts as ended, in seconds."""


class _Session:
    """A session.

    Attributes:
        token: The token that started it.
        requests: Number of running requests.
        used_at: Time at which the last request ended, on the monotonic clock in seconds.
    """

    def __init__(self, token: bytes) -> None:
        self.token = token
        self.requests = 0
        self.used_at = time.monotonic()


class Sessions:
    """Wraps an application of the SDK.

    Args:
        max_sessions: Maximum number of sessions.
        idle_s: Time without a request after which the application ends a session, in seconds.
        on_end: Called with the id of each session that has ended.
    """

    def __init__(
        self,
        app: App,
        max_sessions: int = MAX_SESSIONS,
        idle_s: float = IDLE_S,
        on_end: Callable[[str], None] = lambda _session: None,
    ) -> None:
        self._app = app
        self._max_sessions = max_sessions
        self._idle_s = idle_s
        self._on_end = on_end
        self._timer: asyncio.TimerHandle | None = None
        self._sessions: dict[bytes, _Session] = {}
        """By id, least recently used first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token, id = get_bearer_token(scope["headers"]), _get_id(scope["headers"])
        session = self._sessions.get(id)
        if session is None or session.token != token:
            session = _Session(token)  # This request may start a session.
        else:
            self._sessions[id] = self._sessions.pop(id)

        async def send_and_record(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._on_response(scope, session, id, message)
            await send(message)

        session.requests += 1
        try:
            await self._app({**scope, "user": _build_principal(token)}, receive, send_and_record)
        finally:
            session.requests -= 1
            session.used_at = time.monotonic()
            self._start_timer()

    async def _on_response(self, scope: Scope, session: _Session, id: bytes, response: Message) -> None:
        status, new_id = response["status"], _get_id(response["headers"])
        if not id and new_id and status < _FIRST_ERROR:
            self._sessions[new_id] = session
            await self._make_room(scope)
        elif scope["method"] == "DELETE" and status < _FIRST_ERROR:
            self._forget(id)

    def _forget(self, id: bytes) -> None:
        if self._sessions.pop(id, None) is not None:
            self._on_end(id.decode("latin-1"))

    def _start_timer(self) -> None:
        if self._timer is None and self._sessions:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s + _LATE_S, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._expire()
        self._start_timer()

    def _expire(self) -> None:
        """Forget sessions that the application's timer has ended."""
        deadline = time.monotonic() - self._idle_s
        for id, session in list(self._sessions.items()):
            if not session.requests and session.used_at < deadline:
                self._forget(id)

    async def _make_room(self, scope: Scope) -> None:
        self._expire()
        while len(self._sessions) > self._max_sessions:
            await self._end(self._first_to_go(), scope)

    def _first_to_go(self) -> bytes:
        """Return the least recently used session; prefer one without open requests."""
        return pick_to_evict(
            (id, session.token, (session.requests > 0, index))
            for index, (id, session) in enumerate(self._sessions.items())
        )

    async def _end(self, id: bytes, scope: Scope) -> None:
        session = self._sessions[id]
        self._forget(id)
        headers = [(b"host", *get_values(scope["headers"], b"host")), (_ID_HEADER, id)]
        request = {**scope, "method": "DELETE", "headers": headers, "user": _build_principal(session.token)}
        await self._app(request, _receive_no_body, _send_nowhere)


def _get_id(headers: Headers) -> bytes:
    return next(iter(get_values(headers, _ID_HEADER)), b"")


def _build_principal(token: bytes) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=sha256(token).hexdigest(), scopes=[]))


async def _receive_no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send_nowhere(message: Message) -> None:
    pass
