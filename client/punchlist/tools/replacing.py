"""Replaces a list while other agents work on it.

Tasks that others work on, that are reserved for others, or that wait for a person's approval stay in the list. A task
that is listed again as pending stays paused or failed, because models can't tell these statuses from pending. If the
tool has no statuses, the caller's own task also stays in progress.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

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
    seen: Collection[str] | None = None,
    has_statuses: bool = True,
) -> Generator[Call[Any], Any, Replaced]:
    """Replace the list with these tasks, but keep others' tasks and the tasks that wait for approval.

    A heading, or a task with unfinished children, keeps its status, because only its children are worked on.

    Args:
        confirm: The token of an answered question, or "". The user is asked before unfinished tasks are dropped. With
            None, the user isn't asked.
        seen: Titles of the tasks that the caller knows. Other tasks stay in the list. None if it knows all.
        has_statuses: Whether the model chose the statuses of `tasks`.

    Raises:
        Problem: The list can't be replaced, because it keeps changing.
    """
    titles = {task.title for task in tasks}
    for _ in range(_TRIES):
        old: TaskList = yield context.calls.list()
        workers = yield from claims.find_others_tasks(context, old)
        reserved = yield from claims.find_reserved(context, old)
        others = [task for task in old if task.id in workers or task.id in reserved or task.waits_for == "yes"]
        unseen = [] if seen is None else [task for task in old if task.title not in seen]
        stay = {task.id: task for task in (*others, *unseen) if task.title not in titles}
        listed = _keep_statuses(old, tasks, worker="" if has_statuses else context.actor)
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
    context: ToolContext, todos: Sequence[NewTask], *, seen: Collection[str] | None = None
) -> Generator[Call[Any], Any, tuple[TaskList, TaskList, dict[str, str]]]:
    """Replace the list, and claim the tasks that the caller starts.

    Return the list before, the list with these claims, and the sentences about tasks that stay, by id.
    """
    old, _, kept = yield from replace(context, todos, seen=seen)
    new: TaskList = yield context.calls.list()
    started = {todo.title for todo in todos if todo.status == "in_progress"}
    for task in new:
        if task.title in started and task.status == "in_progress" and not (task.owner or context.is_nameless):
            with suppress(Problem, RequestRefused):  # Others work on this task, and the reply shows that.
                yield from claims.take(context, task.id)
    return old, new, kept


def _keep_statuses(old: TaskList, tasks: Sequence[NewTask], worker: str) -> list[NewTask]:
    """Return the tasks. Those that are pending here but paused, failed or the worker's in the old list stay so.

    Tasks with equal titles are paired in their order, as the daemon does.
    """
    by_title: defaultdict[str, deque[Task]] = defaultdict(deque)
    for task in old:
        by_title[task.title].append(task)
    listed: list[NewTask] = []
    for task in tasks:
        before = by_title[task.title].popleft() if by_title[task.title] else None
        if before is not None and task.status == "pending":
            is_own = worker != "" and before.status == "in_progress" and before.owner == worker
            if is_own or before.status in _KEPT_STATUSES:
                task = msgspec.structs.replace(task, status=before.status)  # noqa: PLW2901
        listed.append(task)
    return listed


def _explain_kept(worker: str, reserved_for: str) -> str:
    if worker:
        return f"stays in progress: {worker} works on it"
    return f"stays: it is reserved for {reserved_for}" if reserved_for else "stays: it waits for a person's yes"
