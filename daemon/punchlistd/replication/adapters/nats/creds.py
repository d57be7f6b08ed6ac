"""Reads NATS creds files, which contain a user's seed and optionally a signed token (JWT)."""

import base64
import re
import time
from typing import Any, cast

import msgspec
import nkeys  # pyright: ignore[reportMissingTypeStubs]

from punchlistd.replication.adapters.link_refusals import read_private
from punchlistd.replication.adapters.nats.refusals import Refused
from punchlistd.replication.port import Garbled, Version
from punchlistd.replication.posts.foreign import decode

_SEED = re.compile(r"^[^\S\n]*+(SU[A-Z2-7]{56})[^\S\n]*+$", re.MULTILINE)
_TOKEN = re.compile(r"^[^\S\n]*+(eyJ[\w-]+\.[\w-]+\.[\w-]+)[^\S\n]*+$", re.MULTILINE)


_nkeys = cast(Any, nkeys)


class Creds(msgspec.Struct, frozen=True):
    """Credentials of a member.

    Attributes:
        user: The member's public key. Only this member can use subjects that contain it.
        expires: Expiry of the token, in seconds since 1970; 0 if it never expires.
    """

    path: str
    user: str
    seed: str
    token: str = ""
    expires: int = 0

    def __repr__(self) -> str:
        return f"Creds({self.path!r}, {self.user!r})"

    def sign(self, nonce: str) -> bytes:
        pair = _nkeys.from_seed(bytearray(self.seed.encode()))
        return base64.b64encode(pair.sign(nonce.encode()))


def read_creds(path: str) -> Creds:
    """Read a creds file from `nsc` or `punch space server`, or a file that contains only a seed.

    Raises:
        Refused: The file can't be read, is readable by other users, is not a creds file, or has expired.
    """
    text = read_private(path, Refused)
    seed, token = _SEED.search(text), _TOKEN.search(text)
    if seed is None:
        raise Refused("creds_malformed", creds=path)
    try:
        secret = bytearray(seed[1].encode())
        if bytes(_nkeys.encode_seed(_nkeys.decode_seed(secret)[1], nkeys.PREFIX_BYTE_USER)) != bytes(secret):
            raise ValueError("wrong checksum")
        pair = _nkeys.from_seed(secret)
        user = bytes(pair.public_key).decode()
    except Exception as error:  # the library raises several exception classes for a wrong checksum
        raise Refused("creds_malformed", creds=path) from error
    expires = 0 if token is None else _read_expiry(token[1])
    if expires and expires <= time.time():
        raise Refused("creds_expired", creds=path, when=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(expires)))
    return Creds(path, user, seed[1], "" if token is None else token[1], expires)


class _Claims(msgspec.Struct, frozen=True):
    exp: Version = 0


def _read_expiry(token: str) -> int:
    """Return the expiry of a token, or 0 if it can't be read. The server checks the token anyway."""
    body = token.split(".")[1]
    try:
        return decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), _Claims).exp
    except (ValueError, Garbled):
        return 0
