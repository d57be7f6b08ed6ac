"""Access control for the HTTP server, based on a request's headers, before any handler runs.

All checks compare whole values, never prefixes. No CORS headers are sent.
"""

from typing import NamedTuple, Protocol

from punchlist_apps.common.http.guard import App, Headers, Receive, Scope, Send, get_bearer_token, get_values
from punchlist_apps.common.http.revocation import TokenWatch
from punchlist_apps.common.http.secret_file import SecretFile
from punchlist_apps.mcp.users import ALL_USERS, GRANT_KEY, Grant, hash_token

PATH = "/mcp"
HOST_NAMES = ("127.0.0.1", "localhost", "[::1]")
_METHODS = frozenset({"GET", "POST", "DELETE"})
_SITES = frozenset({"same-origin", "none"})


class Refused(NamedTuple):
    """A rejection of a request: HTTP status and reason."""

    status: int
    reason: str


class Token(SecretFile):
    """The token that clients must send. To rotate the token, write a new one to the file, or remove the file and
    restart."""

    def find_grant(self, token: bytes) -> Grant | None:
        return ALL_USERS if self.matches(token) else None

    def find_grant_by_digest(self, digest: str) -> Grant | None:
        if not (value := self.value):
            raise ValueError(self.problem)
        return ALL_USERS if hash_token(value) == digest else None


class Grants(Protocol):
    """Valid tokens and their rights."""

    def find_grant(self, token: bytes) -> Grant | None: ...

    def find_grant_by_digest(self, digest: str) -> Grant | None:
        """Return the rights of the token with this digest, or None if no valid token has it.

        Raises:
            ValueError: The file of the tokens can't be used at the moment.
        """
        ...


class Guard:
    """Passes allowed requests to the application and rejects all others.

    Args:
        token: The valid tokens; None only for tests without tokens.
    """

    def __init__(self, app: App, port: int, token: Grants | None) -> None:
        self._app = app
        self._hosts = frozenset(f"{name}:{port}".encode() for name in HOST_NAMES)
        self._origins = frozenset(f"http://{name}:{port}".encode() for name in HOST_NAMES)
        self._token = token
        self._watch = TokenWatch[Grant](self._is_still_allowed, _send_revoked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refused := self.check(scope):
            await _send_refusal(send, refused)
        elif (grant := scope.get(GRANT_KEY)) is None:
            await self._app(scope, receive, send)
        else:
            await self._watch.serve(self._app, scope, receive, send, get_bearer_token(scope["headers"]), grant)

    def check(self, scope: Scope) -> Refused | None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        return (
            self._check_destination(scope, headers) or self._check_token(scope, headers) or _check_form(scope, headers)
        )

    def _check_destination(self, scope: Scope, headers: Headers) -> Refused | None:
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

    def _check_token(self, scope: Scope, headers: Headers) -> Refused | None:
        if self._token is None:
            return None
        grant = self._token.find_grant(get_bearer_token(headers))
        if grant is None:
            return Refused(401, "the header Authorization: Bearer TOKEN is needed")
        scope[GRANT_KEY] = grant
        return None

    def _is_still_allowed(self, token: bytes, original: Grant) -> bool:
        grant = self._token.find_grant(token) if self._token is not None else None
        return grant is not None and grant.covers(original)


def _check_form(scope: Scope, headers: Headers) -> Refused | None:
    if scope["method"] not in _METHODS:
        return Refused(405, "the method is not served")
    if scope["method"] == "POST":
        kinds = get_values(headers, b"content-type")
        if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
            return Refused(415, "the body must be application/json")
    return None


async def _send_refusal(send: Send, refused: Refused) -> None:
    body = f"{refused.reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    if refused.status == 401:  # noqa: PLR2004 - Unauthorized
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_revoked(send: Send) -> None:
    """Respond to a request whose token was revoked before the response started."""
    await _send_refusal(
        send, Refused(401, "the token of this request was revoked; a change under way may have been made")
    )
