"""The objects of the contract: tasks, conversations and their settings.

Times are in milliseconds since 1970 UTC. Members with their default value are omitted from the JSON.
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
"""Largest absolute value of an integer on the wire. Every JSON reader stores it exactly (RFC 8259 §6)."""

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
        max_length=128,  # longer than needed, so that another program's id causes `not_found`, not `invalid_params`
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
"""Names of owners, actors and users, as sent by the clients."""
Metadata = dict[str, Any]


def machine_of(member: str) -> str:
    """Return the name of a member's machine: the part of its id before the last `_`."""
    return member.rpartition("_")[0] or member


def names_of(actor: str) -> list[str]:
    """Return an actor's own name, its session's and its host's, most specific first."""
    parts = actor.split("/") if actor else []
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def title_key(title: str) -> str:
    """Normalize a title for comparison: ignore case, runs of white space and final punctuation."""
    words = " ".join(title.casefold().split())
    return words.rstrip(".,;:!?… ") or words


ListKind = Literal["list", "chat"]
"""What a conversation is used for: a list for people and agents, or a chat thread with its queue of turns."""
Position = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER, description="A seq or a version; 0 is before the first")]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]


Time = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER, description="Milliseconds since 1970 UTC")]
Day = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(19[7-9]\d|[2-9]\d{3})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\s\S])",
        description="A calendar day without a time, such as 2026-12-24",
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
    """Base of the values on the wire: frozen, and members with their default value are omitted."""


class Link(Thing, frozen=True, kw_only=True):
    """Reference from a task: `url`, `path` (`src/a.py:12`), `commit`, `discovered-from` or `relates-to` (a task's id).

    Other kinds are stored unchanged. Whether a path, a commit or a task exists is not checked.
    """

    kind: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,31}(?![\s\S])")]
    to: Annotated[str, msgspec.Meta(min_length=1, max_length=2_048, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])")]


TASK_LINKS = frozenset(("discovered-from", "relates-to"))
"""Kinds of links to a task of the same list."""

Links = Annotated[tuple[Link, ...], msgspec.Meta(max_length=64)]


class Note(Thing, frozen=True, kw_only=True):
    """A note on a task. `version`, the list's version when it was added, identifies the note.

    With `imported_by`, that actor imported the note and reported that `actor` wrote it at time `at`.
    """

    version: int
    at: int
    actor: str
    text: str
    imported_by: str = ""


