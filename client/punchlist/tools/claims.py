"""Task ownership for agents: which tasks an agent works on, may claim and may finish.

An agent owns a task if it holds the task's claim. Each call that ends a claim passes its fence, so that an agent that
lost a task can't finish it for the new owner. A task in progress without a claim belongs to its owner and to the actor
who started it. `check_call` enforces this for the calls of all dialects, and `renew_claims` keeps a session's claims
from expiring.
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
from punchlist.errors import LeaseHeld, LeaseLost, NotFound, RequestRefused, VersionConflict
from punchlist.tools import changes, notes, phrases, turns
from punchlist.tools.fates import describe_loss, reject_result
from punchlist.tools.model import Problem, ToolContext
from punchlist.tools.refusals import reject_unanswered, to_problem
from punchlist_schemas.changes import CHANGES, ListApply
from punchlist_schemas.events import Recorded, StatusChanged, TaskAdded, decode_event
from punchlist_schemas.params import (
    AgentList,
    ListClear,
    Mutation,
    TaskClaim,
    TaskDelete,
    TaskEdit,
    TaskSetStatus,
)
from punchlist_schemas.results import ClaimResult, SetStatusResult, TaskExplainResult
from punchlist_schemas.things import FINISHED, Agent, Conversation, Reason, Status, Task, names_of

LEASE_MS = 2 * 3_600_000
"""Time that an agent's claim lasts after the last call of its session, in milliseconds."""

RENEW_S = 900.0
"""Minimum time between two renewals of a session's claims, in seconds."""

_MAX_OFFERS = 3
"""Maximum number of abandoned tasks in a reply."""
_MAX_LOOKUPS = 5
"""Maximum number of tasks without an owner for which the log is searched for the actor who started them."""


def find_others_tasks(context: ToolContext, tasks: Iterable[Task]) -> Generator[Call[Any], Any, dict[str, str]]:
    """Return the tasks in progress that others work on: id -> name of the owner, else of the actor who started it.

    An agent's sub-agents don't count as others.
    """
    others = [task for task in tasks if task.status == "in_progress" and not _is_own(context, task.owner)]
    claimed = {task.id: phrases.format_actor(task.owner) for task in others if task.fence is not None}
    started: dict[str, str] = {}
    for task in others:
        if task.fence is None and not _is_own(context, starter := (yield from _find_starter(context, task))):
            started[task.id] = phrases.format_actor(task.owner or starter) or "somebody"
    if started:
        conversation: Conversation = yield context.calls.info()
        # A serial list starts tasks automatically, for any agent, so only claims count there.
        claimed |= {} if conversation.settings.execution == "serial" else started
    return claimed


def _is_own(context: ToolContext, actor: str) -> bool:
    return belongs_to_agent(actor, context.actor) or belongs_to_person(actor, context.person)


def _may_take(context: ToolContext, owner: str) -> bool:
    """Return whether the agent may start a pending task with this owner: none, the agent, its host or its person."""
    return not owner or owner in names_of(context.actor) or _is_own(context, owner)


_TAKEOVER_TOOLS = {
    "update": "id={} status=in_progress",
    "TaskUpdate": "taskId={} status=in_progress",
    "resume_task": "task_id={}",
}
"""Tools that take over a task by its id -> template of the arguments; `{}` stands for the id."""


def _advise_takeover(context: ToolContext, task: str) -> str:
    for tool, arguments in _TAKEOVER_TOOLS.items():
        if tool in context.names:
            return f"take it with {context.format_call(tool, arguments.format(task))}"
    return f"a person frees it with: punch reopen {task}"


def explain_empty_claim(context: ToolContext) -> Generator[Call[Any], Any, Sequence[Reason]]:
    """Return the reasons why the agent's latest claim got no task."""
    if (turn := context.view.turn) is not None and turn.reasons is not None:
        return turn.reasons
    explained: TaskExplainResult = yield context.calls.explain(owner=context.actor)
    return explained.reasons


