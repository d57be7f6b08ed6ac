"""A state as bytes, so that opening a conversation costs its live size and not its history.

Rows are arrays: a member may be appended with a default, none may be moved or taken out. They are decoded without
the checks of the wire, because what the log let in once must open for ever.
"""

import msgspec

from punchlist_schemas.things import Metadata, Priority, Settings, Status, Task
from punchlistd.domain.state import Claim, State


class _Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    id: str
    title: str
    status: Status
    priority: Priority
    description: str
    active_form: str
    owner: str
    parent: str | None
    blocked_by: tuple[str, ...]
    blocks: tuple[str, ...]
    open_blockers: tuple[str, ...]
    metadata: Metadata
    result_summary: str
    fail_reason: str
    attempts: int
    lease_expires_at: int | None
    created_at: int
    updated_at: int
    status_changed_at: int
    version: int


class _Image(msgspec.Struct, frozen=True, array_like=True):
    version: int
    exists: bool
    title: str
    user: str
    settings: Settings
    sessions: tuple[str, ...]
    created_at: int
    updated_at: int
    next_task: int
    tasks: list[_Row]
    ranks: dict[str, str]
    messages: dict[str, int]
    cleared: int
    last_finished: _Row | None
    claims: dict[str, Claim] = {}
    offered: list[str] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Image)


def dump_state(state: State) -> bytes:
    """The snapshot of a state. Equal states give equal bytes."""
    ranks = state.ranks
    last = state.last_finished
    image = _Image(
        version=state.version,
        exists=state.exists,
        title=state.title,
        user=state.user,
        settings=state.settings,
        sessions=state.sessions,
        created_at=state.created_at,
        updated_at=state.updated_at,
        next_task=state.next_task,
        tasks=[_row(task) for task in state.ordered()],
        ranks={task: ranks[task] for task in state.ids() if task in ranks} if ranks else {},
        messages=state.messages,
        cleared=state.cleared,
        last_finished=None if last is None else _row(last),
        claims=state.claims,
        offered=list(state.offered),
    )
    return _encoder.encode(image)


def load_state(conversation: str, data: bytes) -> State:
    """The state that `dump_state` made these bytes from.

    Raises:
        msgspec.DecodeError: the bytes are not a snapshot of this version; the log has everything.
    """
    image = _decoder.decode(data)
    state = State(conversation)
    state.version = image.version
    state.exists = image.exists
    state.title = image.title
    state.user = image.user
    state.settings = image.settings
    state.sessions = image.sessions
    state.created_at = image.created_at
    state.updated_at = image.updated_at
    state.load(map(_task, image.tasks), image.ranks)
    state.next_task = image.next_task
    state.messages = image.messages
    state.cleared = image.cleared
    state.claims = image.claims
    state.offered = dict.fromkeys(image.offered)
    state.last_finished = None if image.last_finished is None else _task(image.last_finished)
    return state


def _row(task: Task) -> _Row:
    return _Row(
        task.id,
        task.title,
        task.status,
        task.priority,
        task.description,
        task.active_form,
        task.owner,
        task.parent,
        task.blocked_by,
        task.blocks,
        task.open_blockers,
        task.metadata,
        task.result_summary,
        task.fail_reason,
        task.attempts,
        task.lease_expires_at,
        task.created_at,
        task.updated_at,
        task.status_changed_at,
        task.version,
    )


def _task(row: _Row) -> Task:
    created_at = row.created_at  # equal times share one number, as in a state that was not saved in between
    return Task(
        id=row.id,
        title=row.title,
        status=row.status,
        priority=row.priority,
        description=row.description,
        active_form=row.active_form,
        owner=row.owner,
        parent=row.parent,
        blocked_by=row.blocked_by,
        blocks=row.blocks,
        open_blockers=row.open_blockers,
        metadata=row.metadata or _NO_METADATA,
        result_summary=row.result_summary,
        fail_reason=row.fail_reason,
        attempts=row.attempts,
        lease_expires_at=row.lease_expires_at,
        created_at=created_at,
        updated_at=created_at if row.updated_at == created_at else row.updated_at,
        status_changed_at=created_at if row.status_changed_at == created_at else row.status_changed_at,
        version=row.version,
    )


_NO_METADATA: Metadata = {}
"""One for all tasks that have none: nobody changes a task's metadata in place."""
