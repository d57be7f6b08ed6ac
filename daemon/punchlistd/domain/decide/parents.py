"""Parents: a task with unfinished children is not worked on, and some finish with the last of their children.

A heading, which an importer made of a line above tasks, is never worked on itself.
"""

from collections.abc import Iterator

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import FINISHED, Status, Task, is_heading
from punchlistd.domain import rejections
from punchlistd.domain.state import State


def finishes_itself(state: State, task: Task) -> bool:
    """Return whether a task finishes with the last of its children, by the list's settings."""
    how = state.settings.complete_parents
    return how == "auto" or (how == "headings" and is_heading(task.metadata))


def has_ended(state: State, name: str) -> bool:
    """Return whether a task is to be finished because its children are. One that is claimed is left to its owner."""
    how = state.settings.complete_parents
    applies = (how != "never" and name in state.ended_headings) or (how == "auto" and name in state.ended_parents)
    return applies and name not in state.claims


def ended(state: State) -> list[str]:
    """Return the tasks for which `has_ended` is true, in list order."""
    found = [name for names in (state.ended_headings, state.ended_parents) for name in names if has_ended(state, name)]
    return sorted(found, key=lambda name: (state.key(name), name))


def finished_with(state: State, task: Task) -> Iterator[Task]:
    """Yield the parents that are completed when this unfinished task is, from the nearest up."""
    while task.parent is not None:
        above = state.tasks[task.parent]
        waits = above.open_blockers or above.id in state.claims or above.gate is not None
        if above.status in FINISHED or waits or state.open_count(above.id) > 1 or not finishes_itself(state, above):
            return
        yield above
        task = above


def check_start(state: State, task: Task) -> Rejection | None:
    """Return the rejection of work on a task that only holds other tasks."""
    if children := state.open_children(task.id):
        return rejections.open_children(task, "in_progress", children)
    return rejections.heading(task, "in_progress") if is_heading(task.metadata) else None


def check_status(state: State, task: Task, to: Status, *, force: bool) -> Rejection | None:
    """Return the rejection of a status that the children of a task don't allow."""
    if to == "in_progress" and (refused := check_start(state, task)) is not None:
        return refused
    if to == "completed" and not force and (children := state.open_children(task.id)):
        return rejections.open_children(task, to, children)
    reopens = task.status in FINISHED and to not in FINISHED
    is_parent = is_heading(task.metadata) or task.id in state.families
    if reopens and is_parent and not state.open_count(task.id) and finishes_itself(state, task):
        return rejections.follows_its_children(task, to)
    return None
