"""Who may speak to the server: decided from the request's head alone, before any handler runs.

Each check compares exactly; nothing is decided by a prefix. No CORS header is ever sent.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from punchlist_apps.common.http.problem import Headers, Problem

NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""The names under which a loopback server may be reached, at any port: `ssh -L` may lead there from another one."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_HOST = re.compile(rb"(\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::[0-9]{1,5})?")
_SITES = frozenset({b"same-origin", b"none"})

SAFETY: Headers = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        b"trusted-types 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
]
"""What every answer says about itself: no script, frame, request or referrer goes elsewhere."""


class Guard:
    """Lets through what may pass, and answers the rest itself; every answer gets the headers of `SAFETY`.

    Args:
        names: Further names under which the server may be reached.
    """

    def __init__(self, app: App, names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = frozenset(name.lower().encode() for name in (*NAMES, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif problem := self.refusal(scope["headers"]):
            await answer(_safe(send), problem)
        else:
            await self._app(scope, receive, _safe(send))

    def refusal(self, headers: Headers) -> Problem | None:
        hosts = values(headers, b"host")
        found = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if found is None or found[1] not in self._names:
            return Problem("host")
        origins = values(headers, b"origin")
        if origins and origins != [b"http://" + hosts[0]]:
            return Problem("origin")
        if not _SITES.issuperset(values(headers, b"sec-fetch-site")):
            return Problem("origin")
        return None


def values(headers: Headers, wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name.lower() == wanted]


def bearer(headers: Headers) -> bytes:
    """Return the token of the header Authorization, without blanks around it; empty without one, or with several."""
    shown = values(headers, b"authorization")
    kind, _, token = shown[0].partition(b" ") if len(shown) == 1 else (b"", b"", b"")
    return token.strip() if kind.lower() == b"bearer" else b""


async def answer(send: Send, problem: Problem, *, body: bool = True) -> None:
    """Refuse a request. Its connection is not used again: what was not read of it is no next request."""
    status, headers, content = problem.answer()
    headers += [(b"content-length", b"%d" % len(content)), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content if body else b""})


def _safe(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *SAFETY]
        await send(message)

    return guarded
