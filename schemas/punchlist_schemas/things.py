"""The nouns of the contract: tasks, conversations and their settings, as every process sees them.

Times are milliseconds since 1970 UTC. Optional members are left out of the JSON when they have nothing to say.
"""

from typing import Annotated, Any, Literal, get_args

import msgspec

from punchlist_schemas import vocabulary
from punchlist_schemas.guid import BRACED_PATTERN

Status = Literal["pending", "in_progress", "paused", "completed", "failed"]
Priority = Literal["low", "normal", "high", "urgent"]

STATUSES: tuple[Status, ...] = get_args(Status)
FINISHED = vocabulary.FINISHED
is_heading = vocabulary.is_heading
PRIORITIES: tuple[Priority, ...] = get_args(Priority)

MAX_INTEGER = 2**53
"""Largest magnitude of an integer on the wire: what every JSON reader holds exactly (RFC 8259 §6)."""

TITLE_PATTERN = r"^(?=\s*\S)[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+(?![\s\S])"
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]*(?![\s\S])"

_ID_IN_WORDS = "1 to 128 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit"

ConversationId = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=128,
        pattern=f"{ID_PATTERN}|{BRACED_PATTERN}",
        description=f"{_ID_IN_WORDS}; or {{GUID}}",
    ),
]
TaskId = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=128,  # more than any list counts to, so that another program's id is told as one that is not here
        description='A decimal string counting up from "1" in its list',
    ),
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


def machine_of(member: str) -> str:
    """Return the name of a member's machine: the part of its id before the last `_`."""
    return member.rpartition("_")[0] or member


def names_of(actor: str) -> list[str]:
    """Return an actor's own name, its session's and its host's: all agents that it belongs to, the nearest first."""
    parts = actor.split("/") if actor else []
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def title_key(title: str) -> str:
    """Return what equal titles have in common: case, runs of white space and punctuation at the end don't count."""
    words = " ".join(title.casefold().split())
    return words.rstrip(".,;:!?… ") or words


ListKind = Literal["list", "chat"]
"""What a conversation is for: a list that people and agents look at, or a thread of a chat with its queue of turns."""
Position = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER, description="A seq or a version; 0 is before the first")]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]


Time = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER, description="Milliseconds since 1970 UTC")]
Day = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(19[7-9]\d|[2-9]\d{3})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\s\S])",
        description="A day of the calendar without a time, such as 2026-12-24",
    ),
]
Label = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=64,
        pattern=r"^(?=\S)[^\x00-\x1f\x7f,]*(?<=\S)(?![\s\S])",
        description="1 to 64 characters without commas and control characters, not blank at the ends",
    ),
]
Labels = Annotated[tuple[Label, ...], msgspec.Meta(max_length=32)]


