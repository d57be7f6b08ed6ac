"""Whose a task is: what an agent goes on with, takes and finishes, and what others did to what it had.

An agent has a task if it owns its claim. Each call that ends a claim passes the claim's fence, so that an agent that
lost its task finishes nobody else's. What is in progress without a claim belongs to its owner and to whoever began it:
`check` sees each call of each dialect. A session's calls keep its claims in force (`renew`).
"""

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from punchlist.actors import is_agents, is_persons
from punchlist.calls import Call
from punchlist.core import Request
from punchlist.cursor import TaskList
from punchlist.errors import LeaseHeld, LeaseLost, NotFound, RequestRefused
from punchlist.text import clip, one_line
from punchlist.tools import changes
from punchlist.tools.model import Problem, ToolContext
from punchlist.tools.refusals import problem_of
from punchlist_schemas.events import (
    AnyEvent,
    Claimed,
    Deleted,
    ListCleared,
    Recorded,
    Released,
    StatusChanged,
    TaskAdded,
    decode_event,
)
from punchlist_schemas.params import TaskClaim, TaskDelete, TaskEdit, TaskSetStatus
from punchlist_schemas.results import ClaimResult, EventsResult, SetStatusResult
from punchlist_schemas.things import FINISHED, Conversation, Status, Task

LEASE_MS = 2 * 3_600_000
"""How long an agent's claim lasts after the last call of its session, in milliseconds."""

RENEW_S = 900.0
"""How long a session's calls leave its claims as they are once they were renewed, in seconds."""

_NAME = 60
_LOOKED_UP = 5
"""How many tasks without an owner are looked up in the log at once."""

_WORDS = {
    "pending": "set back to pending",
    "in_progress": "started",
    "paused": "paused",
    "completed": "completed",
    "failed": "set to failed",
}


def of_others(desk: ToolContext, tasks: Iterable[Task]) -> Generator[Call[Any], Any, dict[str, str]]:
    """The tasks in progress that others work on: id → who has it, or who began it without an owner.

    Sub-agents are no others. A serial list starts tasks by itself, for anybody, so there only claims count.
    """
    others = [task for task in tasks if task.status == "in_progress" and not _is_own(desk, task.owner)]
    found = {task.id: name_of(task.owner) for task in others if task.fence is not None}
    began: dict[str, str] = {}
    for task in others:
        if task.fence is None and not _is_own(desk, who := (yield from _began(desk, task))):
            began[task.id] = name_of(task.owner or who) or "somebody"
    if began:
        conversation: Conversation = yield desk.calls.info()
        found |= {} if conversation.settings.execution == "serial" else began
    return found


def _is_own(desk: ToolContext, actor: str) -> bool:
    return is_agents(actor, desk.actor) or is_persons(actor, desk.person)


def worked_on(others: Mapping[str, str]) -> Problem:
    """The refusal to drop what others are working on: it names each task and who has it."""
    names = ", ".join(f"#{task} ({who})" for task, who in others.items())
    return Problem("lease_held", f"other sessions are working on {names}: leave these tasks in the list")


def check(desk: ToolContext, call: Call[Any]) -> Generator[Call[Any], Any, None]:
    """Called before each call of a tool: none takes a task from whoever works on it, to finish it or otherwise.

    What the person is asked about goes through, and so does a call with a fence, which the daemon checks. A call for
    the person who has claimed the task gets the fence of their claim, since the daemon knows them by another name.

    Raises:
        Problem: Another session is working on the task, or somebody has begun it without an owner. Its sub-agents'
            tasks are an agent's own to end.
        NotFound: There is no such task.
    """
    params = call.request.params
    for one in _taken(params):
        task: Task = yield desk.calls.get(one)
        who = (yield from of_others(desk, [task])).get(one)
        is_begun = isinstance(params, TaskSetStatus) and params.status == "in_progress"
        if is_begun and task.status == "completed" and task.owner and not _is_own(desk, task.owner):
            text = f"task {one} was completed by {name_of(task.owner)}: set it to pending first to have it done again"
            raise Problem("illegal_transition", text)
        if who is not None and not task.owner:
            text = f"{who} has begun task {one} without an owner, so it is theirs to finish: take another one"
            raise Problem("lease_held", text)
        if who is not None:
            how = "take another one" if _is_work(params) else "leave it to them"
            if task.fence is None or not _is_work(params):  # a claim ends by itself some day
                how += f"; a person frees it with: punch reopen {one}"
            raise Problem("lease_held", f"task {one} is being worked on by {who}: {how}")
        if isinstance(params, TaskSetStatus) and task.owner and task.owner == desk.person:
            call.request = Request.of(call.method, msgspec.structs.replace(params, fence=task.fence))


