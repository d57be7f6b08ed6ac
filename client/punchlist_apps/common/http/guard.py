"""Checks of Host, Origin and Sec-Fetch-Site, before any handler runs.

Each check compares whole values, never prefixes. CORS headers are never sent.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from punchlist_apps.common.http.problem import Headers, Problem

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Valid host names of a loopback server. The port isn't checked, because `ssh -L` can forward another one."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_HOST = re.compile(rb"(\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::[0-9]{1,5})?")
_SITES = frozenset({b"same-origin", b"none"})

SECURITY_HEADERS: Headers = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        b"require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
]
"""Headers of every response. They forbid scripts, frames, requests and referrers from or to other sites."""


class Guard:
    """ASGI middleware that rejects requests from other sites and adds `SECURITY_HEADERS` to every response.

    Args:
        names: Additional valid host names.
    """

    def __init__(self, app: App, names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = frozenset(name.lower().encode() for name in (*LOOPBACK_NAMES, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif problem := self.check(scope["headers"]):
            await send_problem(_add_security_headers(send), problem)
        else:
            await self._app(scope, receive, _add_security_headers(send))

    def check(self, headers: Headers) -> Problem | None:
        """Return the problem with a request, or None if the request is allowed."""
        hosts = get_values(headers, b"host")
        host = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if host is None or host[1] not in self._names:
            return Problem("host")
        origins = get_values(headers, b"origin")
        if origins and origins != [b"http://" + hosts[0]]:
            return Problem("origin")
        if not _SITES.issuperset(get_values(headers, b"sec-fetch-site")):
            return Problem("origin")
        return None


def get_values(headers: Headers, target: bytes) -> list[bytes]:
    return [value for name, value in headers if name.lower() == target]


def get_bearer_token(headers: Headers) -> bytes:
    """Return the bearer token, stripped; empty if there is no Authorization header or more than one."""
    credentials = get_values(headers, b"authorization")
    kind, _, token = credentials[0].partition(b" ") if len(credentials) == 1 else (b"", b"", b"")
    return token.strip() if kind.lower() == b"bearer" else b""


async def send_problem(send: Send, problem: Problem, *, body: bool = True) -> None:
    """Send an error and close the connection, because its unread bytes belong to this request's body."""
    status, headers, content = problem.build_response()
    headers += [(b"content-length", b"%d" % len(content)), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content if body else b""})


def _add_security_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
        await send(message)

    return send_with_headers
