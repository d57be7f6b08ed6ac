"""Finds the paths of tasks (the titles of their parents) for replies."""

from collections.abc import Callable, Generator, Iterable
from typing import Any

from punchlist.base.tree import titles_above
from punchlist.calls.call import Call, itself
from punchlist.calls.cursor import TaskList
from punchlist.tools import phrases
from punchlist.tools.model import ToolContext
from punchlist_schemas.params import TaskGet
from punchlist_schemas.results import TaskGetResult
from punchlist_schemas.things import Task


def get_parent_titles(context: ToolContext, task: Task) -> Generator[Call[Any], Any, list[str]]:
    """Return the titles of a task's parents, outermost first."""
    if task.parent is None:
        return []
    _, parents = yield from get_with_parents(context, task.id)
    return parents


def get_with_parents(context: ToolContext, task: str) -> Generator[Call[Any], Any, tuple[Task, list[str]]]:
    """Return a task and the titles of its parents, outermost first."""
    params = TaskGet(conversation=context.conversation, task=task)
    result: TaskGetResult = yield Call("task.get", params, itself)
    return result.task, [parent.title for parent in result.path]


def load_paths(context: ToolContext, tasks: TaskList) -> Generator[Call[Any], Any, Callable[[Task], str]]:
    """Return a function that returns the path of one of these tasks, `Backend › tests`, or "" at the top level."""
    rows = _build_tree_rows(tasks)
    if any(task.parent and task.parent not in rows for task in tasks):  # a page or a filter may leave parents out
        rows = _build_tree_rows((yield context.calls.list()))

    return lambda task: phrases.format_path(task, titles_above(rows.get(task.id, {}), rows))


def _build_tree_rows(tasks: Iterable[Task]) -> dict[str, dict[str, Any]]:
    return {task.id: {"id": task.id, "title": task.title, "parent": task.parent} for task in tasks}
