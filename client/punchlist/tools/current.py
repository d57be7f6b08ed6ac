"""Finds the current task of a queue, or explains why an agent has none."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from punchlist.base.text import one_line
from punchlist.base.tree import find_open_parents
from punchlist.calls.call import Call
from punchlist.errors import RequestRefused
from punchlist.tools import claims
from punchlist.tools.budget import shorten
from punchlist.tools.model import Problem, ToolContext
from punchlist.tools.phrases import advise_leaving, describe_departure, format_actor, name_reason_gate
from punchlist_schemas.results import TaskExplainResult
from punchlist_schemas.things import Conversation, Counts, Reason, Task, names_of

_MAX_REASON = 400
_TRIES = 5


class Current(NamedTuple):
    """The tasks in progress of this agent and of others."""

    own: list[Task]
    others: list[Task]


def drop_parents(running: Iterable[Task]) -> list[Task]:
    """Return the tasks that have no children among these tasks, because a parent waits for its children."""
    tasks = list(running)
    parents = find_open_parents(tasks)
    return [task for task in tasks if task.id not in parents]


def find_current(context: ToolContext, info: Conversation) -> Generator[Call[Any], Any, Current]:
    """Return the tasks in progress. Claims the current task of a serial list if it has no claim."""
    running: Sequence[Task] = yield context.calls.list(status="in_progress")
    is_serial = info.settings.execution == "serial"
    for _ in range(_TRIES if is_serial and not context.is_nameless else 0):
        free = next((task for task in running if task.fence is None), None)
        if free is None:
            break
        # Another session may claim the task first, the task may have ended, or the list may be temporarily read-only.
        with suppress(Problem, RequestRefused):
            yield from claims.take(context, free.id)
        running = yield context.calls.list(status="in_progress")
    running = drop_parents(running)
    names = names_of(context.actor)
    own = [task for task in running if task.owner in names or (is_serial and task.fence is None)]
    return Current(own, [task for task in running if task not in own])


def find_resumable(context: ToolContext, counts: Counts) -> Generator[Call[Any], Any, Task | None]:
    """Return the task that the agent should continue, if no task is ready and no other agent works on one."""
    running = [] if counts.ready or not counts.in_progress else (yield from claims.find_own_tasks(context))
    if not running or len(running) < counts.in_progress:
        return None
    return next(iter((yield from claims.find_current_tasks(context))), None)


def explain_no_task(context: ToolContext, info: Conversation, current: Current) -> Generator[Call[Any], Any, str]:
    """Return why this agent has no task to work on; "" if it has one, or all tasks are finished."""
    if current.own:
        return ""
    offers = yield from claims.offer_abandoned(context)
    reason = ""
    if current.others and info.settings.execution == "serial":
        task = current.others[0]
        reason = (
            ""
            if describe_departure(task)
            else f"Task {task.id} is current, and {format_actor(task.owner)} works on it."
        )
    elif info.counts.pending or info.counts.paused:
        explained: TaskExplainResult = yield context.calls.explain(owner=context.actor)
        reason = _explain_idle_list(context, info, explained)
    return " ".join(sentence for sentence in (reason, *offers) if sentence)


def _explain_idle_list(  # noqa: PLR0911 - one for each reason
    context: ToolContext, info: Conversation, explained: TaskExplainResult
) -> str:
    """Return why no task is in progress although some are open, and what to do about it."""
    first: dict[str, Reason] = {reason.kind: reason for reason in reversed(explained.reasons)}
    if (stopped := first.get("stopped")) is not None:
        reason = f" ({shorten(one_line(stopped.fail_reason), _MAX_REASON)})" if stopped.fail_reason else ""
        return f"The queue has stopped: task {stopped.by} has failed{reason}. Complete or delete it to go on."
    if info.settings.execution != "serial" and explained.next is not None:
        return (
            "This list is not serial, because it already had tasks: none starts automatically. "
            f"{_advise_start(context, explained.next.id, 'starts one')}; "
            f"punch set execution=serial -c {context.conversation} makes the list a queue."
        )
    if (paused := first.get("paused")) is not None:
        advice = _advise_start(context, paused.by, "goes on with it")
        return f"Nothing is in progress: task {paused.by} is paused; {advice}."
    if explained.next is not None:
        return f"Nothing is in progress; {_advise_start(context, explained.next.id, 'starts the next task')}."
    if (gate := first.get("yes") or first.get("check")) is not None:
        return f"Nothing is in progress: {advise_leaving(gate.by, name_reason_gate(gate))}."
    if (reserved := first.get("reserved")) is not None:
        return f"No task can start: task {reserved.by} is reserved for {format_actor(reserved.owner)}."
    if (heading := first.get("heading")) is not None:
        reason = shorten(one_line(heading.fail_reason), _MAX_REASON)
        return (
            f"No task can start: task {heading.by} was rejected ({reason}). "
            "Add a task below it, or reopen one below it."
        )
    failed = first.get("failed")
    cause = f": task {failed.by} has failed. Complete or delete it" if failed is not None else " for others"
    return f"No task can start: {info.counts.pending} wait{cause}."


def _advise_start(context: ToolContext, task: str, effect: str) -> str:
    """Return how to start a task: with the tool, or with a person's command if the tool isn't offered."""
    return f"{context.format_call('resume_task', task) or f'punch start {task}, which a person runs,'} {effect}"
