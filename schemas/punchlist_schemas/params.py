"""Parameters of all methods, which are also the commands of the domain.

Unknown members are rejected. `UNSET` means "omitted" where null has its own meaning.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from punchlist_schemas.things import (
    MAX_INTEGER,
    ConversationId,
    Day,
    Description,
    Gate,
    Label,
    Labels,
    Links,
    ListKind,
    LongText,
    MessageId,
    Metadata,
    Milliseconds,
    Name,
    Position,
    Priority,
    SettingsPatch,
    ShortText,
    Status,
    TaskId,
    Time,
    Title,
    Waits,
)

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=128, description="Idempotency key")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Token = Annotated[str, msgspec.Meta(min_length=1, max_length=256, description="From a confirmation_required error")]
LeaseMs = Annotated[int, msgspec.Meta(ge=1_000, le=86_400_000, description="1 second to 24 hours, in milliseconds")]
WaitMs = Annotated[int, msgspec.Meta(ge=0, le=86_400_000, description="Up to 24 hours, in milliseconds")]
FilePath = Annotated[
    str, msgspec.Meta(min_length=2, max_length=4_096, pattern=r"^/[^\x00]+$", description="An absolute path")
]
DirectoryPath = Annotated[
    str, msgspec.Meta(min_length=1, max_length=4_096, pattern=r"^/[^\x00]*$", description="An absolute path")
]
Role = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]

REACHED_S = 5.0
"""Longest time that a read waits for its `min_version`, in seconds. Clients add this to their own timeouts."""


Sort = Literal["due", "priority", "created", "updated", "title"]
"""Sort orders in addition to list order. With `updated`, the latest change comes first; with `due`, days end in UTC."""


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Base of all parameters. They are passed by name, and unknown names are rejected."""


class TurnQuery(Params, frozen=True, kw_only=True):
    """Adds the `turn` of an agent to a result: what the agent needs to know before its next call.

    `since` is the position up to which the agent knows the list. With `epoch`, a position in another log selects no
    events.

    Two preconditions apply to changes. With `own`, the call is rejected (`version_conflict`) unless these are exactly
    the tasks in progress that belong to the agent or to nobody, except those with unfinished children. With `free`, the
    call is rejected (`lease_held`) if a task that it changes waits for its gate, belongs to another agent, or is
    finished already; a claim needs a pending task. Edits of other members than `owner` only need a task that doesn't
    wait.
    """

    agent: Name
    since: Position | None = None
    epoch: ShortText | None = None
    own: Annotated[tuple[TaskId, ...], msgspec.Meta(max_length=1_000)] | None = None
    free: bool = False


class Mutation(Params, frozen=True, kw_only=True):
    """Parameters of every mutation.

    Repeating a call with the same `key` and content returns the first response and changes nothing. With
    `expect_version` the call is rejected unless the conversation is at that version. `actor` is recorded. `turn` adds
    what an agent needs to know next to the result.
    """

    conversation: ConversationId
    key: Key | None = None
    expect_version: Position | None = None
    actor: Name | None = None
    turn: TurnQuery | None = None


class Confirmable(Mutation, frozen=True, kw_only=True):
    """Parameters of a mutation that may need confirmation.

    With `ask`, the call is rejected with `confirmation_required` and a token, unless `confirm` is such a token. The
    token is meant for a later turn, so the process that received it can use it only after a short delay. `answered`,
    with `confirm`, states that the person has answered the question. `quote` contains the words with which the person
    agreed in advance: `ask` then needs no token, and the event records the words.
    """

    confirm: Token | None = None
    ask: bool = False
    answered: bool = False
    quote: ShortText = ""


class ConfirmationGet(Params, frozen=True, kw_only=True):
    """Returns the call that a confirmation token stands for."""

    token: Token


class ConversationParams(Params, frozen=True, kw_only=True):
    """Parameters of a method about one conversation."""

    conversation: ConversationId


# daemon


