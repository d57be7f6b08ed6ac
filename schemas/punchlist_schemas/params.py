"""What may be asked: the parameters of every method, and with that the commands of the domain.

A struct here refuses members it does not know. `UNSET` means "not given" where null has a meaning of its own.
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
"""How long a read waits for its `min_version`, in seconds. Clients add it to their own timeouts."""


Sort = Literal["due", "priority", "created", "updated", "title"]
"""Orders of a list besides its own: by `updated`, what was changed last comes first; by `due`, days end in UTC."""


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Base of all parameters: by name, and nothing unknown."""


class Mutation(Params, frozen=True, kw_only=True):
    """What every mutation accepts.

    Repeating a call with the same `key` and content gives the first answer and changes nothing. With
    `expect_version` the call is refused unless the conversation is at that version. `actor` is recorded.
    """

    conversation: ConversationId
    key: Key | None = None
    expect_version: Position | None = None
    actor: Name | None = None


class Confirmable(Mutation, frozen=True, kw_only=True):
    """What a mutation accepts that may have to be confirmed.

    With `ask` it is answered with `confirmation_required` and a token unless `confirm` is such a token; that one is for
    a later turn, so the process that got it has to wait for a moment. `answered` says, beside `confirm`, that the
    person has answered the question. `quote` are the person's own words by which they agreed beforehand: nothing is
    asked by `ask`, and the words are kept in the event.
    """

    confirm: Token | None = None
    ask: bool = False
    answered: bool = False
    quote: ShortText = ""


class ConfirmationGet(Params, frozen=True, kw_only=True):
    """What a token would do."""

    token: Token


class Place(Params, frozen=True, kw_only=True):
    """Nothing but a conversation."""

    conversation: ConversationId


# daemon


class ClientInfo(Params, frozen=True, kw_only=True):
    """Who is calling: shown in the daemon's status and recorded as the default actor."""

    name: Name
    version: ShortText = ""


class Hello(Params, frozen=True, kw_only=True):
    """Introduces a connection; `user` confines it to their conversations, `confirm` makes destruction two-step."""

    client: ClientInfo | None = None
    user: Name | None = None
    confirm: bool = False


class Nothing(Params, frozen=True):
    """No parameters."""


class Shutdown(Params, frozen=True, kw_only=True):
    """With `if_idle` the daemon stops only if nobody else is connected and no claim is in force."""

    if_idle: bool = False


class Backup(Params, frozen=True, kw_only=True):
    """A copy of the log, to be made at an absolute path where nothing is.

    It is checked as a whole, and kept only if it is sound; without `check` it is kept as it is, to be looked at.
    """

    path: FilePath
    check: bool = True


class Cancel(Params, frozen=True, kw_only=True):
    """Gives up the waiting call with this request id."""

    id: str | int


# what the clients of language servers send by themselves


class LanguageClient(Params, frozen=True, forbid_unknown_fields=False, kw_only=True):
    """Who calls, as the clients of language servers introduce themselves; all else that they tell is ignored."""

    client_info: ClientInfo | None = msgspec.field(default=None, name="clientInfo")


class Anything(Params, frozen=True, forbid_unknown_fields=False):
    """Whatever comes with it is ignored."""


# agents


class AgentEnter(Params, frozen=True, kw_only=True):
    """Enters an agent for this connection: a host's session, under the name that owns its claims.

    An agent is present while a connection that entered it is open. What it claims meanwhile belongs to its session,
    and so do the claims of its sub-agents, `AGENT/NAME`: after it has left they last for the list's `leave_grace`.
    Entering again gives them their full time back.
    """

    agent: Name
    host: ShortText = ""
    directory: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    branch: ShortText = ""


class AgentLeave(Params, frozen=True, kw_only=True):
    """Ends an agent's session on all connections."""

    agent: Name


class AgentList(Params, frozen=True, kw_only=True):
    """Lists connected agents and people, and those that left recently.

    With `conversation` only those who have a task there, or whose last call was about it.
    """

    conversation: ConversationId | None = None


# conversations


class ConversationOpen(Mutation, frozen=True, kw_only=True):
    """Opens a conversation, or finds the one that is there."""

    title: ShortText = ""
    user: Name | None = None
    settings: SettingsPatch | None = None
    kind: ListKind = "list"
    metadata: Metadata = {}


