"""Whose a task is: what an agent goes on with, takes and finishes, and what others did to what it had.

An agent has a task if it owns its claim. Each call that ends a claim passes the claim's fence, so that an agent that
lost its task finishes nobody else's. What is in progress without a claim belongs to its owner and to whoever began it:
`check` sees each call of each dialect. A session's calls keep its claims in force (`renew`).
"""

import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

import msgspec

from punchlist.base.actors import belongs_to_agent, belongs_to_person
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.connection.core import Request
from punchlist.errors import LeaseHeld, LeaseLost, NotFound, RequestRefused
from punchlist.tools import changes, notes, phrases
from punchlist.tools.fates import fate, lost
from punchlist.tools.model import Problem, ToolContext
from punchlist.tools.refusals import problem_of, unanswered
from punchlist_schemas.changes import CHANGES, ListApply
from punchlist_schemas.events import Recorded, StatusChanged, TaskAdded, decode_event
from punchlist_schemas.params import AgentList, ListClear, TaskClaim, TaskDelete, TaskEdit, TaskSetStatus
from punchlist_schemas.results import ClaimResult, SetStatusResult, TaskExplainResult
from punchlist_schemas.things import FINISHED, Agent, Conversation, Status, Task, names_of

LEASE_MS = 2 * 3_600_000
"""How long an agent's claim lasts after the last call of its session, in milliseconds."""

RENEW_S = 900.0
"""How long a session's calls leave its claims as they are once they were renewed, in seconds."""

_OFFERED = 3
"""Maximum number of abandoned tasks in a reply."""
_LOOKED_UP = 5
"""How many tasks without an owner are looked up in the log at once."""


def of_others(context: ToolContext, tasks: Iterable[Task]) -> Generator[Call[Any], Any, dict[str, str]]:
    """The tasks in progress that others work on: id → who has it, or who began it without an owner.

    Sub-agents are no others. A serial list starts tasks by itself, for anybody, so there only claims count.
    """
    others = [task for task in tasks if task.status == "in_progress" and not _is_own(context, task.owner)]
    found = {task.id: phrases.name_of(task.owner) for task in others if task.fence is not None}
    began: dict[str, str] = {}
    for task in others:
        if task.fence is None and not _is_own(context, who := (yield from _began(context, task))):
            began[task.id] = phrases.name_of(task.owner or who) or "somebody"
    if began:
        conversation: Conversation = yield context.calls.info()
        found |= {} if conversation.settings.execution == "serial" else began
    return found


def _is_own(context: ToolContext, actor: str) -> bool:
    return belongs_to_agent(actor, context.actor) or belongs_to_person(actor, context.person)


def _may_take(context: ToolContext, owner: str) -> bool:
    """Return whether the agent, its host or its sub-agent may start a pending task of this owner."""
    return not owner or owner in names_of(context.actor) or _is_own(context, owner)


_TAKING = {
    "update": "id={} status=in_progress",
    "TaskUpdate": "taskId={} status=in_progress",
    "resume_task": "task_id={}",
}
"""The tools that take a task by its id, and their arguments."""


def _how_to_take(context: ToolContext, task: str) -> str:
    for own, arguments in _TAKING.items():
        if own in context.names:
            return f"take it with {context.call_of(own, arguments.format(task))}"
    return f"a person frees it with: punch reopen {task}"


def offers(context: ToolContext) -> Generator[Call[Any], Any, list[str]]:
    """Return a line for each task whose owner is gone; `next` shows them if nothing is ready."""
    open_: TaskList = yield context.calls.list(status=("in_progress", "pending"))
    gone = [(task, since) for task in open_ if (since := phrases.departed(task))][:_OFFERED]
    return [
        f"Task {task.id} belongs to {phrases.name_of(task.owner)}, whose {since}; {_how_to_take(context, task.id)}."
        for task, since in gone
    ]


def ready_for_me(context: ToolContext, ids: Collection[str]) -> Generator[Call[Any], Any, list[str]]:
    ready: TaskList = yield context.calls.list(ready=True)
    return [task.id for task in ready if task.id in ids and _may_take(context, task.owner)]


