"""What a browser shows instead of the secret: a ticket that is valid once, and the session token it gets for that.

Both are signed with the secret and say themselves what they allow, so the server keeps no state and may end when nobody
uses it. A new secret ends all of them.
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
"""How long a ticket can be redeemed, in seconds."""

SESSION_S = 30 * 86_400
"""How long a session lasts unless its ticket says otherwise, in seconds."""

MOST_REDEEMED = 256
"""How many redeemed tickets are remembered: those that expire last."""

_PURPOSE = b"punchlist web 1\n"


class Scope(msgspec.Struct, frozen=True):
    """The rights of a token: everything, or with `ro` reading; all lists, one list, or one user's lists.

    `name` is the actor of changes by the token; unset: the server's person, or the shared name of links.
    """

    mode: Literal["rw", "ro"] = "rw"
    list: str | None = None
    user: str | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET


EVERYTHING = Scope()


class Session(msgspec.Struct, frozen=True):
    """A session token, what it allows, and when it ends in milliseconds since 1970 UTC."""

    token: str
    scope: Scope
    expires_at: int


class _Signed(msgspec.Struct, frozen=True, array_like=True):
    """What a token says: it expires at the time `until`, and `until_uptime_s` seconds after the machine's start.

    The second bound holds where the clock is set back. It is 0 in tokens of earlier versions.
    """

    kind: Literal["ticket", "session"]
    until: int
    nonce: str
    scope: Scope
    session_s: int
    until_uptime_s: int = 0

    @property
    def is_expired(self) -> bool:
        return time.time() >= self.until or 0 < self.until_uptime_s <= _uptime_s()


class Keys:
    """Makes and reads tickets and session tokens.

    Args:
        secret: What they are signed with; it is itself a token that allows everything.
        used: The directory that remembers which tickets were redeemed.
    """

    def __init__(self, secret: SecretFile, used: Path) -> None:
        self._secret = secret
        self._used = used

    def ticket(self, scope: Scope = EVERYTHING, session_s: int = SESSION_S) -> str:
        """A ticket for a session of this scope and length."""
        return self._sign(_signed("ticket", TICKET_S, scope, session_s))

    def redeem(self, ticket: str) -> Session | None:
        """The session that a ticket is good for; None if it is none of ours, too old, or was redeemed before."""
        found = self._read(ticket.encode("utf-8", "replace"), "ticket")
        if found is None or not self._first_use(found):
            return None
        session = _signed("session", found.session_s, found.scope)
        return Session(self._sign(session), found.scope, session.until * 1000)

    def scope(self, token: bytes) -> Scope | None:
        """What a bearer token allows, None if it is none."""
        if self._secret.matches(token):
            return EVERYTHING
        found = self._read(token, "session")
        return None if found is None else found.scope

    def _sign(self, signed: _Signed) -> str:
        body = _text(msgspec.json.encode(signed))
        return f"{body}.{_text(self._signature(body.encode()))}"

    def _signature(self, body: bytes) -> bytes:
        return hmac.digest(self._secret.value, _PURPOSE + body, hashlib.sha256)

    def _read(self, given: bytes, kind: str) -> _Signed | None:
        body, dot, signature = given.partition(b".")
        if not dot or not self._secret.value:
            return None
        if not hmac.compare_digest(_text(self._signature(body)).encode(), signature):
            return None
        try:
            found = msgspec.json.decode(base64.urlsafe_b64decode(body + b"=="), type=_Signed)
        except (msgspec.MsgspecError, binascii.Error):
            return None
        return found if found.kind == kind and not found.is_expired else None

    def _first_use(self, ticket: _Signed) -> bool:
        """Record that a ticket is redeemed; false if it was before.

        No clock decides what is forgotten: a forgotten ticket would expire before all that are remembered, and such a
        ticket is taken for a redeemed one.
        """
        make_directories(str(self._used))
        name = f"{ticket.until:012}-{ticket.nonce}"
        try:
            os.close(os.open(self._used / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        forgotten = sorted(os.listdir(self._used))[:-MOST_REDEEMED]
        for other in forgotten:
            (self._used / other).unlink(missing_ok=True)
        return name not in forgotten


def _signed(kind: Literal["ticket", "session"], lasts_s: int, scope: Scope, session_s: int = 0) -> _Signed:
    until, until_uptime_s = int(time.time()) + lasts_s, int(_uptime_s()) + lasts_s
    return _Signed(kind, until, secrets.token_hex(12), scope, session_s, until_uptime_s)


def _uptime_s() -> float:
    """Return the seconds since the machine's start, with those that it slept where the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
