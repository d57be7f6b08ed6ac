"""Who has ended a task, from the log: for an agent that comes too late."""

from collections.abc import Generator
from typing import Any

from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import RequestRefused
from punchlist.tools import changes
from punchlist.tools.model import ToolContext
from punchlist.tools.phrases import name_of
from punchlist_schemas.events import Deleted, ListCleared, StatusChanged, TaskAdded, decode_event
from punchlist_schemas.results import Recorded
from punchlist_schemas.things import Task


def ended(context: ToolContext, task: str) -> Generator[Call[Any], Any, str]:
    """What ended a task and who did it, in a few words; empty where there was no such task, or it goes on."""
    found = yield from _newest_end(context, task)
    return f"{found[0]} {found[1]}" if found else ""


def ended_by_others(context: ToolContext, task: str) -> Generator[Call[Any], Any, str]:
    """The same, where it was somebody else than the agent that asks."""
    found = yield from _newest_end(context, task)
    return f"{found[0]} {found[1]}" if found and found[2] != context.actor else ""


def completed_by_others(context: ToolContext, task: str) -> Generator[Call[Any], Any, str]:
    """Who else has completed a task before, in a few words; empty where nobody has."""
    before: Task = yield context.calls.get(task)
    return (yield from ended_by_others(context, before.id)) if before.status == "completed" else ""


def _newest_end(context: ToolContext, task: str) -> Generator[Call[Any], Any, tuple[str, str, str] | None]:
    tasks: TaskList = yield context.calls.list(limit=1)
    try:
        found = yield from changes.find_back(context, tasks.seq, lambda recorded: _end(recorded, task))
    except RequestRefused:
        return None  # that part of the log can't be had: what was asked for matters more than who was first
    return found if found and found[1] else None


def _end(recorded: Recorded, task: str) -> tuple[str, str, str] | None:
    """Who did what, if this event ends the task: a name to show, the deed, the actor. No deed: the task begins here."""
    event = decode_event(recorded.event)
    what: str | None = None
    if isinstance(event, ListCleared):
        what = "cleared the list"
    elif isinstance(event, TaskAdded):
        what = "" if event.task.id == task else None
    elif getattr(event, "task", None) == task:
        if isinstance(event, Deleted):
            what = "deleted it"
        elif isinstance(event, StatusChanged):
            what = "completed it" if event.to == "completed" else ""
    return None if what is None else (name_of(recorded.actor) or "somebody", what, recorded.actor)
