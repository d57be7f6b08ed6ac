"""The form of a post: what one daemon decided for a shared list, and what shows the others that nothing is missing.

A post holds groups of events, each what followed from one call, and says at which version they begin. Its `check`
covers its groups and the check of the post before it, so the posts of a list are a chain as the lines of the local log
are. A tombstone begins a new one, because what is before it will be erased.

`level` is the highest of its events. A daemon that does not know that level would decide on a wrong state, so it goes
on showing what it has and takes no changes. Every type and member of today is of level 1; one that changes what
`decide` finds gets a higher one, and stands in posts only once the list was raised to it.
"""

import contextlib
import os
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from punchlist_schemas.events import Claimed, ConversationDeleted, KnownEvent, Recorded, UnknownEvent, decode_event
from punchlist_schemas.strict_json import Refused, check_limits
from punchlistd.domain.commands import Decision
from punchlistd.engine.calls import Step
from punchlistd.engine.lists.loaded import Place
from punchlistd.replication.port import Posted, is_member_id
from punchlistd.replication.posts.foreign import MAX_DEPTH
from punchlistd.store.port import Side, Stored, side_of

FORM = 1
"""The version of the form itself."""

LEVEL = 1
"""The highest level that this daemon knows, and that of its posts."""


class Group(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The events of one call: when and by whom, its key and fingerprint, and what it takes back (see `Decision`)."""

    at: int
    actor: str
    events: list[msgspec.Raw]
    key: str = ""
    call: str = ""
    undoes: tuple[int, ...] = ()
    touches: tuple[int, ...] = ()
    reverts_to: int | None = None


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A post as it stands in the shared log.

    `by` is the member that made it, `version` that of its first event. `more` says that it is a part of a history which
    is being shared: the list may be followed, and not be written yet.
    """

    form: int
    level: int
    by: str
    nonce: str
    version: int
    check: str
    groups: msgspec.Raw
    more: bool = False


class Post(msgspec.Struct, frozen=True):
    """A post that was read: where it leads to, and its groups as steps of the writer. `newest` is its last version."""

    by: str
    nonce: str
    version: int
    newest: int
    behind: Place
    place: Place
    steps: list[Step]
    more: bool

    @property
    def begins_anew(self) -> bool:
        """Whether it is a tombstone of another machine: nothing before it counts."""
        return _begins_anew(self.steps)


class Unreadable(Exception):
    """A post that this daemon can't follow; the message is a sentence for people."""


class Diverged(Unreadable):
    """It is not punchlist's, or does not follow the posts before it: the list must not be written from here."""


class Invalid(Diverged):
    """It is not punchlist's, so no daemon follows it."""


class TooNew(Unreadable):
    """It is of a later version of punchlist."""


_encode = msgspec.json.Encoder().encode
_envelope = msgspec.json.Decoder(Envelope)
_groups = msgspec.json.Decoder(list[Group])


def group_of(step: Step) -> Group:
    side, decision = step.side or Side(), step.decision
    return Group(
        step.at,
        step.actor,
        [msgspec.Raw(_encode(event)) for event in step.events],
        side.key,
        side.call,
        side.undoes,
        decision.touches,
        decision.reverts_to,
    )


def new_nonce(member: str) -> str:
    return f"{member}-{os.urandom(8).hex()}"


def poster_of(nonce: str) -> str:
    """The member that made a post of this nonce, as far as that can be told."""
    return nonce.rpartition("-")[0]


def seal(by: str, nonce: str, version: int, check: str, steps: Sequence[Step], *, more: bool = False) -> bytes:
    """The bytes of a post.

    Args:
        by: the member that makes it.
        nonce: what it is known by.
        version: that of its first event.
        check: the head of the chain that it follows.
        steps: its groups, each with at least one event.
        more: whether the rest of a history follows.
    """
    groups = _encode([group_of(step) for step in steps])
    head = head_of(check, version, groups, fresh=_begins_anew(steps))
    return _encode(Envelope(FORM, LEVEL, by, nonce, version, head, msgspec.Raw(groups), more))


def check_of(body: bytes) -> str:
    return _envelope.decode(body).check


def newest_of(body: bytes) -> int:
    """The version behind a post, 0 where it is none of punchlist's."""
    try:
        envelope = _envelope.decode(body)
        return envelope.version - 1 + sum(len(group.events) for group in _groups.decode(envelope.groups))
    except (ValueError, RecursionError):
        return 0


def begins_anew(body: bytes, version: int = 0) -> bool:
    """Return whether a post is a tombstone behind a version: nothing before it counts."""
    with contextlib.suppress(ValueError, RecursionError):
        envelope = _envelope.decode(body)
        first = _groups.decode(envelope.groups)[:1]
        if envelope.version > version and first and first[0].events:
            return type(decode_event(first[0].events[0])) is ConversationDeleted
    return False


def has_check(body: bytes, check: str) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        return _envelope.decode(body).check == check
    return False


def unseal(posted: Posted, behind: Place, version: int) -> Post:
    """Read a post that follows a version at a place. A tombstone follows every earlier one.

    Raises:
        TooNew: It is of a later version of punchlist.
        Invalid: No daemon follows it.
        Diverged: It does not follow.
    """
    where = f"The post at position {posted.position} of {posted.list}"
    if posted.fault:
        raise Invalid(f"{where}{_naming(poster_of(posted.nonce))} is not punchlist's: {posted.fault}.")
    try:
        envelope = _envelope.decode(posted.body)
        by = where + _naming(envelope.by)
        if envelope.form > FORM or envelope.level > LEVEL:
            raise TooNew(
                f"{by} is of a later version of punchlist. Install that version here, then: punch daemon stop."
            )
        check_limits(posted.body, MAX_DEPTH)
        steps = [_step_of(group, by) for group in _groups.decode(envelope.groups)]
    except (ValueError, RecursionError, Refused) as error:
        raise Invalid(f"{where}{_naming(poster_of(posted.nonce))} is not punchlist's: {_briefly(error)}.") from error
    if not steps or not all(step.events for step in steps):
        raise Invalid(f"{by} holds no change.")
    fresh = _begins_anew(steps)
    anew = fresh and envelope.version > version
    if posted.before > behind.position and not anew:
        raise Diverged(f"{by} follows position {posted.before}, and what is known ends at {behind.position}.")
    if envelope.version != version + 1 and not anew:
        raise Diverged(f"{by} begins at version {envelope.version}, and the list is at {version}.")
    if envelope.check != head_of(behind.check, envelope.version, bytes(envelope.groups), fresh=fresh):
        raise Diverged(f"{by} does not follow from the one before it: its check is another.")
    newest = envelope.version + sum(len(step.events) for step in steps) - 1
    place = Place(posted.position, envelope.check)
    return Post(envelope.by, envelope.nonce, envelope.version, newest, behind, place, steps, envelope.more)


def _naming(author: str) -> str:
    """Return the author for an error, if a member can have that id: a member may post any text there."""
    return f", which names {author} as its author," if is_member_id(author) else ""


def _briefly(error: Exception) -> str:
    if isinstance(error, Refused):
        return error.rejection.message.rstrip(".")
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200].rstrip(".")


