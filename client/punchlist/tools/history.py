"""Searches the log for the actor that completed or deleted a task, for an agent whose call came too late."""

from collections.abc import Generator
from typing import Any

from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import RequestRefused
from punchlist.tools import changes
from punchlist.tools.model import ToolContext
from punchlist.tools.phrases import format_actor
from punchlist_schemas.events import Deleted, ListCleared, StatusChanged, TaskAdded, decode_event
from punchlist_schemas.results import Recorded
from punchlist_schemas.things import Task


def describe_end(context: ToolContext, task: str) -> Generator[Call[Any], Any, str]:
    """Return who completed or deleted a task, in the form "NAME completed it"; "" if it is open or never existed."""
    end = yield from _find_end(context, task)
    return f"{end[0]} {end[1]}" if end else ""


def describe_end_by_others(context: ToolContext, task: str) -> Generator[Call[Any], Any, str]:
    """Like `describe_end`, but return "" if this agent did it."""
    end = yield from _find_end(context, task)
    return f"{end[0]} {end[1]}" if end and end[2] != context.actor else ""


def describe_completion_by_others(context: ToolContext, task: str) -> Generator[Call[Any], Any, str]:
    """Return who completed a task, in the form "NAME completed it"; "" if it isn't completed, or this agent did it."""
    before: Task = yield context.calls.get(task)
    return (yield from describe_end_by_others(context, before.id)) if before.status == "completed" else ""


def _find_end(context: ToolContext, task: str) -> Generator[Call[Any], Any, tuple[str, str, str] | None]:
    tasks: TaskList = yield context.calls.list(limit=1)
    try:
        end = yield from changes.search_back(context, tasks.seq, lambda recorded: _match_end(recorded, task))
    except RequestRefused:
        return None  # That part of the log can't be read. The tool call must succeed even without the name.
    return end if end and end[1] else None


def _match_end(recorded: Recorded, task: str) -> tuple[str, str, str] | None:
    """Return the displayed name, the action and the actor of an event that ends the task; None for other events.

    The action is empty if the event adds or reopens the task: earlier events no longer matter.
    """
    event = decode_event(recorded.event)
    action: str | None = None
    if isinstance(event, ListCleared):
        action = "cleared the list"
    elif isinstance(event, TaskAdded):
        action = "" if event.task.id == task else None
    elif getattr(event, "task", None) == task:
        if isinstance(event, Deleted):
            action = "deleted it"
        elif isinstance(event, StatusChanged):
            action = "completed it" if event.to == "completed" else ""
    return None if action is None else (format_actor(recorded.actor) or "somebody", action, recorded.actor)