class ClientInfo(Params, frozen=True, kw_only=True):
    """Name and version of the client, shown in the daemon's status. The name is the default actor."""

    name: Name
    version: ShortText = ""


class Hello(Params, frozen=True, kw_only=True):
    """Introduces a connection.

    `user` limits it to that user's conversations. With `confirm`, deletions need confirmation.
    """

    client: ClientInfo | None = None
    user: Name | None = None
    confirm: bool = False


class NoParams(Params, frozen=True):
    """No parameters."""


class Shutdown(Params, frozen=True, kw_only=True):
    """Stops the daemon; with `if_idle`, only if no other client is connected and no claim is in force."""

    if_idle: bool = False


class Backup(Params, frozen=True, kw_only=True):
    """Copies the log to an absolute path that does not exist yet.

    The whole copy is verified, and deleted if it is damaged. With `check: false` the copy is kept without verification,
    so that a damaged log can be examined.
    """

    path: FilePath
    check: bool = True


class Cancel(Params, frozen=True, kw_only=True):
    """Cancels the waiting call with this request id."""

    id: str | int


# sent by clients of language servers


class LanguageClient(Params, frozen=True, forbid_unknown_fields=False, kw_only=True):
    """Parameters of the LSP `initialize` request. Only the client's name and version are used."""

    client_info: ClientInfo | None = msgspec.field(default=None, name="clientInfo")


class AnyParams(Params, frozen=True, forbid_unknown_fields=False):
    """Any parameters; all are ignored."""


# agents


class AgentEnter(Params, frozen=True, kw_only=True):
    """Registers an agent for this connection: a session of a host, under the name that owns its claims.

    The agent is present while a connection that registered it is open. Its claims, and those of its sub-agents
    (`AGENT/NAME`), belong to its session: after the agent has left, they last for the list's `leave_grace`. When this
    method is called again for the agent, the claims last for their full time again. `pid` is the process that the host
    started, by default the process of this connection.
    """

    agent: Name
    host: ShortText = ""
    directory: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    branch: ShortText = ""
    pid: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0


class AgentLeave(Params, frozen=True, kw_only=True):
    """Ends an agent's session on all connections."""

    agent: Name


class AgentList(Params, frozen=True, kw_only=True):
    """Lists connected agents and people, and those that left recently.

    `conversation` selects those that have a task in this list, or whose last call was about it.
    """

    conversation: ConversationId | None = None


# conversations


class ConversationOpen(Mutation, frozen=True, kw_only=True):
    """Creates a conversation, or returns the existing one."""

    title: ShortText = ""
    user: Name | None = None
    settings: SettingsPatch | None = None
    kind: ListKind = "list"
    metadata: Metadata = {}


class ConversationList(Params, frozen=True, kw_only=True):
    """Lists conversations by last change, newest first.

    `active` selects conversations with unfinished tasks (false: without). `kind` selects lists, chat threads, or both.
    """

    query: ShortText = ""
    limit: Limit = 100
    cursor: ShortText | None = None
    active: bool | None = None
    kind: Literal["list", "chat", "any"] = "list"


class ConversationResolve(Params, frozen=True, kw_only=True):
    """Returns the list of a directory, or of the directory that contains a file."""

    path: DirectoryPath


class ConversationConfigure(Mutation, frozen=True, kw_only=True):
    """Changes title, settings or metadata. `metadata` is merged; null deletes a key."""

    title: ShortText | None = None
    settings: SettingsPatch | None = None
    metadata: Metadata | None = None


class ConversationAttach(Mutation, frozen=True, kw_only=True):
    """Makes an external id (a host's session, a thread) an alias of this conversation. An attached id moves here."""

    session: ConversationId


class ConversationDetach(Mutation, frozen=True, kw_only=True):
    """Undoes an attach."""

    session: ConversationId


class ConversationDelete(Confirmable, frozen=True, kw_only=True):
    """Erases a conversation from the disk. The first call returns the token that the second one needs."""


# tasks


NoteText = Annotated[str, msgspec.Meta(min_length=1, max_length=8_192, pattern=r"\S")]