def offer_abandoned(context: ToolContext) -> Generator[Call[Any], Any, list[str]]:
    """Return a line for each task whose owner has left, for a reply without a ready task."""
    if (turn := context.view.turn) is not None and turn.reasons is not None:
        tasks: Sequence[Task] = turn.abandoned
    else:
        tasks = yield context.calls.list(status=("in_progress", "pending"))
    abandoned = [(task, gone) for task in tasks if (gone := phrases.describe_departure(task))][:_MAX_OFFERS]
    return [
        f"Task {task.id} belongs to {phrases.format_actor(task.owner)}, whose {gone}; "
        f"{_advise_takeover(context, task.id)}."
        for task, gone in abandoned
    ]


def find_ready(context: ToolContext, tasks: Iterable[Task]) -> Generator[Call[Any], Any, list[str]]:
    """Return which of the tasks just added are ready and not reserved for others."""
    owners = {task.id: task.owner for task in tasks}
    if (turn := context.view.turn) is not None and turn.ready is not None:
        return [id for id in turn.ready if _may_take(context, owners[id])]
    ready: TaskList = yield context.calls.list(ready=True)
    return [task.id for task in ready if task.id in owners and _may_take(context, task.owner)]


def reject_drop(others: Mapping[str, str]) -> Problem:
    """Return the problem for a call that drops tasks that other agents work on.

    Args:
        others: Id of each such task -> name of the agent that works on it.
    """
    names = ", ".join(f"#{task} ({name})" for task, name in others.items())
    return Problem("lease_held", f"other sessions are working on {names}: leave these tasks in the list")


def make_call(context: ToolContext, call: Call[Any]) -> Generator[Call[Any], Any, Any]:
    """Make a tool's call unless it would take over, finish or drop another session's task; see `check_call`.

    The daemon itself makes a change with `free`. Only if it rejects the change, the tasks are read and checked.
    """
    params = call.request.params
    # If there is a turn already, the caller has chosen the preconditions.
    if not isinstance(params, Mutation) or params.turn is not None:
        return (yield call)
    if context.view.has_turns and _is_about_tasks(params):
        try:
            return (yield turns.require(context, call, free=True))
        except LeaseHeld:
            pass
    yield from check_call(context, call)
    return (yield call)


def _is_about_tasks(params: object) -> bool:
    """Return whether `free` is enough to check a call."""
    if isinstance(params, TaskDelete) and params.ask:
        return False
    return bool(_list_affected(params)) or _changes_text(params)


def _changes_text(params: object) -> bool:
    return isinstance(params, TaskEdit) and {params.title, params.description} != {msgspec.UNSET}


def check_call(context: ToolContext, call: Call[Any]) -> Generator[Call[Any], Any, None]:
    """Reject a tool's call that would take over, finish or drop another session's task.

    A task whose owner has left may be claimed by its id. A call with a fence passes, because the daemon checks it.

    Raises:
        Problem: Another session works on the task, the task is reserved for another session, or it waits for a person's
            approval. Tasks of the agent's own sub-agents don't count as another session's.
        NotFound: No such task.
    """
    params = call.request.params
    if isinstance(params, ListClear):
        waiting: TaskList = yield context.calls.list(waits_for="yes", limit=1)
        if waiting:
            raise reject_unanswered(waiting[0])
    affected = _list_affected(params)
    if not affected:
        if isinstance(params, TaskEdit) and _changes_text(params):
            edited: Task = yield context.calls.get(params.task)
            _check_gates(params, [edited])
        return
    if len(affected) == 1:
        tasks: list[Task] = [(yield context.calls.get(affected[0]))]
    else:
        all_tasks: TaskList = yield context.calls.list()
        tasks = [task for task in all_tasks if task.id in affected]
    _check_gates(params, tasks)
    if isinstance(params, TaskDelete) and params.ask:
        return  # The user is asked first.
    _check_restarts(context, params, tasks)
    yield from _check_reservations(context, params, tasks)
    yield from _check_others_tasks(context, params, tasks)
    if isinstance(params, TaskSetStatus) and tasks[0].owner and tasks[0].owner == context.person:
        # The person claimed the task under their own name, not this caller's, so the call needs the claim's fence.
        call.request = Request.of(call.method, msgspec.structs.replace(params, fence=tasks[0].fence))


def _list_affected(params: object) -> tuple[str, ...]:
    """Return the tasks that a call would start, finish, reassign or delete."""
    match params:
        case TaskSetStatus(task=str(task), fence=None) | TaskClaim(task=str(task)):
            return (task,)
        case TaskEdit(task=str(task), owner=str()):
            return (task,)
        case TaskDelete():
            return params.tasks if params.task is None else (params.task,)
        case ListApply():
            return tuple(dict.fromkeys(task for call in _expand_changes(params) for task in _list_affected(call)))
        case _:
            return ()


