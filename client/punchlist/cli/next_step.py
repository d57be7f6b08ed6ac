"""What to do next on a list, as one line: for `punch` alone. Pure."""

from __future__ import annotations

from punchlist.cli.render import FINISHED
from punchlist.text import clip, safe
from punchlist_schemas.vocabulary import PRIORITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_TITLE = 50


def most_urgent(tasks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The one that a claim would give out: the first of the highest priority."""
    return max(tasks, key=lambda task: PRIORITIES.index(task.get("priority", "normal")))


def next_step(tasks: Sequence[dict[str, Any]], owner: str) -> str:
    """The line for this person: the command to type, and why."""
    if not tasks:
        return "next: punch add TITLE adds the first task; punch help lists the commands"
    mine = [task for task in tasks if task["status"] == "in_progress" and task.get("owner") in (owner, None, "")]
    if mine:
        return f"next: punch done {_named(mine[0])}"
    ready = [task for task in tasks if task["status"] == "pending" and not task.get("open_blockers")]
    if ready := [task for task in ready if not task.get("not_before")]:
        return f"next: punch start {_named(most_urgent(ready))}"
    unfinished = [task for task in tasks if task["status"] not in FINISHED]
    if not unfinished:
        return "next: all tasks are finished; punch add TITLE adds another"
    return (
        f"next: no task is ready; punch why {safe(unfinished[0]['id'])} tells what keeps #{safe(unfinished[0]['id'])}"
    )


def _named(task: dict[str, Any]) -> str:
    return f"{safe(task['id'])}  ({clip(safe(task['title']), _TITLE)})"