class WrittenNote(Params, frozen=True, kw_only=True):
    """An imported note: its author (default: the caller) and time. The list also records who imported it."""

    text: NoteText
    author: Name | None = None
    at: Time | None = None


class NewTask(Params, frozen=True, kw_only=True):
    """A task to add. `ref` is a temporary name for use in `blocked_by`, `parent` and links of the other tasks.

    With `task`, the task with this id is updated instead: members with their default value stay unchanged, `blocked_by`
    and `notes` are added to the existing ones, and a status other than `pending` is set. Each note is text, or an
    object that also names the author.
    """

    title: Title
    description: Description = ""
    status: Status = "pending"
    priority: Priority = "normal"
    active_form: ShortText = ""
    owner: ShortText = ""
    parent: TaskId | None = None
    blocked_by: tuple[TaskId, ...] = ()
    metadata: Metadata = {}
    result_summary: LongText = ""
    fail_reason: LongText = ""
    due: Time | None = None
    not_before: Time | None = None
    labels: Labels = ()
    links: Links = ()
    estimate_ms: Milliseconds | None = None
    notes: Annotated[tuple[NoteText | WrittenNote, ...], msgspec.Meta(max_length=200)] = ()
    gate: Gate | None = None
    ref: TaskId | None = None
    task: TaskId | None = None
    due_day: Day | None = None
    not_before_day: Day | None = None


class TaskAdd(Mutation, frozen=True, kw_only=True):
    """Adds one task, at the end of the list unless `before` or `after` names a neighbor.

    With `keep_equal`, an open task with the same parent and title is returned instead of adding a new one. The
    comparison ignores case, runs of white space and final punctuation. If that task is pending, `blocked_by` is added
    to it, unless that would close a cycle. Nothing else in it changes.

    `due_day` is a due date without a time and replaces `due`. With `not_before_day`, the task is deferred until that
    day; `not_before` is then when the day begins for the caller (default: at midnight UTC).
    """

    title: Title
    description: Description = ""
    status: Status = "pending"
    priority: Priority = "normal"
    active_form: ShortText = ""
    owner: ShortText = ""
    parent: TaskId | None = None
    blocked_by: tuple[TaskId, ...] = ()
    blocks: tuple[TaskId, ...] = ()
    metadata: Metadata = {}
    result_summary: LongText = ""
    fail_reason: LongText = ""
    due: Time | None = None
    not_before: Time | None = None
    labels: Labels = ()
    links: Links = ()
    estimate_ms: Milliseconds | None = None
    gate: Gate | None = None
    before: TaskId | None = None
    after: TaskId | None = None
    keep_equal: bool = False
    due_day: Day | None = None
    not_before_day: Day | None = None


class TaskAddMany(Mutation, frozen=True, kw_only=True):
    """Adds many tasks with the edges between them, and updates others: all or none.

    For `keep_equal` see `task.add`; the `ref` of a kept task refers to the existing one. Each task of the list matches
    at most one task of the call, so tasks in the same call are never merged.
    """

    tasks: Annotated[tuple[NewTask, ...], msgspec.Meta(min_length=1, max_length=10_000)]
    keep_equal: bool = False


class TaskGet(Params, frozen=True, kw_only=True):
    """Returns one task.

    With `min_version`, the call waits up to five seconds for the list to reach this version on this machine. A change
    to a shared list that returned this version on another machine can then be read here.
    """

    conversation: ConversationId
    task: TaskId
    min_version: Position | None = None


class TaskExplain(Params, frozen=True, kw_only=True):
    """Returns why a task can't be started or completed now; without `task`, why a claim would get no task.

    With `owner`, the result applies to that owner: `next` is the task that its claim would get, and tasks reserved for
    it count as ready. For `min_version` see `task.get`.
    """

    conversation: ConversationId
    task: TaskId | None = None
    owner: Annotated[str, msgspec.Meta(max_length=128)] = ""
    min_version: Position | None = None


