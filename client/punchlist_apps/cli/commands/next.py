"""`punch next`: what to do next, shown or taken, and completed before."""

from __future__ import annotations

from typing import Any

from punchlist_apps.cli.calling.claims import claim, show_claim
from punchlist_apps.cli.calling.context import Context, one_id
from punchlist_apps.cli.parsing.arguments import Usage, flag, owner_option, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common.terminal.argument_types import parse_duration, parse_lease
from punchlist_apps.common.terminal.render import format_nothing_left, format_task

COMMANDS = {
    "next": Usage(
        (
            flag("-t", "--take", text="claim it, so that nobody else gets it"),
            value(
                "--done",
                text="first complete your task; name it if you have several",
                metavar="ID",
                nargs="?",
                const=True,
            ),
            value("-r", "--result", text="first complete your task, with this result"),
            owner_option("who takes it (default: PUNCHLIST_OWNER, else the actor)"),
            value(
                "--lease", text="how long the claim lasts, at most 24h (default: 1h)", metavar="TIME", type=parse_lease
            ),
            value("--wait", text="wait this long for a task, such as 30s or 10m", metavar="TIME", type=parse_duration),
        ),
        ("punch next", "punch next --take", 'punch next --owner ann --result "in docs/copy.md"'),
    ),
}

_UNFINISHED = ("pending", "in_progress", "paused")


def run_next(context: Context) -> int:
    """Show what this owner has in progress, or the next task; take it, or first complete what it follows, if asked."""
    args = context.args
    completes = args.done is not None or bool(args.result)
    takes = args.take or completes
    if not takes and (args.wait is not None or args.lease is not None):
        raise UsageError("--wait and --lease go with --take")
    mine = context.ask("task.list", owner=context.owner, status="in_progress")["tasks"]
    if args.done in (True, None):  # else the one that is named is meant
        mine = [task for task in mine if not _holds_others(context, task["id"])]
    if completes:
        if (code := _complete(context, mine)) is not None:
            return code
    elif mine:
        return _show(
            context, mine, f"{context.owner} has this in progress; --done completes it and takes the next task"
        )
    elif not takes:
        explained = context.ask("task.explain", owner=context.owner)
        if explained["ready"]:
            found = [explained["next"]]
            return _show(context, found, f"punch start {found[0]['id']} takes it, as does punch next --take")
        return _none(context, {"task": None, "tasks": []})
    result = claim(context, wait_ms=args.wait, lease_ms=args.lease)
    return show_claim(context, result) if result.get("task") else _none(context, result)


def _holds_others(context: Context, task: str) -> bool:
    """Return whether the open children of a task in progress are its work."""
    return any(reason["kind"] == "child" for reason in context.ask("task.explain", task=task).get("reasons", ()))


def _complete(context: Context, mine: list[dict[str, Any]]) -> int | None:
    """Complete what this owner has in progress; the exit code if that is not clear."""
    args = context.args
    wanted = None if args.done in (True, None) else one_id(args.done)
    finished = [task for task in mine if wanted is None or task["id"] == wanted]
    if wanted is not None and not finished:
        show_error(
            "not_found", f"{context.owner} does not have #{wanted} in progress", "punch list shows what there is"
        )
        return REFUSED
    if len(finished) > 1:
        names = ", ".join(f"#{task['id']}" for task in finished)
        show_error("ambiguous", f"{context.owner} has {names} in progress", "say which one is done: --done ID")
        return REFUSED
    if not finished:
        what = "this result could be of" if args.result else "could be completed"
        advice = "punch list shows what there is, punch done ID --result TEXT completes any of it"
        show_error("not_found", f"{context.owner} has nothing in progress that {what}", advice)
        return REFUSED
    for task in finished:
        members = {"task": task["id"], "fence": task.get("fence"), "result_summary": args.result}
        done = context.change("task.set_status", status="completed", **members)
        if not args.json:
            context.lines(format_task(done["task"], context.style))
    return None


def _show(context: Context, tasks: list[dict[str, Any]], note: str) -> int:
    """Show tasks with the parents above them, and what could be done with them."""
    if not context.args.json:
        context.note(note)
    found = [context.ask("task.get", task=task["id"]) for task in tasks]
    lines = [line for one in found for line in format_task(one["task"], context.style, path=one.get("path", ()))]
    path = {"path": found[0]["path"]} if "path" in found[0] else {}
    return context.answer({"task": found[0]["task"], "tasks": [one["task"] for one in found], **path}, lines)


def _none(context: Context, result: dict[str, Any]) -> int:
    """There is no task. A list whose tasks are all finished is no failure: a script ends there."""
    counts = context.ask("task.list", limit=1)["counts"]
    if any(counts[status] for status in _UNFINISHED):
        return show_claim(context, result)
    if any(counts.values()):
        failed = counts["failed"]
        return context.answer(result, [format_nothing_left(failed) if failed else "all tasks are finished"])
    if context.args.json:
        context.json(result)
    else:
        show_error("nothing_ready", f"the list {context.name} is empty", "punch add TITLE adds a task")
    return REFUSED
