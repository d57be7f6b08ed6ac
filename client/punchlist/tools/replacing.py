"""Replaces a list while other agents work on it.

Tasks that others work on, that are reserved for others, or that wait for a person's approval stay in the list. A task
that is listed again as pending stays paused or failed, because models can't tell these statuses from pending. A task
that is listed with the status that the caller has seen keeps the status that others have set since. If the tool has no
statuses, the caller's own task also stays in progress.
"""

from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from punchlist.base.text import clip, one_line
from punchlist.base.tree import find_open_parents
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import RequestRefused, VersionConflict
from punchlist.tools import claims
from punchlist.tools.model import Problem, Reply, ToolContext, call_with_consent
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import FINISHED, Task, is_heading

T = TypeVar("T", Task, NewTask)
_KEPT_STATUSES = ("paused", "failed")
_TRIES = 5
_MAX_TITLE = 80


class Replaced(NamedTuple):
    """The result of replacing a list.

    Attributes:
        old: The list before the replacement.
        new: The list after the replacement, or the question to the user.
        kept: Ids of the tasks that stay -> sentences about them, without a period.
    """

    old: TaskList
    new: TaskList | Reply
    kept: dict[str, str]


def replace(
    context: ToolContext,
    tasks: Sequence[NewTask],
    *,
    confirm: str | None = None,
    seen: Sequence[NewTask] | None = None,
    has_statuses: bool = True,
) -> Generator[Call[Any], Any, Replaced]:
    """Replace the list with these tasks, but keep others' tasks and the tasks that wait for approval.

    A heading, or a task with unfinished children, keeps its status, because only its children are worked on.

    Args:
        confirm: The token of an answered question, or "". The user is asked before unfinished tasks are dropped. With
            None, the user isn't asked.
        seen: The tasks that the caller knows, with their statuses then. Other tasks stay in the list. None if it knows
            all.
        has_statuses: Whether the model chose the statuses of `tasks`.

    Raises:
        Problem: The list can't be replaced, because it keeps changing.
    """
    titles = {task.title for task in tasks}
    seen_titles = {task.title for task in seen or ()}
    for _ in range(_TRIES):
        old: TaskList = yield context.calls.list()
        workers = yield from claims.find_others_tasks(context, old)
        reserved = yield from claims.find_reserved(context, old)
        others = [task for task in old if task.id in workers or task.id in reserved or task.waits_for == "yes"]
        unseen = [] if seen is None else [task for task in old if task.title not in seen_titles]
        stay = {task.id: task for task in (*others, *unseen) if task.title not in titles}
        listed = _keep_statuses(old, tasks, seen or (), worker="" if has_statuses else context.actor)
        # Children that this call finishes or removes no longer keep their parent open.
        open_titles = {task.title for task in (*others, *unseen)}
        open_titles |= {task.title for task in listed if task.status not in FINISHED}
        open_parents = find_open_parents([task for task in old if task.title in open_titles])
        fixed = [*others, *(task for task in old if task.id in open_parents or is_heading(task.metadata))]
        statuses = {task.title: task.status for task in fixed}
        new = [NewTask(title=task.title, status=task.status) for task in old if task.id in stay]
        new += [msgspec.structs.replace(task, status=statuses.get(task.title, task.status)) for task in listed]
        call = partial(context.calls.replace, new, keep_unfinished=False, expect_version=old.version)
        try:
            if confirm is None:
                result = yield call()
            else:
                result = yield from call_with_consent(context, call, "", confirm=confirm)
        except VersionConflict:
            continue  # Another session may have claimed a task, so read the list again.
        names = {task.id: f"#{task.id} {clip(one_line(task.title), _MAX_TITLE)}" for task in others}
        kept = {id: f"{name} {_explain_kept(workers.get(id, ''), reserved.get(id, ''))}" for id, name in names.items()}
        return Replaced(old, result, kept)
    raise Problem("version_conflict", "the list keeps changing: try again")


def replace_and_claim(
    context: ToolContext, todos: Sequence[NewTask], *, seen: Sequence[NewTask] | None = None
) -> Generator[Call[Any], Any, tuple[TaskList, TaskList, dict[str, str]]]:
    """Replace the list, and claim the tasks that the caller starts.

    Return the list before, the list after the replacement, and the sentences about tasks that stay, by id.
    """
    old, _, kept = yield from replace(context, todos, seen=seen)
    new: TaskList = yield context.calls.list()
    started = {todo.title for todo in todos if todo.status == "in_progress"}
    for task in new:
        if task.title in started and task.status == "in_progress" and not (task.owner or context.is_nameless):
            with suppress(Problem, RequestRefused):  # Others work on this task, and the reply shows that.
                yield from claims.take(context, task.id)
    return old, new, kept


def _keep_statuses(old: TaskList, tasks: Sequence[NewTask], seen: Sequence[NewTask], worker: str) -> list[NewTask]:
    """Return the tasks, with the old status of those whose status the caller doesn't change.

    These have the status that the caller has seen, or are pending here but paused, failed or the worker's in the old
    list. Tasks with equal titles are paired in their order, as the daemon does.
    """
    olds, seens = _group_by_title(old), _group_by_title(seen)
    listed: list[NewTask] = []
    for task in tasks:
        before, known = (group[task.title].popleft() if group[task.title] else None for group in (olds, seens))
        if before is not None:
            is_own = worker != "" and before.status == "in_progress" and before.owner == worker
            is_kept = task.status == "pending" and (is_own or before.status in _KEPT_STATUSES)
            if is_kept or (known is not None and known.status == task.status):
                task = msgspec.structs.replace(task, status=before.status)  # noqa: PLW2901
        listed.append(task)
    return listed


def _group_by_title(tasks: Iterable[T]) -> defaultdict[str, deque[T]]:
    groups: defaultdict[str, deque[T]] = defaultdict(deque)
    for task in tasks:
        groups[task.title].append(task)
    return groups


def _explain_kept(worker: str, reserved_for: str) -> str:
    if worker:
        return f"stays in progress: {worker} works on it"
    return f"stays: it is reserved for {reserved_for}" if reserved_for else "stays: it waits for a person's yes"
