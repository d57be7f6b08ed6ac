"""Results of all methods, and notifications to subscribers."""

from typing import Any, Literal

import msgspec

from punchlist_schemas.events import Recorded
from punchlist_schemas.things import Agent, Conversation, Counts, Damage, Message, Reason, Row, Shared, Task, TaskName


class Result(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of all results."""


Path = tuple[TaskName, ...]
"""The nearest ancestors of a task, at most 8, topmost first."""


class Turn(Result, frozen=True, kw_only=True):
    """What an agent needs to know before its next call, at the `version` and `seq` of the result that contains it.

    `total` is the number of tasks. `running` contains the tasks in progress, and `parents` those of them that have
    unfinished children. `ready` contains the ready ones of the tasks in the result of `task.add_many` and
    `list.replace`. `events` contains other actors' events after `since`, and later ones about the same tasks. `changed`
    contains the first 20 tasks of these events that still exist. If tasks or events are too many or too long, `running`
    and `events` are omitted, and `changed` contains fewer tasks: read them with other calls. If `task.list` requested
    the turn without `since`, `last` is the position and version of the agent's own last event, (0, 0) if there is none;
    it is omitted if the event may be too old to be in memory.

    In the result of `list.apply`, and of a claim that got no task, `reasons` and `next` are those of `task.explain` for
    the agent, and `abandoned` contains the open tasks whose owners have left. `paths` maps ids of tasks in this turn to
    their parents.
    """

    counts: Counts
    total: int
    running: tuple[Task, ...] | None = None
    parents: tuple[str, ...] = ()
    ready: tuple[str, ...] | None = None
    events: tuple[Recorded, ...] | None = None
    changed: tuple[Task, ...] = ()
    last: tuple[int, int] | None = None
    reasons: tuple[Reason, ...] | None = None
    next: Task | None = None
    abandoned: tuple[Task, ...] = ()
    paths: dict[str, Path] = {}


class Written(Result, frozen=True, kw_only=True):
    """Base of mutation results: the conversation's version and the log's position after the call.

    `turn` is set if the call requested it, unless the response is that of an earlier call with the same key.
    """

    version: int
    seq: int
    turn: Turn | None = None


class Limits(Result, frozen=True, kw_only=True, omit_defaults=False):
    """The limits in force: bytes, counts and seconds. `in_flight` and `subscriptions` are per connection.

    `depth` is the nesting of objects and arrays in a frame, counting the outermost.
    """

    frame_bytes: int = 1 << 20
    depth: int = 32
    batch: int = 100
    in_flight: int = 64
    frame_seconds: float = 10.0
    connections: int = 10_240
    subscriptions: int = 1_000


class FileIdentity(Result, frozen=True, kw_only=True):
    """Identity of a file on this machine, regardless of its path: device and inode numbers as decimal strings."""

    device: str
    inode: str


class HelloResult(Result, frozen=True, kw_only=True):
    """Identity of the daemon.

    `protocol` is the version of the contract, and `epoch` identifies the log that positions refer to. `lock` is the
    file whose lock the daemon holds in its data directory. A client that finds another file there, or none, does not
    share the daemon's file system (it may be in a sandbox with its own home) and should stop. `build` identifies the
    daemon's code: compare it only for equality.
    """

    name: str
    version: str
    protocol: int
    epoch: str
    pid: int
    limits: Limits
    features: tuple[str, ...]
    lock: FileIdentity | None = None
    build: str = ""


class Durations(Result, frozen=True, kw_only=True):
    """Distribution of the latest durations, in microseconds."""

    count: int
    p50_us: int
    p99_us: int


class ClientStatus(Result, frozen=True, kw_only=True):
    """One connection."""

    name: str
    pid: int
    subscriptions: int
    connected_at: int


class SubscriptionStatus(Result, frozen=True, kw_only=True):
    """One subscription; `lag` is the number of positions between it and the end of the log."""

    subscription: str
    client: str
    view: str
    lag: int
    conversation: str | None = None


class StatusResult(Result, frozen=True, kw_only=True):
    """State of the daemon. Sizes are in bytes, and times in milliseconds since 1970 UTC."""

    version: str
    protocol: int
    pid: int
    epoch: str
    started_at: int
    uptime_ms: int
    socket: str
    data_dir: str
    python: str
    sqlite: str
    loop: str
    seq: int
    conversations_loaded: int
    clients: tuple[ClientStatus, ...]
    subscriptions: tuple[SubscriptionStatus, ...]
    log_bytes: int
    wal_bytes: int
    commits: Durations
    calls: int
    refused: int
    last_errors: tuple[str, ...] = ()


class BackupResult(Result, frozen=True, kw_only=True):
    """A copy of the log: its last position and its size in bytes.

    `events` and `conversations` are the numbers of events and conversations that were verified. They are omitted if the
    copy was not checked.
    """

    path: str
    epoch: str
    seq: int
    bytes: int
    checked: bool
    events: int | None = None
    conversations: int | None = None


class ServerInfo(Result, frozen=True, kw_only=True):
    """Name and version of the daemon, as in LSP."""

    name: str
    version: str


class InitializeResult(Result, frozen=True, kw_only=True):
    """Result of the LSP `initialize` request. The daemon offers none of a language server's services."""

    capabilities: dict[str, Any]
    server_info: ServerInfo = msgspec.field(name="serverInfo")


class Stopping(Result, frozen=True, kw_only=True):
    """The daemon finishes the accepted calls and stops."""

    stopping: bool


class ConversationResult(Written, frozen=True, kw_only=True):
    """One conversation after a mutation. `created` is true if it is new."""

    conversation: Conversation
    created: bool = False


class ConversationGetResult(Result, frozen=True, kw_only=True):
    """One conversation. `name` is its short name, omitted if it equals the id."""

    conversation: Conversation
    name: str = ""


class Present(Result, frozen=True, kw_only=True):
    """An actor subscribed to a conversation on one or more connections. `since` is in milliseconds since 1970."""

    actor: str
    connections: int
    since: int


class PresenceResult(Result, frozen=True, kw_only=True):
    """Actors subscribed to this conversation, in order of arrival."""

    present: tuple[Present, ...]


class AgentListResult(Result, frozen=True, kw_only=True):
    """Connected agents in order of arrival, then those that left, latest first. `names` maps ids to short names."""

    agents: tuple[Agent, ...]
    names: dict[str, str] = {}


class ConversationListResult(Result, frozen=True, kw_only=True):
    """One page of conversations; pass `next_cursor` for the next one. `names` maps ids to short names."""

    conversations: tuple[Conversation, ...]
    next_cursor: str | None = None
    names: dict[str, str] = {}


class ConversationResolveResult(Result, frozen=True, kw_only=True, omit_defaults=False):
    """The list of a directory, and how it was determined.

    `source` is `project_file` (`file` is its path), `repository` (the git repository's own list), or `none`. With
    `none`, only the command line uses a list there: `default`. `root` is the project's directory. `exists` is true if
    the list has been used. `allowed` is false if a project file names a list that exists and was not made for this
    project: ask the person, and allow it with `punch init --trust` in `root`.
    """

    conversation: str | None
    source: Literal["project_file", "repository", "none"]
    root: str | None
    file: str | None
    exists: bool
    allowed: bool


class TaskResult(Written, frozen=True, kw_only=True):
    """One task after a mutation. `kept` is set if `task.add` returned this equal task instead of adding one."""

    task: Task
    kept: bool = False


class TasksResult(Written, frozen=True, kw_only=True):
    """Several tasks after a mutation. `kept` contains the ids of existing tasks that equal a task of the call."""

    tasks: tuple[Task, ...]
    kept: tuple[str, ...] = ()


class ApplyResult(Written, frozen=True, kw_only=True):
    """Result of several changes: the added or changed `tasks` that still exist, each once.

    `added` contains the ids of the new tasks in the order of the changes, including tasks that a later change deleted.
    `deleted` contains the ids of the deleted tasks.
    """

    tasks: tuple[Task, ...]
    added: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


class ConfirmationResult(Result, frozen=True, kw_only=True):
    """The call that a token stands for: repeat `method` with `params` and `confirm`. `expires_at` is in milliseconds.

    `space` is the space of a shared list that would be deleted on every machine.
    """

    method: str
    params: msgspec.Raw
    summary: str
    conversation: str
    expires_at: int
    space: str = ""


class TaskGetResult(Result, frozen=True, kw_only=True):
    """One task, and its ancestors in `path`. With `damaged`, it is the task as it was before the damage."""

    task: Task
    path: Path = ()
    damaged: Damage | None = None


class Hit(Result, frozen=True, kw_only=True):
    """A search match: the task, the title of its list, and an excerpt with the words."""

    conversation: str
    title: str = ""
    task: Task
    excerpt: str = ""


class TaskSearchResult(Result, frozen=True, kw_only=True):
    """Matches, best first. `total` also counts the matches beyond `limit`, up to 10,000.

    `damaged` names lists that were searched only up to their damage.
    """

    hits: tuple[Hit, ...]
    total: int
    damaged: tuple[str, ...] = ()


class TaskExplainResult(Result, frozen=True, kw_only=True):
    """The actions that a task allows now, and the reasons why the others are rejected.

    `more` is the number of omitted reasons. `ready` is true if a claim of the next ready task can return this task.
    `ahead` is the number of ready tasks that would be claimed before it. `next` is the ready task that would be
    claimed first if the list were not stopped. Without a task, `ready` is true if any task is ready. `path` contains
    the parents of the task. With `damaged` the list is incomplete.
    """

    task: Task | None = None
    path: Path = ()
    ready: bool
    startable: bool
    completable: bool
    ahead: int = 0
    next: TaskName | None = None
    reasons: tuple[Reason, ...] = ()
    more: int = 0
    version: int
    seq: int
    damaged: Damage | None = None


class TaskListResult(Result, frozen=True, kw_only=True):
    """The selected tasks, and the counts of the whole list. With `fields`, tasks have only those members.

    `name` is the list's short name, omitted if it equals the id.

    `total` is the number of matches before `offset` and `limit`. With `damaged`, the list is incomplete; with `shared`,
    its newest changes may be missing here. With `since`, `tasks` is empty, and `rows` and `gone` contain the changes;
    with `reset`, they contain the whole list. `turn` is set if the call requested it.
    """

    tasks: tuple[Task, ...]
    counts: Counts
    version: int
    seq: int
    total: int
    damaged: Damage | None = None
    shared: Shared | None = None
    rows: tuple[Row, ...] = ()
    gone: tuple[str, ...] = ()
    reset: bool = False
    name: str = ""
    turn: Turn | None = None


class SetStatusResult(Written, frozen=True, kw_only=True):
    """Result of a status change. `next_task` was started or is the next ready one; `unblocked` contains ids.

    `next_path` contains the parents of `next_task`. `remaining` is the number of unfinished tasks. When it is 0,
    `failed` is the number of failed tasks.
    """

    task: Task
    next_task: Task | None = None
    next_path: Path = ()
    unblocked: tuple[str, ...] = ()
    remaining: int
    failed: int = 0


class ClaimResult(Written, frozen=True, kw_only=True):
    """The claimed task, or null if no task was ready; with `count`, all of them in `tasks`.

    `fence` is the number of the claim, to pass with later calls. `path` contains the parents of the task. Both refer to
    the first task; `fences` and `paths` contain those of all tasks.
    """

    task: Task | None
    fence: int | None = None
    path: Path = ()
    tasks: tuple[Task, ...] = ()
    fences: tuple[int, ...] = ()
    paths: tuple[Path, ...] = ()


class DeleteResult(Written, frozen=True, kw_only=True):
    """Ids of the deleted tasks."""

    deleted: tuple[str, ...]


class ClearResult(Written, frozen=True, kw_only=True):
    """Number of removed tasks."""

    cleared: int


class UndoResult(Written, frozen=True, kw_only=True):
    """A readable line for each undone change, and the calls that the changes belong to, both newest first.

    A call is identified by the version of its first event, as in the member `call` of events. With `to_version`, no
    calls are returned.
    """

    undone: tuple[str, ...]
    calls: tuple[int, ...] = ()


class ConversationDeleteResult(Written, frozen=True, kw_only=True):
    """Id of the erased conversation."""

    deleted: str


class MessageResult(Written, frozen=True, kw_only=True):
    """The appended message."""

    message: Message


class MessageRetractResult(Written, frozen=True, kw_only=True):
    """Id of the retracted message."""

    retracted: str


class MessageGetResult(Result, frozen=True, kw_only=True):
    """One message."""

    message: Message


class MessageListResult(Result, frozen=True, kw_only=True):
    """One page of messages. With `damaged`, those after the damage are missing."""

    messages: tuple[Message, ...]
    has_more: bool
    damaged: Damage | None = None


class EventsResult(Result, frozen=True, kw_only=True):
    """Events in order. Pass `next` as `after` to continue.

    If the call requested the newest events, pass `next` as `before` for older ones; 0 means that no older ones exist.
    There may be fewer events than requested, or none, although older ones exist.
    """

    events: tuple[Recorded, ...]
    next: int
    epoch: str


class EventFindResult(Result, frozen=True, kw_only=True):
    """The events of one call, in order; empty if the log has no events with its key."""

    events: tuple[Recorded, ...]
    epoch: str


class SubscribeResult(Result, frozen=True, kw_only=True):
    """A subscription and the position after which it starts; with view `list`, the list at that position.

    With `damaged`, the list is incomplete; with `shared`, its newest changes may be missing here.
    """

    subscription: str
    seq: int
    epoch: str
    version: int | None = None
    tasks: tuple[Task, ...] | None = None
    counts: Counts | None = None
    damaged: Damage | None = None
    shared: Shared | None = None


class Acknowledged(Result, frozen=True, kw_only=True):
    """The call succeeded and has no other result."""

    ok: bool = True


class EventsPush(Result, frozen=True, kw_only=True):
    """The `events` notification: the events of whole calls, in order."""

    subscription: str
    events: tuple[Recorded, ...]


class ListPush(Result, frozen=True, kw_only=True):
    """The `list` notification: the latest state of the list. Intermediate states may have been skipped.

    With `damaged`, the list is incomplete; with `shared`, its newest changes may be missing here. If only `shared` has
    changed, `version` and `seq` are those of the previous push.
    """

    subscription: str
    conversation: str
    version: int
    seq: int
    tasks: tuple[Task, ...]
    counts: Counts
    damaged: Damage | None = None
    shared: Shared | None = None


class RowsPush(Result, frozen=True, kw_only=True):
    """The `rows` notification: the tasks changed since the previous one, and the ids of those `gone`.

    With `reset`, discard all earlier rows. With `more`, the rest follows immediately: wait for the rest before you show
    anything. Resume after `seq`. With `damaged`, the list is incomplete; with `shared`, its newest changes may be
    missing here. If only `shared` has changed, `rows` is empty and `seq` stays the same.
    """

    subscription: str
    conversation: str
    version: int
    seq: int
    rows: tuple[Row, ...]
    gone: tuple[str, ...] = ()
    counts: Counts
    reset: bool = False
    more: bool = False
    damaged: Damage | None = None
    shared: Shared | None = None


class BoardPush(Result, frozen=True, kw_only=True):
    """The `board` notification: summary of a changed conversation; `gone` if it was deleted. Resume after `seq`.

    Several changes may be reported together, and may be reported again after the subscription is resumed. A shared list
    is also reported, with the same `seq`, when `shared` of its card changes.
    """

    subscription: str
    seq: int
    card: Conversation
    gone: bool = False


class PresencePush(Result, frozen=True, kw_only=True):
    """The `presence` notification: the current subscribers of the conversation, in order of arrival.

    The first push follows the response. Changes within 50 ms are reported together.
    """

    subscription: str
    conversation: str
    present: tuple[Present, ...]


class EndPush(Result, frozen=True, kw_only=True):
    """The `end` notification: the subscription ended because of `error`; resume from `next`."""

    subscription: str
    error: dict[str, Any]
    next: int
