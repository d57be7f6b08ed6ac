"""Builds turns. A turn is the part of a result that contains what an agent needs to know before its next call."""

from collections.abc import Iterable
from itertools import accumulate, takewhile

import msgspec

from punchlist_schemas.events import Recorded
from punchlist_schemas.params import TurnQuery
from punchlist_schemas.results import ApplyResult, ClaimResult, TasksResult, Turn, Written
from punchlist_schemas.things import Task
from punchlistd.domain.explain import explain
from punchlistd.domain.state import State
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.lists.trail import Trail

MAX_RUNNING = 100
"""Maximum number of tasks in progress in a turn."""

MAX_CHANGED = 20
"""Maximum number of changed tasks in a turn, and of abandoned ones."""

MAX_BYTES = 256 << 10
"""Upper limit for a turn's tasks in progress, for its changed tasks, and for its abandoned ones, in bytes."""


def build_turn(query: TurnQuery, loaded: LoadedConversation, seq: int, answer: Written | None = None) -> Turn:
    """Return the turn of an agent.

    Args:
        seq: The position of the result that contains the turn.
        answer: The result of the agent's change, built from the same state.
    """
    state = loaded.state
    if loaded.trail is None:
        loaded.trail = Trail(loaded.seq)
    news = None
    # A position of another log selects no events. The agent then calls `event.read`, which rejects the position.
    if query.since is not None and query.since <= seq and query.epoch in (None, loaded.epoch):
        news = loaded.trail.select(query.since, query.agent)
    last = loaded.trail.find_last(query.agent) if query.since is None and answer is None else None
    names = dict.fromkeys(name for name, _ in news or () if name in state.tasks)
    changed = loaded.add_claim_details(_fit([state.tasks[name] for name in [*names][:MAX_CHANGED]]))
    running = _fit(_sort(state, state.running)) if len(state.running) <= MAX_RUNNING else []
    running = loaded.add_claim_details(running)
    if is_crowded := len(running) < len(state.running):
        running = []
    is_idle = isinstance(answer, ApplyResult) or (isinstance(answer, ClaimResult) and answer.task is None)
    explained = explain(state, None, query.agent) if is_idle else None
    next_name = None if explained is None else explained.next
    next_tasks = [] if next_name is None else loaded.add_claim_details([state.tasks[next_name.id]])
    return Turn(
        counts=state.counts(),
        total=len(state.tasks),
        running=None if is_crowded else tuple(running),
        parents=tuple(task.id for task in running if state.open_count(task.id)),
        ready=_find_ready(state, answer) if isinstance(answer, TasksResult) else None,
        events=None if news is None else tuple(_recorded.decode(wire) for _, wire in news),
        changed=tuple(changed),
        last=_locate(last),
        reasons=None if explained is None else loaded.add_lease_times(explained.reasons),
        next=next_tasks[0] if next_tasks else None,
        abandoned=_find_abandoned(loaded) if is_idle else (),
        paths={task.id: path for task in (*running, *changed, *next_tasks) if (path := state.path(task))},
    )


def _locate(event: bytes | None) -> tuple[int, int] | None:
    """Return the position and version of an event, (0, 0) for none."""
    if not event:
        return None if event is None else (0, 0)
    recorded = _recorded.decode(event)
    return recorded.seq, recorded.version


def _fit(tasks: list[Task]) -> list[Task]:
    """Return the first tasks that fit into `MAX_BYTES`."""
    sizes = accumulate(len(_encode(task)) for task in tasks)
    return tasks[: sum(1 for _ in takewhile(lambda size: size <= MAX_BYTES, sizes))]


def _sort(state: State, names: Iterable[str]) -> list[Task]:
    return [state.tasks[name] for name in sorted(names, key=state.index)]


def _find_ready(state: State, answer: TasksResult) -> tuple[str, ...]:
    """Return the ready ones of a result's tasks, in list order."""
    return tuple(sorted({task.id for task in answer.tasks} & state.ready, key=state.index))


def _find_abandoned(loaded: LoadedConversation) -> tuple[Task, ...]:
    """Return the open tasks whose owners have left, in list order."""
    state = loaded.state
    owned = {*state.running, *(name for names in state.reserved.values() for name in names)}
    tasks = loaded.add_claim_details(_sort(state, owned))
    abandoned = [task for task in tasks if task.left_at is not None or task.silent_at is not None]
    return tuple(_fit(abandoned[:MAX_CHANGED]))


_encode = msgspec.json.Encoder().encode
_recorded = msgspec.json.Decoder(Recorded)