def _expand_changes(params: ListApply) -> Generator[object]:
    """Return the calls that the changes of a `list.apply` correspond to."""
    for change in params.changes:
        members = msgspec.structs.asdict(change)
        members.pop("ref", None)
        kind: Any = CHANGES[type(change)]
        yield kind(conversation=params.conversation, **members)


def _check_gates(params: object, tasks: Iterable[Task]) -> None:
    # The work on a task that waits for a person's approval is finished. An agent that started the task again would do
    # that work twice.
    for task in tasks:
        if task.waits_for == "yes" and not _is_repetition(params, task):
            raise reject_unanswered(task)


def _check_restarts(context: ToolContext, params: object, tasks: Iterable[Task]) -> None:
    if not isinstance(params, TaskSetStatus) or params.status != "in_progress":
        return
    for task in tasks:
        if task.status == "completed" and task.owner and not _is_own(context, task.owner):
            owner = phrases.format_actor(task.owner)
            text = f"task {task.id} was completed by {owner}: set it to pending first to have it done again"
            raise Problem("illegal_transition", text)


def _check_reservations(context: ToolContext, params: object, tasks: Iterable[Task]) -> Generator[Call[Any], Any, None]:
    by_id = {task.id: task for task in tasks}
    for call in _expand_changes(params) if isinstance(params, ListApply) else (params,):
        is_work = _is_work(call)
        # Claude Code assigns tasks to teammates that only its own session knows, and starts and deletes these tasks
        # for them. Owners that the daemon doesn't know therefore don't block these calls.
        allows_unknown_owner = isinstance(call, TaskDelete) or getattr(call, "status", "") == "in_progress"
        if not (is_work or allows_unknown_owner):
            continue
        for task in [by_id[id] for id in _list_affected(call) if id in by_id]:
            is_abandoned = isinstance(call, TaskClaim) and phrases.describe_departure(task) != ""
            if task.status != "pending" or is_abandoned or _may_take(context, task.owner):
                continue
            if not allows_unknown_owner or task.owner in (yield from _find_known(context, (task.owner,))):
                advice = "take another one" if is_work else "leave it to them"
                text = f"task {task.id} is reserved for {phrases.format_actor(task.owner)}: {advice}"
                raise Problem("lease_held", f"{text}; a person frees it with: punch assign {task.id} --nobody")


def find_reserved(context: ToolContext, tasks: Iterable[Task]) -> Generator[Call[Any], Any, dict[str, str]]:
    """Return the pending tasks that are reserved for other known actors: id -> name."""
    pending = [task for task in tasks if task.status == "pending" and not _may_take(context, task.owner)]
    known = yield from _find_known(context, {task.owner for task in pending})
    return {task.id: phrases.format_actor(task.owner) for task in pending if task.owner in known}


def _find_known(context: ToolContext, owners: Collection[str]) -> Generator[Call[Any], Any, set[str]]:
    """Return the owners that are known agents or have changed this list."""
    unknown = set(owners)

    def find(recorded: Recorded) -> bool | None:
        unknown.difference_update(names_of(recorded.actor))
        return None if unknown else True

    if not unknown:
        return unknown
    with suppress(RequestRefused):  # The daemon may be older than agent.list, and the log may be unreadable.
        agents: Sequence[Agent] = yield Call("agent.list", AgentList(), attrgetter("agents"))
        unknown.difference_update(*(names_of(agent.name) for agent in agents))
        if unknown:
            tasks: TaskList = yield context.calls.list(limit=1)
            yield from changes.search_back(context, tasks.seq, find)
    return set(owners) - unknown