def worked_on(others: Mapping[str, str]) -> Problem:
    """The refusal to drop what others are working on: it names each task and who has it."""
    names = ", ".join(f"#{task} ({who})" for task, who in others.items())
    return Problem("lease_held", f"other sessions are working on {names}: leave these tasks in the list")


def check(context: ToolContext, call: Call[Any]) -> Generator[Call[Any], Any, None]:
    """Called before each call of a tool: none takes a task from whoever works on it, to finish it or otherwise.

    Whose owner is gone may be claimed by its id.

    What the person is asked about goes through, and so does a call with a fence, which the daemon checks. A call for
    the person who has claimed the task gets the fence of their claim, since the daemon knows them by another name.
    A task that waits for a person's yes is left as it is, whoever completed it: taken up again, it would be done twice.

    Raises:
        Problem: Another session is working on the task, or somebody has begun it without an owner. Its sub-agents'
            tasks are an agent's own to end. Or the task waits for a person's yes.
        NotFound: There is no such task.
    """
    params = call.request.params
    if isinstance(params, ListClear):
        waiting: TaskList = yield context.calls.list(waits_for="yes", limit=1)
        if waiting:
            raise unanswered(waiting[0])
    taken = _taken(params)
    if not taken:
        if isinstance(params, TaskEdit) and {params.title, params.description} != {msgspec.UNSET}:
            edited: Task = yield context.calls.get(params.task)
            _leave_to_a_person(params, [edited])
        return
    if len(taken) == 1:
        tasks: list[Task] = [(yield context.calls.get(taken[0]))]
    else:
        whole: TaskList = yield context.calls.list()
        tasks = [task for task in whole if task.id in taken]
    _leave_to_a_person(params, tasks)
    if isinstance(params, TaskDelete) and params.ask:
        return
    _leave_completed(context, params, tasks)
    yield from _leave_reserved(context, params, tasks)
    yield from _leave_to_others(context, params, tasks)
    if isinstance(params, TaskSetStatus) and tasks[0].owner and tasks[0].owner == context.person:
        call.request = Request.of(call.method, msgspec.structs.replace(params, fence=tasks[0].fence))


def _taken(params: object) -> tuple[str, ...]:
    """The tasks that a call would take from whoever works on them."""
    match params:
        case TaskSetStatus(task=str(task), fence=None) | TaskClaim(task=str(task)):
            return (task,)
        case TaskEdit(task=str(task), owner=str()):
            return (task,)
        case TaskDelete():
            return params.tasks if params.task is None else (params.task,)
        case ListApply():
            return tuple(dict.fromkeys(one for call in _made_by(params) for one in _taken(call)))
        case _:
            return ()


def _made_by(params: ListApply) -> Generator[object]:
    """Return the calls that the changes of a `list.apply` correspond to."""
    for change in params.changes:
        members = msgspec.structs.asdict(change)
        members.pop("ref", None)
        kind: Any = CHANGES[type(change)]
        yield kind(conversation=params.conversation, **members)


def _leave_to_a_person(params: object, tasks: Iterable[Task]) -> None:
    for task in tasks:
        if task.waits_for == "yes" and not _changes_nothing(params, task):
            raise unanswered(task)


def _leave_completed(context: ToolContext, params: object, tasks: Iterable[Task]) -> None:
    is_begun = isinstance(params, TaskSetStatus) and params.status == "in_progress"
    for task in tasks if is_begun else ():
        if task.status == "completed" and task.owner and not _is_own(context, task.owner):
            who = phrases.name_of(task.owner)
            text = f"task {task.id} was completed by {who}: set it to pending first to have it done again"
            raise Problem("illegal_transition", text)


def _leave_reserved(context: ToolContext, params: object, tasks: Iterable[Task]) -> Generator[Call[Any], Any, None]:
    by_id = {task.id: task for task in tasks}
    for part in _made_by(params) if isinstance(params, ListApply) else (params,):
        is_work = _is_work(part)
        # Claude Code names teammates that only its session knows: it begins and deletes their tasks in their name.
        is_free_form = isinstance(part, TaskDelete) or getattr(part, "status", "") == "in_progress"
        if not (is_work or is_free_form):
            continue
        for task in [by_id[one] for one in _taken(part) if one in by_id]:
            is_left = isinstance(part, TaskClaim) and phrases.departed(task) != ""
            if task.status != "pending" or is_left or _may_take(context, task.owner):
                continue
            if not is_free_form or task.owner in (yield from _known(context, (task.owner,))):
                what = "take another one" if is_work else "leave it to them"
                text = f"task {task.id} is reserved for {phrases.name_of(task.owner)}: {what}"
                raise Problem("lease_held", f"{text}; a person frees it with: punch assign {task.id} --nobody")