class ConversationList(Params, frozen=True, kw_only=True):
    """Lists conversations by last change, newest first. `active` keeps those with unfinished tasks (or without).

    `kind` says which: the lists, the threads of chats, or both.
    """

    query: ShortText = ""
    limit: Limit = 100
    cursor: ShortText | None = None
    active: bool | None = None
    kind: Literal["list", "chat", "any"] = "list"


class ConversationResolve(Params, frozen=True, kw_only=True):
    """The list that a directory means, or the directory that a file is in."""

    path: DirectoryPath


class ConversationConfigure(Mutation, frozen=True, kw_only=True):
    """Changes title or settings. `metadata` merges, and null deletes a key of it."""

    title: ShortText | None = None
    settings: SettingsPatch | None = None
    metadata: Metadata | None = None


class ConversationAttach(Mutation, frozen=True, kw_only=True):
    """Makes an outside id (a host's session, a thread) find this conversation; an attached one moves here."""

    session: ConversationId


class ConversationDetach(Mutation, frozen=True, kw_only=True):
    """Undoes an attach."""

    session: ConversationId


class ConversationDelete(Confirmable, frozen=True, kw_only=True):
    """Erases a conversation from the disk. The first call is answered with the token that the second one needs."""


# tasks


NoteText = Annotated[str, msgspec.Meta(min_length=1, max_length=8_192, pattern=r"\S")]


class WrittenNote(Params, frozen=True, kw_only=True):
    """A note that was written elsewhere: its author (default: the caller), and when. The list keeps who brought it."""

    text: NoteText
    author: Name | None = None
    at: Time | None = None


class NewTask(Params, frozen=True, kw_only=True):
    """A task to be added. `ref` is a temporary name usable in the other tasks' `blocked_by` and `parent`,
    and in links to tasks.

    With `task` none is added: the task of this id is brought up to date. What is left at its default stays as it is,
    `blocked_by` and `notes` are added to what is there, and a status other than `pending` is set.
    A note is its text, or an object that also names its author.
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
    """Adds one task, at the end of the list unless `before` or `after` names a neighbour.

    With `keep_equal` none is added if an open task with the same parent has this title already; case, white space and
    punctuation at the end don't count. That task is the answer. If it is pending, it also waits for `blocked_by`,
    unless that would close a cycle; nothing else of it changes.

    `due_day` is a due date without a time and takes the place of `due`. With `not_before_day` the task is deferred
    until that day: `not_before` is when it begins for the caller (default: its midnight in UTC).
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
    """Adds many tasks with the edges between them, and brings others up to date: all or none.

    As to `keep_equal` see `task.add`; a `ref` then leads to the task that was kept. Each task of the list stands for
    one task of the call, so that tasks of one call are never taken for each other.
    """

    tasks: Annotated[tuple[NewTask, ...], msgspec.Meta(min_length=1, max_length=10_000)]
    keep_equal: bool = False


class TaskGet(Params, frozen=True, kw_only=True):
    """One task.

    With `min_version` the answer waits until the list has this version here, five seconds at most: what another machine
    was told of a shared list is seen on this one, too.
    """

    conversation: ConversationId
    task: TaskId
    min_version: Position | None = None


class TaskExplain(Params, frozen=True, kw_only=True):
    """Why a task can't be started or completed now; without `task`, why the list gives out none.

    With `owner` it is explained for that owner: `next` is what a claim of theirs would get, and what is reserved for
    them is ready. As to `min_version` see `task.get`.
    """

    conversation: ConversationId
    task: TaskId | None = None
    owner: Annotated[str, msgspec.Meta(max_length=128)] = ""
    min_version: Position | None = None