class TaskList(Params, frozen=True, kw_only=True):
    """Returns the tasks in list order, filtered and limited.

    `fields` reduces each task to the named members and `id`. `at_version` returns the list as it was right after that
    version. `since`, without filters, returns only rows that have changed since that position in the log. With `epoch`,
    the call is rejected if the position belongs to another log. `label` selects tasks that have all of these labels,
    and `text` selects those with these words in title, description, labels or a note, ignoring case. `due_before`
    selects tasks that are due before a time. With `due_by`, tasks with a due day are selected if that is the same day
    or earlier. For `min_version` see `task.get`. `turn` is as in changes, but without `own` and `free`, and only for
    the current list.
    """

    conversation: ConversationId
    status: Status | tuple[Status, ...] | None = None
    owner: ShortText | Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=1_000)] | None = None
    ready: bool | None = None
    limit: Limit | None = None
    offset: Position = 0
    at_version: Position | None = None
    min_version: Position | None = None
    fields: tuple[ShortText, ...] | None = None
    since: Position | None = None
    epoch: ShortText | None = None
    label: Label | Labels | None = None
    parent: TaskId | None = None
    due_before: Time | None = None
    due_by: Day | None = None
    text: ShortText | None = None
    waits_for: Waits | None = None
    sort: Sort | None = None
    turn: TurnQuery | None = None


class TaskSearch(Params, frozen=True, kw_only=True):
    """Finds tasks with all these words in title, labels, description, notes or result, best match first.

    A word also matches longer words that begin with it, regardless of case and accents. `"two words"` match as a
    phrase. Without `conversation`, all lists are searched.
    """

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=r"\S")]
    conversation: ConversationId | None = None
    status: Status | tuple[Status, ...] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50


class TaskEdit(Confirmable, frozen=True, kw_only=True):
    """Sets members of a task. Null clears a member. `metadata` is merged; null deletes a key.

    `labels` sets all of them; `add_labels` and `remove_labels` leave the others unchanged.
    `due_day` replaces `due`, and `due` alone replaces `due_day`; null for one of them clears both. The same applies to
    `not_before_day` and `not_before`. If both are passed, `not_before` is when that day begins for the caller.

    With `fence`, the call is rejected unless the claim with that number is in force. With `task_version`, the call is
    rejected (`version_conflict`) unless the task still has that `version`, so that it can't overwrite a change that the
    caller has not seen. Among the changes of `list.apply`, this is the version before the whole call.
    """

    task: TaskId
    title: Title | UnsetType = UNSET
    description: Description | None | UnsetType = UNSET
    priority: Priority | None | UnsetType = UNSET
    active_form: ShortText | None | UnsetType = UNSET
    owner: ShortText | None | UnsetType = UNSET
    parent: TaskId | None | UnsetType = UNSET
    metadata: Metadata | None | UnsetType = UNSET
    due: Time | None | UnsetType = UNSET
    not_before: Time | None | UnsetType = UNSET
    labels: Labels | None | UnsetType = UNSET
    links: Links | None | UnsetType = UNSET
    estimate_ms: Milliseconds | None | UnsetType = UNSET
    gate: Gate | None | UnsetType = UNSET
    due_day: Day | None | UnsetType = UNSET
    not_before_day: Day | None | UnsetType = UNSET
    add_labels: Labels = ()
    remove_labels: Labels = ()
    add_blocked_by: tuple[TaskId, ...] = ()
    remove_blocked_by: tuple[TaskId, ...] = ()
    add_blocks: tuple[TaskId, ...] = ()
    remove_blocks: tuple[TaskId, ...] = ()
    fence: Position | None = None
    task_version: Position | None = None


