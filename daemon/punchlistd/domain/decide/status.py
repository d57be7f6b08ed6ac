"""`task.set_status`: the table of transitions, and the effects of a status change."""

from msgspec import UNSET, UnsetType

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import KnownEvent, ListCleared, StatusChanged
from punchlist_schemas.things import FINISHED, Gate, Status, Task, Waits
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.decide.claim import check_claim, measure_work
from punchlistd.domain.decide.parents import check_status as check_children
from punchlistd.domain.decide.parents import find_finishing_parents
from punchlistd.domain.decide.reserving import clear_owner
from punchlistd.domain.decide.serial import check_start
from punchlistd.domain.rejections import task_blocked, task_not_found
from punchlistd.domain.state import State

TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    "pending": ("in_progress", "paused", "completed", "failed"),
    "in_progress": ("pending", "paused", "completed", "failed"),
    "paused": ("pending", "in_progress", "completed", "failed"),
    "completed": ("pending", "in_progress"),
    "failed": ("pending", "in_progress", "completed"),
}
"""The statuses that can follow each status. Setting the current status again is always allowed."""

_NEEDS_NO_BLOCKERS = frozenset({"in_progress", "completed"})
_COUNTS_AS_START = frozenset({"pending", "failed"})


def set_status(state: State, params: p.TaskSetStatus, command: Command) -> Decision | Rejection:
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    to = params.status
    # A container can't be started, so resuming it makes its children ready again.
    if to == "in_progress" and task.status == "paused" and state.is_container(task):
        to = "pending"
    if params.fence is not None and (rejection := check_claim(state, task.id, None, params.fence)) is not None:
        return rejection
    if to != task.status and (rejection := check_status(state, task, to, force=params.force)) is not None:
        return rejection
    event = change_status(task, to, params.result_summary, params.fail_reason, command.at)
    if event is None:
        return NOTHING
    if clears_list(state, task, event.to):
        return Decision(complete_and_clear(state, task, event, command.at))
    return Decision((event, *clear_owner(task, event)))


def check_status(state: State, task: Task, to: Status, *, force: bool = False) -> Rejection | None:
    """Reject a status that a task can't change to. With `force`, a task with unfinished children can be completed."""
    if to not in TRANSITIONS[task.status]:
        return _reject_transition(task, to)
    if task.open_blockers and to in _NEEDS_NO_BLOCKERS:
        return task_blocked(task, [state.tasks[blocker] for blocker in task.open_blockers])
    # Skip the check for tasks that are neither a parent nor a heading.
    if task.id in state.families or task.metadata:
        rejection = check_children(state, task, to, force=force)
        if rejection is not None:
            return rejection
    return check_start(state, task) if to == "in_progress" else None


def change_status(task: Task, to: Status, summary: str | None, reason: str | None, at: int) -> StatusChanged | None:
    """Return the event that changes a task's status, or None if nothing changes.

    Completing a task with a gate pauses it until the gate is passed. Each new result has to pass the gate again.

    Args:
        task: The task.
        to: The new status.
        summary: The new result summary, or None.
        reason: The new reason for a failure, or None.
        at: Time of the change, in milliseconds.
    """
    if to == "completed" != task.status and task.gate is not None and (gate := _first_gate(task.gate)) is not None:
        if task.waits_for is not None and summary in (None, task.result_summary):
            return None
        new_summary = UNSET if summary is None else summary
        new_reason = "" if task.fail_reason else UNSET
        return StatusChanged(
            task.id, task.status, "paused", new_summary, new_reason, waits_for=gate, spent_ms=measure_work(task, at)
        )
    new_summary = UNSET if summary is None or (summary == task.result_summary and to == task.status) else summary
    new_reason = UNSET if reason is None or (reason == task.fail_reason and to == task.status) else reason
    if to == task.status and new_summary is UNSET and new_reason is UNSET:
        return None
    attempts: int | UnsetType = UNSET
    if to == "in_progress" and task.status in _COUNTS_AS_START:
        attempts = task.attempts + 1
    elif to == "pending" and task.status == "failed" and task.attempts:
        # A reopened task gets as many attempts as a new one.
        attempts = 0
    spent = 0 if to == task.status else measure_work(task, at)
    return StatusChanged(task.id, task.status, to, new_summary, new_reason, attempts, spent_ms=spent)


def _first_gate(gate: Gate) -> Waits | None:
    return "check" if gate.check else "yes" if needs_yes(gate) else None


def needs_yes(gate: Gate) -> bool:
    return gate.yes or bool(gate.by)


def clears_list(state: State, task: Task, to: Status) -> bool:
    """Return whether the list clears itself once this task, and the parents that finish with it, get this status."""
    if to != "completed" or task.status in FINISHED or state.settings.auto_clear != "when_done":
        return False
    return state.remaining == 1 + sum(1 for _ in find_finishing_parents(state, task))


def complete_and_clear(state: State, task: Task, event: StatusChanged, at: int) -> tuple[KnownEvent, ...]:
    """Return the events that complete the last task of a list that clears itself."""
    # The task comes last, because the response shows the last task that was completed before the clear.
    parents = (finish_parent(state, above, at) for above in find_finishing_parents(state, task))
    return (*(change for change in parents if change is not None), event, ListCleared())


def finish_parent(state: State, parent: Task, at: int) -> StatusChanged | None:
    """Return the event that finishes a parent whose children are finished. The parent fails if a child failed."""
    failed = state.failed_children(parent.id)
    if not failed:
        return change_status(parent, "completed", None, None, at)
    count = len(state.children(parent.id))
    reason = f"{failed:,} of {count:,} task{'s' if count > 1 else ''} failed"
    return change_status(parent, "failed", None, reason, at)


def _reject_transition(task: Task, to: Status) -> Rejection:
    allowed = TRANSITIONS[task.status]
    message = f"Task #{task.id} is {task.status} and can't become {to}; it can become {', '.join(allowed)}."
    return Rejection(
        "illegal_transition", message, {"task": task.id, "from": task.status, "to": to, "allowed": list(allowed)}
    )
