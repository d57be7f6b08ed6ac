"""Reads untrusted JSON: small files about hosts' sessions."""

from typing import TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def read(data: bytes, type_: type[S]) -> S:
    """Decode a JSON object, ignoring other members; return `type_()` if a member has another type, or it isn't one."""
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return type_()
