"""Reports what others did to a task after an agent claimed it."""

from collections.abc import Generator
from typing import Any

from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.tools import changes
from punchlist.tools.model import Problem, ToolContext
from punchlist.tools.phrases import format_actor
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


def explain_missing_task(context: ToolContext) -> Generator[Call[Any], Any, Problem]:
    """Return the problem for a result without a task: who took, finished or cleared the agent's last task."""
    claims = list(context.state.claims.items())
    context.state.claims.clear()
    if not claims:
        tasks: TaskList = yield context.calls.list(limit=1)
        claim = yield from changes.search_back(context, tasks.seq, lambda event: _match_claim(event, context.actor))
        claims = [claim] if claim else []
    for task, fence in reversed(claims):
        if loss := (yield from describe_loss(context, task, fence)):
            return reject_result(loss)
    return Problem("invalid_arguments", "you have no task in progress: call next without result, or name an id")


def describe_loss(context: ToolContext, task: str, fence: int) -> Generator[Call[Any], Any, str]:
    """Return what others did to a task after this agent claimed it; "" if this agent was the last to change it."""
    steps: list[str] = []
    after = fence
    while True:
        page: EventsResult = yield changes.read_events(context, after)
        for recorded in page.events:
            event = decode_event(recorded.event)
            if not isinstance(event, ListCleared) and getattr(event, "task", None) != task:
                continue
            if recorded.actor == context.actor:
                steps.clear()
            elif step := _describe_event(event, format_actor(recorded.actor)):
                steps.append(step)
            if isinstance(event, ListCleared):
                return "".join(steps[-1:])  # Later events with this id are about another task.
        if not page.events or page.next <= after:
            return ", then ".join(steps[-2:])
        after = page.next


def _describe_event(event: AnyEvent, actor: str) -> str:
    """Return what an event did to an agent's task; "" if the agent still owns it."""
    match event:
        case ListCleared():
            text = f"the list was cleared by {actor}"
        case Claimed(task=task, owner=owner):
            text = f"task {task} was taken by {format_actor(owner)}"
        case Released(task=task, reason=reason):
            how = f"was released by {actor}" if reason == "released" else f"is no longer yours ({reason})"
            text = f"task {task} {how}"
        case StatusChanged(task=task, to=status):
            text = f"task {task} was {_WORDS[status]} by {actor}"
        case Deleted(task=task):
            text = f"task {task} was deleted by {actor}"
        case _:
            text = ""
    return text


def _match_claim(recorded: Recorded, owner: str) -> tuple[str, int] | None:
    event = decode_event(recorded.event)
    return (event.task, recorded.seq) if isinstance(event, Claimed) and event.owner == owner else None


def reject_result(loss: str) -> Problem:
    """Return the problem for a result whose task another agent took, finished or cleared."""
    text = f"{loss}: your result was not recorded. Call next for another task, or tasks to see the list"
    return Problem("lease_lost", text)