def reserved(context: ToolContext, tasks: Iterable[Task]) -> Generator[Call[Any], Any, dict[str, str]]:
    """Return the pending tasks that are reserved for others who are known, and for whom: id → name."""
    pending = [task for task in tasks if task.status == "pending" and not _may_take(context, task.owner)]
    known = yield from _known(context, {task.owner for task in pending})
    return {task.id: phrases.name_of(task.owner) for task in pending if task.owner in known}


def _known(context: ToolContext, owners: Collection[str]) -> Generator[Call[Any], Any, set[str]]:
    unknown = set(owners)

    def find(recorded: Recorded) -> bool | None:
        unknown.difference_update(names_of(recorded.actor))
        return None if unknown else True

    if not unknown:
        return unknown
    with suppress(RequestRefused):  # a daemon that lists no agents, or a log that can't be read
        agents: Sequence[Agent] = yield Call("agent.list", AgentList(), attrgetter("agents"))
        unknown.difference_update(*(names_of(agent.name) for agent in agents))
        if unknown:
            tasks: TaskList = yield context.calls.list(limit=1)
            yield from changes.find_back(context, tasks.seq, find)
    return set(owners) - unknown


def _leave_to_others(context: ToolContext, params: object, tasks: list[Task]) -> Generator[Call[Any], Any, None]:
    others = yield from of_others(context, tasks)
    for task in tasks:
        if (who := others.get(task.id)) is None:
            continue
        if (gone := phrases.departed(task)) and isinstance(params, TaskClaim):
            continue
        if gone:
            text = f"task {task.id} belongs to {who}, whose {gone}: {_how_to_take(context, task.id)}"
            raise Problem("lease_held", text)
        if not task.owner:
            text = f"{who} has begun task {task.id} without an owner, so it is theirs to finish: take another one"
            raise Problem("lease_held", text)
        info: Conversation = yield context.calls.info()
        is_free = _is_work(params) and info.settings.execution != "serial"
        how = "take another one" if is_free else "leave it to them"
        if task.fence is None or not _is_work(params):  # a claim ends by itself some day
            how += f"; a person frees it with: punch reopen {task.id}"
        raise Problem("lease_held", f"task {task.id} is being worked on by {who}: {how}")


def _changes_nothing(params: object, task: Task) -> bool:
    """Return whether a call repeats the completion of a task that waits for a yes, with the same result or none."""
    if not isinstance(params, TaskSetStatus) or params.status != "completed":
        return False
    return params.result_summary in (None, task.result_summary)


def _is_work(params: object) -> bool:
    """Return whether a call would start or finish a task, rather than take it from its owner."""
    is_step = isinstance(params, TaskSetStatus) and params.status in ("in_progress", *FINISHED)
    return is_step or isinstance(params, TaskClaim)


def renew(context: ToolContext) -> Generator[Call[Any], Any, None]:
    """Called with each call of a tool: keeps the session's claims on this list in force, at most every `RENEW_S`."""
    now = time.monotonic()
    if context.is_nameless or (context.mind.renewed is not None and now - context.mind.renewed < RENEW_S):
        return
    context.mind.renewed = now
    with suppress(RequestRefused):  # what the tool asks for is refused with the reason
        running: TaskList = yield context.calls.list(status="in_progress", owner=context.actor)
        for task in running:
            if task.fence is not None:
                with suppress(LeaseHeld, LeaseLost, NotFound):  # it has ended meanwhile
                    yield context.calls.renew(task.id, context.actor, lease_ms=LEASE_MS, fence=task.fence)


