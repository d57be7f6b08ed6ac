"""Tokens for browsers: tickets that are valid once, and the session tokens for which they are exchanged.

Both are signed with the server's secret and contain their rights, so the server is stateless and can stop when idle.
Changing the secret invalidates all tokens.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path
from typing import Literal

import msgspec

from punchlist_apps.common.http.secret_file import SecretFile
from punchlist_schemas.rendezvous import make_directories

TICKET_S = 60
"""Lifetime of a ticket, in seconds."""

SESSION_S = 30 * 86_400
"""Default lifetime of a session, in seconds."""

MAX_REDEEMED = 256
"""Maximum number of redeemed tickets to remember. The tickets that expire last are kept."""

_PURPOSE = b"punchlist web 1\n"


class Scope(msgspec.Struct, frozen=True):
    """The rights of a token: read and write or read only, for all lists, one list or one user's lists.

    `name` is the actor of changes made with the token. If unset, it is the server's user, or the shared name of links.
    """

    mode: Literal["rw", "ro"] = "rw"
    list: str | None = None
    user: str | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET


EVERYTHING = Scope()


class Session(msgspec.Struct, frozen=True):
    """A session token, its rights and its expiry in milliseconds since 1970 UTC."""

    token: str
    scope: Scope
    expires_at: int


class _Claims(msgspec.Struct, frozen=True, array_like=True):
    """The signed content of a token, which expires at the time `until` or at the uptime `until_uptime_s`.

    The uptime limits the lifetime of tokens if the clock is set back. `until_uptime_s` is 0 in tokens of earlier
    versions.
    """

    kind: Literal["ticket", "session"]
    until: int
    nonce: str
    scope: Scope
    session_s: int
    until_uptime_s: int = 0

    @property
    def is_expired(self) -> bool:
        return time.time() >= self.until or 0 < self.until_uptime_s <= get_uptime_s()


class Keys:
    """Issues and verifies tickets and session tokens.

    Args:
        secret: The signing key, which is itself a token with all rights.
        used: The directory that contains a file for each redeemed ticket.
    """

    def __init__(self, secret: SecretFile, used: Path) -> None:
        self._secret = secret
        self.used = used

    def issue_ticket(self, scope: Scope = EVERYTHING, session_s: int = SESSION_S) -> str:
        """Return a ticket for a session with this scope and lifetime."""
        return self._sign(_create_claims("ticket", TICKET_S, scope, session_s))

    def redeem(self, ticket: str) -> Session | None:
        """Exchange a ticket for a session. Return None if it is forged, expired or already redeemed."""
        claims = self._verify(ticket.encode("utf-8", "replace"), "ticket")
        if claims is None or not self._record_use(claims):
            return None
        session = _create_claims("session", claims.session_s, claims.scope)
        return Session(self._sign(session), claims.scope, session.until * 1000)

    def explain_failure(self, ticket: str) -> Literal["ticket_unknown", "ticket_used", "ticket_late"]:
        """Return the kind of error for a ticket that `redeem` has rejected."""
        claims = self._decode(ticket.encode("utf-8", "replace"))
        if claims is None or claims.kind != "ticket":
            return "ticket_unknown"
        is_late = claims.is_expired and not (self.used / _build_use_name(claims)).exists()
        return "ticket_late" if is_late else "ticket_used"

    def read_scope(self, token: bytes) -> Scope | None:
        """Return the rights of a bearer token, or None if it is invalid."""
        if self._secret.matches(token):
            return EVERYTHING
        claims = self._verify(token, "session")
        return None if claims is None else claims.scope

    def _sign(self, claims: _Claims) -> str:
        body = _encode_base64(msgspec.json.encode(claims))
        return f"{body}.{_encode_base64(self._compute_signature(body.encode()))}"

    def _compute_signature(self, body: bytes) -> bytes:
        return hmac.digest(self._secret.value, _PURPOSE + body, hashlib.sha256)

    def _verify(self, token: bytes, kind: str) -> _Claims | None:
        claims = self._decode(token)
        return claims if claims is not None and claims.kind == kind and not claims.is_expired else None

    def _decode(self, token: bytes) -> _Claims | None:
        """Return the content of a token, which may have expired; None if its signature is wrong."""
        body, dot, signature = token.partition(b".")
        if not dot or not self._secret.value:
            return None
        if not hmac.compare_digest(_encode_base64(self._compute_signature(body)).encode(), signature):
            return None
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(body + b"=="), type=_Claims)
        except (msgspec.MsgspecError, binascii.Error):
            return None

    def _record_use(self, ticket: _Claims) -> bool:
        """Record that a ticket has been redeemed. Return False if it had been redeemed before.

        Only `MAX_REDEEMED` tickets are remembered, regardless of the clock. A ticket that expires earlier than all
        remembered ones may have been forgotten, so it is rejected.
        """
        make_directories(str(self.used))
        name = _build_use_name(ticket)
        try:
            os.close(os.open(self.used / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        forgotten = sorted(os.listdir(self.used))[:-MAX_REDEEMED]
        for other in forgotten:
            (self.used / other).unlink(missing_ok=True)
        return name not in forgotten


def _create_claims(kind: Literal["ticket", "session"], lasts_s: int, scope: Scope, session_s: int = 0) -> _Claims:
    until, until_uptime_s = int(time.time()) + lasts_s, int(get_uptime_s()) + lasts_s
    return _Claims(kind, until, secrets.token_hex(12), scope, session_s, until_uptime_s)


def _build_use_name(ticket: _Claims) -> str:
    """Return the name of the file that records the ticket's use. Names sort by the time at which tickets expire."""
    return f"{ticket.until:012}-{ticket.nonce}"


def get_uptime_s() -> float:
    """Return the number of seconds since the machine started, including time asleep if the system counts that."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