class Thing(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of the values that travel: frozen, and silent about members that have nothing to say."""


class Link(Thing, frozen=True, kw_only=True):
    """Where a task leads: `url`, `path` (`src/a.py:12`), `commit`, `discovered-from` or `relates-to` (a task's id).

    Kinds of your own are kept as they are. That a path, a commit or a task exists is not checked.
    """

    kind: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,31}(?![\s\S])")]
    to: Annotated[str, msgspec.Meta(min_length=1, max_length=2_048, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])")]


TASK_LINKS = frozenset(("discovered-from", "relates-to"))
"""The kinds of links that lead to a task of the same list."""

Links = Annotated[tuple[Link, ...], msgspec.Meta(max_length=64)]


class Note(Thing, frozen=True, kw_only=True):
    """What somebody wrote on a task. `version`, that of the list when it was written, tells one note from another.

    With `imported_by` this actor brought it from elsewhere, and says that `actor` wrote it `at` that time.
    """

    version: int
    at: int
    actor: str
    text: str
    imported_by: str = ""


class Gate(Thing, frozen=True):
    """What a task needs before it counts as completed: a check that passes, then a person's yes; or one of the two.

    `check` names the check: whoever runs `punch gate CHECK -- COMMAND` chooses the command, and the list never holds
    one. With `by` this actor alone can say yes; otherwise anybody but the task's owner.
    """

    check: Annotated[str, msgspec.Meta(max_length=64, pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*)?(?![\s\S])")] = ""
    yes: bool = False
    by: Annotated[str, msgspec.Meta(max_length=128)] = ""


class TaskName(Thing, frozen=True, kw_only=True):
    """A task by its id and title."""

    id: TaskId
    title: Title


class AgentTask(Thing, frozen=True, kw_only=True):
    """A task that an agent has claimed, its list, and the parents above it.

    While the agent is gone, `left_at`, `silent_at`, `machine` and `lease_expires_at` are set as in `Task`.
    """

    conversation: ConversationId
    id: TaskId
    title: Title
    path: tuple[TaskName, ...] = ()
    left_at: int | None = None
    silent_at: int | None = None
    machine: str = ""
    lease_expires_at: int | None = None


class Agent(Thing, frozen=True, kw_only=True):
    """An agent or a person who works with the daemon, now or until `left_at`.

    `host`, `directory` and `branch` are what an agent reported about itself; who only connected has none of them.
    `since` is when it came, `last_call` its last sign of life, `conversation` the list that this call was about, and
    `tasks` what it has claimed.
    """

    name: str
    host: str = ""
    directory: str = ""
    branch: str = ""
    pid: int = 0
    since: int
    last_call: int
    conversation: str = ""
    tasks: tuple[AgentTask, ...] = ()
    left_at: int | None = None


Waits = Literal["check", "yes"]
"""What a task that somebody has completed still waits for."""


class Task(Thing, frozen=True, kw_only=True):
    """One item of a conversation's list.

    `blocked_by` are the stored edges, `blocks` the same edges from the other side, and `open_blockers` those of
    `blocked_by` that are neither completed nor deleted. `version` is the conversation's version at the last change.
    While somebody holds a claim of the task, `fence` is the claim's number and `lease_expires_at` the end of its time;
    in a list that machines share `machine` is the one on which its owner works. `left_at` is there while the owner's
    session is gone: since when, and `silent_at` while that machine is not heard of. Until `lease_expires_at` the owner
    may come back; anybody may claim the task by its id.
    A task with `not_before` is deferred: it is not ready until then, and then loses this member. `due` changes nothing.
    With `due_day` it is due on that day wherever it is read; `due` is then the last millisecond of that day in UTC.
    With `not_before_day` it is deferred until that day; `not_before` is when the day begins where it was set.
    `notes` are only ever added. `estimate_ms` is how much work somebody thinks it is, and `spent_ms` how long it was in
    progress, up to the last change of its status. A task with a `gate` that somebody completes is paused and
    `waits_for` what the gate asks for; `task.approve` then completes it.
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
    due: int | None = None
    not_before: int | None = None
    labels: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    estimate_ms: int | None = None
    notes: tuple[Note, ...] = ()
    gate: Gate | None = None
    waits_for: Waits | None = None
    spent_ms: int = 0
    machine: str = ""
    left_at: int | None = None
    silent_at: int | None = None
    due_day: str | None = None
    not_before_day: str | None = None


class Row(Task, frozen=True, kw_only=True):
    """A task with its place: a list stands in the order of `rank` and then `id`, both compared as plain strings."""

    rank: str


class Running(Thing, frozen=True, kw_only=True):
    """Summary of a task in progress: its owner, and `since` when it has been worked on.

    While the owner is gone, `left_at`, `silent_at`, `machine` and `lease_expires_at` are set as in `Task`.
    """

    id: TaskId
    title: Title
    active_form: str = ""
    owner: str = ""
    since: int
    left_at: int | None = None
    silent_at: int | None = None
    machine: str = ""
    lease_expires_at: int | None = None


ReasonKind = Literal[
    "stopped",
    "serial",
    "blocker",
    "parent",
    "child",
    "heading",
    "deferred",
    "reserved",
    "check",
    "yes",
    "pending",
    "in_progress",
    "paused",
    "completed",
    "failed",
]


class Reason(Thing, frozen=True, kw_only=True):
    """One thing that keeps the task `of` (left out: the whole list) from going on: the task `by`.

    `stopped`: the list stops at failures and `by` has failed. `serial`: the list runs one task at a time, and `by` is
    in progress. `blocker`: `of` waits for `by`. `parent`: the parent `by` is paused or failed.
    `child`: `by` is an unfinished part of `of`. `heading`: `of` is a heading, which only holds other tasks.
    `deferred`: `of` is not ready before `not_before`, or before the day `not_before_day`. `reserved`: `of` is pending
    and has an `owner`, so that it is handed out to that owner alone. `check` and `yes`: it was completed and waits for
    what its `gate` asks for. Otherwise the kind is the status of `of`, and `by` the task itself. `title`, `status`,
    `owner`, `attempts`, `fail_reason` (its first 500 characters), `gate`, `lease_expires_at`, `left_at`, `silent_at`
    and `machine` are those of `by`. `depth` counts up where a reason explains the one above it, and `again` says that
    the causes of `by` stand above.
    """

    kind: ReasonKind
    of: TaskId | None = None
    by: TaskId
    title: str
    status: Status
    owner: str = ""
    attempts: int = 0
    fail_reason: str = ""
    not_before: int | None = None
    gate: Gate | None = None
    lease_expires_at: int | None = None
    depth: int = 0
    again: bool = False
    not_before_day: str | None = None
    left_at: int | None = None
    silent_at: int | None = None
    machine: str = ""


LeaveGrace = Annotated[int, msgspec.Meta(ge=0, le=86_400, description="Up to 24 hours, in seconds")]


class Settings(Thing, frozen=True):
    """How a conversation's list behaves.

    `execution: serial` allows one task in progress at a time; `on_failure` says whether a failed task stops the
    queue: nothing is started or handed out any more until the failed task is reopened, completed or deleted.
    `max_attempts` is how often a task is tried before its failure counts: until then it goes back to pending (0: it
    counts at once). `auto_clear: when_done` empties the list when its last unfinished task is completed; `idle` when
    all tasks are finished and nothing has changed for 10 seconds, or at a `turn.end`, unless a failure stops the queue.
    `rate_limit` is how many changes each actor may make per minute (0: any number); renewing and giving back are free.
    `complete_parents` says which parents finish with the last of their tasks: `headings` (those imported as headings,
    with the metadata `heading`), `auto` (all) or `never`. Any other parent becomes ready then.
    `leave_grace` is how many seconds a session's claims last after it has left.
    """

    execution: Literal["manual", "serial"] = "manual"
    on_failure: Literal["continue", "stop"] = "continue"
    max_attempts: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    auto_clear: Literal["never", "when_done", "idle"] = "never"
    rate_limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    complete_parents: Literal["headings", "auto", "never"] = "headings"
    leave_grace: LeaveGrace = 300


class SettingsPatch(Thing, frozen=True, forbid_unknown_fields=True):
    """Settings to change; members left out keep their value."""

    execution: Literal["manual", "serial"] | None = None
    on_failure: Literal["continue", "stop"] | None = None
    max_attempts: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | None = None
    auto_clear: Literal["never", "when_done", "idle"] | None = None
    rate_limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    complete_parents: Literal["headings", "auto", "never"] | None = None
    leave_grace: LeaveGrace | None = None


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


class Shared(Thing, frozen=True):
    """That a list of a space may have changed elsewhere unseen: it is `behind`, or `offline` since then, in ms.

    Other states are the kinds of error that a change is refused with: `diverged`, `upgrade_needed`, …
    """

    space: str
    state: str
    since: int = 0


class Conversation(Thing, frozen=True, kw_only=True):
    """A list and what is known about it. `version` counts its events from 1 without holes.

    `running` are up to 8 of its tasks in progress, the longest first; `wakes_at` is when the next deferred task becomes
    ready. `waiting` counts the tasks that wait for a person's yes, which are among those that are paused.
    `metadata` is whatever those who use the list keep with it. With `damaged` only what was before the damage is
    shown; with `shared` its newest changes may be missing here.
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
    running: tuple[Running, ...] = ()
    wakes_at: int | None = None
    kind: ListKind = "list"
    metadata: Metadata = {}
    shared: Shared | None = None
    waiting: int = 0


TALK = frozenset({"user", "assistant"})
"""Roles of what was said to each other: such a message is superseded by none."""


class Message(Thing, frozen=True, kw_only=True):
    """One appended message. `message` is its stable id, `seq` its position in the log.

    `supersedes` is the message that it is shown instead of, `superseded_by` the one that is shown instead of it.
    """

    message: MessageId
    role: str
    content: Any
    at: int
    actor: str = ""
    seq: int
    supersedes: str = ""
    superseded_by: str = ""
    retracted: bool = False
