"""Who may speak to the HTTP server: decided from the request's head alone, before any handler runs.

Each check compares exactly, with a set or with the token; nothing is decided by a prefix. No CORS header is ever sent.
"""

import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from punchlist.mcp.users import EVERYBODY, GRANT, Grant

PATH = "/mcp"
NAMES = ("127.0.0.1", "localhost", "[::1]")
_METHODS = frozenset({"GET", "POST", "DELETE"})
_SITES = frozenset({"same-origin", "none"})
_PRIVATE = 0o600
_OTHERS = 0o077

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Refused(NamedTuple):
    """Why a request is refused: an HTTP status and a sentence."""

    status: int
    reason: str


class Token:
    """The secret that a client has to show, kept in a file of ours alone (mode 0600), made if it is missing.

    A changed file counts at once: to rotate the token, write a new one or remove the file and restart.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._stamp: tuple[int, int] | None = None
        self._value = b""
        if not self._path.exists():
            self._make()

    def matches(self, given: bytes) -> bool:
        """Whether this is the token, in constant time."""
        value = self._read()
        return bool(value) and hmac.compare_digest(given, value)

    def grant(self, given: bytes) -> Grant | None:
        """What a token allows: this one everything, any other nothing."""
        return EVERYBODY if self.matches(given) else None

    def _make(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE), "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")

    def _read(self) -> bytes:
        try:
            status = self._path.stat()
            stamp = (status.st_ctime_ns, status.st_ino)  # not mtime: chmod and chown leave that as it is
            if stamp != self._stamp:
                is_private = not status.st_mode & _OTHERS
                self._value = self._path.read_bytes().strip() if is_private else b""
                self._stamp = stamp
        except OSError:
            return b""
        return self._value


class Grants(Protocol):
    """Knows what tokens allow."""

    def grant(self, given: bytes) -> Grant | None:
        """What a token allows, None if it is none."""
        ...


class Guard:
    """Lets through what may pass, and answers the rest itself.

    Args:
        app: What is guarded.
        port: The port that clients reach us at.
        token: Knows what they have to show; None only where a test drives the server without.
    """

    def __init__(self, app: App, port: int, token: Grants | None) -> None:
        self._app = app
        self._hosts = frozenset(f"{name}:{port}".encode() for name in NAMES)
        self._origins = frozenset(f"http://{name}:{port}".encode() for name in NAMES)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refused := self.refusal(scope):
            await _answer(send, refused)
        else:
            await self._app(scope, receive, send)

    def refusal(self, scope: Scope) -> Refused | None:
        """Why the request may not pass, or None."""
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        return self._strange_place(scope, headers) or self._stranger(scope, headers) or _strange_form(scope, headers)

    def _strange_place(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> Refused | None:
        hosts = _all(headers, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return Refused(421, "the Host header must name this server")
        origins = _all(headers, b"origin")
        if len(origins) > 1 or not self._origins.issuperset(origins):
            return Refused(403, "requests of other origins are refused")
        if not {site.decode("latin-1") for site in _all(headers, b"sec-fetch-site")} <= _SITES:
            return Refused(403, "requests from other sites are refused")
        if scope.get("raw_path", scope["path"].encode()).partition(b"?")[0] != PATH.encode() or scope["path"] != PATH:
            return Refused(404, f"the server is at {PATH}")
        return None

    def _stranger(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> Refused | None:
        if self._token is None:
            return None
        shown = _all(headers, b"authorization")
        kind, _, value = shown[0].partition(b" ") if len(shown) == 1 else (b"", b"", b"")
        grant = self._token.grant(value) if kind.lower() == b"bearer" else None
        if grant is None:
            return Refused(401, "the header Authorization: Bearer TOKEN is needed")
        scope[GRANT] = grant
        return None


def _strange_form(scope: Scope, headers: list[tuple[bytes, bytes]]) -> Refused | None:
    if scope["method"] not in _METHODS:
        return Refused(405, "the method is not served")
    if scope["method"] == "POST":
        kinds = _all(headers, b"content-type")
        if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
            return Refused(415, "the body must be application/json")
    return None


def _all(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


async def _answer(send: Send, refused: Refused) -> None:
    body = f"{refused.reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    if refused.status == 401:  # noqa: PLR2004 - the status that asks for it
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
