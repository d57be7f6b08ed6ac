"""Everything that can have happened, as stored for ever and as pushed.

Rules of evolution: a new member gets a default, a meaning never changes, a tag is an explicit string and never
derived from a Python path. A type this version does not know decodes to `UnknownEvent` and is kept as it is.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from punchlist_schemas.things import Gate, Link, ListKind, Metadata, Note, Priority, Settings, Status, Waits


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="type"):
    """Base of the stored facts. Members at their default are left out of the JSON."""


class AddedTask(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A task as it was added; members that are left out have their default.

    `created_at` and `status_changed_at` (milliseconds) are present only when a deleted task comes back.
    """

    id: str
    title: str
    status: Status = "pending"
    priority: Priority = "normal"
    description: str = ""
    active_form: str = ""
    owner: str = ""
    parent: str | None = None
    blocked_by: tuple[str, ...] = ()
    metadata: Metadata = {}
    result_summary: str = ""
    fail_reason: str = ""
    attempts: int = 0
    created_at: int = 0
    status_changed_at: int = 0
    due: int | None = None
    not_before: int | None = None
    labels: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    estimate_ms: int | None = None
    notes: tuple[Note, ...] = ()
    gate: Gate | None = None
    waits_for: Waits | None = None
    spent_ms: int = 0
    due_day: str | None = None
    not_before_day: str | None = None


class ConversationOpened(Event, frozen=True, tag="ConversationOpened"):
    """The conversation exists from here on."""

    title: str = ""
    user: str = ""
    settings: Settings = Settings()
    kind: ListKind = "list"
    metadata: Metadata = {}


class ConversationConfigured(Event, frozen=True, tag="ConversationConfigured"):
    """Title, settings or metadata changed (the new values in full), or an outside session was attached or detached.

    `moved_from` is the list of the same owner that the attached session leaves for this one.
    """

    title: str | UnsetType = UNSET
    settings: Settings | UnsetType = UNSET
    attached: str | UnsetType = UNSET
    detached: str | UnsetType = UNSET
    moved_from: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class ConversationDeleted(Event, frozen=True, tag="ConversationDeleted"):
    """The tombstone: everything before it is erased from the disk."""


class TaskAdded(Event, frozen=True, tag="TaskAdded"):
    """A task joined the list, at its end unless `before` names the task it went in front of.

    `rank` is an opaque sort key, present where the task does not stand in the order of its id.
    """

    task: AddedTask
    before: str | None = None
    rank: str = ""


class TaskEdited(Event, frozen=True, tag="TaskEdited"):
    """Members of a task were set; those left out were not touched. `metadata` merges and null deletes a key.

    `quote`, here and elsewhere, are the words by which a person agreed beforehand.
    """

    task: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    active_form: str | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    parent: str | None | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    quote: str = ""
    due: int | None | UnsetType = UNSET
    not_before: int | None | UnsetType = UNSET
    labels: tuple[str, ...] | UnsetType = UNSET
    links: tuple[Link, ...] | UnsetType = UNSET
    estimate_ms: int | None | UnsetType = UNSET
    gate: Gate | None | UnsetType = UNSET
    due_day: str | None | UnsetType = UNSET
    not_before_day: str | None | UnsetType = UNSET


class NoteAdded(Event, frozen=True, tag="NoteAdded"):
    """`actor` wrote a note on a task, or brought one that `author` wrote elsewhere, at `written_at`."""

    task: str
    text: str
    actor: str = ""
    author: str = ""
    written_at: int = 0


class NoteRemoved(Event, frozen=True, tag="NoteRemoved"):
    """A note was taken back by an undo: the one that was added with this version."""

    task: str
    note: int


class TaskWoken(Event, frozen=True, tag="TaskWoken"):
    """The time until which a task was deferred is over."""

    task: str


class TaskMoved(Event, frozen=True, kw_only=True, tag="TaskMoved"):
    """A task went in front of `before`, or to the end when that is null. `rank` is its new opaque sort key."""

    task: str
    before: str | None = None
    rank: str