def _taken(params: object) -> tuple[str, ...]:
    """The tasks that a call would take from whoever works on them."""
    match params:
        case TaskSetStatus(task=str(task), fence=None) | TaskClaim(task=str(task)):
            return (task,)
        case TaskEdit(task=str(task), owner=str()):
            return (task,)
        case TaskDelete(ask=False):
            return params.tasks if params.task is None else (params.task,)
        case _:
            return ()


def _is_work(params: object) -> bool:
    """Whether a call would begin or finish a task, rather than take it out of somebody's hands."""
    if isinstance(params, TaskSetStatus):
        return params.status in ("in_progress", *FINISHED)
    return isinstance(params, TaskClaim)


def renew(desk: ToolContext) -> Generator[Call[Any], Any, None]:
    """Called with each call of a tool: keeps the session's claims on this list in force, at most every `RENEW_S`."""
    now = time.monotonic()
    if desk.is_nameless or (desk.mind.renewed is not None and now - desk.mind.renewed < RENEW_S):
        return
    desk.mind.renewed = now
    with suppress(RequestRefused):  # what the tool asks for is refused with the reason
        running: TaskList = yield desk.calls.list(status="in_progress", owner=desk.actor)
        for task in running:
            if task.fence is not None:
                with suppress(LeaseHeld, LeaseLost, NotFound):  # it has ended meanwhile
                    yield desk.calls.renew(task.id, desk.actor, lease_ms=LEASE_MS, fence=task.fence)


def mine(desk: ToolContext) -> Generator[Call[Any], Any, list[Task]]:
    """The tasks that this agent is working on. Their claims are remembered, as after a restart of the process.

    A task of this agent's without a claim is claimed anew, so that it is handed on once the agent is gone.
    """
    running: TaskList = yield desk.calls.list(status="in_progress")
    own = [task for task in running if task.owner == desk.actor]
    desk.mind.claims.update({task.id: task.fence for task in own if task.fence is not None})
    for task in own:
        if task.fence is None and not desk.is_nameless:
            yield from take(desk, task.id)
    if own:
        return own
    for task in [task for task in running if not task.owner][:_LOOKED_UP]:
        if (yield from _began(desk, task)) == desk.actor:
            own.append(task)
    return own


def take(desk: ToolContext, task: str | None = None) -> Generator[Call[Any], Any, ClaimResult]:
    """Claim a task, by default the next ready one, and remember the claim.

    Raises:
        Problem: The agent has no name of its own.
    """
    if desk.is_nameless:
        text = "this server can't tell its clients apart: give agent, a name of your own, with each call"
        raise Problem("agent_required", text)
    claim: ClaimResult = yield desk.calls.take(desk.actor, task, lease_ms=LEASE_MS, keep=True)
    if claim.task is not None and claim.fence is not None:
        desk.mind.claims[claim.task.id] = claim.fence
    return claim


def begin(desk: ToolContext, task_id: str) -> Generator[Call[Any], Any, bool]:
    """Take up a certain task, claimed; returns whether it was this agent's already.

    Raises:
        Problem: Somebody else is working on it.
    """
    task: Task = yield desk.calls.get(task_id)
    is_own = task.status == "in_progress" and task.owner == desk.actor
    if is_own and (task.fence is not None or desk.is_nameless):
        return True
    if task.status not in ("pending", "in_progress"):
        yield desk.calls.start(task_id)
    yield from take(desk, task_id)
    return is_own


