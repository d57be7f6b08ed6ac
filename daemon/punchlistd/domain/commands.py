"""What `decide` takes and gives: a stamped command, and the facts that follow from it."""

from collections.abc import Iterable
from typing import final

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AnyEvent, KnownEvent
from punchlist_schemas.params import Mutation


class Fact(msgspec.Struct, frozen=True, gc=False):
    """An event with its place: `seq` in the log, `version` in its conversation, `at` in milliseconds, who did it."""

    seq: int
    version: int
    at: int
    actor: str
    event: AnyEvent


@final
class Decision(msgspec.Struct, frozen=True, gc=False):
    """What follows from a command: its events, in order, as one group.

    `undoes` goes into the log with the group: the calls that it takes back as a whole, or negative those undos.
    `touches` are all calls that it takes back at least in part, `reverts_to` the version that the list goes back to:
    both are told with the events. `lines` tell what an undo takes back, newest first; a preview has no events.
    """

    events: tuple[KnownEvent, ...] = ()
    undoes: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    touches: tuple[int, ...] = ()
    reverts_to: int | None = None


class Command(msgspec.Struct, frozen=True, gc=False):
    """A call as `decide` sees it: what is asked, and everything that the domain may not find out by itself.

    `at` is the time in milliseconds, `user` the one that the connection is bound to, `message_id` a fresh id for a
    message that brings none. `decided` is what follows from an undo, worked out before from the history.
    Of a claim, `session` says that its owner is an agent that has entered, and `left` is the fence of the claim
    that it may end, since that one's owner has left. `is_abandoned` says that the session has left that its task is
    reserved for.
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
"""The decisions on the parts of a call, made lazily while the state stays as it is. A rejection is that of the call."""


class Wake(Mutation, frozen=True, kw_only=True):
    """What the engine asks for by itself: deferred tasks whose time has come by the command's `at` become ready."""


class EndReservations(Mutation, frozen=True, kw_only=True):
    """Internal call: ends the reservations of these owners, whose sessions have ended."""

    owners: tuple[str, ...]


class EndClaims(Mutation, frozen=True, kw_only=True):
    """What the engine asks for by itself: claims (task and fence) whose lease is over end.

    `reason` is expired, disconnected, restarted, left, or released where nobody was left to take what a claim gave.
    """

    claims: tuple[tuple[str, int], ...]
    reason: str
