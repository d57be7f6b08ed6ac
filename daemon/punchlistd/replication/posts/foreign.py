"""Decodes untrusted data from a space: replies from its server and messages from members.

Members may send any bytes, and the address may belong to another program. Invalid data raises `Garbled`. The bodies of
posts are decoded in `posts`, everything else in this module.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from punchlist_schemas.results import Limits
from punchlist_schemas.strict_json import Refused, check_limits
from punchlistd.replication.port import Garbled

T = TypeVar("T")

MAX_DEPTH = 2 * Limits().depth
"""Maximum nesting depth. It is twice that of a frame, which leaves room for the envelope."""

MAX_POSITION = 2**63 - 1
MAX_NONCE = 128
"""Maximum number of characters in a nonce. Nonces created by daemons have fewer than half as many."""


@cache
def _decoder(type: type[T]) -> "msgspec.json.Decoder[T]":
    return msgspec.json.Decoder(type)


def decode(data: bytes | str, type: type[T]) -> T:
    """Decode JSON.

    Raises:
        Garbled: The data is not JSON of this type.
    """
    try:
        text = data.encode() if isinstance(data, str) else data
        check_limits(text, MAX_DEPTH)
        return _decoder(type).decode(text)
    except (ValueError, RecursionError, Refused) as error:
        raise Garbled(f"The space sent unreadable data ({error}).") from error


def convert(row: Mapping[str, Any], type: type[T]) -> T:
    """Check the types of a database row.

    Raises:
        Garbled: A column has a different type.
    """
    try:
        return msgspec.convert(dict(row), type)
    except (ValueError, RecursionError) as error:
        raise Garbled(f"The space sent an unreadable row ({error}).") from error


def number(text: str | None) -> int | None:
    """Parse a position from decimal digits. Return None for any other text."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > len(str(MAX_POSITION)):
        return None
    value = int(text)
    return value if value <= MAX_POSITION else None
