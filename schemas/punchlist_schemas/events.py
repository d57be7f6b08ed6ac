"""Events, as stored in the log and as pushed.

Rules for changes to this format: new members get a default, meanings never change, and tags are explicit strings, not
derived from Python paths. An unknown type decodes to `UnknownEvent` and is kept unchanged.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from punchlist_schemas.things import Gate, Link, ListKind, Metadata, Note, Priority, Settings, Status, Waits


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="type"):
    """Base of the events. Members with their default value are omitted from the JSON."""


class AddedTask(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A task as it was added. Omitted members have their default values.

    `created_at` and `status_changed_at` (milliseconds) are present only if a deleted task is restored.
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
    """The conversation was created."""

    title: str = ""
    user: str = ""
    settings: Settings = Settings()
    kind: ListKind = "list"
    metadata: Metadata = {}


class ConversationConfigured(Event, frozen=True, tag="ConversationConfigured"):
    """The title, settings or metadata changed, or an external session was attached or detached.

    If metadata or settings changed, all new values are included. `moved_from` is the list of the same owner to which
    the session was attached before.
    """

    title: str | UnsetType = UNSET
    settings: Settings | UnsetType = UNSET
    attached: str | UnsetType = UNSET
    detached: str | UnsetType = UNSET
    moved_from: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class ConversationDeleted(Event, frozen=True, tag="ConversationDeleted"):
    """Tombstone: all earlier events are erased from the disk."""


class TaskAdded(Event, frozen=True, tag="TaskAdded"):
    """A task was added: before the task `before`, or at the end of the list if that is null.

    `rank` is an opaque sort key, present if the task is not at the position given by its id.
    """

    task: AddedTask
    before: str | None = None
    rank: str = ""


class TaskEdited(Event, frozen=True, tag="TaskEdited"):
    """Members of a task were set; omitted ones are unchanged. `metadata` is merged; null deletes a key.

    `quote`, here and in other events, contains the words with which a person agreed in advance.
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
    """`actor` added a note to a task, or imported one that `author` wrote at `written_at`."""

    task: str
    text: str
    actor: str = ""
    author: str = ""
    written_at: int = 0


class NoteRemoved(Event, frozen=True, tag="NoteRemoved"):
    """An undo removed the note that was added in version `note`."""

    task: str
    note: int


class TaskWoken(Event, frozen=True, tag="TaskWoken"):
    """A task's deferral has ended."""

    task: str


class TaskMoved(Event, frozen=True, kw_only=True, tag="TaskMoved"):
    """A task moved before `before`, or to the end if that is null. `rank` is its new opaque sort key."""

    task: str
    before: str | None = None
    rank: str


class StatusChanged(Event, frozen=True, tag="StatusChanged", rename={"from_": "from"}):
    """A task's status changed, or the summary or reason stored with it.

    `waits_for` is the requirement that a completed task with a gate still waits for. `spent_ms` is the length of the
    time in progress that this change ended; an undo subtracts it again.
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
    """A task was deleted, together with the edges to it. Its children moved to its parent."""

    task: str
    quote: str = ""


class DependencyAdded(Event, frozen=True, tag="DependencyAdded"):
    """`task` can't be started before `blocker` is completed or deleted."""

    task: str
    blocker: str


class DependencyRemoved(Event, frozen=True, tag="DependencyRemoved"):
    """The edge from `task` to `blocker` was removed."""

    task: str
    blocker: str


class Claimed(Event, frozen=True, tag="Claimed"):
    """`owner` claimed the task for `lease_ms` milliseconds, which started it.

    With `keep`, the claim does not depend on a connection, only on its lease. The fence is this event's seq. In a
    shared list, where each machine has its own positions, the fence is `fence`. There `keeper` is the daemon that
    manages the lease: the name of its machine, `_`, and an id. With `session`, the owner was a registered agent. Once
    the agent has left, the claim lasts for a grace period.
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

    The task's status becomes `to`.
    """

    task: str
    owner: str
    reason: str
    to: Status = "pending"
    attempts: int | UnsetType = UNSET
    spent_ms: int = 0


class ListCleared(Event, frozen=True, tag="ListCleared"):
    """All tasks were removed, and numbering restarts at 1."""

    quote: str = ""


class MessageAppended(Event, frozen=True, tag="MessageAppended"):
    """A message was appended permanently. It is shown instead of the message that it supersedes."""

    message: str
    role: str
    content: Any
    supersedes: str = ""


class MessageRetracted(Event, frozen=True, tag="MessageRetracted"):
    """A message is no longer shown; the log keeps it."""

    message: str
    reason: str = ""


class EventLost(Event, frozen=True, tag="EventLost"):
    """Placeholder that a repair puts in place of an event destroyed by damage. It has no effect."""


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of an unknown type. It is kept and returned unchanged, and has no effect."""

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


class About(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """What an event is about: the title of its task, and the list's title or, if it has none, its name.

    The task's title is the one after the event or a later one. A deleted task has its last title, and an event about
    the whole list has none.
    """

    title: str = ""
    list: str = ""


class Recorded(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An event with its position: `seq` in the whole log, `version` in its conversation, and `at` in milliseconds.

    `call` is the version of the first event of the same call, omitted if that is this event. In the first event of an
    undo, `undoes` lists the calls that it undoes, at least in part, and `reverts_to` is the version to which the list
    returns. `about` is present if the call requested it.

    `event` stays encoded until `decode_event` is called, so that forwarding needs no decoding.
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
    about: About | None = None


def decode_event(raw: msgspec.Raw | bytes) -> AnyEvent:
    """Decode a stored event. An unknown type or shape returns `UnknownEvent`."""
    try:
        return _event_decoder.decode(raw)
    except msgspec.ValidationError:
        return UnknownEvent(raw if isinstance(raw, msgspec.Raw) else msgspec.Raw(raw))