class TaskList(Params, frozen=True, kw_only=True):
    """The list in its order, filtered and cut.

    `fields` keeps only the named members of each task (`id` always stays); `at_version` shows the list as it was
    right after that version. `since` alone asks for what looks different since that position of the log, which is
    refused, with `epoch`, if it belongs to another log. `label` keeps the tasks that have all of these labels,
    `text` those with these words, in any case, in title, description, labels or a note. `due_before` keeps the tasks
    that are due before a time. With `due_by` beside it, tasks that are due on a day are kept up to that day instead.
    As to `min_version` see `task.get`.
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


class TaskSearch(Params, frozen=True, kw_only=True):
    """Tasks with all these words in title, labels, description, notes or result, the best match first.

    A word also finds those that begin with it; case and accents do not matter. `"two words"` are looked for as they
    stand. Without `conversation`, all lists are searched.
    """

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=r"\S")]
    conversation: ConversationId | None = None
    status: Status | tuple[Status, ...] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50


class TaskEdit(Confirmable, frozen=True, kw_only=True):
    """Sets members of a task. Null clears, `metadata` merges and null deletes a key of it.

    `labels` sets all of them; `add_labels` and `remove_labels` leave the others as they are.
    `due_day` takes the place of `due`, and `due` alone that of `due_day`; null for one of them clears both. The same
    goes for `not_before_day`, beside which `not_before` is when that day begins for the caller.

    With `fence` it is refused unless the claim of that number is in force.
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


class TaskSetStatus(Mutation, frozen=True, kw_only=True):
    """Moves a task through its life. Repeating the present status changes nothing and is no error.

    With `fence` it is refused unless the claim of that number is in force: a late owner can do no harm. Without
    `fence`, completing or failing a task that is claimed is refused unless the call comes from the claim's holder:
    its connection, or for a kept claim its owner as `actor`. The task's `fence` lets anybody finish it on purpose.

    Completing a task with unfinished children is refused unless `force` is true.
    """

    task: TaskId
    status: Status
    result_summary: LongText | None = None
    fail_reason: LongText | None = None
    fence: Position | None = None
    force: bool = False


class TaskApprove(Mutation, frozen=True, kw_only=True):
    """Answers a task that waits for what its gate asks for: it is completed, or pending again.

    `waits_for` says what the answer is. With `accept: false` the task goes back to work, and `text` says why. A yes
    with `text` keeps that as a note. With `version` it is refused unless the task still has that version, so that
    nobody approves what they did not see.
    """

    task: TaskId
    waits_for: Waits = "yes"
    accept: bool = True
    text: LongText = ""
    version: Position | None = None


class TaskNote(Mutation, frozen=True, kw_only=True):
    """Adds a note to a task, which stays as it was written. A task holds at most 200, of 256 Ki characters together."""

    task: TaskId
    text: NoteText


class TaskMove(Mutation, frozen=True, kw_only=True):
    """Moves a task in front of `before`, behind `after`, or to the end: exactly one of the three."""

    task: TaskId
    before: TaskId | None = None
    after: TaskId | None = None
    to_end: bool = False


class TaskDelete(Confirmable, frozen=True, kw_only=True):
    """Deletes `task` or all of `tasks`: exactly one of the two."""

    task: TaskId | None = None
    tasks: Annotated[tuple[TaskId, ...], msgspec.Meta(max_length=10_000)] = ()


class TaskClaim(Mutation, frozen=True, kw_only=True):
    """Gives a task to one owner alone: `task`, or up to `count` of the next ready ones.

    A pending task that has an owner is reserved: only this owner gets it, before all others. The host's name, the
    session's and the agent's own count (`claude-code`, `claude-code/7f3c1a`), and the names in `also`.

    The claim lasts for `lease_ms` after the last sign of life: any call of this connection, or a renewal. A closed
    connection loses it after a short grace, unless `keep` is true; then its time alone counts, and whether its owner
    has left (`agent.enter`). A task whose owner has left is given to whoever names it. If there is nothing to be had,
    the call waits for `wait_ms`.
    """

    owner: Name
    also: Annotated[tuple[Name, ...], msgspec.Meta(max_length=8)] = ()
    task: TaskId | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    lease_ms: LeaseMs = 60_000
    wait_ms: WaitMs = 0
    keep: bool = False


class TaskRenew(Mutation, frozen=True, kw_only=True):
    """Keeps a claim in force for `lease_ms` from now (default: as it was claimed). No event is made of it."""

    task: TaskId
    owner: Name
    lease_ms: LeaseMs | None = None
    fence: Position | None = None