def _check_others_tasks(context: ToolContext, params: object, tasks: list[Task]) -> Generator[Call[Any], Any, None]:
    others = yield from find_others_tasks(context, tasks)
    for task in tasks:
        if (name := others.get(task.id)) is None:
            continue
        if (gone := phrases.describe_departure(task)) and isinstance(params, TaskClaim):
            continue
        if gone:
            text = f"task {task.id} belongs to {name}, whose {gone}: {_advise_takeover(context, task.id)}"
            raise Problem("lease_held", text)
        if not task.owner:
            text = f"{name} has begun task {task.id} without an owner, so it is theirs to finish: take another one"
            raise Problem("lease_held", text)
        info: Conversation = yield context.calls.info()
        has_choice = _is_work(params) and info.settings.execution != "serial"
        advice = "take another one" if has_choice else "leave it to them"
        # Claims expire. A task in progress without a claim can only be freed by a person.
        if task.fence is None or not _is_work(params):
            advice += f"; a person frees it with: punch reopen {task.id}"
        raise Problem("lease_held", f"task {task.id} is being worked on by {name}: {advice}")


def _is_repetition(params: object, task: Task) -> bool:
    """Return whether a call repeats the completion of a task, with the same result or without one."""
    if not isinstance(params, TaskSetStatus) or params.status != "completed":
        return False
    return params.result_summary in (None, task.result_summary)


def _is_work(params: object) -> bool:
    """Return whether a call starts or finishes a task."""
    sets_status = isinstance(params, TaskSetStatus) and params.status in ("in_progress", *FINISHED)
    return sets_status or isinstance(params, TaskClaim)


def renew_claims(context: ToolContext) -> Generator[Call[Any], Any, None]:
    """Renew the session's claims on this list, at most once every `RENEW_S`. Runs before each tool call."""
    now = time.monotonic()
    if context.is_nameless or (context.state.renewed_at is not None and now - context.state.renewed_at < RENEW_S):
        return
    context.state.renewed_at = now
    with suppress(RequestRefused):  # The tool's own calls report the error.
        running: TaskList = yield context.calls.list(status="in_progress", owner=context.actor)
        for task in running:
            if task.fence is not None:
                with suppress(LeaseHeld, LeaseLost, NotFound):  # The claim has ended in the meantime.
                    yield context.calls.renew(task.id, context.actor, lease_ms=LEASE_MS, fence=task.fence)


def find_own_tasks(context: ToolContext) -> Generator[Call[Any], Any, list[Task]]:
    """Return the tasks that this agent works on, and record their claims, which are lost when the process restarts.

    If one of them has no claim, claim it, so that others can take it over once the agent has left.
    """
    running: TaskList = yield context.calls.list(status="in_progress")
    own = [task for task in running if task.owner == context.actor]
    context.state.claims.update({task.id: task.fence for task in own if task.fence is not None})
    for task in own:
        if task.fence is None and not context.is_nameless:
            yield from take(context, task.id)
    if own:
        return own
    for task in [task for task in running if not task.owner][:_MAX_LOOKUPS]:
        if (yield from _find_starter(context, task)) == context.actor:
            own.append(task)
    return own


def find_current_tasks(context: ToolContext) -> Generator[Call[Any], Any, list[Task]]:
    """Return the tasks that this agent works on, except those that have open children."""
    own = yield from find_own_tasks(context)
    if (turn := context.view.turn) is not None and turn.running is not None:
        return [task for task in own if task.id not in turn.parents]
    current: list[Task] = []
    for task in own:
        explained: TaskExplainResult = yield context.calls.explain(task.id)
        # The other reasons explain the blockers of this task.
        if not any(reason.kind == "child" and reason.of == task.id for reason in explained.reasons):
            current.append(task)
    return current


def take(context: ToolContext, task: str | None = None) -> Generator[Call[Any], Any, ClaimResult]:
    """Claim a task, by default the next ready one, and record the claim.

    Raises:
        Problem: The agent shares its name with others.
    """
    if context.is_nameless:
        text = "this server can't tell its clients apart: give agent, a name of your own, with each call"
        raise Problem("agent_required", text)
    return _record_claim(context, (yield _build_claim(context, task)))


def _build_claim(context: ToolContext, task: str | None = None) -> Call[ClaimResult]:
    also = (context.person,) if context.person else ()
    return context.calls.take(context.actor, task, also=also, lease_ms=LEASE_MS, keep=True)


def _record_claim(context: ToolContext, claim: ClaimResult) -> ClaimResult:
    if claim.task is not None and claim.fence is not None:
        context.state.claims[claim.task.id] = claim.fence
        notes.start(context, claim.task)
    return claim


