"""Requests with each change what the agent needs to know next, so that most tools make one or two calls.

`follow` runs the steps of a tool call. It requests a turn with each change and with the first list that is read, and
answers later reads from the newest turn. The steps are the same with a daemon that has no turns, where each read is a
call.
"""

from collections.abc import Generator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from punchlist.calls.call import Call
from punchlist.connection.core import Request, hold_key, release_key
from punchlist.errors import LeaseHeld, LeaseLost, PunchlistError, RequestRefused, VersionConflict
from punchlist.tools import notes
from punchlist.tools.model import Problem, Steps, ToolContext
from punchlist.tools.snapshot import Snapshot, answer
from punchlist_schemas.params import EventWait, Mutation, TaskClaim, TaskList, TaskRenew, TurnQuery
from punchlist_schemas.results import ClaimResult, SetStatusResult, TaskListResult, Written
from punchlist_schemas.things import Task

R = TypeVar("R")


def follow(context: ToolContext, steps: Steps) -> Steps:
    """Run the steps of a tool call with as few calls as possible."""
    if not context.view.has_turns:
        return (yield from steps)
    try:
        call = next(steps)
        while True:
            try:
                result: Any = yield from _make(context, call)
            except (Problem, PunchlistError) as error:
                context.view.snapshot = None  # The list differs from what the agent knows.
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as stop:
        return stop.value
    finally:
        context.view.snapshot = None


def require(context: ToolContext, call: Call[R], *, own: tuple[str, ...] | None = None, free: bool = False) -> Call[R]:
    """Return a change with the preconditions that its tasks are free, or that the agent's current tasks are these.

    Only the daemon checks them, so it must have turns.
    """
    query = TurnQuery(agent=context.actor, own=own, free=free)
    params: Any = call.request.params
    return Call(call.method, msgspec.structs.replace(params, turn=query), call.pick)


def collect_notes(context: ToolContext) -> Generator[Call[Any], Any, None]:
    """Collect the new notes for the reply, if none of the tool's calls has returned a turn."""
    if context.view.has_turns and not context.view.is_current and notes.are_due(context):
        with suppress(RequestRefused):  # The tool's own calls have reported the error.
            yield from _look(context)


def _make(context: ToolContext, call: Call[Any]) -> Generator[Call[Any], Any, Any]:
    """Return the result of a call, from the newest turn if possible, otherwise from the daemon."""
    view, params = context.view, call.request.params
    if isinstance(params, Mutation):
        return (yield from _request_turn(context, call, params.turn))
    if isinstance(params, EventWait):
        view.snapshot = None
    elif view.snapshot is None:
        if isinstance(params, TaskList) and params.since is None and params.at_version is None:
            return (yield from _request_turn(context, call))
        if not view.is_current and notes.are_due(context):
            yield from _look(context)
    if view.snapshot is not None and (result := answer(view.snapshot, params)) is not None:
        return call.pick(result)
    return (yield call)


def _look(context: ToolContext) -> Generator[Call[Any], Any, None]:
    yield from _request_turn(context, context.calls.list(limit=1))


def _request_turn(
    context: ToolContext, call: Call[Any], query: TurnQuery | None = None
) -> Generator[Call[Any], Any, Any]:
    """Make a call with a turn, record the turn, and return the call's result.

    A change that lost a race releases its key, because the caller tries the same change in another way.
    """
    params: Any = call.request.params
    since = context.state.seen
    if since is None and context.view.last is not None and isinstance(params, TaskRenew):
        # The first tool call of a process renews the agent's claims before it looks up its position.
        since = context.view.last[0] or None
    query = msgspec.structs.replace(query or TurnQuery(agent=context.actor), since=since, epoch=context.log or None)
    call.request = Request.of(call.method, msgspec.structs.replace(params, turn=query))
    pick, results = call.pick, list[Any]()

    def keep_and_pick(result: Any) -> Any:
        results.append(result)
        return pick(result)

    call.pick = keep_and_pick
    key = params.key if isinstance(params, Mutation) else None
    hold_key(call.method, key)
    try:
        picked = yield call
    except (LeaseHeld, LeaseLost, VersionConflict):
        release_key(call.method, key)
        raise
    yield from _record(context, results[-1], query.since, is_claim=isinstance(params, TaskClaim))
    return picked


def _record(
    context: ToolContext, result: Written | TaskListResult, since: int | None, *, is_claim: bool
) -> Generator[Call[Any], Any, None]:
    """Make the turn in a result the snapshot of the list, and collect the notes in the first one."""
    view, state, turn = context.view, context.state, result.turn
    view.snapshot = None
    if turn is None:  # The response to a repeated call may be rebuilt from the log.
        return
    view.snapshot = Snapshot(turn, since, result.version, result.seq, getattr(result, "damaged", None))
    own = [task.id for task in turn.running or () if task.owner in ("", context.actor) and task.id not in turn.parents]
    view.last = turn.last or view.last
    state.own = None if turn.running is None else tuple(own)
    if view.is_current:
        return
    view.is_current = True
    if not notes.are_due(context):
        return
    running = turn.running if turn.running is not None else (yield context.calls.list(status="in_progress"))
    changed = _list_tasks(result)
    claimed = {task.id for task in changed} if is_claim else set[str]()
    tasks = {task.id: task for task in (*changed, *running) if task.id not in claimed}
    yield from notes.collect(context, list(tasks.values()), result.seq)


def _list_tasks(result: Written | TaskListResult) -> tuple[Task, ...]:
    """Return the tasks that a claim or a status change has changed."""
    if isinstance(result, ClaimResult | SetStatusResult):
        return () if result.task is None else (result.task,)
    return ()
