"""The line in the output of `punch` that suggests the next step for a list. The daemon decides which task is next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from punchlist.base.departures import departure, is_gone
from punchlist.base.text import clip, one_line, safe
from punchlist.base.tree import find_open_parents, titles_above, with_path
from punchlist_apps.common.terminal.render import FINISHED, format_nothing_left

_MAX_TITLE = 50


def format_next_step(tasks: Sequence[dict[str, Any]], explained: Mapping[str, Any], owner: str, now: int = 0) -> str:
    """Return the command to type next, and the reason.

    Args:
        tasks: All tasks of the list.
        explained: The result of `task.explain` for the list.
        owner: The person who runs the command; their tasks in progress come first.
        now: The time in milliseconds; 0 to show only times of day.
    """
    if not tasks:
        return "next: punch add TITLE adds the first task; punch help lists the commands"
    unfinished = [task for task in tasks if task["status"] not in FINISHED]
    parents = find_open_parents(tasks, lambda task, name: task.get(name))
    own = (owner, None, "")
    mine = [task for task in unfinished if task["status"] == "in_progress" and task.get("owner") in own]
    mine = [task for task in mine if task["id"] not in parents]  # work on parents continues with their open children
    if mine:
        first = min(mine, key=lambda task: bool(task.get("open_blockers")))
        name = _format_task(first, tasks)
        blockers = ", ".join(f"#{safe(blocker)}" for blocker in first.get("open_blockers", ()))
        return f"next: punch pause {name}, which waits for {blockers}" if blockers else f"next: punch done {name}"
    if explained["ready"]:
        return f"next: punch start {_format_task(explained['next'], tasks)}"
    if gone := next((task for task in tasks if is_gone(task)), None):
        return f"next: punch start {_format_task(gone, tasks)} takes it over ({departure(gone, now)})"
    failed = [task["id"] for task in tasks if task["status"] == "failed"]
    if not unfinished:
        step = (
            format_nothing_left(len(failed), failed[:1])
            if failed
            else "all tasks are finished; punch add TITLE adds another"
        )
        return f"next: {step}"
    first = safe(unfinished[0]["id"])
    otherwise = f"no task is ready; punch why {first} shows why #{first} is not"
    return f"next: {advise_rejected_heading(explained) or otherwise}"


def advise_rejected_heading(explained: Mapping[str, Any]) -> str:
    """Return advice about a rejected heading, which keeps a list unfinished; empty if there isn't one."""
    for reason in explained.get("reasons", ()):
        if reason["kind"] == "heading" and reason.get("fail_reason"):
            task, why = safe(reason["by"]), safe(clip(one_line(reason["fail_reason"]), _MAX_TITLE))
            title = safe(clip(reason["title"], _MAX_TITLE))
            return f"#{task} {title} was rejected: {why}; punch add TITLE --parent {task} adds work below it"
    return ""


def _format_task(task: dict[str, Any], tasks: Sequence[dict[str, Any]]) -> str:
    by_id = {task["id"]: task for task in tasks}
    parents = titles_above(by_id.get(task["id"], task), by_id)
    return f"{safe(task['id'])}  ({safe(with_path(clip(task['title'], _MAX_TITLE), parents))})"
