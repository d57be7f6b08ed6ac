"""Adding tasks that the list may have already: an open task with the same title and parent is kept, none is added."""

from collections.abc import Generator, Sequence
from operator import attrgetter
from typing import Any

from punchlist.calls import Call, itself
from punchlist.tools.model import ToolContext
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import TaskResult
from punchlist_schemas.things import Task


def add(desk: ToolContext, title: str, **members: Any) -> Generator[Call[Any], Any, TaskResult]:
    """Add a task, or keep the one that is equal: the result says which."""
    call: Call[Any] = desk.calls.add(title, keep_equal=True, **members)
    call.pick = itself
    return (yield call)


def add_many(
    desk: ToolContext, tasks: Sequence[NewTask]
) -> Generator[Call[Any], Any, tuple[tuple[Task, ...], tuple[str, ...]]]:
    """Add tasks, or keep those that are equal; all of them in the order of the call, and the ids of those kept."""
    call: Call[Any] = desk.calls.add_many(tasks, keep_equal=True)
    call.pick = attrgetter("tasks", "kept")
    return (yield call)
