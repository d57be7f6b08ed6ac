"""Replaces a list while other agents work on it.

Tasks that others work on, that are reserved for others, or that wait for a person's approval stay in the list.
"""

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from punchlist.base.text import clip, one_line
from punchlist.base.tree import find_open_parents
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import VersionConflict
from punchlist.tools import claims
from punchlist.tools.model import Problem, Reply, ToolContext, call_with_consent
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import FINISHED, is_heading

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
    context: ToolContext, tasks: Sequence[NewTask], *, confirm: str | None = None
) -> Generator[Call[Any], Any, Replaced]:
    """Replace the list with these tasks, but keep others' tasks and the tasks that wait for approval.

    A heading, or a task with unfinished children, keeps its status, because only its children are worked on.

    Args:
        confirm: The token of an answered question, or "". The user is asked before unfinished tasks are dropped. With
            None, the user isn't asked.

    Raises:
        Problem: The list can't be replaced, because it keeps changing.
    """
    titles = {task.title for task in tasks}
    for _ in range(_TRIES):
        old: TaskList = yield context.calls.list()
        workers = yield from claims.find_others_tasks(context, old)
        reserved = yield from claims.find_reserved(context, old)
        others = [task for task in old if task.id in workers or task.id in reserved or task.waits_for == "yes"]
        # Children that this call finishes or removes no longer keep their parent open.
        open_titles = {task.title for task in others} | {task.title for task in tasks if task.status not in FINISHED}
        open_parents = find_open_parents([task for task in old if task.title in open_titles])
        fixed = [*others, *(task for task in old if task.id in open_parents or is_heading(task.metadata))]
        statuses = {task.title: task.status for task in fixed}
        new = [NewTask(title=task.title, status=task.status) for task in others if task.title not in titles]
        new += [msgspec.structs.replace(task, status=statuses.get(task.title, task.status)) for task in tasks]
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


def _explain_kept(worker: str, reserved_for: str) -> str:
    if worker:
        return f"stays in progress: {worker} works on it"
    return f"stays: it is reserved for {reserved_for}" if reserved_for else "stays: it waits for a person's yes"
