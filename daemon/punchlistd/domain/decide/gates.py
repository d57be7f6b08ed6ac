"""Gates: a task that somebody has completed waits for a check or for a person's yes before it counts as completed.

Whoever works on a task can neither open its gate nor say yes to it. The rule goes by the names that callers give, so it
is a brake for agents and no proof.
"""

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import KnownEvent, NoteAdded, StatusChanged
from punchlist_schemas.things import Status, Task, Waits
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.decide.notes import check_notes
from punchlistd.domain.decide.reserving import free
from punchlistd.domain.decide.status import check_status, ends_the_list, needs_yes, with_the_list
from punchlistd.domain.rejections import invalid, task_not_found, version_conflict
from punchlistd.domain.state import State

_WORDS: dict[Waits, str] = {"check": "a check", "yes": "a yes"}


def approve(state: State, params: p.TaskApprove, command: Command) -> Decision | Rejection:
    """task.approve. A second yes to what is completed changes nothing."""
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    if task.status == "completed" and params.accept:
        return NOTHING
    refusal = _check_gate(task, params, command.actor)
    if refusal is None:
        refusal = _check_yes(state, task, params) if params.accept else _check_no(params)
    if refusal is not None:
        return refusal
    if not params.accept:
        event = StatusChanged(task.id, task.status, "pending", "", params.text)
        return Decision((event, *free(task, event)))
    following = _following(task, params)
    to: Status = "paused" if following else "completed"
    event = StatusChanged(task.id, task.status, to, waits_for=following)
    events: tuple[KnownEvent, ...] = (
        with_the_list(state, task, event, command.at) if ends_the_list(state, task, to) else (event,)
    )
    if params.text.strip():
        events = (NoteAdded(task.id, params.text, command.actor), *events)
    return Decision(events)


def _following(task: Task, params: p.TaskApprove) -> Waits | None:
    """What the task waits for next."""
    return "yes" if params.waits_for == "check" and task.gate is not None and needs_yes(task.gate) else None


def _check_yes(state: State, task: Task, params: p.TaskApprove) -> Rejection | None:
    refusal = check_notes(task, task.id, (params.text,)) if params.text.strip() else None
    return refusal or (None if _following(task, params) else check_status(state, task, "completed", force=True))


def _check_no(params: p.TaskApprove) -> Rejection | None:
    if params.text.strip():
        return None
    return invalid("text", "why not", "Say in `text` why not: whoever takes the task up again reads it.")


def _check_gate(task: Task, params: p.TaskApprove, actor: str) -> Rejection | None:
    if task.waits_for != params.waits_for:
        now = f"waits for {_WORDS[task.waits_for]}" if task.waits_for else f"is {task.status}"
        message = f"Task #{task.id} {now}: it does not wait for {_WORDS[params.waits_for]}."
        facts: dict[str, object] = {"task": task.id, "from": task.status, "to": "completed", "allowed": []}
        return Rejection("illegal_transition", message, facts)
    if params.version is not None and params.version != task.version:
        return version_conflict(f"Task #{task.id}", params.version, task.version)
    return check_opening(task, actor) if params.waits_for == "yes" and params.accept else None


def check_opening(task: Task, actor: str) -> Rejection | None:
    """Why somebody can't say yes to a task, or change its gate."""
    by = task.gate.by if task.gate is not None else ""
    if by and actor != by:
        text = f"Only {by} can approve task #{task.id} or change its gate; you are {actor}."
    elif not by and actor and actor == task.owner:
        text = f"{actor} worked on task #{task.id}, so someone else has to approve it or change its gate."
    else:
        return None
    return Rejection("forbidden", text, {"what": "gate"})