def _step_of(group: Group, by: str) -> Step:
    events: list[KnownEvent] = []
    for raw in group.events:
        event = decode_event(raw)
        if isinstance(event, UnknownEvent):
            raise TooNew(
                f"{by} needs a newer version of punchlist. Install that version here, then: punch daemon stop."
            )
        events.append(event)
    side = Side(group.key, group.call, undoes=group.undoes) if group.key or group.undoes else None
    decision = Decision(tuple(events), undoes=group.undoes, touches=group.touches, reverts_to=group.reverts_to)
    return Step(tuple(events), group.at, group.actor, side, decision)


def _begins_anew(steps: Sequence[Step]) -> bool:
    return bool(steps and steps[0].events) and type(steps[0].events[0]) is ConversationDeleted


def head_of(check: str, version: int, groups: bytes, *, fresh: bool) -> str:
    """Return the head of the chain behind a post; a `fresh` one begins the chain."""
    previous = b"" if fresh else check.encode()
    return blake2b(b"%b\t%d\t%b" % (previous, version, groups), digest_size=8).hexdigest()


_recorded = msgspec.json.Decoder(Recorded)


def steps_of(history: Sequence[Stored], member: str) -> list[Step]:
    """Whole groups of the local log as they are posted where a list is shared.

    Claims get the fences that they have here, since in the other logs their events have other positions, and this
    member as their keeper.

    Raises:
        TooNew: A later version of punchlist wrote some of it.
    """
    steps: list[Step] = []
    events: list[KnownEvent] = []
    first, side = _recorded.decode(history[0].wire) if history else None, Side()
    for stored in history:
        recorded = _recorded.decode(stored.wire)
        if not events:
            first, side = recorded, side_of(stored)
        event = decode_event(recorded.event)
        if isinstance(event, UnknownEvent):
            raise TooNew("A later version of punchlist has written to this list: share it from that version.")
        if isinstance(event, Claimed) and not event.fence:
            event = msgspec.structs.replace(event, fence=stored.seq, keeper=member)
        events.append(event)
        if stored.left:
            continue
        assert first is not None, "it has an event"
        kept = Side(side.key, side.call, undoes=side.undoes) if side.key or side.undoes else None
        decision = Decision(tuple(events), undoes=side.undoes, touches=first.undoes, reverts_to=first.reverts_to)
        steps.append(Step(tuple(events), first.at, first.actor, kept, decision))
        events = []
    return steps
