"""Who may speak to the HTTP server: decided from the request's head alone, before any handler runs.

Each check compares exactly, with a set or with the token; nothing is decided by a prefix. No CORS header is ever sent.
"""

from typing import NamedTuple, Protocol

from punchlist_apps.common.http.guard import App, Headers, Receive, Scope, Send, get_bearer_token, get_values
from punchlist_apps.common.http.revocation import TokenWatch
from punchlist_apps.common.http.secret_file import SecretFile
from punchlist_apps.mcp.users import EVERYBODY, GRANT, Grant

PATH = "/mcp"
NAMES = ("127.0.0.1", "localhost", "[::1]")
_METHODS = frozenset({"GET", "POST", "DELETE"})
_SITES = frozenset({"same-origin", "none"})


class Refused(NamedTuple):
    """Why a request is refused: an HTTP status and a sentence."""

    status: int
    reason: str


class Token(SecretFile):
    """The secret that a client has to show. To rotate it, write a new one or remove the file and restart."""

    def grant(self, given: bytes) -> Grant | None:
        return EVERYBODY if self.matches(given) else None


class Grants(Protocol):
    """Knows what tokens allow."""

    def grant(self, given: bytes) -> Grant | None: ...


class Guard:
    """Lets through what may pass, and answers the rest itself.

    Args:
        token: Knows what they have to show; None only where a test drives the server without.
    """

    def __init__(self, app: App, port: int, token: Grants | None) -> None:
        self._app = app
        self._hosts = frozenset(f"{name}:{port}".encode() for name in NAMES)
        self._origins = frozenset(f"http://{name}:{port}".encode() for name in NAMES)
        self._token = token
        self._watch = TokenWatch[Grant](self._still_allows, _refuse)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refused := self.refusal(scope):
            await _answer(send, refused)
        elif (grant := scope.get(GRANT)) is None:
            await self._app(scope, receive, send)
        else:
            await self._watch.serve(self._app, scope, receive, send, get_bearer_token(scope["headers"]), grant)

    def refusal(self, scope: Scope) -> Refused | None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        return self._strange_place(scope, headers) or self._stranger(scope, headers) or _strange_form(scope, headers)

    def _strange_place(self, scope: Scope, headers: Headers) -> Refused | None:
        hosts = get_values(headers, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return Refused(421, "the Host header must name this server")
        origins = get_values(headers, b"origin")
        if len(origins) > 1 or not self._origins.issuperset(origins):
            return Refused(403, "requests of other origins are refused")
        if not {site.decode("latin-1") for site in get_values(headers, b"sec-fetch-site")} <= _SITES:
            return Refused(403, "requests from other sites are refused")
        if scope.get("raw_path", scope["path"].encode()).partition(b"?")[0] != PATH.encode() or scope["path"] != PATH:
            return Refused(404, f"the server is at {PATH}")
        return None

    def _stranger(self, scope: Scope, headers: Headers) -> Refused | None:
        if self._token is None:
            return None
        grant = self._token.grant(get_bearer_token(headers))
        if grant is None:
            return Refused(401, "the header Authorization: Bearer TOKEN is needed")
        scope[GRANT] = grant
        return None

    def _still_allows(self, token: bytes, allowed: Grant) -> bool:
        grant = self._token.grant(token) if self._token is not None else None
        return grant is not None and grant.covers(allowed)


def _strange_form(scope: Scope, headers: Headers) -> Refused | None:
    if scope["method"] not in _METHODS:
        return Refused(405, "the method is not served")
    if scope["method"] == "POST":
        kinds = get_values(headers, b"content-type")
        if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
            return Refused(415, "the body must be application/json")
    return None


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


async def _refuse(send: Send) -> None:
    """Answer a request whose token ended before there was an answer."""
    await _answer(send, Refused(401, "the token of this request was revoked; a change under way may have been made"))