def mine(context: ToolContext) -> Generator[Call[Any], Any, list[Task]]:
    """The tasks that this agent is working on. Their claims are remembered, as after a restart of the process.

    A task of this agent's without a claim is claimed anew, so that it is handed on once the agent is gone.
    """
    running: TaskList = yield context.calls.list(status="in_progress")
    own = [task for task in running if task.owner == context.actor]
    context.mind.claims.update({task.id: task.fence for task in own if task.fence is not None})
    for task in own:
        if task.fence is None and not context.is_nameless:
            yield from take(context, task.id)
    if own:
        return own
    for task in [task for task in running if not task.owner][:_LOOKED_UP]:
        if (yield from _began(context, task)) == context.actor:
            own.append(task)
    return own


def at_work(context: ToolContext) -> Generator[Call[Any], Any, list[Task]]:
    """Return the tasks that this agent works on itself, without those whose open children are the work."""
    own = yield from mine(context)
    found: list[Task] = []
    for task in own:
        told: TaskExplainResult = yield context.calls.explain(task.id)
        if not any(reason.kind == "child" for reason in told.reasons):
            found.append(task)
    return found


def take(context: ToolContext, task: str | None = None) -> Generator[Call[Any], Any, ClaimResult]:
    """Claim a task, by default the next ready one, and remember the claim.

    Raises:
        Problem: The agent has no name of its own.
    """
    if context.is_nameless:
        text = "this server can't tell its clients apart: give agent, a name of your own, with each call"
        raise Problem("agent_required", text)
    also = (context.person,) if context.person else ()
    claim: ClaimResult = yield context.calls.take(context.actor, task, also=also, lease_ms=LEASE_MS, keep=True)
    if claim.task is not None and claim.fence is not None:
        context.mind.claims[claim.task.id] = claim.fence
        notes.begin(context, claim.task)
    return claim


def begin(context: ToolContext, task_id: str) -> Generator[Call[Any], Any, bool]:
    """Claim and start a task. Return True if this agent already had it.

    Raises:
        Problem: Somebody else is working on it.
    """
    task: Task = yield context.calls.get(task_id)
    is_own = task.status == "in_progress" and task.owner == context.actor
    if is_own and (task.fence is not None or context.is_nameless):
        return True
    if task.status not in ("pending", "in_progress"):
        yield context.calls.start(task_id)
    yield from take(context, task_id)
    return is_own


def settle(
    context: ToolContext, task_id: str, status: Status, note: str = ""
) -> Generator[Call[Any], Any, SetStatusResult]:
    """Complete, fail, pause or reopen a task, with the fence of this agent's claim if it has one.

    Raises:
        Problem: Somebody else is working on it, or has done something to it since this agent claimed it.
        NotFound: There is no such task.
    """
    fence = context.mind.claims.get(task_id)
    texts: dict[str, Any] = {
        "result_summary": note or None if status == "completed" else None,
        "fail_reason": note or None if status == "failed" else None,
    }
    try:
        try:
            done: SetStatusResult = yield context.calls.set_status(task_id, status, fence=fence, **texts)
        except LeaseHeld as error:
            if error.owner != context.actor:
                raise
            # It was taken away, and an undo gave it back: by another claim, which is this agent's as well.
            given_back: Task = yield context.calls.get(task_id)
            done = yield context.calls.set_status(task_id, status, fence=given_back.fence, **texts)
    except (LeaseHeld, LeaseLost, NotFound) as error:
        if context.mind.claims.pop(task_id, None) is None or fence is None:
            raise
        told = yield from fate(context, task_id, fence)
        raise lost(told) if told else problem_of(error) from None
    context.mind.claims.pop(task_id, None)
    return done


def _began(context: ToolContext, task: Task) -> Generator[Call[Any], Any, str]:
    key = f"{task.id}@{task.status_changed_at}"
    if key not in context.mind.began:
        tasks: TaskList = yield context.calls.list(limit=1)
        found = yield from changes.find_back(context, tasks.seq, lambda event: _starter(event, task.id))
        context.mind.began[key] = found or ""
    return context.mind.began[key]


def _starter(recorded: Recorded, task: str) -> str | None:
    event = decode_event(recorded.event)
    if isinstance(event, TaskAdded):
        return recorded.actor if event.task.id == task else None
    starts = isinstance(event, StatusChanged) and event.task == task and event.to == "in_progress"
    return recorded.actor if starts else None
