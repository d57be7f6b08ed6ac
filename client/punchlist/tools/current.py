"""The current task of a queue: who works on it and, where an agent has none, why."""

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
from punchlist.tools.phrases import departed, left_alone, name_of, of_reason
from punchlist_schemas.results import TaskExplainResult
from punchlist_schemas.things import Conversation, Counts, Reason, Task, names_of

_REASON = 400
_TRIES = 5


class Current(NamedTuple):
    """The tasks in progress: those that are this agent's to do, and those that others work on."""

    own: list[Task]
    others: list[Task]


def inner(running: Iterable[Task]) -> list[Task]:
    """Return the tasks in progress without those that hold another one of them: those wait for it."""
    tasks = list(running)
    parents = find_open_parents(tasks)
    return [task for task in tasks if task.id not in parents]


def current_tasks(context: ToolContext, info: Conversation) -> Generator[Call[Any], Any, Current]:
    """Return what is in progress. Claim the current task of a serial list if it is free: one session gets it."""
    running: Sequence[Task] = yield context.calls.list(status="in_progress")
    is_serial = info.settings.execution == "serial"
    for _ in range(_TRIES if is_serial and not context.is_nameless else 0):
        free = next((task for task in running if task.fence is None), None)
        if free is None:
            break
        # Another session was first, or it has ended, or nothing can be written now.
        with suppress(Problem, RequestRefused):
            yield from claims.take(context, free.id)
        running = yield context.calls.list(status="in_progress")
    running = inner(running)
    names = names_of(context.actor)
    own = [task for task in running if task.owner in names or (is_serial and task.fence is None)]
    return Current(own, [task for task in running if task not in own])


def left_to_itself(context: ToolContext, counts: Counts) -> Generator[Call[Any], Any, Task | None]:
    """Return the agent's own task to continue, if no task is ready and no other agent works on one."""
    running = [] if counts.ready or not counts.in_progress else (yield from claims.mine(context))
    if not running or len(running) < counts.in_progress:
        return None
    return next(iter((yield from claims.at_work(context))), None)


def why_none(context: ToolContext, info: Conversation, current: Current) -> Generator[Call[Any], Any, str]:
    """Return why this agent has no task to work on; empty if it has one, or all is finished."""
    if current.own:
        return ""
    offers = yield from claims.offers(context)
    why = ""
    if current.others and info.settings.execution == "serial":
        task = current.others[0]
        why = "" if departed(task) else f"Task {task.id} is current, and {name_of(task.owner)} works on it."
    elif info.counts.pending or info.counts.paused:
        told: TaskExplainResult = yield context.calls.explain(owner=context.actor)
        why = _idle(context, info, told)
    return " ".join(one for one in (why, *offers) if one)


def _idle(context: ToolContext, info: Conversation, told: TaskExplainResult) -> str:  # noqa: PLR0911 - one for each reason
    """Return why nothing is in progress although tasks are open, and what to do about it."""
    first: dict[str, Reason] = {reason.kind: reason for reason in reversed(told.reasons)}
    if (stopped := first.get("stopped")) is not None:
        reason = f" ({shorten(one_line(stopped.fail_reason), _REASON)})" if stopped.fail_reason else ""
        return f"The queue has stopped: task {stopped.by} has failed{reason}. Complete or delete it to go on."
    if info.settings.execution != "serial" and told.next is not None:
        return (
            "This list is not serial, since others had put tasks on it: none starts by itself. "
            f"{_resuming(context, told.next.id, 'starts one')}; "
            f"punch set execution=serial -c {context.conversation} makes the list a queue."
        )
    if (paused := first.get("paused")) is not None:
        return (
            f"Nothing is in progress: task {paused.by} is paused; {_resuming(context, paused.by, 'goes on with it')}."
        )
    if told.next is not None:
        return f"Nothing is in progress; {_resuming(context, told.next.id, 'starts the next task')}."
    if (gate := first.get("yes") or first.get("check")) is not None:
        return f"Nothing is in progress: {left_alone(gate.by, of_reason(gate))}."
    if (kept := first.get("reserved")) is not None:
        return f"No task can start: task {kept.by} is reserved for {name_of(kept.owner)}."
    if (heading := first.get("heading")) is not None:
        return (
            f"No task can start: task {heading.by} was rejected ({shorten(one_line(heading.fail_reason), _REASON)}). "
            "Add a task below it, or reopen one below it."
        )
    failed = first.get("failed")
    cause = f": task {failed.by} has failed. Complete or delete it" if failed is not None else " for others"
    return f"No task can start: {info.counts.pending} wait{cause}."


def _resuming(context: ToolContext, task: str, does: str) -> str:
    """Return how to start a task: by the tool, or by a person's command if the tool isn't offered."""
    return f"{context.call_of('resume_task', task) or f'punch start {task}, which a person runs,'} {does}"
