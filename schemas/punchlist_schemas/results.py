"""What is answered: the result of every method and the notifications to subscribers."""

from typing import Any, Literal

import msgspec

from punchlist_schemas.events import Recorded
from punchlist_schemas.things import Agent, Conversation, Counts, Damage, Message, Reason, Row, Shared, Task, TaskName


class Result(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of all results."""


class Written(Result, frozen=True, kw_only=True):
    """What every mutation answers: the conversation's version and the log's position after it."""

    version: int
    seq: int


class Limits(Result, frozen=True, kw_only=True, omit_defaults=False):
    """The limits in force: bytes, counts and seconds. `in_flight` and `subscriptions` are per connection.

    `depth` counts nested objects and arrays of a whole frame, the outermost being the first.
    """

    frame_bytes: int = 1 << 20
    depth: int = 32
    batch: int = 100
    in_flight: int = 64
    frame_seconds: float = 10.0
    connections: int = 10_240
    subscriptions: int = 1_000


class FileIdentity(Result, frozen=True, kw_only=True):
    """One file of this machine, whatever path leads to it: numbers of device and inode, as decimal texts."""

    device: str
    inode: str


class HelloResult(Result, frozen=True, kw_only=True):
    """Who answers. `protocol` is the version of the contract, `epoch` identifies the log that positions refer to.

    `lock` is the file whose lock the daemon holds in its data directory. A client that sees another file there, or
    none, is in another place than the daemon, such as a sandbox with a home of its own, and should not go on. `build`
    tells the daemon's code from that of another installation: compare it for equality alone.
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
    """A distribution of the last durations, in microseconds."""

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
    """One subscription; `lag` is how many positions it is behind the log."""

    subscription: str
    client: str
    view: str
    lag: int
    conversation: str | None = None


class StatusResult(Result, frozen=True, kw_only=True):
    """What the daemon knows about itself. Sizes are bytes, times milliseconds since 1970 UTC."""

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
    """A copy of the log: the last position in it and its size in bytes.

    `events` and `conversations` were counted, and found sound, by the check; without one they are left out.
    """

    path: str
    epoch: str
    seq: int
    bytes: int
    checked: bool
    events: int | None = None
    conversations: int | None = None


class ServerInfo(Result, frozen=True, kw_only=True):
    """Who answers, as language servers tell it."""

    name: str
    version: str


class InitializeResult(Result, frozen=True, kw_only=True):
    """What a language client is told: none of the services of a language server is offered here."""

    capabilities: dict[str, Any]
    server_info: ServerInfo = msgspec.field(name="serverInfo")


class Stopping(Result, frozen=True, kw_only=True):
    """The daemon answers what it has taken and stops."""

    stopping: bool


class ConversationResult(Written, frozen=True, kw_only=True):
    """One conversation after a mutation; `created` tells whether it is new."""

    conversation: Conversation
    created: bool = False


class ConversationGetResult(Result, frozen=True, kw_only=True):
    """One conversation. `name` is the short name that it has, left out where that is its id."""

    conversation: Conversation
    name: str = ""


class Present(Result, frozen=True, kw_only=True):
    """An actor that follows a conversation, over one connection or several, since a time in milliseconds since 1970."""

    actor: str
    connections: int
    since: int


class PresenceResult(Result, frozen=True, kw_only=True):
    """The actors whose connections have a subscription to this conversation, in the order in which they came."""

    present: tuple[Present, ...]


class AgentListResult(Result, frozen=True, kw_only=True):
    """Connected agents by arrival, then those that left, the latest first. `names` maps list ids to short names."""

    agents: tuple[Agent, ...]
    names: dict[str, str] = {}


class ConversationListResult(Result, frozen=True, kw_only=True):
    """One page of conversations; `next_cursor` gets the next one. `names` has short names by id."""

    conversations: tuple[Conversation, ...]
    next_cursor: str | None = None
    names: dict[str, str] = {}


class ConversationResolveResult(Result, frozen=True, kw_only=True, omit_defaults=False):
    """The list that a directory means: its id, and why.

    `source` is `project_file` (`file` is its path), `repository` (the list is the git repository's own), or `none`:
    then only the command line has a list there, `default`. `root` is the project's directory. `exists` tells whether
    anybody has used the list. `allowed` is false if a project file names a list that exists and was not made for its
    project: ask the person, and `punch init --trust` in `root` allows it.
    """

    conversation: str | None
    source: Literal["project_file", "repository", "none"]
    root: str | None
    file: str | None
    exists: bool
    allowed: bool


Path = tuple[TaskName, ...]
"""The nearest 8 ancestors of a task, topmost first."""


class TaskResult(Written, frozen=True, kw_only=True):
    """One task after a mutation. `kept` is set if `task.add` kept this equal task instead of adding one."""

    task: Task
    kept: bool = False


class TasksResult(Written, frozen=True, kw_only=True):
    """Several tasks after a mutation. `kept` has the ids of existing tasks that equal one of the call."""

    tasks: tuple[Task, ...]
    kept: tuple[str, ...] = ()


class ApplyResult(Written, frozen=True, kw_only=True):
    """What several changes did: the `tasks` that they added or changed and that are there now, each once.

    `added` are the ids of the new tasks in the order of the changes, also of those that are gone again; `deleted` those
    of the deleted ones.
    """

    tasks: tuple[Task, ...]
    added: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


class ConfirmationResult(Result, frozen=True, kw_only=True):
    """What a token stands for: repeat `method` with `params` and `confirm` to do it. `expires_at` in milliseconds.

    `space` names the space of a shared list that would be deleted on every machine.
    """

    method: str
    params: msgspec.Raw
    summary: str
    conversation: str
    expires_at: int
    space: str = ""


class TaskGetResult(Result, frozen=True, kw_only=True):
    """One task, and its ancestors in `path`. With `damaged` it is as it was before the damage."""

    task: Task
    path: Path = ()
    damaged: Damage | None = None


class Hit(Result, frozen=True, kw_only=True):
    """A task that was found, the title of its list, and where in it the words stand."""

    conversation: str
    title: str = ""
    task: Task
    excerpt: str = ""


class TaskSearchResult(Result, frozen=True, kw_only=True):
    """What was found, the best first; `total` counts what `limit` left out too, up to 10,000.

    `damaged` names lists of which only what was before the damage was searched.
    """

    hits: tuple[Hit, ...]
    total: int
    damaged: tuple[str, ...] = ()


class TaskExplainResult(Result, frozen=True, kw_only=True):
    """The task, what may be done with it now, and the reasons against it. `more` reasons were left out.

    `ready` says whether a claim of the next task could get it, `ahead` how many it would get before, and `next` which
    one it would get first once the list goes on. Without a task `ready` says whether there is any. `path` are the
    parents above the task. With `damaged` the list is not whole.
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
    """The tasks asked for, and the counts of the whole list. With `fields`, tasks hold only those members.

    `name` is the list's short name, left out where that is its id.

    `total` is how many tasks matched before `offset` and `limit`. With `damaged` the list is not whole; with `shared`
    its newest changes may be missing here. With `since`, `tasks` is empty; `rows` and `gone` are what changed, or with
    `reset` the whole list.
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


class SetStatusResult(Written, frozen=True, kw_only=True):
    """What a change of status did: `next_task` was started or is the next ready one, `unblocked` are ids.

    `next_path` are the parents above `next_task`. `remaining` counts the unfinished tasks. Once there are none,
    `failed` counts those that have failed.
    """

    task: Task
    next_task: Task | None = None
    next_path: Path = ()
    unblocked: tuple[str, ...] = ()
    remaining: int
    failed: int = 0


class ClaimResult(Written, frozen=True, kw_only=True):
    """The claimed task, or null if there was none to be had; with `count`, all of them in `tasks`.

    `fence` is the number of the claim, to be passed with later calls: of the first task, and of each in `fences`.
    So are `path`, the parents above the first task, and `paths`.
    """

    task: Task | None
    fence: int | None = None
    path: Path = ()
    tasks: tuple[Task, ...] = ()
    fences: tuple[int, ...] = ()
    paths: tuple[Path, ...] = ()


class DeleteResult(Written, frozen=True, kw_only=True):
    """The ids that were deleted."""

    deleted: tuple[str, ...]


class ClearResult(Written, frozen=True, kw_only=True):
    """How many tasks were removed."""

    cleared: int


class UndoResult(Written, frozen=True, kw_only=True):
    """One readable line for each change taken back, newest first, and the calls that these belong to, newest first.

    A call is named by the version of its first event, as in the member `call` of events. Undoing to a version names
    none.
    """

    undone: tuple[str, ...]
    calls: tuple[int, ...] = ()


class ConversationDeleteResult(Written, frozen=True, kw_only=True):
    """The conversation that was erased."""

    deleted: str


class MessageResult(Written, frozen=True, kw_only=True):
    """The message that was appended."""

    message: Message


class MessageRetractResult(Written, frozen=True, kw_only=True):
    """The message that is no longer shown."""

    retracted: str


class MessageGetResult(Result, frozen=True, kw_only=True):
    """One message."""

    message: Message


class MessageListResult(Result, frozen=True, kw_only=True):
    """One page of messages. With `damaged` those behind the damage are missing."""

    messages: tuple[Message, ...]
    has_more: bool
    damaged: Damage | None = None


class EventsResult(Result, frozen=True, kw_only=True):
    """Events in order. `next` is the position to go on from: pass it as `after`."""

    events: tuple[Recorded, ...]
    next: int
    epoch: str


class EventFindResult(Result, frozen=True, kw_only=True):
    """The events that one call made, in order; empty if the log has none with its key."""

    events: tuple[Recorded, ...]
    epoch: str


class SubscribeResult(Result, frozen=True, kw_only=True):
    """A subscription and the position it starts behind; with view `list`, the list at that position.

    With `damaged` the list is not whole; with `shared` its newest changes may be missing here.
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
    """It is done."""

    ok: bool = True


class EventsPush(Result, frozen=True, kw_only=True):
    """The `events` notification: the events of whole calls, in order."""

    subscription: str
    events: tuple[Recorded, ...]


class ListPush(Result, frozen=True, kw_only=True):
    """The `list` notification: the newest list; intermediate ones may have been skipped.

    With `damaged` the list is not whole; with `shared` its newest changes may be missing here. Where that alone has
    changed, `version` and `seq` are those of the push before.
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
    """The `rows` notification: the tasks that look different since the one before, and the ids of those `gone`.

    With `reset`, forget the rows known before. With `more`, the rest follows at once: show nothing until it is there.
    Go on behind `seq`. With `damaged` the list is not whole; with `shared` its newest changes may be missing here.
    Where that alone has changed, there are no rows, and `seq` stays.
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
    """The `board` notification: a conversation that changed, in a line; `gone` if it was deleted. Go on behind `seq`.

    One that changed several times may be told once, and after a resumption again. One of a space is told again, at the
    same `seq`, when its card's `shared` changes.
    """

    subscription: str
    seq: int
    card: Conversation
    gone: bool = False


class PresencePush(Result, frozen=True, kw_only=True):
    """The `presence` notification: who follows the conversation now, in the order in which they came.

    The first follows the answer. Of what comes and goes within a twentieth of a second only the outcome is told.
    """

    subscription: str
    conversation: str
    present: tuple[Present, ...]


class EndPush(Result, frozen=True, kw_only=True):
    """The `end` notification: the subscription is over because of `error`, and where to resume from."""

    subscription: str
    error: dict[str, Any]
    next: int
