"""Adds tasks, but keeps an open task with the same title and parent instead of adding it again."""

from collections.abc import Generator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from punchlist.base.text import one_line
from punchlist.calls.call import Call, itself
from punchlist.tools.model import ToolContext
from punchlist.tools.phrases import name_of
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import TaskResult
from punchlist_schemas.things import Task


def add(context: ToolContext, title: str, **members: Any) -> Generator[Call[Any], Any, TaskResult]:
    """Add a task, or keep the equal one. The result reports which."""
    call: Call[Any] = context.calls.add(title, keep_equal=True, **members)
    call.pick = itself
    return (yield call)


def add_many(
    context: ToolContext, tasks: Sequence[NewTask]
) -> Generator[Call[Any], Any, tuple[tuple[Task, ...], tuple[str, ...]]]:
    """Add tasks, or keep equal ones. Return all in the order of the call, and the ids of the kept ones."""
    call: Call[Any] = context.calls.add_many(tasks, keep_equal=True)
    call.pick = attrgetter("tasks", "kept")
    return (yield call)


def kept(context: ToolContext, task: Task, asked: Mapping[str, Any], changer: str = "") -> str:
    """Return a sentence about a kept task, with the members that differ from the call's."""
    by = f", {name_of(task.owner)}" if task.owner else ""
    said = f"#{task.id} has this title already ({task.status}{by}): kept"
    other = differences(task, asked)
    if not other:
        return said
    verb, them = ("was", "it") if len(other) == 1 else ("were", "them")
    how = f": use {context.tool(changer)} to change {them}" if changer in context.names else ""
    return f"{said}; its {' and '.join(other)} {verb} not changed{how}"


def differences(task: Task, asked: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, default in _COMPARED.items()
        if one_line(asked.get(name) or default) not in (default, one_line(getattr(task, name)))
    ]


_COMPARED = {"description": "", "priority": "normal"}
"""Compared members -> their default in a call."""
