"""`punch next`: show or claim the next task, after completing the current one if requested."""

from __future__ import annotations

from typing import Any

from punchlist_apps.cli.calling.claims import claim_tasks, show_claim
from punchlist_apps.cli.calling.context import Context, parse_task_id
from punchlist_apps.cli.parsing.arguments import Usage, flag, owner_option, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common.terminal.argument_types import parse_duration, parse_lease
from punchlist_apps.common.terminal.render import format_nothing_left, format_task

COMMANDS = {
    "next": Usage(
        (
            flag("-t", "--take", text="claim it, so that no one else gets it"),
            value(
                "--done",
                text="first complete your task in progress; name it if you have several",
                metavar="ID",
                nargs="?",
                const=True,
            ),
            value("-r", "--result", text="first complete your task, with this result"),
            owner_option("claim it for this owner (default: PUNCHLIST_OWNER, else the actor)"),
            value(
                "--lease", text="keep the claim this long, at most 24h (default: 1h)", metavar="TIME", type=parse_lease
            ),
            value("--wait", text="wait for a task this long, such as 30s or 10m", metavar="TIME", type=parse_duration),
        ),
        ("punch next", "punch next --take", 'punch next --owner ann --result "in docs/copy.md"'),
    ),
}

_UNFINISHED = ("pending", "in_progress", "paused")


def run_next(context: Context) -> int:
    """Show this owner's tasks in progress, or the next task.

    On request, complete the task in progress and claim the next.
    """
    args = context.args
    completes = args.done is not None or bool(args.result)
    takes = args.take or completes
    if not takes and (args.wait is not None or args.lease is not None):
        raise UsageError("--wait and --lease need --take; add it")
    mine = context.read("task.list", owner=context.owner, status="in_progress")["tasks"]
    if args.done in (True, None):  # no task named
        mine = [task for task in mine if not _has_open_children(context, task["id"])]
    if completes:
        if (code := _complete(context, mine)) is not None:
            return code
    elif mine:
        return _show(
            context, mine, f"{context.owner} has this in progress; to complete it and claim the next: punch next --done"
        )
    elif not takes:
        explained = context.read("task.explain", owner=context.owner)
        if explained["ready"]:
            task = explained["next"]
            return _show(context, [task], f"to claim it: punch start {task['id']}, or punch next --take")
        return _report_none(context, {"task": None, "tasks": []})
    result = claim_tasks(context, wait_ms=args.wait, lease_ms=args.lease)
    return show_claim(context, result) if result.get("task") else _report_none(context, result)


def _has_open_children(context: Context, task: str) -> bool:
    reasons = context.read("task.explain", task=task).get("reasons", ())
    return any(reason["kind"] == "child" and reason["of"] == task for reason in reasons)


def _complete(context: Context, mine: list[dict[str, Any]]) -> int | None:
    """Complete the task in progress. Return an exit code if no task or more than one is in progress."""
    args = context.args
    target = None if args.done in (True, None) else parse_task_id(args.done)
    tasks = [task for task in mine if target is None or task["id"] == target]
    if target is not None and not tasks:
        show_error("not_found", f"{context.owner} does not have #{target} in progress", "see all tasks: punch list")
        return REFUSED
    if len(tasks) > 1:
        names = ", ".join(f"#{task['id']}" for task in tasks)
        show_error("ambiguous", f"{context.owner} has {names} in progress", "name the completed one: --done ID")
        return REFUSED
    if not tasks:
        advice = "see all tasks: punch list; to complete any of them: punch done ID --result TEXT"
        show_error("not_found", f"{context.owner} has no task in progress to complete", advice)
        return REFUSED
    members = {"task": tasks[0]["id"], "fence": tasks[0].get("fence"), "result_summary": args.result}
    result = context.change("task.set_status", status="completed", **members)
    if not args.json:
        context.print_lines(format_task(result["task"], context.style))
    return None


def _show(context: Context, tasks: list[dict[str, Any]], note: str) -> int:
    """Show tasks with their parents, after a note."""
    if not context.args.json:
        context.note(note)
    results = [context.read("task.get", task=task["id"]) for task in tasks]
    lines: list[str] = []
    for result in results:
        lines += format_task(result["task"], context.style, path=result.get("path", ()))
    path = {"path": results[0]["path"]} if "path" in results[0] else {}
    return context.answer({"task": results[0]["task"], "tasks": [result["task"] for result in results], **path}, lines)


def _report_none(context: Context, result: dict[str, Any]) -> int:
    """Report that no task is ready. A finished list is not an error, so that a script's loop ends normally."""
    counts = context.read("task.list", limit=1)["counts"]
    if any(counts[status] for status in _UNFINISHED):
        return show_claim(context, result)
    if any(counts.values()):
        failed = counts["failed"]
        return context.answer(result, [format_nothing_left(failed) if failed else "all tasks are finished"])
    if context.args.json:
        context.print_json(result)
    else:
        show_error("nothing_ready", f"the list {context.name} is empty", "add a task: punch add TITLE")
    return REFUSED
