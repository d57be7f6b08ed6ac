"""Outcomes of calls: encoded results or rejections, and notifications."""

from collections.abc import Callable
from typing import TypeVarTuple, final

import msgspec

from punchlist_schemas.errors import Rejection

Ts = TypeVarTuple("Ts")

REPLY_BYTES = 4 << 20
"""Limit for the replies that wait to be sent on one connection, in bytes. Above it, other reads wait."""

LONG_BYTES = 64 << 10
"""Replies up to this size are never rejected for lack of memory, so that small calls always work."""

INTERNAL_ERROR = Rejection("internal_error", "This is a bug in punchlistd; its log has the details.")
SHUTTING_DOWN = Rejection("shutting_down", "The daemon is stopping. Reconnect and repeat the call.")
STORAGE_FULL = Rejection(
    "storage_full",
    "The disk is full: nothing was written, but reads still work. Free some space, then repeat the call.",
)
OUTCOME_UNKNOWN = Rejection(
    "outcome_unknown",
    "The disk failed during the write, and the daemon stops. Check whether the change was made before you repeat it; a"
    " call repeated with its idempotency key is done once.",
)

NO_MEMORY = Rejection(
    "limit_exceeded",
    "The daemon has too little memory for so long a reply. Request less at once (limit), or try again in a few "
    "seconds.",
    {"limit": "memory", "value": 0, "maximum": 0},
)


@final
class Pieces(msgspec.Struct, frozen=True, gc=False):
    """JSON text in several pieces. The first and last are short; the others may be shared by several connections."""

    parts: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))


Reply = bytes | Pieces
"""A result as JSON."""

Outcome = Reply | Rejection


def size_of(outcome: Outcome) -> int:
    """Return the size of a result in bytes; 0 for a rejection."""
    if type(outcome) is Pieces:
        return outcome.size
    return len(outcome) if type(outcome) is bytes else 0


def build_reply(build: Callable[[*Ts], Outcome], *args: *Ts) -> Outcome:
    """Return the reply that `build` builds, or a rejection if memory runs out.

    `build` must not change anything. Everywhere else, a `MemoryError` ends the daemon, because it may leave a change
    half done.
    """
    try:
        return build(*args)
    except MemoryError:
        return NO_MEMORY


def notification(method: str, params: bytes) -> bytes:
    """Encode a notification. `params` is an encoded JSON object."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), params)


_encode = msgspec.json.Encoder().encode