class StatusChanged(Event, frozen=True, tag="StatusChanged", rename={"from_": "from"}):
    """A task's status changed, or the summary or reason that goes with it.

    `waits_for` says what keeps a task with a gate, which somebody has completed, from being completed. `spent_ms` is
    how long the task was in progress until now, since it went there; an undo takes such a time away again.
    """

    task: str
    from_: Status
    to: Status
    result_summary: str | UnsetType = UNSET
    fail_reason: str | UnsetType = UNSET
    attempts: int | UnsetType = UNSET
    waits_for: Waits | None = None
    spent_ms: int = 0


class Deleted(Event, frozen=True, tag="Deleted"):
    """A task left the list. Edges to it go with it, its children move to its parent."""

    task: str
    quote: str = ""


class DependencyAdded(Event, frozen=True, tag="DependencyAdded"):
    """`task` can't be started before `blocker` is completed or deleted."""

    task: str
    blocker: str


class DependencyRemoved(Event, frozen=True, tag="DependencyRemoved"):
    """The edge from `task` to `blocker` is gone."""

    task: str
    blocker: str


class Claimed(Event, frozen=True, tag="Claimed"):
    """`owner` took the task for `lease_ms` milliseconds; it is in progress from here.

    `keep` says that the claim does not depend on a connection: its time alone counts. The fence is this event's seq; in
    a list that machines share, where each has positions of its own, it is `fence`, and `keeper` is the daemon that
    keeps the time of the claim: the name of its machine, `_`, and an id. `session` says that its owner was an agent
    that had entered: once that has left, the claim lasts for a grace.
    """

    task: str
    owner: str
    lease_ms: int
    attempts: int = 0
    keep: bool = False
    fence: int = 0
    keeper: str = ""
    session: bool = False


class Released(Event, frozen=True, kw_only=True, tag="Released"):
    """A claim ended without a result; `reason` is expired, disconnected, released, restarted or left.

    The task goes to status `to`.
    """

    task: str
    owner: str
    reason: str
    to: Status = "pending"
    attempts: int | UnsetType = UNSET
    spent_ms: int = 0


class ListCleared(Event, frozen=True, tag="ListCleared"):
    """All tasks left the list and numbering restarts at 1."""

    quote: str = ""


class MessageAppended(Event, frozen=True, tag="MessageAppended"):
    """A message joined the conversation for ever. From now on it is shown instead of the one that it supersedes."""

    message: str
    role: str
    content: Any
    supersedes: str = ""


class MessageRetracted(Event, frozen=True, tag="MessageRetracted"):
    """A message is no longer shown; the log keeps it."""

    message: str
    reason: str = ""


class EventLost(Event, frozen=True, tag="EventLost"):
    """Stands in the place of an event that damage destroyed, since the log was repaired. Without effect."""


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of a type that this version does not know: kept and shown as it is, without effect."""

    raw: msgspec.Raw


KnownEvent = (
    ConversationOpened
    | ConversationConfigured
    | ConversationDeleted
    | TaskAdded
    | TaskEdited
    | TaskMoved
    | NoteAdded
    | NoteRemoved
    | TaskWoken
    | StatusChanged
    | Deleted
    | DependencyAdded
    | DependencyRemoved
    | Claimed
    | Released
    | ListCleared
    | MessageAppended
    | MessageRetracted
    | EventLost
)
AnyEvent = KnownEvent | UnknownEvent

_event_decoder = msgspec.json.Decoder(KnownEvent)


class Recorded(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An event with its place: `seq` in the whole log, `version` in its conversation, `at` in milliseconds.

    `call` is the version of the first event of the same call, left out where that is this one. The first event of an
    undo tells in `undoes` the calls that it takes back, at least in part, and in `reverts_to` the version that the
    list goes back to.

    `event` stays undecoded until `decode_event` is asked, so that forwarding one costs nothing.
    """

    seq: int
    conversation: str
    version: int
    at: int
    actor: str
    call: int = 0
    undoes: tuple[int, ...] = ()
    reverts_to: int | None = None
    event: msgspec.Raw


def decode_event(raw: msgspec.Raw | bytes) -> AnyEvent:
    """Decode a stored event. One of a type or shape unknown to this version comes back as `UnknownEvent`."""
    try:
        return _event_decoder.decode(raw)
    except msgspec.ValidationError:
        return UnknownEvent(raw if isinstance(raw, msgspec.Raw) else msgspec.Raw(raw))
