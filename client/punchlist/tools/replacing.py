"""Replaces a list that others work on. Their tasks in progress, reservations, and tasks that wait for a yes stay."""

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
from punchlist.tools.model import Problem, Reply, ToolContext, confirmed
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import FINISHED, is_heading

_TRIES = 5
_TITLE = 80


class Replaced(NamedTuple):
    """What became of a list: as it was, as it is (or the question that comes before), and what stays for others.

    `kept` has a sentence without its full stop for each task that stays for others, by its id.
    """

    old: TaskList
    new: TaskList | Reply
    kept: dict[str, str]


def replace(
    context: ToolContext, wanted: Sequence[NewTask], *, confirm: str | None = None
) -> Generator[Call[Any], Any, Replaced]:
    """Replace the list by these tasks and those of others: in progress, reserved, or waiting for a person's yes.

    A heading, or a task with unfinished children, keeps its status: the work is that of the tasks below it.

    Args:
        confirm: The token of an answered question, or an empty text: the person is asked before unfinished tasks are
            dropped. None: nobody is asked.

    Raises:
        Problem: The list changes faster than it can be replaced.
    """
    titles = {one.title for one in wanted}
    for _ in range(_TRIES):
        old: TaskList = yield context.calls.list()
        whose = yield from claims.of_others(context, old)
        reserved = yield from claims.reserved(context, old)
        others = [task for task in old if task.id in whose or task.id in reserved or task.waits_for == "yes"]
        # Children that this call finishes or removes no longer keep their parent open.
        stay = {task.title for task in others} | {one.title for one in wanted if one.status not in FINISHED}
        held = find_open_parents([task for task in old if task.title in stay])
        fixed = [*others, *(task for task in old if task.id in held or is_heading(task.metadata))]
        theirs = {task.title: task.status for task in fixed}
        new = [NewTask(title=task.title, status=task.status) for task in others if task.title not in titles]
        new += [msgspec.structs.replace(one, status=theirs.get(one.title, one.status)) for one in wanted]
        call = partial(context.calls.replace, new, keep_unfinished=False, expect_version=old.version)
        try:
            listed = (yield call()) if confirm is None else (yield from confirmed(context, call, "", confirm=confirm))
        except VersionConflict:
            continue  # somebody may have taken a task meanwhile
        named = {task.id: f"#{task.id} {clip(one_line(task.title), _TITLE)}" for task in others}
        kept = {id: f"{what} {_why_kept(whose.get(id, ''), reserved.get(id, ''))}" for id, what in named.items()}
        return Replaced(old, listed, kept)
    raise Problem("version_conflict", "others change the list all the time: try again")


def _why_kept(who: str, reserved_for: str) -> str:
    if who:
        return f"stays in progress: {who} works on it"
    return f"stays: it is reserved for {reserved_for}" if reserved_for else "stays: it waits for a person's yes"
