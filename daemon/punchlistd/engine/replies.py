"""What goes to a peer: the result of a call as JSON or its refusal, and notifications."""

from collections.abc import Callable
from typing import TypeVarTuple, final

import msgspec

from punchlist_schemas.errors import Rejection

Ts = TypeVarTuple("Ts")

REPLY_BYTES = 4 << 20
"""A connection for which replies of so many bytes wait already has no further read answered beside them."""

LONG_BYTES = 64 << 10
"""What is not longer is never refused: small calls go on whatever others hold."""

INTERNAL_ERROR = Rejection("internal_error", "This is a bug in punchlistd; its log has the details.")
SHUTTING_DOWN = Rejection("shutting_down", "The daemon is stopping. Reconnect and repeat the call.")
STORAGE_FULL = Rejection(
    "storage_full", "The disk is full: nothing was written, reads go on. Free some space, then repeat the call."
)
OUTCOME_UNKNOWN = Rejection(
    "outcome_unknown",
    "The disk failed during the write, and the daemon stops: look whether the change was made before you repeat it. A"
    " call that is repeated with its key is done once.",
)

NO_MEMORY = Rejection(
    "limit_exceeded",
    "The daemon has no memory left for so long an answer. Ask for less at once (limit), or try again in a few seconds.",
    {"limit": "memory", "value": 0, "maximum": 0},
)


@final
class Pieces(msgspec.Struct, frozen=True, gc=False):
    """JSON in several pieces: the first and the last are short, the others may be shared by all who are sent them."""

    parts: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))


Reply = bytes | Pieces
"""A result as JSON."""

Outcome = Reply | Rejection


def size_of(outcome: Outcome) -> int:
    """About how many bytes a result has; a refusal counts as none."""
    if type(outcome) is Pieces:
        return outcome.size
    return len(outcome) if type(outcome) is bytes else 0


def made(make: Callable[[*Ts], Outcome], *args: *Ts) -> Outcome:
    """The answer that `make` makes of what is there, changing nothing, or the refusal where no memory is left for it.

    Anywhere else want of memory ends the daemon: what it leaves half done can't be told.
    """
    try:
        return make(*args)
    except MemoryError:
        return NO_MEMORY


def notification(method: str, params: bytes) -> bytes:
    """A push; `params` is a JSON object."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), params)


_encode = msgspec.json.Encoder().encode
