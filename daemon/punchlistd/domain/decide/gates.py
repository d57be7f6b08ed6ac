"""Gates: a task waits for a check or for a person's approval before it counts as completed.

An agent can't approve its own task or change its gate. Callers choose their names, so this restrains agents but doesn't
protect against a dishonest caller.
"""

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import KnownEvent, NoteAdded, StatusChanged
from punchlist_schemas.things import Status, Task, Waits
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.decide.notes import check_notes
from punchlistd.domain.decide.reserving import clear_owner
from punchlistd.domain.decide.status import check_status, clears_list, complete_and_clear, needs_yes
from punchlistd.domain.rejections import invalid, task_changed, task_not_found
from punchlistd.domain.state import State

_GATE_NAMES: dict[Waits, str] = {"check": "a check", "yes": "a yes"}


def approve(state: State, params: p.TaskApprove, command: Command) -> Decision | Rejection:
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    # Approving a completed task again is not an error.
    if task.status == "completed" and params.accept:
        return NOTHING
    rejection = _check_gate(task, params, command.actor)
    if rejection is None:
        rejection = _check_yes(state, task, params) if params.accept else _check_reason(params)
    if rejection is not None:
        return rejection
    if not params.accept:
        event = StatusChanged(task.id, task.status, "pending", "", params.text)
        return Decision((event, *clear_owner(task, event)))
    next_gate = _find_next_gate(task, params)
    to: Status = "paused" if next_gate else "completed"
    event = StatusChanged(task.id, task.status, to, waits_for=next_gate)
    events: tuple[KnownEvent, ...] = (
        complete_and_clear(state, task, event, command.at) if clears_list(state, task, to) else (event,)
    )
    if params.text.strip():
        events = (NoteAdded(task.id, params.text, command.actor), *events)
    return Decision(events)


def _find_next_gate(task: Task, params: p.TaskApprove) -> Waits | None:
    return "yes" if params.waits_for == "check" and task.gate is not None and needs_yes(task.gate) else None


def _check_yes(state: State, task: Task, params: p.TaskApprove) -> Rejection | None:
    rejection = check_notes(task, task.id, (params.text,)) if params.text.strip() else None
    return rejection or (None if _find_next_gate(task, params) else check_status(state, task, "completed", force=True))


def _check_reason(params: p.TaskApprove) -> Rejection | None:
    if params.text.strip():
        return None
    return invalid("text", "why not", "Give the reason in `text`: the next owner of the task reads it.")


def _check_gate(task: Task, params: p.TaskApprove, actor: str) -> Rejection | None:
    if task.waits_for != params.waits_for:
        now = f"waits for {_GATE_NAMES[task.waits_for]}" if task.waits_for else f"is {task.status}"
        message = f"Task #{task.id} {now}: it does not wait for {_GATE_NAMES[params.waits_for]}."
        facts: dict[str, object] = {"task": task.id, "from": task.status, "to": "completed", "allowed": []}
        return Rejection("illegal_transition", message, facts)
    if params.version is not None and params.version != task.version:
        return task_changed(task, params.version)
    return check_approver(task, actor) if params.waits_for == "yes" and params.accept else None


def check_approver(task: Task, actor: str) -> Rejection | None:
    """Reject a call by an actor that may not approve a task or change its gate."""
    by = task.gate.by if task.gate is not None else ""
    if by and actor != by:
        text = f"Only {by} can approve task #{task.id} or change its gate; you are {actor}."
    elif not by and actor and actor == task.owner:
        text = f"{actor} worked on task #{task.id}, so someone else has to approve it or change its gate."
    else:
        return None
    return Rejection("forbidden", text, {"what": "gate"})
