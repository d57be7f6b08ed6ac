"""Follow-ups of decided events: parents finish with their children, and a serial list starts its next task.

The rules decide on the state after the call's events. Their events belong to the same call, so they are committed,
published and undone together with the call's own events.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from punchlist_schemas import params as p
from punchlist_schemas.events import Deleted, KnownEvent, StatusChanged, TaskAdded, TaskEdited
from punchlist_schemas.things import FINISHED, Task
from punchlistd.domain.decide import serial
from punchlistd.domain.decide.parents import find_parents_to_finish, finishes_with_children, should_finish
from punchlistd.domain.decide.sessions import may_lack_claim, restore_claims
from punchlistd.domain.decide.status import change_status, finish_parent
from punchlistd.domain.state import State, is_sent_back
from punchlistd.domain.undo.trace import task_id_of


def follow_up(
    state: State, params: p.Mutation, events: Sequence[KnownEvent], present: Callable[[State], Set[str]]
) -> Iterable[KnownEvent]:
    """Yield the follow-ups of a call's events. The caller must apply each one before it takes the next.

    An undo has only those follow-ups that keep parents consistent with their children and limit a serial list to one
    task in progress.

    Args:
        state: The state after `events`.
        params: The call.
        events: The call's events.
        present: Returns the names of the agents that are present.
    """
    settings = state.settings
    policy = settings.complete_parents
    if (
        settings.max_attempts
        or settings.execution == "serial"
        or (policy != "never" and (state.ended_headings or (policy == "auto" and state.ended_parents)))
        or any(map(may_lack_claim, events))
        or (policy != "never" and state.families and any(map(_may_reopen, events)))
    ):
        return _apply_rules(state, params, events, present(state))
    return ()


def _may_reopen(event: KnownEvent) -> bool:
    """Return whether an event may have put unfinished work below a finished parent."""
    match event:
        case StatusChanged(from_=before, to=after):
            return before in FINISHED and after not in FINISHED
        case TaskAdded(task=added):
            return added.parent is not None
        case TaskEdited(parent=str()) | Deleted():
            return True
        case _:
            return False


def _apply_rules(
    state: State, params: p.Mutation, events: Sequence[KnownEvent], present: Set[str]
) -> Iterator[KnownEvent]:
    yield from restore_claims(state, events, present)
    is_undo = isinstance(params, p.ListUndo)
    # An undo has restored the tasks that its events name, and a revert has restored all tasks.
    restored = set(map(task_id_of, events)) if is_undo else set[str]()
    if not (is_undo and params.to_version is not None):
        yield from _reopen_parents(state, _find_opened(state, events), restored)
    if not is_undo and state.settings.max_attempts:
        yield from serial.retry_failed(state, events)
    yield from _finish_parents(state)
    if not serial.is_serial(state) or not state.tasks:
        return
    yield from serial.stop_surplus(state)
    if is_undo:
        return
    is_put_back = yield from serial.put_back_blocked(state, events)
    for event in serial.start_next(state, events, after_any=is_put_back):
        yield event
        yield from restore_claims(state, (event,), present)


def _finish_parents(state: State) -> Iterator[KnownEvent]:
    waiting = deque(find_parents_to_finish(state))
    while waiting:
        task = state.tasks[waiting.popleft()]
        if not should_finish(state, task.id):
            continue
        event = finish_parent(state, task, state.updated_at)
        if event is not None:
            yield event
        waiting.extend(task.blocks)
        if task.parent is not None:
            waiting.append(task.parent)


def _find_opened(state: State, events: Sequence[KnownEvent]) -> Iterable[str]:
    """Return the tasks that these events have reopened or moved to another parent."""
    opening = [event for event in events if _may_reopen(event)]
    names = dict.fromkeys(map(task_id_of, opening))
    # The children of a deleted task have moved to its parent.
    if any(isinstance(event, Deleted) for event in opening):
        moved = state.since(state.seq - len(events))
        own = set(map(task_id_of, events))
        names |= dict.fromkeys(name for name in (state.tasks if moved is None else moved[0]) if name not in own)
    return names


def _reopen_parents(state: State, names: Iterable[str], restored: Set[str]) -> Iterator[KnownEvent]:
    """Reopen these tasks' parents if they are finished or waiting for a gate. Skip restored parents."""
    for name in names:
        task = state.tasks.get(name)
        while task is not None and task.parent is not None and state.open_count(task.parent):
            above = state.tasks[task.parent]
            # A parent that blocks its child was completed before the child could start.
            if above.id in restored or above.id in task.blocked_by:
                break
            event = _reopen(state, above)
            if event is None:
                break
            yield event
            task = state.tasks[above.id]


def _reopen(state: State, task: Task) -> KnownEvent | None:
    if not finishes_with_children(state, task):
        return None
    if task.status in FINISHED or task.waits_for is not None or is_sent_back(task):
        return change_status(task, "pending", None, "", state.updated_at)
    return None
