"""The nouns of the contract: tasks, conversations and their settings, as every process sees them.

Times are milliseconds since 1970 UTC. Optional members are left out of the JSON when they have nothing to say.
"""

from typing import Annotated, Any, Literal

import msgspec

Status = Literal["pending", "in_progress", "paused", "completed", "failed"]
Priority = Literal["low", "normal", "high", "urgent"]

STATUSES: tuple[Status, ...] = ("pending", "in_progress", "paused", "completed", "failed")
FINISHED: frozenset[Status] = frozenset({"completed", "failed"})
"""A task in one of these states is no longer work to be done."""

PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high", "urgent")

MAX_INTEGER = 2**53
"""Largest magnitude of an integer on the wire: what every JSON reader holds exactly (RFC 8259 §6)."""

TITLE_PATTERN = r"^(?=\s*\S)[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+(?![\s\S])"
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]*(?![\s\S])"

_ID_IN_WORDS = "1 to 128 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit"

ConversationId = Annotated[
    str, msgspec.Meta(min_length=1, max_length=128, pattern=ID_PATTERN, description=_ID_IN_WORDS)
]
TaskId = Annotated[
    str, msgspec.Meta(min_length=1, max_length=20, description='A decimal string counting up from "1" in its list')
]
MessageId = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=ID_PATTERN, description=_ID_IN_WORDS)]
Title = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=500,
        pattern=TITLE_PATTERN,
        description="1 to 500 characters on one line, not all blank",
    ),
]
Description = Annotated[str, msgspec.Meta(max_length=65_536, description="Free text up to 64 Ki characters")]
ShortText = Annotated[str, msgspec.Meta(max_length=500)]
LongText = Annotated[str, msgspec.Meta(max_length=8_192)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
"""Owners, actors, users: who somebody says they are."""
Metadata = dict[str, Any]
Position = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER, description="A seq or a version; 0 is before the first")]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]


class Thing(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of the values that travel: frozen, and silent about members that have nothing to say."""


class Task(Thing, frozen=True, kw_only=True):
    """One item of a conversation's list.

    `blocked_by` are the stored edges, `blocks` the same edges from the other side, and `open_blockers` those of
    `blocked_by` that are neither completed nor deleted. `version` is the conversation's version at the last change.
    While somebody holds a claim of the task, `fence` is the claim's number and `lease_expires_at` the end of its time.
    """

    id: TaskId
    title: Title
    status: Status
    priority: Priority
    description: str = ""
    active_form: str = ""
    owner: str = ""
    parent: TaskId | None = None
    blocked_by: tuple[TaskId, ...] = ()
    blocks: tuple[TaskId, ...] = ()
    open_blockers: tuple[TaskId, ...] = ()
    metadata: Metadata = {}
    result_summary: str = ""
    fail_reason: str = ""
    attempts: int = 0
    lease_expires_at: int | None = None
    fence: int | None = None
    created_at: int
    updated_at: int
    status_changed_at: int
    version: int


class Settings(Thing, frozen=True):
    """How a conversation's list behaves.

    `execution: serial` allows one task in progress at a time; `on_failure` says whether a failed task stops the
    queue: nothing is started or handed out any more until the failed task is reopened, completed or deleted.
    `max_attempts` is how often a task is tried before its failure counts: until then it goes back to pending (0: it
    counts at once). `auto_clear: when_done` empties the list when its last unfinished task is completed; `idle` when
    all tasks are finished and nothing has changed for 10 seconds, or at a `turn.end`, unless a failure stops the queue.
    """

    execution: Literal["manual", "serial"] = "manual"
    on_failure: Literal["continue", "stop"] = "continue"
    max_attempts: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    auto_clear: Literal["never", "when_done", "idle"] = "never"


class SettingsPatch(Thing, frozen=True, forbid_unknown_fields=True):
    """Settings to change; members left out keep their value."""

    execution: Literal["manual", "serial"] | None = None
    on_failure: Literal["continue", "stop"] | None = None
    max_attempts: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | None = None
    auto_clear: Literal["never", "when_done", "idle"] | None = None


class Counts(Thing, frozen=True, omit_defaults=False):
    """How many tasks of a list are in each state.

    `blocked` counts unfinished tasks with open blockers, `ready` pending ones that could be started now.
    """

    pending: int = 0
    in_progress: int = 0
    paused: int = 0
    completed: int = 0
    failed: int = 0
    blocked: int = 0
    ready: int = 0


class Damage(Thing, frozen=True):
    """Where a list ends because its log is damaged: the changes from position `seq` on are missing, and `reason`."""

    seq: int
    reason: str


class Conversation(Thing, frozen=True, kw_only=True):
    """A list and what is known about it. `version` counts its events from 1 without holes.

    With `damaged` only what was before the damage is shown.
    """

    conversation: ConversationId
    title: str = ""
    user: str = ""
    settings: Settings = Settings()
    sessions: tuple[str, ...] = ()
    version: int
    counts: Counts
    created_at: int
    updated_at: int
    damaged: Damage | None = None


class Message(Thing, frozen=True, kw_only=True):
    """One appended message. `message` is its stable id, `seq` its position in the log."""

    message: MessageId
    role: str
    content: Any
    at: int
    actor: str = ""
    seq: int
