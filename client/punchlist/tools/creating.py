"""Adds tasks. If an open task with the same title and parent exists, it is kept, and no task is added."""

from collections.abc import Generator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from punchlist.base.text import one_line
from punchlist.calls.call import Call, itself
from punchlist.tools.model import ToolContext
from punchlist.tools.phrases import format_actor
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import TaskResult
from punchlist_schemas.things import Task


def add(context: ToolContext, title: str, **members: Any) -> Generator[Call[Any], Any, TaskResult]:
    """Add a task, or keep an equal one. In the result, `kept` is true if an equal task was kept."""
    call: Call[Any] = context.calls.add(title, keep_equal=True, **members)
    call.pick = itself
    return (yield call)


def add_many(
    context: ToolContext, tasks: Sequence[NewTask]
) -> Generator[Call[Any], Any, tuple[tuple[Task, ...], tuple[str, ...]]]:
    """Add tasks, or keep equal ones. Return all tasks in the order of the call, and the ids of the kept ones."""
    call: Call[Any] = context.calls.add_many(tasks, keep_equal=True)
    call.pick = attrgetter("tasks", "kept")
    return (yield call)


def describe_kept(context: ToolContext, task: Task, members: Mapping[str, Any], tool: str = "") -> str:
    """Return a sentence about a kept task.

    Args:
        members: The members in the call. The members that differ from the task's are named.
        tool: The tool that can change these members; "" if no tool can.
    """
    by = f", {format_actor(task.owner)}" if task.owner else ""
    text = f"#{task.id} has this title already ({task.status}{by}): kept"
    different = find_differences(task, members)
    if not different:
        return text
    verb, them = ("was", "it") if len(different) == 1 else ("were", "them")
    advice = f": use {context.tool_name(tool)} to change {them}" if tool in context.names else ""
    return f"{text}; its {' and '.join(different)} {verb} not changed{advice}"


def find_differences(task: Task, members: Mapping[str, Any]) -> list[str]:
    """Return the members of a call that aren't defaults and differ from the task's."""
    return [
        name
        for name, default in _COMPARED_MEMBERS.items()
        if one_line(members.get(name) or default) not in (default, one_line(getattr(task, name)))
    ]


_COMPARED_MEMBERS = {"description": "", "priority": "normal"}
"""Compared members -> their defaults."""
