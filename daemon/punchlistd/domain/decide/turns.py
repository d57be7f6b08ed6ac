"""Preconditions of an agent's change: its own tasks are the expected ones, or the changed tasks are free for it."""

from collections.abc import Iterable
from typing import Any

from punchlist_schemas import params as p
from punchlist_schemas.changes import CHANGES, ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import FINISHED, Task, names_of
from punchlistd.domain.decide.serial import is_serial
from punchlistd.domain.rejections import other_own_tasks, task_not_free
from punchlistd.domain.state import State


def check_turn(state: State, params: p.Mutation, query: p.TurnQuery) -> Rejection | None:
    """Reject a change whose preconditions don't hold. The change's own rule rejects a task that doesn't exist."""
    if query.own is not None and set(query.own) != (own := _find_own(state, query.agent)):
        return other_own_tasks(query.agent, own)
    for kind, change, name in _list_changes(params) if query.free else ():
        task = state.tasks.get(name)
        if task is not None and not _is_free(state, task, query.agent, kind, change):
            return task_not_free(task, query.agent)
    return None


def _find_own(state: State, agent: str) -> set[str]:
    own = {name for name in state.running if state.tasks[name].owner in ("", agent)}
    return {name for name in own if not state.open_count(name)}


def _is_free(state: State, task: Task, agent: str, kind: type[p.Params], change: Any) -> bool:
    if task.waits_for is not None:
        return False
    if kind is p.TaskEdit and not isinstance(change.owner, str):
        return True
    if task.status in FINISHED:
        # Finished work must be neither repeated nor given another result.
        return kind is not p.TaskClaim and getattr(change, "status", "pending") in ("pending", "paused")
    if task.status == "in_progress" and not task.owner:
        return is_serial(state)  # A serial list starts tasks for any agent.
    if kind is p.TaskClaim and task.status != "pending":
        return False
    if task.owner == agent or task.owner.startswith(f"{agent}/"):
        return True
    return task.status != "in_progress" and (not task.owner or task.owner in names_of(agent))


def _list_changes(params: p.Mutation) -> Iterable[tuple[type[p.Params], Any, str]]:
    """Yield each change of a call, with its kind and its task."""
    changes: Iterable[p.Params] = params.changes if isinstance(params, ListApply) else (params,)
    for change in changes:
        kind = CHANGES.get(type(change), type(change))
        if (task := getattr(change, "task", None)) is not None:
            yield kind, change, task
        for task in getattr(change, "tasks", ()) if kind is p.TaskDelete else ():
            yield kind, change, task
