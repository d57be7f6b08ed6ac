"""Snapshots: states encoded as bytes, so that the cost of opening a conversation does not depend on its history.

Rows are arrays, with a nested array for the members that were added later. A new member can be appended with a default,
but no member can be moved or removed. Rows are decoded without wire validation, because stored values must stay
readable when the limits of calls change.
"""

from operator import attrgetter
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from msgspec.structs import asdict, replace

from punchlist_schemas.things import ListKind, Metadata, Settings, Task
from punchlistd.domain.state import Claim, State
from punchlistd.domain.state.members import MEMBERS, STORED, rare_of
from punchlistd.domain.state.tally import Tally

_FIRST = STORED[: STORED.index("version") + 1]
"""Members in each row. Later members are in an array at the end of the row, which is None for most tasks."""
_LATER = STORED[len(_FIRST) :]

_TYPES = get_type_hints(Task)
if TYPE_CHECKING:

    class _Row(Any): ...

    _Later = _Row
else:
    _Later = msgspec.defstruct(
        "_Later",
        [(name, _TYPES[name], MEMBERS[name].default) for name in _LATER],
        frozen=True,
        array_like=True,
        gc=False,
    )
    _Row = msgspec.defstruct(
        "_Row",
        [*((name, _TYPES[name]) for name in _FIRST), ("later", _Later | None, None)],
        frozen=True,
        array_like=True,
        gc=False,
    )


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
    origins: dict[str, tuple[str, ...]] = {}
    kind: ListKind = "list"
    metadata: Metadata = {}
    passing: list[str] | None = None
    hidden: dict[str, str] = {}
    agents: dict[str, Claim] | None = None
    tally: Tally | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Image)


def dump_state(state: State, tally: Tally | None = None) -> bytes:
    """Return the snapshot of a state and the tally of its events. Equal states produce equal bytes."""
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
        tasks=[_build_row(task) for task in state.ordered()],
        ranks={task: ranks[task] for task in state.ids() if task in ranks} if ranks else {},
        messages=state.messages,
        cleared=state.cleared,
        last_finished=None if last is None else _build_row(last),
        claims=state.claims,
        offered=list(state.offered),
        origins=state.origins,
        kind=state.kind,
        metadata=state.metadata,
        passing=None if state.passing is None else list(state.passing),
        hidden=state.hidden,
        agents=state.agents,
        tally=tally,
    )
    return _encoder.encode(image)


def load_state(conversation: str, data: bytes) -> State:
    """Return the state that `dump_state` encoded as these bytes.

    Raises:
        msgspec.DecodeError: The bytes are not a snapshot in the current format. The state must be rebuilt from the log.
    """
    return load_snapshot(conversation, data)[0]


def load_snapshot(conversation: str, data: bytes) -> tuple[State, Tally | None]:
    """Return the state in a snapshot, and the tally of its events if the snapshot has one; see `load_state`."""
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
    state.load(map(_build_task, image.tasks), image.ranks)
    state.next_task = image.next_task
    state.messages = image.messages
    state.cleared = image.cleared
    state.claims = image.claims
    state.offered = dict.fromkeys(image.offered)
    state.origins = image.origins
    state.kind = image.kind
    state.metadata = image.metadata
    if image.passing is not None:
        state.passing = dict.fromkeys(image.passing)
    elif image.messages:
        state.passing = None
    state.hidden = image.hidden
    if image.agents is None:
        state.agents = {claim.owner: claim for claim in image.claims.values() if claim.session}
    else:
        state.agents = image.agents
    state.last_finished = None if image.last_finished is None else _build_task(image.last_finished)
    return state, image.tally


_NO_METADATA: Metadata = {}
"""Shared by all tasks without metadata, since a task's metadata is never changed in place."""

_first_of, _later_of = attrgetter(*_FIRST), attrgetter(*_LATER)


def _build_row(task: Task) -> _Row:
    return _Row(*_first_of(task), _Later(*_later_of(task)) if any(rare_of(task)) else None)


def _build_task(row: _Row) -> Task:
    # Equal times share one integer object, as they do in a state that was never stored.
    created_at = row.created_at
    task = Task(
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
    return task if row.later is None else replace(task, **asdict(row.later))
