"""Reports what others did to a task after an agent claimed it."""

from collections.abc import Generator
from typing import Any

from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.tools import changes
from punchlist.tools.model import Problem, ToolContext
from punchlist.tools.phrases import name_of
from punchlist_schemas.events import (
    AnyEvent,
    Claimed,
    Deleted,
    ListCleared,
    Recorded,
    Released,
    StatusChanged,
    decode_event,
)
from punchlist_schemas.results import EventsResult

_WORDS = {
    "pending": "set back to pending",
    "in_progress": "started",
    "paused": "paused",
    "completed": "completed",
    "failed": "set to failed",
}


def missing(context: ToolContext) -> Generator[Call[Any], Any, Problem]:
    """Return the refusal of a result without a task: who took, finished or cleared what this agent had."""
    had = list(context.mind.claims.items())
    context.mind.claims.clear()
    if not had:
        tasks: TaskList = yield context.calls.list(limit=1)
        found = yield from changes.find_back(context, tasks.seq, lambda event: _claimed(event, context.actor))
        had = [found] if found else []
    for task, fence in reversed(had):
        if told := (yield from fate(context, task, fence)):
            return lost(told)
    return Problem("invalid_arguments", "you have no task in progress: call next without result, or name an id")


def fate(context: ToolContext, task: str, fence: int) -> Generator[Call[Any], Any, str]:
    """Return in a few words what others did to a task after this agent claimed it; empty if it ended the claim."""
    told: list[str] = []
    after = fence
    while True:
        page: EventsResult = yield changes.read(context, after)
        for recorded in page.events:
            event = decode_event(recorded.event)
            if not isinstance(event, ListCleared) and getattr(event, "task", None) != task:
                continue
            if recorded.actor == context.actor:
                told.clear()
            elif said := _loss(event, name_of(recorded.actor)):
                told.append(said)
            if isinstance(event, ListCleared):
                return "".join(told[-1:])  # from here on the ids mean other tasks
        if not page.events or page.next <= after:
            return ", then ".join(told[-2:])
        after = page.next


def _loss(event: AnyEvent, actor: str) -> str:
    """Return what an event did to the task that an agent had; empty if the agent still has it."""
    match event:
        case ListCleared():
            said = f"the list was cleared by {actor}"
        case Claimed(task=task, owner=owner):
            said = f"task {task} was taken by {name_of(owner)}"
        case Released(task=task, reason=reason):
            how = f"was released by {actor}" if reason == "released" else f"is not yours any more ({reason})"
            said = f"task {task} {how}"
        case StatusChanged(task=task, to=status):
            said = f"task {task} was {_WORDS[status]} by {actor}"
        case Deleted(task=task):
            said = f"task {task} was deleted by {actor}"
        case _:
            said = ""
    return said


def _claimed(recorded: Recorded, owner: str) -> tuple[str, int] | None:
    event = decode_event(recorded.event)
    return (event.task, recorded.seq) if isinstance(event, Claimed) and event.owner == owner else None


def lost(told: str) -> Problem:
    """Return the refusal of a result whose task somebody took, finished or cleared."""
    text = f"{told}: your result was not recorded. Call next for another task, or tasks to see the list"
    return Problem("lease_lost", text)
