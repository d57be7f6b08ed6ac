"""The domain's rejections, each with data and a message that names the next step."""

from collections.abc import Iterable, Sequence

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import FINISHED, Status, Task

_MAX_SHOWN = 12
"""Maximum number of ids in a message. The error's data may contain more."""


def task_not_found(task: str, next_id: int = 0) -> Rejection:
    """Reject an unknown task id. An id below `next_id` belonged to a deleted task."""
    if task.isascii() and task.isdecimal() and 0 < int(task[:18]) < next_id and str(int(task)) == task:
        return Rejection("not_found", f"Task #{task} was deleted.", {"what": "task", "id": task, "deleted": True})
    message = f"There is no task {task!r}; list the tasks for their ids."
    return Rejection("not_found", message, {"what": "task", "id": task})


def message_not_found(message: str) -> Rejection:
    return Rejection("not_found", f"Message {message} does not exist.", {"what": "message", "id": message})


def conversation_not_found(conversation: str) -> Rejection:
    """Reject a conversation that does not exist or belongs to another user.

    The message must not reveal which is the case.
    """
    message = f"Conversation {conversation} does not exist; list the conversations for their ids."
    return Rejection("not_found", message, {"what": "conversation", "id": conversation})


def ambiguous_name(name: str, ids: Sequence[str]) -> Rejection:
    """Reject a change that would create a list under a short name that several others share."""
    shown = ", ".join(ids[:_MAX_SHOWN]) + (", …" if len(ids) > _MAX_SHOWN else "")
    message = f"{name} is the name of {len(ids)} lists: {shown}; use one of these names."
    return Rejection("not_found", message, {"what": "conversation", "id": name, "names": list(ids)})


def invalid(field: str, expected: str, message: str) -> Rejection:
    return Rejection("invalid_params", message, {"field": field, "expected": expected})


def list_changed(expected: int, actual: int) -> Rejection:
    message = f"The conversation is at version {actual}, not {expected}; read it again and repeat the call."
    return Rejection("version_conflict", message, {"expected": expected, "actual": actual})


def task_changed(task: Task, expected: int) -> Rejection:
    message = f"Task #{task.id} is at version {task.version}, not {expected}; read it again and repeat the call."
    facts: dict[str, object] = {"task": task.id, "expected": expected, "actual": task.version}
    return Rejection("version_conflict", message, facts)


def other_own_tasks(agent: str, own: Iterable[str]) -> Rejection:
    """Reject a change by an agent that expects to have other tasks in progress."""
    names = ", ".join(f"#{task}" for task in sorted(own, key=int)[:_MAX_SHOWN]) or "nothing"
    return Rejection("version_conflict", f"{agent} has {names} in progress; read the list again and repeat the call.")


def task_not_free(task: Task, agent: str) -> Rejection:
    """Reject a change by an agent to a task that is finished, waits for its gate or belongs to another agent."""
    message = f"Task #{task.id} is {task.status} and not free for {agent}; read it, and repeat the call without `free`."
    return Rejection("lease_held", message, {"task": task.id, "owner": task.owner})


def dependency_cycle(path: Sequence[str]) -> Rejection:
    """Reject an edge or a parent that closes the cycle `path`. The first id in `path` is also the last."""
    shown = " → ".join(f"#{task}" for task in path[:_MAX_SHOWN]) + (" → …" if len(path) > _MAX_SHOWN else "")
    message = f"This would create the cycle {shown}; drop one of these dependencies or parents."
    if path[0] == path[1]:
        message = f"Task #{path[0]} can't wait for itself or be its own parent."
    return Rejection("dependency_cycle", message, {"path": list(path)})


def lease_held(task: Task, owner: str) -> Rejection:
    message = (
        f"Task #{task.id} is held by {owner}; claim another one, or wait. Pausing or reopening the task ends the claim."
    )
    return Rejection("lease_held", message, {"task": task.id, "owner": owner})


def task_reserved(task: Task) -> Rejection:
    """Reject a claim of a task reserved for another owner. The task is pending, or the current one of a serial list."""
    message = (
        f"Task #{task.id} is reserved for {task.owner}; claim another one. "
        "Editing `owner` to null removes the reservation."
    )
    return Rejection("lease_held", message, {"task": task.id, "owner": task.owner, "reserved": True})


def lease_lost(task: Task, fence: int | None) -> Rejection:
    advice = "Reopen it first to claim it again." if task.status in FINISHED else "Claim the task again."
    if task.status == "in_progress" and task.owner:
        advice = f"{task.owner} has it without a claim and may claim it; pausing or reopening it frees it for others."
    message = f"The claim of task #{task.id} has ended; the task is {task.status}. {advice}"
    facts: dict[str, object] = {"task": task.id, "status": task.status}
    return Rejection("lease_lost", message, facts if fence is None else {**facts, "fence": fence})


def task_blocked(task: Task, blockers: Iterable[Task]) -> Rejection:
    facts = [{"id": blocker.id, "title": blocker.title, "status": blocker.status} for blocker in blockers]
    names = ", ".join(f"#{fact['id']}" for fact in facts[:_MAX_SHOWN]) + (", …" if len(facts) > _MAX_SHOWN else "")
    message = f"Task #{task.id} waits for {names}; complete or delete them first, or remove the edges."
    return Rejection("blocked", message, {"task": task.id, "blockers": facts})


_MAX_CHILDREN = 100
"""Maximum number of unfinished children in an error's data."""


def task_has_open_children(task: Task, to: Status, children: Sequence[Task]) -> Rejection:
    facts = [{"id": child.id, "title": child.title, "status": child.status} for child in children[:_MAX_CHILDREN]]
    count = "1 open task" if len(children) == 1 else f"{len(children):,} open tasks"
    names = ", ".join(f"#{fact['id']}" for fact in facts[:_MAX_SHOWN]) + (", …" if len(children) > _MAX_SHOWN else "")
    what = f"Task #{task.id} has {count}: {names}."
    data: dict[str, object] = {"task": task.id, "open_children": facts}
    if to == "completed":
        message = f"{what} Complete those first, or set `force` to complete #{task.id} without them."
        data |= {"from": task.status, "to": to, "allowed": []}
        return Rejection("illegal_transition", message, data)
    return Rejection("blocked", f"{what} Work on those.", data | {"blockers": facts})


def task_is_heading(task: Task, to: Status) -> Rejection:
    message = f"Task #{task.id} is a heading: work on the tasks below it."
    return Rejection(
        "illegal_transition", message, {"task": task.id, "from": task.status, "to": to, "allowed": [], "heading": True}
    )


def task_follows_children(task: Task, to: Status) -> Rejection:
    """Reject the reopening of a task that finishes with its children."""
    message = (
        f"Task #{task.id} is {task.status} because all tasks below it are finished. Reopen one of those, or add one."
    )
    return Rejection(
        "illegal_transition", message, {"task": task.id, "from": task.status, "to": to, "allowed": [], "follows": True}
    )


def task_deferred(task: Task) -> Rejection:
    message = (
        f"Task #{task.id} is deferred and not ready yet; claim another one, or wait. "
        "Editing `not_before` to null makes it ready, and setting its status starts it."
    )
    return Rejection("blocked", message, {"task": task.id, "blockers": [], "not_before": task.not_before})