class TaskSetStatus(Mutation, frozen=True, kw_only=True):
    """Changes a task's status. Setting the current status again changes nothing and is not an error.

    With `fence`, the call is rejected unless the claim with that number is in force, so that a late owner can do no
    harm. Without `fence`, completing or failing a claimed task is rejected unless the call comes from the claim's
    holder: the connection that made the claim, or for a kept claim its owner as `actor`. Any caller can finish the task
    by passing its `fence`.

    Completing a task with unfinished children is rejected unless `force` is true. For `task_version` see `task.edit`.
    """

    task: TaskId
    status: Status
    result_summary: LongText | None = None
    fail_reason: LongText | None = None
    fence: Position | None = None
    force: bool = False
    task_version: Position | None = None


class TaskApprove(Mutation, frozen=True, kw_only=True):
    """Approves or rejects a task at its gate. The task becomes completed, or pending again.

    `waits_for` is the requirement that the call decides. With `accept: false`, the task becomes pending, and `text` is
    the reason. If the task is accepted, `text` becomes a note. With `version`, the call is rejected unless the task
    still has that version, so that users can't approve a version they have not seen.
    """

    task: TaskId
    waits_for: Waits = "yes"
    accept: bool = True
    text: LongText = ""
    version: Position | None = None


class TaskNote(Mutation, frozen=True, kw_only=True):
    """Adds a note to a task. Notes can't be edited. A task can have at most 200, with 256 Ki characters in total."""

    task: TaskId
    text: NoteText


class TaskMove(Mutation, frozen=True, kw_only=True):
    """Moves a task before `before`, after `after`, or to the end. Pass exactly one of the three.

    For `task_version` see `task.edit`.
    """

    task: TaskId
    before: TaskId | None = None
    after: TaskId | None = None
    to_end: bool = False
    task_version: Position | None = None


class TaskDelete(Confirmable, frozen=True, kw_only=True):
    """Deletes `task` or all of `tasks`. Pass exactly one of the two.

    For `task_version`, which needs `task`, see `task.edit`.
    """

    task: TaskId | None = None
    tasks: Annotated[tuple[TaskId, ...], msgspec.Meta(max_length=10_000)] = ()
    task_version: Position | None = None


class TaskClaim(Mutation, frozen=True, kw_only=True):
    """Claims a task for one owner: `task`, or up to `count` of the next ready ones.

    A pending task that has an owner is reserved: only this owner gets it, before all other tasks. An owner matches
    by its own name, its session's or its host's (`claude-code/7f3c1a`, `claude-code`), or by a name in `also`.

    The claim lasts for `lease_ms` after the last call on this connection, or the last renewal. If the connection
    closes, the claim ends after a short grace period. With `keep`, it lasts until the lease expires or its owner has
    left (`agent.enter`). A task whose owner has left can be claimed by its id. If no task is ready, the call waits up
    to `wait_ms`.
    """

    owner: Name
    also: Annotated[tuple[Name, ...], msgspec.Meta(max_length=8)] = ()
    task: TaskId | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    lease_ms: LeaseMs = 60_000
    wait_ms: WaitMs = 0
    keep: bool = False


class TaskRenew(Mutation, frozen=True, kw_only=True):
    """Extends a claim to `lease_ms` from now (default: the `lease_ms` of the claim). Writes no event."""

    task: TaskId
    owner: Name
    lease_ms: LeaseMs | None = None
    fence: Position | None = None


class TaskRelease(Mutation, frozen=True, kw_only=True):
    """Releases a claimed task so that another owner can claim it."""

    task: TaskId
    owner: Name
    fence: Position | None = None


class ListReplace(Confirmable, frozen=True, kw_only=True):
    """Replaces the tasks of the list. An existing task named by `task`, or with the same title, is kept and updated.

    Other unfinished tasks are kept and precede these, unless `keep_unfinished` is false.
    """

    tasks: Annotated[tuple[NewTask, ...], msgspec.Meta(max_length=10_000)]
    keep_unfinished: bool = True


class ListClear(Confirmable, frozen=True, kw_only=True):
    """Removes all tasks; numbering restarts at 1."""


class TurnEnd(Mutation, frozen=True, kw_only=True):
    """Reports the end of a turn: a list whose `auto_clear` is `idle` is cleared now if all its tasks are finished."""


