"""Editing, deleting and clearing."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import (
    Deleted,
    DependencyAdded,
    DependencyRemoved,
    KnownEvent,
    ListCleared,
    TaskEdited,
    TaskWoken,
)
from punchlist_schemas.things import Metadata, Task, is_heading
from punchlistd.domain.commands import NOTHING, Command, Decision, Wake
from punchlistd.domain.decide.claim import check_claim
from punchlistd.domain.decide.days import add_edit_moments
from punchlistd.domain.decide.gates import check_approver
from punchlistd.domain.decide.serial import is_stopped
from punchlistd.domain.evolve import merge_metadata
from punchlistd.domain.rejections import dependency_cycle, invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.circles import find_waiting_cycle
from punchlistd.domain.state.dependencies import find_blocker_cycle, find_parent_cycle
from punchlistd.domain.state.members import EDITABLE, MEMBERS, add_days

MAX_METADATA_BYTES = 1 << 20
"""Maximum size of one task's metadata as JSON after all edits, in bytes. It has to fit into one frame."""

MAX_LABELS = 32

_encode = msgspec.json.Encoder().encode


def edit(state: State, params: p.TaskEdit, command: Command) -> Decision | Rejection:
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    rejection = _check_relations(state, task, params)
    if rejection is None and params.owner and is_heading(task.metadata):
        text = f"Task #{task.id} is a heading, which is never handed out. Assign the tasks below it."
        rejection = invalid("owner", "the owner of a task that is not a heading", text)
    if rejection is None and params.fence is not None:
        rejection = check_claim(state, task.id, None, params.fence)
    if rejection is not None:
        return rejection
    events: list[KnownEvent] = []
    dated = add_edit_moments(params)
    if isinstance(dated, Rejection):
        return dated
    event = _build_edit(task, dated)
    rejection = check_metadata(task, event) or _check_labels(event)
    if rejection is None and event.gate is not UNSET:
        rejection = check_approver(task, command.actor)
    if rejection is not None:
        return rejection
    if event != TaskEdited(task.id):
        events.append(msgspec.structs.replace(event, quote=params.quote) if params.quote else event)
    events.extend(_edit_edges(task, params))
    return Decision(tuple(events))


def _build_edit(task: Task, params: p.TaskEdit) -> TaskEdited:
    changes: dict[str, Any] = {}
    for name in EDITABLE:
        value = getattr(params, name)
        if value is None:
            value = MEMBERS[name].default
        if value is not UNSET and value != getattr(task, name):
            changes[name] = value
    add_days(task, changes, params)
    if params.add_labels or params.remove_labels:
        labels = (*changes.get("labels", task.labels), *params.add_labels)
        changes["labels"] = tuple(label for label in dict.fromkeys(labels) if label not in params.remove_labels)
        if changes["labels"] == task.labels:
            del changes["labels"]
    return TaskEdited(task.id, **changes, metadata=diff_metadata(task.metadata, params.metadata))


def _check_labels(event: TaskEdited) -> Rejection | None:
    if event.labels is UNSET or len(event.labels) <= MAX_LABELS:
        return None
    message = f"A task has at most {MAX_LABELS} labels; remove some first."
    return Rejection("limit_exceeded", message, {"limit": "labels", "value": len(event.labels), "maximum": MAX_LABELS})


def wake(state: State, _params: Wake, command: Command) -> Decision:
    """Make ready the deferred tasks whose time has come."""
    return Decision(tuple(TaskWoken(task) for task, at in state.deferred.items() if at <= command.at))


def diff_metadata(old: Metadata, patch: Metadata | None | UnsetType) -> Metadata | UnsetType:
    """Return the part of a patch that changes something. A patch of None deletes every key."""
    if patch is UNSET:
        return UNSET
    if patch is None:
        patch = dict.fromkeys(old)
    patch = {
        key: value for key, value in patch.items() if value != old.get(key) or type(value) is not type(old.get(key))
    }
    return patch or UNSET


def check_metadata(task: Task, event: TaskEdited) -> Rejection | None:
    """Reject an edit that makes the metadata larger than `MAX_METADATA_BYTES`.

    Edits that shrink the metadata are always allowed.
    """
    if event.metadata is UNSET:
        return None
    size = len(_encode(merge_metadata(task.metadata, event.metadata)))
    if size <= MAX_METADATA_BYTES or size <= len(_encode(task.metadata)):
        return None
    message = (
        f"The metadata of task #{task.id} would take {size:,} bytes; at most {MAX_METADATA_BYTES:,} are allowed. "
        "Delete keys (set them to null) before you add others."
    )
    return Rejection(
        "limit_exceeded", message, {"limit": "metadata_bytes", "value": size, "maximum": MAX_METADATA_BYTES}
    )


