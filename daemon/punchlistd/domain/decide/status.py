"""A task's way through its life: the transitions as one table, and what goes with a change of status."""

from msgspec import UNSET, UnsetType

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import KnownEvent, ListCleared, StatusChanged
from punchlist_schemas.things import FINISHED, Gate, Status, Task, Waits
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.decide.claim import check_claim, spent_ms
from punchlistd.domain.decide.parents import check_status as check_children
from punchlistd.domain.decide.parents import finished_with
from punchlistd.domain.decide.reserving import free
from punchlistd.domain.decide.serial import check_start
from punchlistd.domain.rejections import blocked, task_not_found
from punchlistd.domain.state import State

TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    "pending": ("in_progress", "paused", "completed", "failed"),
    "in_progress": ("pending", "paused", "completed", "failed"),
    "paused": ("pending", "in_progress", "completed", "failed"),
    "completed": ("pending", "in_progress"),
    "failed": ("pending", "in_progress", "completed"),
}
"""Where each status can go. Repeating the present one is no transition and always allowed."""

_NEEDS_NO_BLOCKERS = frozenset({"in_progress", "completed"})
_COUNTS_AS_START = frozenset({"pending", "failed"})


def set_status(state: State, params: p.TaskSetStatus, command: Command) -> Decision | Rejection:
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    to = params.status
    if to == "in_progress" and task.status == "paused" and state.is_container(task):
        to = "pending"  # its tasks go on; it is not worked on itself
    if params.fence is not None and (refused := check_claim(state, task.id, None, params.fence)) is not None:
        return refused
    if to != task.status and (refused := check_status(state, task, to, force=params.force)) is not None:
        return refused
    event = status_change(task, to, params.result_summary, params.fail_reason, command.at)
    if event is None:
        return NOTHING
    if ends_the_list(state, task, event.to):
        return Decision(with_the_list(state, task, event, command.at))
    return Decision((event, *free(task, event)))


def check_status(state: State, task: Task, to: Status, *, force: bool = False) -> Rejection | None:
    """Return why a task can't get another status. `force` completes it without its unfinished children."""
    if to not in TRANSITIONS[task.status]:
        return _illegal(task, to)
    if task.open_blockers and to in _NEEDS_NO_BLOCKERS:
        return blocked(task, [state.tasks[blocker] for blocker in task.open_blockers])
    if task.id in state.families or task.metadata:  # else it is neither a parent nor a heading
        refused = check_children(state, task, to, force=force)
        if refused is not None:
            return refused
    return check_start(state, task) if to == "in_progress" else None


def status_change(task: Task, to: Status, summary: str | None, reason: str | None, at: int) -> StatusChanged | None:
    """The event that takes a task to a status at a time, with summary and reason (None: as they are), or None.

    A task with a gate that is completed waits for what the gate asks for, once more for each new result.
    """
    if to == "completed" != task.status and task.gate is not None and (needed := _first_need(task.gate)) is not None:
        if task.waits_for is not None and summary in (None, task.result_summary):
            return None
        told = UNSET if summary is None else summary
        quiet = "" if task.fail_reason else UNSET
        return StatusChanged(task.id, task.status, "paused", told, quiet, waits_for=needed, spent_ms=spent_ms(task, at))
    new_summary = UNSET if summary is None or (summary == task.result_summary and to == task.status) else summary
    new_reason = UNSET if reason is None or (reason == task.fail_reason and to == task.status) else reason
    if to == task.status and new_summary is UNSET and new_reason is UNSET:
        return None
    attempts: int | UnsetType = UNSET
    if to == "in_progress" and task.status in _COUNTS_AS_START:
        attempts = task.attempts + 1
    elif to == "pending" and task.status == "failed" and task.attempts:
        attempts = 0  # whoever reopens it wants it tried as often as a new one
    spent = 0 if to == task.status else spent_ms(task, at)
    return StatusChanged(task.id, task.status, to, new_summary, new_reason, attempts, spent_ms=spent)


def _first_need(gate: Gate) -> Waits | None:
    return "check" if gate.check else "yes" if needs_yes(gate) else None


def needs_yes(gate: Gate) -> bool:
    return gate.yes or bool(gate.by)


def ends_the_list(state: State, task: Task, to: Status) -> bool:
    """Return whether the list clears itself when this task, and the parents that finish with it, go to a status."""
    if to != "completed" or task.status in FINISHED or state.settings.auto_clear != "when_done":
        return False
    return state.remaining == 1 + sum(1 for _ in finished_with(state, task))


def with_the_list(state: State, task: Task, event: StatusChanged, at: int) -> tuple[KnownEvent, ...]:
    """Return the events that complete the last task of a list that clears itself, its parents first.

    The answer tells of the task that was completed last, since the list has none left.
    """
    parents = (finish(state, above, at) for above in finished_with(state, task))
    return (*(one for one in parents if one is not None), event, ListCleared())


def finish(state: State, parent: Task, at: int) -> StatusChanged | None:
    """Return the event that finishes a parent whose children are finished. It fails if one of them did."""
    failed = state.failed_children(parent.id)
    if not failed:
        return status_change(parent, "completed", None, None, at)
    count = len(state.children(parent.id))
    reason = f"{failed:,} of {count:,} task{'s' if count > 1 else ''} failed"
    return status_change(parent, "failed", None, reason, at)


def _illegal(task: Task, to: Status) -> Rejection:
    allowed = TRANSITIONS[task.status]
    message = f"Task #{task.id} is {task.status} and can't become {to}; it can become {', '.join(allowed)}."
    return Rejection(
        "illegal_transition", message, {"task": task.id, "from": task.status, "to": to, "allowed": list(allowed)}
    )
