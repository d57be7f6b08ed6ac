"""Builds turns: what an agent needs to know before its next call, as a part of another result."""

from collections.abc import Iterable

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
"""Maximum number of changed tasks in a turn."""


def build_turn(query: TurnQuery, loaded: LoadedConversation, seq: int, answer: Written | None = None) -> Turn:
    """Return the turn of an agent.

    Args:
        seq: The position of the result that contains the turn.
        answer: The result of the agent's change, built from the same state.
    """
    state = loaded.state
    if loaded.trail is None:
        loaded.trail = Trail(loaded.seq)
    # A position after `seq` belongs to another log, and `event.read` reports that.
    since = query.since if query.since is not None and query.since <= seq else None
    news = None if since is None else loaded.trail.select(since, query.agent)
    names = dict.fromkeys(name for name, _ in news or () if name in state.tasks)
    changed = loaded.add_claim_details([state.tasks[name] for name in [*names][:MAX_CHANGED]])
    is_crowded = len(state.running) > MAX_RUNNING
    running = [] if is_crowded else loaded.add_claim_details(_sort(state, state.running))
    is_idle = isinstance(answer, ApplyResult) or (isinstance(answer, ClaimResult) and answer.task is None)
    explained = explain(state, None, query.agent) if is_idle else None
    next_task = None if explained is None or explained.next is None else state.tasks[explained.next.id]
    shown = [*running, *changed] if next_task is None else [*running, *changed, next_task]
    return Turn(
        counts=state.counts(),
        total=len(state.tasks),
        running=None if is_crowded else tuple(running),
        parents=tuple(task.id for task in running if state.open_count(task.id)),
        ready=_find_ready(state, answer) if isinstance(answer, TasksResult) else None,
        events=None if news is None else tuple(_recorded.decode(wire) for _, wire in news),
        changed=tuple(changed),
        reasons=None if explained is None else loaded.add_lease_times(explained.reasons),
        next=next_task,
        abandoned=_find_abandoned(loaded) if is_idle else (),
        paths={task.id: path for task in shown if (path := state.path(task))},
    )


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
    return tuple(task for task in tasks if task.left_at is not None or task.silent_at is not None)


_recorded = msgspec.json.Decoder(Recorded)
