"""Format of posts: the events that one daemon decided for a shared list, with a hash chain over the posts.

A post contains one group of events for each call, and the version of the first event. Its `check` is a hash of its
groups and the check of the previous post, so that a missing post is detected. A tombstone starts a new chain, because
earlier posts will be erased.

`level` is the highest level of the post's events. A daemon that does not know a level would decide calls based on a
wrong state, so it makes the list read-only. All current event types and members have level 1. A new type or member that
changes the result of `decide` must get a higher level, and may only be posted after the list has been raised to that
level.
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
"""Version of the envelope format."""

LEVEL = 1
"""Highest level that this daemon can read, and the level of its own posts."""


class Group(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The events of one call, with its time, actor, key, fingerprint, and the groups it undoes (see `Decision`)."""

    at: int
    actor: str
    events: list[msgspec.Raw]
    key: str = ""
    call: str = ""
    undoes: tuple[int, ...] = ()
    touches: tuple[int, ...] = ()
    reverts_to: int | None = None


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Wire format of a post.

    Attributes:
        by: Member that created the post.
        version: Version of the post's first event.
        more: Whether more posts of the same history will follow. The list is read-only until the last of them arrives.
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
    """A decoded post.

    Attributes:
        version: Version of the post's first event.
        newest: Version of the post's last event.
        previous: Place of the previous post.
        place: Place of this post.
        steps: The post's groups, as steps for the writer.
        more: See `Envelope`.
    """

    by: str
    nonce: str
    version: int
    newest: int
    previous: Place
    place: Place
    steps: list[Step]
    more: bool

    @property
    def begins_anew(self) -> bool:
        """Whether the post is a tombstone, which makes all earlier posts irrelevant."""
        return _begins_anew(self.steps)


class Unreadable(Exception):
    """This daemon can't apply a post. The message is human-readable."""


class Diverged(Unreadable):
    """The post is invalid or does not follow the previous ones, so this machine must not write to the list."""


class Invalid(Diverged):
    """The post was not created by punchlist, so no daemon applies it."""


class TooNew(Unreadable):
    """The post was created by a later version of punchlist."""


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
    """Return the member named in a nonce. Members can forge nonces."""
    return nonce.rpartition("-")[0]


def seal(by: str, nonce: str, version: int, check: str, steps: Sequence[Step], *, more: bool = False) -> bytes:
    """Encode a post.

    Args:
        by: This member.
        nonce: ID of the post.
        version: Version of the post's first event.
        check: Check of the previous post.
        steps: The post's groups, each with at least one event.
        more: Whether more posts of the same history will follow.
    """
    groups = _encode([group_of(step) for step in steps])
    head = head_of(check, version, groups, fresh=_begins_anew(steps))
    return _encode(Envelope(FORM, LEVEL, by, nonce, version, head, msgspec.Raw(groups), more))


def check_of(body: bytes) -> str:
    return _envelope.decode(body).check


def newest_of(body: bytes) -> int:
    """Return the version of a post's last event, or 0 if the post is invalid."""
    try:
        envelope = _envelope.decode(body)
        return envelope.version - 1 + sum(len(group.events) for group in _groups.decode(envelope.groups))
    except (ValueError, RecursionError):
        return 0


def begins_anew(body: bytes, version: int = 0) -> bool:
    """Return True if a post is a tombstone with a version above `version`, so that all earlier posts are irrelevant."""
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


def unseal(posted: Posted, previous: Place, version: int) -> Post:
    """Decode a post that must follow `version` at the place `previous`. A tombstone may follow any earlier version.

    Raises:
        TooNew: A later version of punchlist created the post.
        Invalid: The post is not valid.
        Diverged: The post does not follow the one at `previous`.
    """
    where = f"The post at position {posted.position} of {posted.list}"
    if posted.fault:
        raise Invalid(f"{where}{_author_clause(poster_of(posted.nonce))} is not punchlist's: {posted.fault}.")
    try:
        envelope = _envelope.decode(posted.body)
        by = where + _author_clause(envelope.by)
        if envelope.form > FORM or envelope.level > LEVEL:
            raise TooNew(
                f"{by} is of a later version of punchlist. Install that version here, then: punch daemon stop."
            )
        check_limits(posted.body, MAX_DEPTH)
        steps = [_step_of(group, by) for group in _groups.decode(envelope.groups)]
    except (ValueError, RecursionError, Refused) as error:
        raise Invalid(
            f"{where}{_author_clause(poster_of(posted.nonce))} is not punchlist's: {_summarize(error)}."
        ) from error
    if not steps or not all(step.events for step in steps):
        raise Invalid(f"{by} contains no change.")
    is_tombstone = _begins_anew(steps)
    is_restart = is_tombstone and envelope.version > version
    if posted.before > previous.position and not is_restart:
        raise Diverged(f"{by} follows position {posted.before}, but this machine ends at {previous.position}.")
    if envelope.version != version + 1 and not is_restart:
        raise Diverged(f"{by} begins at version {envelope.version}, and the list is at {version}.")
    if envelope.check != head_of(previous.check, envelope.version, bytes(envelope.groups), fresh=is_tombstone):
        raise Diverged(f"{by} does not follow from the one before it: its checksum differs.")
    newest = envelope.version + sum(len(step.events) for step in steps) - 1
    place = Place(posted.position, envelope.check)
    return Post(envelope.by, envelope.nonce, envelope.version, newest, previous, place, steps, envelope.more)


def _author_clause(author: str) -> str:
    """Return a clause that names the author, or "" if the author is not a member ID, since members may post any
    text."""
    return f", which names {author} as its author," if is_member_id(author) else ""


def _summarize(error: Exception) -> str:
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
    """Compute the check of a post from the previous post's check. A `fresh` post starts a new chain."""
    previous = b"" if fresh else check.encode()
    return blake2b(b"%b\t%d\t%b" % (previous, version, groups), digest_size=8).hexdigest()


_recorded = msgspec.json.Decoder(Recorded)


def steps_of(history: Sequence[Stored], member: str) -> list[Step]:
    """Convert stored events to steps for posts. An incomplete last group is omitted.

    Claims without a fence get their position in the local log as their fence, because their events have different
    positions in other logs. This member becomes the keeper of these claims.

    Raises:
        TooNew: A later version of punchlist wrote some of the events.
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
        if stored.remaining:
            continue
        assert first is not None, "it has an event"
        kept = Side(side.key, side.call, undoes=side.undoes) if side.key or side.undoes else None
        decision = Decision(tuple(events), undoes=side.undoes, touches=first.undoes, reverts_to=first.reverts_to)
        steps.append(Step(tuple(events), first.at, first.actor, kept, decision))
        events = []
    return steps