class Gate(Thing, frozen=True):
    """Requirement for completing a task: a check that passes and then a person's approval, or only one of these.

    `check` names the check. The list never contains the command of the check, which is passed to `punch gate CHECK --
    COMMAND`. With `by`, only this actor can approve; otherwise any actor except the task's owner can.
    """

    check: Annotated[str, msgspec.Meta(max_length=64, pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*)?(?![\s\S])")] = ""
    yes: bool = False
    by: Annotated[str, msgspec.Meta(max_length=128)] = ""


class TaskName(Thing, frozen=True, kw_only=True):
    """Id and title of a task."""

    id: TaskId
    title: Title


class AgentTask(Thing, frozen=True, kw_only=True):
    """A task that an agent has claimed, its list, and its parents.

    While the agent is away, `left_at`, `silent_at`, `machine` and `lease_expires_at` are set as in `Task`.
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
    """An agent or a person connected to the daemon, now or until `left_at`.

    `host`, `directory` and `branch` are reported by `agent.enter`; other connections have none of them. `since` is the
    time of arrival, `last_call` the time of the last call, `conversation` the list of that call, and `tasks` the
    claimed tasks.
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
"""Requirement of a task's gate that the task still waits for."""


class Task(Thing, frozen=True, kw_only=True):
    """One item of a conversation's list.

    `blocked_by` contains the stored edges, `blocks` the same edges in the other direction, and `open_blockers` the
    tasks in `blocked_by` that are neither completed nor deleted. `version` is the conversation's version at the last
    change. While the task is claimed, `fence` is the claim's number and `lease_expires_at` the end of its lease; in a
    shared list `machine` is the machine on which its owner works. `left_at` is when the owner's session left, and
    `silent_at` since when its machine has sent no heartbeats; both are unset while the owner is present. While either
    is set, the owner can return until `lease_expires_at`, and any owner can claim the task by its id. A task with
    `not_before` is deferred: it is not ready until then, and then loses this member. `due` has no effect on readiness.
    With `due_day`, the task is due on that day in every time zone; `due` is then the last millisecond of that day in
    UTC. With `not_before_day`, the task is deferred until that day; `not_before` is when the day begins in the time
    zone where it was set. Notes can only be added. `estimate_ms` is the estimated working time, and `spent_ms` the time
    in progress up to the last status change. When a task with a `gate` is completed, it becomes paused, and `waits_for`
    is the requirement of the gate; `task.approve` then completes it.
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
    """A task with its sort key: lists are sorted by `rank`, then `id`, both compared as plain strings."""

    rank: str


class Running(Thing, frozen=True, kw_only=True):
    """Summary of a task in progress. `since` is when it was started.

    While the owner is away, `left_at`, `silent_at`, `machine` and `lease_expires_at` are set as in `Task`.
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


NeedKind = Literal["yes", "failed", "check"]
"""What a task needs: a person's approval, help after a failure, or a check. Listed in this order."""


class Need(Thing, frozen=True, kw_only=True):
    """Summary of a task that can't continue without a person or a check.

    `since` is the time of its last status change. `frees` counts the unfinished tasks that wait for it, directly or
    through other tasks, up to 99 (99 means 99 or more). `text` is the beginning of the task's result or, with the kind
    `failed`, of its `fail_reason`, on one line. `by` is the only actor that can approve it or, with the kind `check`,
    the name of the check. `version` is the task's; `max_attempts` is the list's setting.
    """

    id: TaskId
    title: Title
    kind: NeedKind
    owner: str = ""
    since: int
    version: int
    attempts: int = 0
    max_attempts: int = 0
    frees: int = 0
    text: str = ""
    by: str = ""


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
    """A reason why the task `of` (if omitted: the whole list) can't continue: the task `by`.

    `stopped`: the list stops at failures and `by` has failed. `serial`: the list runs one task at a time, and `by` is
    in progress. `blocker`: `of` waits for `by`. `parent`: the parent `by` is paused or failed.
    `child`: `by` is an unfinished child of `of`. `heading`: `of` is a heading, which only groups other tasks.
    `deferred`: `of` is not ready before `not_before`, or before the day `not_before_day`. `reserved`: `of` is pending
    and has an `owner`, and only that owner can get it. `check` and `yes`: `of` was completed and waits for this
    requirement of its `gate`. Otherwise the kind is the status of `of`, and `by` the task itself. `title`, `status`,
    `owner`, `attempts`, `fail_reason` (its first 500 characters), `gate`, `lease_expires_at`, `left_at`, `silent_at`
    and `machine` are those of `by`. A reason with greater `depth` explains the one before it. With `again`, the causes
    of `by` were already listed.
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
    """Settings of a conversation's list.

    `execution: serial` allows one task in progress at a time. `on_failure: stop` stops the queue when a task fails: no
    task can be started or claimed until the failed task is reopened, completed or deleted.
    `max_attempts` is the number of attempts before a failure counts; until then the task becomes pending again (0: the
    first failure counts). `auto_clear: when_done` clears the list when its last unfinished task is completed; `idle`
    when all tasks are finished and nothing has changed for 10 seconds, or at a `turn.end`, unless a failure stops the
    queue. `rate_limit` is the maximum number of changes per actor and minute (0: unlimited), excluding renewals and
    releases. `complete_parents` selects the parents that are completed together with their last child: `headings`
    (imported as headings, with the metadata `heading`), `auto` (all) or `never`. Any other parent becomes ready when
    its last child is finished. `leave_grace` is the number of seconds that a session's claims last after it has left.
    """

    execution: Literal["manual", "serial"] = "manual"
    on_failure: Literal["continue", "stop"] = "continue"
    max_attempts: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    auto_clear: Literal["never", "when_done", "idle"] = "never"
    rate_limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    complete_parents: Literal["headings", "auto", "never"] = "headings"
    leave_grace: LeaveGrace = 300


class SettingsPatch(Thing, frozen=True, forbid_unknown_fields=True):
    """Settings to change; omitted members keep their value."""

    execution: Literal["manual", "serial"] | None = None
    on_failure: Literal["continue", "stop"] | None = None
    max_attempts: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | None = None
    auto_clear: Literal["never", "when_done", "idle"] | None = None
    rate_limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    complete_parents: Literal["headings", "auto", "never"] | None = None
    leave_grace: LeaveGrace | None = None


class Counts(Thing, frozen=True, omit_defaults=False):
    """Number of a list's tasks in each state.

    `blocked` counts unfinished tasks with open blockers, and `ready` counts pending ones that can be started now.
    """

    pending: int = 0
    in_progress: int = 0
    paused: int = 0
    completed: int = 0
    failed: int = 0
    blocked: int = 0
    ready: int = 0


class Damage(Thing, frozen=True):
    """Damage to a list's log. Changes from position `seq` on are missing; `reason` is the cause."""

    seq: int
    reason: str


class Shared(Thing, frozen=True):
    """State of a shared list that may lack changes by other machines: `behind`, or `offline` since a time.

    Other states are the kinds of errors with which changes are rejected: `diverged`, `upgrade_needed`, …
    """

    space: str
    state: str
    since: int = 0


class Conversation(Thing, frozen=True, kw_only=True):
    """A list without its tasks. `version` counts its events from 1 without gaps.

    `running` contains up to 8 of its tasks in progress, longest first; `wakes_at` is when the next deferred task
    becomes ready. `waiting` counts the paused tasks that wait for a person's approval. `needs` contains up to 8 tasks
    that need someone: by kind, then those that free the most, then the oldest. If there are more, those with the most
    direct dependents are chosen. `metadata` is free for clients to use. With `damaged`, the values are those before the
    damage; with `shared`, the newest changes may be missing here.
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
    needs: tuple[Need, ...] = ()


TALK = frozenset({"user", "assistant"})
"""Roles of spoken messages, which can't be superseded."""


class Message(Thing, frozen=True, kw_only=True):
    """One appended message. `message` is its stable id, `seq` its position in the log.

    `supersedes` is the message that this one replaces, and `superseded_by` the one that replaces this one.
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
