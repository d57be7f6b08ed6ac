"""Parents: a task with unfinished children can't be started, and some parents finish with their last child.

Headings, which importers create from lines above tasks, can never be started.
"""

from collections.abc import Iterator

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import FINISHED, Status, Task, is_heading
from punchlistd.domain import rejections
from punchlistd.domain.state import State


def finishes_with_children(state: State, task: Task) -> bool:
    """Return whether the list's settings finish this task with its last child."""
    policy = state.settings.complete_parents
    return policy == "auto" or (policy == "headings" and is_heading(task.metadata))


def should_finish(state: State, name: str) -> bool:
    """Return whether a task should be finished because all its children are. A claimed parent is left to its owner."""
    policy = state.settings.complete_parents
    applies = (policy != "never" and name in state.ended_headings) or (policy == "auto" and name in state.ended_parents)
    return applies and name not in state.claims


def find_parents_to_finish(state: State) -> list[str]:
    """Return the tasks for which `should_finish` is true, in list order."""
    candidates = (*state.ended_headings, *state.ended_parents)
    names = [name for name in candidates if should_finish(state, name)]
    return sorted(names, key=lambda name: (state.key(name), name))


def find_finishing_parents(state: State, task: Task) -> Iterator[Task]:
    """Yield the parents that are completed together with this unfinished task, from the nearest upward."""
    while task.parent is not None:
        above = state.tasks[task.parent]
        waits = above.open_blockers or above.id in state.claims or above.gate is not None
        is_last = state.open_count(above.id) <= 1
        if above.status in FINISHED or waits or not is_last or not finishes_with_children(state, above):
            return
        yield above
        task = above


def check_start(state: State, task: Task) -> Rejection | None:
    """Reject the start of a task that only contains other tasks."""
    if children := state.open_children(task.id):
        return rejections.task_has_open_children(task, "in_progress", children)
    return rejections.task_is_heading(task, "in_progress") if is_heading(task.metadata) else None


def check_status(state: State, task: Task, to: Status, *, force: bool) -> Rejection | None:
    """Reject a status that the task's children don't allow."""
    if to == "in_progress" and (rejection := check_start(state, task)) is not None:
        return rejection
    if to == "completed" and not force and (children := state.open_children(task.id)):
        return rejections.task_has_open_children(task, to, children)
    reopens = task.status in FINISHED and to not in FINISHED
    is_parent = is_heading(task.metadata) or task.id in state.families
    if reopens and is_parent and not state.open_count(task.id) and finishes_with_children(state, task):
        return rejections.task_follows_children(task, to)
    return None
