"""Claims made by people and scripts.

Each command opens its own connection, so these claims end when they expire, not when the connection closes.
"""

from __future__ import annotations

from time import time
from typing import Any

from punchlist.base.departures import departure, is_gone
from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import show_error
from punchlist_apps.cli.printing.next_step import advise_rejected_heading
from punchlist_apps.common.terminal.render import format_task

MAX_LEASE_MS = 86_400_000
"""Lease in milliseconds for a task that a person has started. This is the longest lease that the daemon accepts."""

DEFAULT_LEASE_MS = 3_600_000
"""Default lease in milliseconds for `punch queue claim` and `punch next`, which don't renew it."""


def claim_tasks(context: Context, *, lease_ms: int | None = None, wait_ms: int | None = None, **members: Any) -> Any:
    """Claim tasks for this owner and return the result of `task.claim`."""
    # Check the name, because a claim doesn't create lists: with a mistyped name, the claim would just find no tasks.
    if context.args.conversation and not wait_ms:
        context.check_list(context.args.conversation)
    terms = {"owner": context.owner, "lease_ms": lease_ms or DEFAULT_LEASE_MS, "wait_ms": wait_ms, "keep": True}
    return context.change("task.claim", **terms, **members)


def advise_takeover(context: Context) -> str:
    """Return advice to take over a task whose owner has left; empty if no task has such an owner."""
    unfinished = context.read("task.list", status=["in_progress", "pending"])["tasks"]
    now = int(time() * 1000)
    gone = next((task for task in unfinished if is_gone(task)), None)
    if gone is None:
        return ""
    task, owner = safe(str(gone["id"])), safe(str(gone.get("owner", "")))
    return f"#{task} belongs to {owner}, {departure(gone, now)}: punch start {task} takes it"


def show_claim(context: Context, result: Any) -> int:
    """Print the claimed tasks and return the exit code, which is REFUSED if no task was claimed."""
    tasks = result.get("tasks") or [task for task in [result.get("task")] if task]
    if context.args.json:
        context.print_json(result)
    elif not tasks:
        advice = advise_takeover(context) or advise_rejected_heading(context.read("task.explain"))
        show_error(
            "nothing_ready",
            "no task is ready",
            advice or "see all tasks: punch list; see why a task is not ready: punch why ID",
        )
    paths = result.get("paths") or [result.get("path", ()), *((),) * len(tasks)]
    for task, path in () if context.args.json else zip(tasks, paths, strict=False):
        context.print_lines(format_task(task, context.style, path=path))
    return 0 if tasks else REFUSED