class ListUndo(Mutation, frozen=True, kw_only=True):
    """Undoes the latest `count` calls (default: 1). With `of`, undoes only calls by that actor, all of them by default.

    `preview` returns what would change and changes nothing. Without `of`, the calls of `actor` are undone.
    `call` selects a single call by any actor instead, by a version that it created. `redo` selects undos instead of
    other calls. `to_version` restores the list as it was right after that version, regardless of which actors changed
    it since.

    With `whole`, the undo is rejected (`undo_conflict`) if a newer call depends on it. Without `whole`, such changes
    stay, and `undone` reports them. With `claims`, claims and releases are undone too; otherwise they are skipped.
    `also` names other actors whose calls are undone like those of `of`, such as the same person's chats.
    """

    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)] | None = None
    preview: bool = False
    of: Name | None = None
    call: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)] | None = None
    redo: bool = False
    to_version: Position | None = None
    whole: bool = False
    claims: bool = False
    also: Annotated[tuple[Name, ...], msgspec.Meta(max_length=200)] = ()


# messages


class MessageAppend(Mutation, frozen=True, kw_only=True):
    """Appends a message permanently; `message` may set its id.

    With `supersedes`, it is shown instead of that message, which stays in the log. Examples are a widget after the user
    has answered it, and newer output from a tool. Messages with the roles user and assistant can't supersede or be
    superseded.
    """

    role: Role
    content: Any
    message: MessageId | None = None
    supersedes: MessageId | None = None


class MessageRetract(Mutation, frozen=True, kw_only=True):
    """Hides a message, with a reason; the log keeps it. Retracting it again changes nothing."""

    message: MessageId
    reason: Annotated[str, msgspec.Meta(max_length=2_000)] = ""


class MessageGet(Params, frozen=True, kw_only=True):
    """Returns one message."""

    conversation: ConversationId
    message: MessageId


class MessageList(Params, frozen=True, kw_only=True):
    """Lists messages after the one with id `after`, in the given `order`. `roles` selects messages with these roles.

    Superseded and retracted messages are left out unless `all` is true.
    """

    conversation: ConversationId
    after: MessageId | None = None
    limit: Limit = 100
    order: Literal["asc", "desc"] = "asc"
    roles: Annotated[tuple[Role, ...], msgspec.Meta(max_length=16)] = ()
    all: bool = False


# events


class EventRead(Params, frozen=True, kw_only=True):
    """Returns the events after position `after`, or the newest ones before position `before` (default: of all).

    Pass at most one of the two. With `about`, each event has the titles of its task and list. With `epoch`, a position
    in another log is rejected.
    """

    after: Position | None = None
    conversation: ConversationId | None = None
    limit: Limit = 1_000
    epoch: ShortText | None = None
    before: Position | None = None
    about: bool = False


class EventFind(Params, frozen=True, kw_only=True):
    """Returns the events of the mutation with this key: none if it changed nothing or never happened."""

    conversation: ConversationId
    key: Key


class EventWait(Params, frozen=True, kw_only=True):
    """Like `event.read`, but waits up to `timeout_ms` milliseconds for the first event."""

    after: Position
    timeout_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]
    conversation: ConversationId | None = None
    limit: Limit = 1_000
    epoch: ShortText | None = None


class EventSubscribe(Params, frozen=True, kw_only=True):
    """Pushes every event after `after` (default: from now), or the content of another `view` on each change.

    `list` pushes the whole list; `rows` the tasks of one conversation that have changed since `after` (default: all);
    `board` a summary of each conversation; `presence` the subscribers of one conversation. With `about`, each event has
    the titles of its task and list.
    """

    conversation: ConversationId | None = None
    after: Position | None = None
    view: Literal["events", "list", "rows", "board", "presence"] = "events"
    epoch: ShortText | None = None
    about: bool = False


class EventUnsubscribe(Params, frozen=True, kw_only=True):
    """Ends a subscription."""

    subscription: ShortText