def take_next_known(context: ToolContext) -> Generator[Call[Any], Any, ClaimResult | None]:
    """Claim the next task in one call, if the agent had none in progress at its last call. Return None otherwise."""
    if not context.view.has_turns or context.state.own != () or context.is_nameless:
        return None
    call = _build_claim(context)
    try:
        return _record_claim(context, (yield turns.require(context, call, own=())))
    except VersionConflict:
        return None


def take_free(context: ToolContext, task: str) -> Generator[Call[Any], Any, ClaimResult | None]:
    """Claim a pending task in one call. Return None if it isn't free."""
    if not context.view.has_turns or context.is_nameless:
        return None
    call = _build_claim(context, task)
    try:
        return _record_claim(context, (yield turns.require(context, call, free=True)))
    except LeaseHeld:
        return None


def start(context: ToolContext, task: Task) -> Generator[Call[Any], Any, bool]:
    """Claim and start a task. Return whether this agent already had it.

    Raises:
        Problem: Another session works on the task.
    """
    is_own = task.status == "in_progress" and task.owner == context.actor
    if is_own and (task.fence is not None or context.is_nameless):
        return True
    if task.status not in ("pending", "in_progress"):
        yield context.calls.start(task.id)
    yield from take(context, task.id)
    return is_own


def settle_known(
    context: ToolContext, task: str, status: Status, note: str
) -> Generator[Call[Any], Any, SetStatusResult | None]:
    """Complete, fail, pause or reopen a task in one call. Return None if that needs `settle` and its checks.

    Args:
        task: The task; "" for the one that the agent worked on at its last call.
    """
    state, own = context.state, None
    if not task and state.own is not None and len(state.own) == 1 and state.own[0] in state.claims:
        (task,), own = state.own, state.own
    if not context.view.has_turns or not task:
        return None
    fence = state.claims.get(task)
    call = _build_status_change(context, task, status, note, fence)
    try:
        done: SetStatusResult = yield turns.require(context, call, own=own, free=fence is None)
    except (LeaseHeld, LeaseLost, NotFound, VersionConflict):
        return None
    state.claims.pop(task, None)
    return done


def _build_status_change(
    context: ToolContext, task: str, status: Status, note: str, fence: int | None
) -> Call[SetStatusResult]:
    texts: dict[str, Any] = {
        "result_summary": note or None if status == "completed" else None,
        "fail_reason": note or None if status == "failed" else None,
    }
    return context.calls.set_status(task, status, fence=fence, **texts)


def settle(
    context: ToolContext, task_id: str, status: Status, note: str = ""
) -> Generator[Call[Any], Any, SetStatusResult]:
    """Complete, fail, pause or reopen a task, with the fence of this agent's claim if it has one.

    Raises:
        Problem: Another session works on the task, or has changed it since this agent claimed it.
        NotFound: No such task.
    """
    fence = context.state.claims.get(task_id)
    try:
        try:
            done: SetStatusResult = yield _build_status_change(context, task_id, status, note, fence)
        except LeaseHeld as error:
            if error.owner != context.actor:
                raise
            # Another agent had taken the task, and an undo gave it back to this agent with a new claim.
            restored: Task = yield context.calls.get(task_id)
            done = yield _build_status_change(context, task_id, status, note, restored.fence)
    except (LeaseHeld, LeaseLost, NotFound) as error:
        if context.state.claims.pop(task_id, None) is None or fence is None:
            raise
        loss = yield from describe_loss(context, task_id, fence)
        raise reject_result(loss) if loss else to_problem(error) from None
    context.state.claims.pop(task_id, None)
    return done


def _find_starter(context: ToolContext, task: Task) -> Generator[Call[Any], Any, str]:
    key = f"{task.id}@{task.status_changed_at}"
    if key not in context.state.starters:
        tasks: TaskList = yield context.calls.list(limit=1)
        starter = yield from changes.search_back(context, tasks.seq, lambda event: _match_start(event, task.id))
        context.state.starters[key] = starter or ""
    return context.state.starters[key]


def _match_start(recorded: Recorded, task: str) -> str | None:
    event = decode_event(recorded.event)
    if isinstance(event, TaskAdded):
        return recorded.actor if event.task.id == task else None
    starts = isinstance(event, StatusChanged) and event.task == task and event.to == "in_progress"
    return recorded.actor if starts else None
