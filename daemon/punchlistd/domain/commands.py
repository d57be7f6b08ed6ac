"""Input and output of `decide`: commands, decisions and facts."""

from collections.abc import Iterable
from typing import final

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AnyEvent, KnownEvent
from punchlist_schemas.params import Mutation
from punchlist_schemas.things import Undone


class Fact(msgspec.Struct, frozen=True, gc=False):
    """A stored event.

    `seq` is its log position, `version` is the conversation's version after it, and `at` is its time in milliseconds.
    """

    seq: int
    version: int
    at: int
    actor: str
    event: AnyEvent


@final
class Decision(msgspec.Struct, frozen=True, gc=False):
    """The events of a command, in order, as one group.

    Attributes:
        undoes: The calls that an undo reverses completely, as negative numbers if they are undos themselves. Stored
            with the group.
        lines: Description of an undo's effects for the user, newest first. A preview has lines but no events.
        changes: The members of each line.
        touches: All calls that an undo reverses at least in part. Published with the events.
        reverts_to: The version that the list returns to. Published with the events.
    """

    events: tuple[KnownEvent, ...] = ()
    undoes: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    changes: tuple[Undone, ...] = ()
    touches: tuple[int, ...] = ()
    reverts_to: int | None = None


class Command(msgspec.Struct, frozen=True, gc=False):
    """A call, with everything that the domain can't determine itself.

    Attributes:
        at: Time of the call, in milliseconds.
        user: The user that the connection is bound to.
        message_id: A new id for a message that has none.
        decided: The decision on an undo, computed from the history beforehand.
        session: For a claim: whether its owner is an agent's session.
        left: For a claim: the fence of another claim that it may replace because that claim's owner has left.
        is_abandoned: For a claim: whether the session that its task is reserved for has left.
    """

    params: Mutation
    at: int
    actor: str
    user: str | None = None
    message_id: str = ""
    decided: Decision | Rejection | None = None
    session: bool = False
    left: int | None = None
    is_abandoned: bool = False


NOTHING = Decision()

Parts = Iterable[Decision | Rejection]
"""The decisions on the parts of a call, made lazily. The state doesn't change until all decisions are made.

One rejection rejects the whole call.
"""


class Wake(Mutation, frozen=True, kw_only=True):
    """Internal call: makes ready the deferred tasks whose time has come by the command's `at`."""


class EndReservations(Mutation, frozen=True, kw_only=True):
    """Internal call: ends the reservations of these owners, whose sessions have ended."""

    owners: tuple[str, ...]


class EndClaims(Mutation, frozen=True, kw_only=True):
    """Internal call: ends claims, each identified by task and fence.

    `reason` is "expired", "disconnected", "restarted" or "left", or "released" if the claim's caller was gone before
    the response.
    """

    claims: tuple[tuple[str, int], ...]
    reason: str
