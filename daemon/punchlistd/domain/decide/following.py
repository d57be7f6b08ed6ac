"""Follow-ups of decided events: parents finish with their children, a serial list starts its next task.

These rules look at the list as the call's events left it, and what they give belongs to the same call: it is
committed, seen and undone together with them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from punchlist_schemas import params as p
from punchlist_schemas.events import Deleted, KnownEvent, StatusChanged, TaskAdded, TaskEdited
from punchlist_schemas.things import FINISHED, Task
from punchlistd.domain.decide import serial
from punchlistd.domain.decide.parents import ended, finishes_itself, has_ended
from punchlistd.domain.decide.sessions import hand_back, may_lack_claim
from punchlistd.domain.decide.status import finish, status_change
from punchlistd.domain.state import State, is_sent_back
from punchlistd.domain.undo.trace import task_id_of


def follow_up(
    state: State, params: p.Mutation, events: Sequence[KnownEvent], present: Callable[[State], Set[str]]
) -> Iterable[KnownEvent]:
    """Yield the follow-ups of `events`, which came from `params` and have been applied. Apply each before the next.

    `present` returns the names of the agents that are present.

    An undo is followed by nothing but what keeps parents in step with their children, and a serial list at one task
    in progress.
    """
    settings = state.settings
    how = settings.complete_parents
    if (
        settings.max_attempts
        or settings.execution == "serial"
        or (how != "never" and (state.ended_headings or (how == "auto" and state.ended_parents)))
        or any(map(may_lack_claim, events))
        or (how != "never" and state.families and any(map(_may_reopen, events)))
    ):
        return _follow_up(state, params, events, present(state))
    return ()


def _may_reopen(event: KnownEvent) -> bool:
    """Return whether an event may have put unfinished work below a parent that had finished."""
    match event:
        case StatusChanged(from_=before, to=after):
            return before in FINISHED and after not in FINISHED
        case TaskAdded(task=added):
            return added.parent is not None
        case TaskEdited(parent=str()) | Deleted():
            return True
        case _:
            return False


def _follow_up(
    state: State, params: p.Mutation, events: Sequence[KnownEvent], present: Set[str]
) -> Iterator[KnownEvent]:
    yield from hand_back(state, events, present)
    is_undo = isinstance(params, p.ListUndo)
    # An undo has put back what it names as it was, and going back to a version puts back everything.
    settled = set(map(task_id_of, events)) if is_undo else set[str]()
    if not (is_undo and params.to_version is not None):
        yield from _reopened(state, _opened(state, events), settled)
    if not is_undo and state.settings.max_attempts:
        yield from serial.retries(state, events)
    yield from _finished(state)
    if not serial.is_serial(state) or not state.tasks:
        return
    yield from serial.surplus(state)
    if is_undo:
        return
    is_put_back = yield from serial.blocked_again(state, events)
    for event in serial.next_start(state, events, goes_on=is_put_back):
        yield event
        yield from hand_back(state, (event,), present)


def _finished(state: State) -> Iterator[KnownEvent]:
    waiting = deque(ended(state))
    while waiting:
        task = state.tasks[waiting.popleft()]
        if not has_ended(state, task.id):
            continue
        event = finish(state, task, state.updated_at)
        if event is not None:
            yield event
        waiting.extend(task.blocks)
        if task.parent is not None:
            waiting.append(task.parent)


def _opened(state: State, events: Sequence[KnownEvent]) -> Iterable[str]:
    """Return the tasks that these events reopened or moved to another parent."""
    opening = [event for event in events if _may_reopen(event)]
    names = dict.fromkeys(map(task_id_of, opening))
    if any(isinstance(event, Deleted) for event in opening):  # its children have moved up
        moved = state.since(state.seq - len(events))
        own = set(map(task_id_of, events))
        names |= dict.fromkeys(name for name in (state.tasks if moved is None else moved[0]) if name not in own)
    return names


def _reopened(state: State, names: Iterable[str], settled: Set[str]) -> Iterator[KnownEvent]:
    """Reopen the parents of these tasks that had finished or were about to, except for the settled ones."""
    for name in names:
        task = state.tasks.get(name)
        while task is not None and task.parent is not None and state.open_count(task.parent):
            above = state.tasks[task.parent]
            if above.id in settled or above.id in task.blocked_by:  # the latter was done before this one could begin
                break
            event = _reopening(state, above)
            if event is None:
                break
            yield event
            task = state.tasks[above.id]


def _reopening(state: State, task: Task) -> KnownEvent | None:
    if not finishes_itself(state, task):
        return None
    if task.status in FINISHED or task.waits_for is not None or is_sent_back(task):
        return status_change(task, "pending", None, "", state.updated_at)
    return None
