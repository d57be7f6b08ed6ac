"""What to do next on a list, as one line: for `punch` alone. Which task is next is the daemon's word. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from punchlist.base.departures import departure, is_gone
from punchlist.base.text import clip, one_line, safe
from punchlist.base.tree import find_open_parents, titles_above, with_path
from punchlist_apps.common.terminal.render import FINISHED, format_nothing_left

_TITLE = 50


def next_step(tasks: Sequence[dict[str, Any]], explained: Mapping[str, Any], owner: str, now: int = 0) -> str:
    """The line for this person: the command to type, and why.

    Args:
        tasks: All tasks of the list.
        explained: The answer of `task.explain` for the list.
        owner: Whose tasks in progress come first.
        now: In milliseconds; 0 for times of day alone.
    """
    if not tasks:
        return "next: punch add TITLE adds the first task; punch help lists the commands"
    unfinished = [task for task in tasks if task["status"] not in FINISHED]
    parents = find_open_parents(tasks, lambda task, name: task.get(name))
    own = (owner, None, "")
    mine = [task for task in unfinished if task["status"] == "in_progress" and task.get("owner") in own]
    mine = [task for task in mine if task["id"] not in parents]  # what holds open tasks goes on with those
    if mine:
        first = min(mine, key=lambda task: bool(task.get("open_blockers")))
        waits = ", ".join(f"#{safe(one)}" for one in first.get("open_blockers", ()))
        step = f"pause {_named(first, tasks)}, which waits for {waits}" if waits else f"done {_named(first, tasks)}"
        return f"next: punch {step}"
    if explained["ready"]:
        return f"next: punch start {_named(explained['next'], tasks)}"
    if gone := next((task for task in tasks if is_gone(task)), None):
        return f"next: punch start {_named(gone, tasks)} takes it over ({departure(gone, now)})"
    failed = [task["id"] for task in tasks if task["status"] == "failed"]
    if not unfinished:
        finished = "all tasks are finished; punch add TITLE adds another"
        return f"next: {format_nothing_left(len(failed), failed[:1]) if failed else finished}"
    first = safe(unfinished[0]["id"])
    return f"next: {rejected(explained) or f'no task is ready; punch why {first} tells what keeps #{first}'}"


def rejected(explained: Mapping[str, Any]) -> str:
    """Return advice about a rejected heading, which keeps a list unfinished; empty without one."""
    for reason in explained.get("reasons", ()):
        if reason["kind"] == "heading" and reason.get("fail_reason"):
            task, why = safe(reason["by"]), safe(clip(one_line(reason["fail_reason"]), _TITLE))
            title = safe(clip(reason["title"], _TITLE))
            return f"#{task} {title} was rejected: {why}; punch add TITLE --parent {task} adds work below it"
    return ""


def _named(task: dict[str, Any], tasks: Sequence[dict[str, Any]]) -> str:
    by_id = {one["id"]: one for one in tasks}
    above = titles_above(by_id.get(task["id"], task), by_id)
    return f"{safe(task['id'])}  ({safe(with_path(clip(task['title'], _TITLE), above))})"
