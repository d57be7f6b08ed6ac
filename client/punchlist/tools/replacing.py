"""Replacing a list that others work on: what they have in progress stays, and the reply says so."""

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from punchlist.calls import Call
from punchlist.cursor import TaskList
from punchlist.errors import VersionConflict
from punchlist.text import clip
from punchlist.tools import claims
from punchlist.tools.model import Problem, ToolContext
from punchlist_schemas.params import NewTask

_TRIES = 5
_TITLE = 80


def replace(desk: ToolContext, wanted: Sequence[NewTask]) -> Generator[Call[Any], Any, tuple[TaskList, list[str]]]:
    """Make the list be these tasks, and those that other agents are working on.

    Returns:
        The list as it was, and a line for each task that stays for another agent.

    Raises:
        Problem: The list changes faster than it can be replaced.
    """
    titles = {one.title for one in wanted}
    for _ in range(_TRIES):
        old: TaskList = yield desk.calls.list()
        whose = yield from claims.of_others(desk, old)
        others = [task for task in old if task.id in whose]
        claimed = {task.title for task in others if task.fence is not None or not task.owner}
        kept = [task for task in others if task.title not in titles or task.title in claimed]
        new = [NewTask(title=task.title, status="in_progress") for task in kept if task.title not in titles]
        new += [msgspec.structs.replace(one, status="in_progress") if one.title in claimed else one for one in wanted]
        try:
            yield desk.calls.replace(new, keep_unfinished=False, expect_version=old.version)
        except VersionConflict:
            continue  # somebody may have taken a task meanwhile
        named = [(f"#{task.id} {clip(task.title, _TITLE)}", whose[task.id]) for task in kept]
        return old, [f"{what} stays in progress: {who} works on it" for what, who in named]
    raise Problem("version_conflict", "others change the list all the time: try again")
