"""Claims of people and scripts: a run of the command line is a connection of its own, so their time alone counts."""

from __future__ import annotations

from time import time
from typing import Any

from punchlist.base.departures import departure, is_gone
from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import show_error
from punchlist_apps.cli.printing.next_step import rejected
from punchlist_apps.common.terminal.render import format_task

STARTED_MS = 86_400_000
"""How long a task that a person has begun stays theirs: the longest time of a claim."""

KEPT_MS = 3_600_000
"""How long a claim lasts by default: nobody renews it."""


def claim(context: Context, *, lease_ms: int | None = None, wait_ms: int | None = None, **members: Any) -> Any:
    """Take tasks for this owner; the result of `task.claim`."""
    if context.args.conversation and not wait_ms:
        context.check_list(context.args.conversation)  # a claim makes no list, so nothing would ever be had
    how = {"owner": context.owner, "lease_ms": lease_ms or KEPT_MS, "wait_ms": wait_ms, "keep": True}
    return context.change("task.claim", **how, **members)


_LOOK = "punch list shows what there is, punch why ID what keeps it"


def offer(context: Context) -> str:
    """Return a line that offers a task whose owner has left; empty without such a task."""
    unfinished = context.ask("task.list", status=["in_progress", "pending"])["tasks"]
    now = int(time() * 1000)
    gone = next((task for task in unfinished if is_gone(task)), None)
    if gone is None:
        return ""
    task, owner = safe(str(gone["id"])), safe(str(gone.get("owner", "")))
    return f"#{task} belongs to {owner}, {departure(gone, now)}: punch start {task} takes it"


def show_claim(context: Context, result: Any) -> int:
    """Print what was claimed; the exit code is REFUSED if there was nothing."""
    tasks = result.get("tasks") or [task for task in [result.get("task")] if task]
    if context.args.json:
        context.json(result)
    elif not tasks:
        show_error(
            "nothing_ready", "no task is ready", offer(context) or rejected(context.ask("task.explain")) or _LOOK
        )
    paths = result.get("paths") or [result.get("path", ()), *((),) * len(tasks)]
    for task, path in () if context.args.json else zip(tasks, paths, strict=False):
        context.lines(format_task(task, context.style, path=path))
    return 0 if tasks else REFUSED
