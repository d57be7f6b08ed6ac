"""Serial lists, which run one task at a time, and retries of failed tasks."""

from collections.abc import Generator, Iterable, Iterator

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import (
    ConversationConfigured,
    Deleted,
    DependencyAdded,
    DependencyRemoved,
    KnownEvent,
    Released,
    StatusChanged,
    TaskAdded,
    TaskWoken,
)
from punchlist_schemas.things import Task
from punchlistd.domain.decide.reserving import clear_owner
from punchlistd.domain.state import State

_STARTERS = (TaskAdded, Deleted, DependencyRemoved, ConversationConfigured, Released, TaskWoken)
"""Events after which an idle serial list starts its next task, in addition to some status changes."""


def is_serial(state: State) -> bool:
    return state.settings.execution == "serial"


def is_stopped(state: State) -> bool:
    """Return whether a failed task stops the queue."""
    return state.settings.on_failure == "stop" and state.counts().failed > 0


def find_current(state: State) -> list[str]:
    """Return the tasks in progress, except containers. While there are any, a serial list doesn't start another one."""
    return [name for name in state.running if not state.is_container(state.tasks[name])]


def start_next(state: State, events: Iterable[KnownEvent], *, after_any: bool = False) -> Iterator[KnownEvent]:
    """Yield the event that starts the next task of a serial list. With `after_any`, any event starts it."""
    if find_current(state) or is_stopped(state) or not (after_any or any(map(_allows_start, events))):
        return
    task = state.next_ready()
    if task is not None:
        yield StatusChanged(task.id, task.status, "in_progress", attempts=task.attempts + 1)


def put_back_blocked(state: State, events: Iterable[KnownEvent]) -> Generator[KnownEvent, None, bool]:
    """Return the current task to pending if these events block it and no agent has claimed it yet.

    Returns:
        Whether it was put back.
    """
    is_put_back = False
    if not any(map(_may_block, events)):
        return False
    for name in find_current(state):
        task = state.tasks[name]
        if task.open_blockers and name not in state.claims:
            attempts = task.attempts if name in state.offered else max(task.attempts - 1, 0)
            yield StatusChanged(name, "in_progress", "pending", attempts=attempts)
            is_put_back = True
    return is_put_back


def _may_block(event: KnownEvent) -> bool:
    if isinstance(event, StatusChanged):
        return event.from_ == "completed" != event.to
    return isinstance(event, DependencyAdded)


def check_start(state: State, task: Task | None) -> Rejection | None:
    """Reject the start of a task in a serial list while another one is in progress."""
    if not is_serial(state):
        return None
    running = [name for name in find_current(state) if task is None or name != task.id]
    if not running:
        return None
    first = state.tasks[min(running, key=lambda name: (len(name), name))]
    what = "A new task" if task is None else f"Task #{task.id}"
    message = (
        f"{what} can't be started: this list runs one task at a time, and #{first.id} {first.title!r} is in progress. "
        f"Complete, fail or pause #{first.id} first."
    )
    facts = {"to": "in_progress", "running": first.id}
    if task is not None:
        facts |= {"task": task.id, "from": task.status, "allowed": ["paused", "completed", "failed"]}
    return Rejection("illegal_transition", message, facts)


def retry_failed(state: State, events: Iterable[KnownEvent]) -> Iterator[KnownEvent]:
    """Return tasks that failed while in progress to pending, until their attempts are used up. Keep the reason."""
    for event in events:
        if not isinstance(event, StatusChanged) or event.to != "failed" or event.from_ != "in_progress":
            continue
        task = state.tasks.get(event.task)
        if task is not None and task.status == "failed" and task.attempts < state.settings.max_attempts:
            retry = StatusChanged(task.id, "failed", "pending", fail_reason=task.fail_reason)
            yield from (retry, *clear_owner(task, retry))


def stop_surplus(state: State) -> Iterator[KnownEvent]:
    """Make all tasks in progress pending, except one. A replacement or an undo can leave several in progress."""
    if len(state.running) > 1:
        running = sorted(find_current(state), key=lambda name: (name not in state.claims, state.key(name)))
        for name in running[1:]:
            back = StatusChanged(name, "in_progress", "pending")
            yield from (back, *clear_owner(state.tasks[name], back))


def _allows_start(event: KnownEvent) -> bool:
    # A serial list stays idle after its task has been paused or made pending, unless the task waits for a gate.
    if isinstance(event, StatusChanged):
        if event.waits_for is not None:
            return True
        return event.to in ("completed", "failed") or (event.to == "pending" and event.from_ != "in_progress")
    return isinstance(event, _STARTERS)
