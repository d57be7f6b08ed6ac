"""`punch import`: imports task files into a list with one atomic call."""

import os
import sys
import time
from typing import Any

from punchlist.errors import RequestRefused
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag
from punchlist_apps.cli.printing.import_lines import format_changes, format_remarks, format_summary, to_json
from punchlist_apps.files.importers import formats
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.formats import FORMATS
from punchlist_apps.files.importers.matching import Comparison, compare, plan_replacement
from punchlist_apps.files.importers.wrong import FormatError

_FILE: dict[str, Any] = {"metavar": "FILE"}

COMMANDS = {
    "import": Usage(
        (
            Argument(("file",), "a file, a folder, or - for standard input", _FILE, "file"),
            choice(
                "--from",
                "--format",
                text="read this format (default: detected from the file)",
                choices=(*FORMATS,),
                dest="form",
            ),
            flag("--dry-run", text="show what would change, without changing it"),
            flag("--strict", text="reject the file if anything in it but prose can't be imported"),
            flag("--take-status", text="also update the status of existing tasks from the file"),
            flag("--replace", text="replace the list with these tasks; other unfinished tasks stay"),
        ),
        (
            "punch import plan.md",
            "punch import .beads/issues.jsonl --dry-run",
            "punch import prd.json",
            "punch import board.json",
            "punch import sheet.csv --from csv",
            "task export | punch import -",
            "punch import ~/.claude/tasks",
            "gh issue list --json number,title,body,state,labels,assignees,url | punch import -",
        ),
    ),
}

_MAX_CONFLICTS = 50
"""Maximum number of times a comparison is repeated because the list changed."""

_LONG_BYTES = 500_000
"""Size above which progress is shown for a file, in bytes."""

_PROSE = ("lines of text that belong to no task", "lines of front matter", "the document's title")


def run_import(context: Context) -> int:
    """Add and update tasks from a file, either all of them or none."""
    args = context.args
    _report(context, f"reading {args.file}", args.file)
    draft = formats.build_draft(formats.read_documents(args.file), args.form or "")
    if args.strict:
        _reject_losses(draft)
    if args.dry_run:
        comparison, _ = _compare(context, draft)
        heading = format_summary(draft, comparison, dry=True)
        lines = [heading, *format_changes(draft, comparison, context.style), *format_remarks(draft, context.style)]
        return context.answer({**to_json(draft, comparison), "tasks": comparison.call}, lines)
    comparison, calls, version = _import(context, draft)
    lines = [format_summary(draft, comparison), *format_remarks(draft, context.style)]
    if calls:
        count = f" -n {calls}" if calls > 1 else ""
        lines.append(context.style.paint("dim", f"  to reverse this: punch undo{count}"))
    return context.answer({**to_json(draft, comparison), "version": version}, lines)


def _compare(context: Context, draft: Draft) -> tuple[Comparison, int]:
    """Return the difference between the draft and the list, and the list's version."""
    args = context.args
    current = context.call("task.list", conversation=context.conversation)
    now = round(time.time() * 1000)
    if args.replace:
        return plan_replacement(draft, current["tasks"], now=now, take_status=args.take_status), current["version"]
    return compare(draft, current["tasks"], now=now, take_status=args.take_status), current["version"]


def _import(context: Context, draft: Draft) -> tuple[Comparison, int, int]:
    """Import the draft.

    One call is enough unless the draft exceeds the limit for a call. Otherwise each additional call is based on a new
    comparison, so that an interrupted import resumes when the command is repeated.

    Returns:
        The complete difference, the number of calls, and the list's version.
    """
    whole = Comparison()
    calls = conflicts = 0
    total = len(draft.items)
    while True:
        comparison, version = _compare(context, draft)
        if not calls:
            whole = comparison
        if not comparison.call or (context.args.replace and calls):
            return whole, calls, version
        try:
            method = "list.replace" if context.args.replace else "task.add_many"
            result = context.change(method, tasks=comparison.call, expect_version=version)
        except RequestRefused as error:
            conflicts += 1
            if error.kind != "version_conflict" or conflicts > _MAX_CONFLICTS:
                raise
            continue  # another client changed the list: compare again
        calls += 1
        if comparison.is_whole:
            return whole, calls, int(result["version"])
        _report(context, f"{max(total - len(comparison.added) + len(comparison.call), 0):,} of {total:,} tasks")


def _report(context: Context, text: str, path: str = "") -> None:
    """Show progress on a terminal. With `path`, show it only if that file is large."""
    if not sys.stderr.isatty() or context.args.json:
        return
    try:
        is_long = not path or (path != "-" and os.stat(path).st_size > _LONG_BYTES)
    except OSError:
        is_long = False
    if is_long:
        context.note(f"punch: {text}")


def _reject_losses(draft: Draft) -> None:
    """Reject a draft if anything other than prose in the file was skipped or converted."""
    losses = [loss for loss in (*draft.skipped.values(), *draft.converted.values()) if loss.text not in _PROSE]
    if losses:
        first = losses[0]
        more = f", and {len(losses) - 1} more kinds; to see them, leave out --strict" if len(losses) > 1 else ""
        message = f"can't be imported whole: {first.count} × {first.text}{more}"
        raise FormatError(message, draft.name, first.lines[0] if first.lines else 0)