def settle(
    desk: ToolContext, task_id: str, status: Status, note: str = ""
) -> Generator[Call[Any], Any, SetStatusResult]:
    """Complete, fail, pause or reopen a task, with the fence of this agent's claim if it has one.

    Args:
        desk: Who does it, and where.
        task_id: The task.
        status: Its new status.
        note: What came of it, or why it failed.

    Raises:
        Problem: Somebody else is working on it, or has done something to it since this agent claimed it.
        NotFound: There is no such task.
    """
    fence = desk.mind.claims.get(task_id)
    texts: dict[str, Any] = {
        "result_summary": note or None if status == "completed" else None,
        "fail_reason": note or None if status == "failed" else None,
    }
    try:
        try:
            done: SetStatusResult = yield desk.calls.set_status(task_id, status, fence=fence, **texts)
        except LeaseHeld as error:
            if error.owner != desk.actor:
                raise
            # It was taken away, and an undo gave it back: by another claim, which is this agent's as well.
            given_back: Task = yield desk.calls.get(task_id)
            done = yield desk.calls.set_status(task_id, status, fence=given_back.fence, **texts)
    except (LeaseHeld, LeaseLost, NotFound) as error:
        if desk.mind.claims.pop(task_id, None) is None or fence is None:
            raise
        told = yield from fate(desk, task_id, fence)
        raise _lost(told) if told else problem_of(error) from None
    desk.mind.claims.pop(task_id, None)
    return done


def missing(desk: ToolContext) -> Generator[Call[Any], Any, Problem]:
    """Why there is nothing that a result could belong to: who took, finished or cleared what this agent had."""
    had = list(desk.mind.claims.items())
    desk.mind.claims.clear()
    if not had:
        tasks: TaskList = yield desk.calls.list(limit=1)
        found = yield from changes.find_back(desk, tasks.seq, lambda event: _claimed(event, desk.actor))
        had = [found] if found else []
    for task, fence in reversed(had):
        if told := (yield from fate(desk, task, fence)):
            return _lost(told)
    return Problem("invalid_arguments", "you have no task in progress: call next without result, or name an id")


def fate(desk: ToolContext, task: str, fence: int) -> Generator[Call[Any], Any, str]:
    """What others did to a task after this agent claimed it, in a few words; empty if this agent ended its claim."""
    told: list[str] = []
    after = fence
    while True:
        page: EventsResult = yield changes.read(desk, after)
        for recorded in page.events:
            event = decode_event(recorded.event)
            if not isinstance(event, ListCleared) and getattr(event, "task", None) != task:
                continue
            if recorded.actor == desk.actor:
                told.clear()
            elif said := _loss(event, name_of(recorded.actor)):
                told.append(said)
            if isinstance(event, ListCleared):
                return "".join(told[-1:])  # from here on the ids mean other tasks
        if not page.events or page.next <= after:
            return ", then ".join(told[-2:])
        after = page.next


def _loss(event: AnyEvent, actor: str) -> str:
    """What an event did to the task that an agent had; empty if the agent still has it."""
    match event:
        case ListCleared():
            said = f"the list was cleared by {actor}"
        case Claimed(task=task, owner=owner):
            said = f"task {task} was taken by {name_of(owner)}"
        case Released(task=task, reason=reason):
            how = f"was given back by {actor}" if reason == "released" else f"is not yours any more ({reason})"
            said = f"task {task} {how}"
        case StatusChanged(task=task, to=status):
            said = f"task {task} was {_WORDS[status]} by {actor}"
        case Deleted(task=task):
            said = f"task {task} was deleted by {actor}"
        case _:
            said = ""
    return said


def name_of(actor: str) -> str:
    """Somebody's name as it stands in a reply: on one line and not too long."""
    return clip(one_line(actor), _NAME)


def _began(desk: ToolContext, task: Task) -> Generator[Call[Any], Any, str]:
    """Who set a task to in progress; empty if the log does not show it."""
    key = f"{task.id}@{task.status_changed_at}"
    if key not in desk.mind.began:
        tasks: TaskList = yield desk.calls.list(limit=1)
        found = yield from changes.find_back(desk, tasks.seq, lambda event: _starter(event, task.id))
        desk.mind.began[key] = found or ""
    return desk.mind.began[key]


def _starter(recorded: Recorded, task: str) -> str | None:
    event = decode_event(recorded.event)
    if isinstance(event, TaskAdded):
        return recorded.actor if event.task.id == task else None
    starts = isinstance(event, StatusChanged) and event.task == task and event.to == "in_progress"
    return recorded.actor if starts else None


def _claimed(recorded: Recorded, owner: str) -> tuple[str, int] | None:
    event = decode_event(recorded.event)
    return (event.task, recorded.seq) if isinstance(event, Claimed) and event.owner == owner else None


def _lost(told: str) -> Problem:
    text = f"{told}: your result was not recorded. Call next for another task, or tasks to see the list"
    return Problem("lease_lost", text)