class TaskRelease(Mutation, frozen=True, kw_only=True):
    """Gives a claimed task back, for another to claim."""

    task: TaskId
    owner: Name
    fence: Position | None = None


class ListReplace(Confirmable, frozen=True, kw_only=True):
    """Makes the list be these tasks. One that a `task` names, or of the same title, is kept and brought up to date.

    Unfinished tasks that are not among them stay, in front, unless `keep_unfinished` is false.
    """

    tasks: Annotated[tuple[NewTask, ...], msgspec.Meta(max_length=10_000)]
    keep_unfinished: bool = True


class ListClear(Confirmable, frozen=True, kw_only=True):
    """Removes all tasks; numbering restarts at 1."""


class TurnEnd(Mutation, frozen=True, kw_only=True):
    """Somebody's turn is over: a list whose `auto_clear` is `idle` is cleared now if all its tasks are finished."""


class ListUndo(Mutation, frozen=True, kw_only=True):
    """Takes back the newest `count` calls (default 1; with `of`, of that actor alone and by default all of them).

    `preview` tells what would happen and changes nothing. Without `of`, `actor` says whose calls as well as who asks.
    `call` means one call instead, whoever's: the one that made this version. `redo` means undos instead of other
    calls. `to_version` makes the list what it was right after that version, whoever changed it since.

    With `whole` it is refused (`undo_conflict`) where a newer call rests on what would be taken back; without it that
    stays, and `undone` says so. With `claims`, claims and releases are calls to take back as well; without it they are
    passed over. The calls of those that `also` names are taken back like those of `of`: the same person's chats.
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
    """Appends a message for ever; `message` may bring its own id.

    With `supersedes` it is shown instead of that message, which the log keeps: a widget that was answered, the newer
    output of a tool. What was said, in the roles user and assistant, neither supersedes nor is superseded.
    """

    role: Role
    content: Any
    message: MessageId | None = None
    supersedes: MessageId | None = None


class MessageRetract(Mutation, frozen=True, kw_only=True):
    """Takes a message out of what is shown, for a reason; the log keeps it. Retracting it again changes nothing."""

    message: MessageId
    reason: Annotated[str, msgspec.Meta(max_length=2_000)] = ""


class MessageGet(Params, frozen=True, kw_only=True):
    """One message."""

    conversation: ConversationId
    message: MessageId


class MessageList(Params, frozen=True, kw_only=True):
    """Messages after the one with id `after`, in the order asked for. `roles` keeps those of these roles.

    Messages that are superseded or retracted are left out, unless `all` asks for them too.
    """

    conversation: ConversationId
    after: MessageId | None = None
    limit: Limit = 100
    order: Literal["asc", "desc"] = "asc"
    roles: Annotated[tuple[Role, ...], msgspec.Meta(max_length=16)] = ()
    all: bool = False


# events


class EventRead(Params, frozen=True, kw_only=True):
    """Events behind position `after`. With `epoch`, a position of another log is refused."""

    after: Position
    conversation: ConversationId | None = None
    limit: Limit = 1_000
    epoch: ShortText | None = None


class EventFind(Params, frozen=True, kw_only=True):
    """What the mutation with this idempotency key did: its events, or none if it changed nothing or never happened."""

    conversation: ConversationId
    key: Key


class EventWait(Params, frozen=True, kw_only=True):
    """As `event.read`, but answers when there is something or `timeout_ms` milliseconds are over."""

    after: Position
    timeout_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]
    conversation: ConversationId | None = None
    limit: Limit = 1_000
    epoch: ShortText | None = None


class EventSubscribe(Params, frozen=True, kw_only=True):
    """Pushes every event behind `after` (default: from now), or what the `view` shows on each change.

    `list` is the whole list; `rows` are the tasks of one conversation that look different since `after` (default: all);
    `board` is each conversation in a line; `presence` is who follows one conversation.
    """

    conversation: ConversationId | None = None
    after: Position | None = None
    view: Literal["events", "list", "rows", "board", "presence"] = "events"
    epoch: ShortText | None = None


class EventUnsubscribe(Params, frozen=True, kw_only=True):
    """Ends a subscription."""

    subscription: ShortText