def _check_relations(state: State, task: Task, params: p.TaskEdit) -> Rejection | None:
    tasks = state.tasks
    edges = (*params.add_blocked_by, *params.remove_blocked_by, *params.add_blocks, *params.remove_blocks)
    parent = params.parent
    for other in (*edges, *((parent,) if isinstance(parent, str) else ())):
        if other not in tasks:
            return task_not_found(other, state.next_task)
    for field, added, removed in (
        ("remove_blocked_by", params.add_blocked_by, params.remove_blocked_by),
        ("remove_blocks", params.add_blocks, params.remove_blocks),
    ):
        if both := set(added).intersection(removed):
            message = f"The edge with task {min(both)!r} can't be added and removed in one call; name it once."
            return invalid(field, "ids other than those to add", message)
    if isinstance(parent, str):
        path = find_parent_cycle(task.id, parent, lambda name: tasks[name].parent)
        if path is not None:
            return dependency_cycle(path)
    path = None
    if params.add_blocked_by or params.add_blocks:
        path = find_blocker_cycle(
            task.id, tasks, _build_blockers(state, task, params, is_whole=bool(params.add_blocks))
        )
    if path is None and (params.add_blocked_by or params.add_blocks or isinstance(parent, str)):
        moved = {task.id: parent} if isinstance(parent, str) else {}
        path = find_waiting_cycle(state, task.id, _build_blockers(state, task, params, is_whole=True), moved)
    return None if path is None else dependency_cycle(path)


def _build_blockers(state: State, task: Task, params: p.TaskEdit, *, is_whole: bool) -> dict[str, list[str]]:
    """Return the blockers of the tasks whose edges the edit changes.

    The task's old edges are included only if `is_whole`. The check for blocker cycles can omit them if the edit adds no
    dependents, because a new cycle must then go through one of the new edges.
    """
    removed = set(params.remove_blocked_by)
    old = [other for other in task.blocked_by if other not in removed] if is_whole else []
    changed = {task.id: [*old, *params.add_blocked_by]}
    for other in params.remove_blocks:
        if other != task.id:
            changed[other] = [blocker for blocker in state.tasks[other].blocked_by if blocker != task.id]
    for other in params.add_blocks:
        changed.setdefault(other, list(state.tasks[other].blocked_by)).append(task.id)
    return changed


def _edit_edges(task: Task, params: p.TaskEdit) -> Iterable[KnownEvent]:
    blockers = set(task.blocked_by)
    dependents = set(task.blocks)
    for other in dict.fromkeys(params.remove_blocked_by):
        if other in blockers:
            yield DependencyRemoved(task.id, other)
    for other in dict.fromkeys(params.remove_blocks):
        if other in dependents:
            yield DependencyRemoved(other, task.id)
    for other in dict.fromkeys(params.add_blocked_by):
        if other not in blockers:
            yield DependencyAdded(task.id, other)
    for other in dict.fromkeys(params.add_blocks):
        if other not in dependents:
            yield DependencyAdded(other, task.id)


def delete(state: State, params: p.TaskDelete, _command: Command) -> Decision | Rejection:
    if (params.task is None) == (not params.tasks):
        return invalid("tasks", "one of task and tasks", "Pass `task` or `tasks`, not both.")
    names = params.tasks if params.task is None else (params.task,)
    for name in names:
        if name not in state.tasks:
            return task_not_found(name, state.next_task)
    return Decision(tuple(Deleted(name, params.quote) for name in dict.fromkeys(names)))


def clears_when_idle(state: State) -> bool:
    """Return whether this list clears itself when idle and has only finished tasks."""
    # A list that stops at a failure keeps its tasks until a user has reviewed them.
    return state.settings.auto_clear == "idle" and bool(state.tasks) and not state.remaining and not is_stopped(state)


def end_turn(state: State, _params: p.TurnEnd, _command: Command) -> Decision:
    return Decision((ListCleared(),)) if clears_when_idle(state) else NOTHING


def clear(state: State, params: p.ListClear, _command: Command) -> Decision:
    # An empty list is also cleared if that resets its numbering.
    return Decision((ListCleared(params.quote),)) if state.next_task > 1 else NOTHING
