"""`punch import` and `punch export`: files on one side, one atomic call on the other."""

import errno
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from punchlist.base.text import safe_block, safe_json
from punchlist.base.tree import as_tree
from punchlist.errors import RequestRefused
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.events import events
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag
from punchlist_apps.cli.printing.import_lines import as_json, change_lines, remark_lines, summary
from punchlist_apps.common.terminal.style import write
from punchlist_apps.files.importers import export, formats, markdown
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.formats import FORMATS
from punchlist_apps.files.importers.matching import Comparison, compare, plan_replacement
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.system.atomic import atomic_write

_FILE: dict[str, Any] = {"metavar": "FILE"}

COMMANDS = {
    "import": Usage(
        (
            Argument(("file",), "a file, a folder, or - for standard input", _FILE, "file"),
            choice(
                "--from",
                "--format",
                text="the format (default: found out from the file)",
                choices=(*FORMATS,),
                dest="form",
            ),
            flag("--dry-run", text="show what would change, and change nothing"),
            flag("--strict", text="refuse the file if anything in it but prose can't be imported"),
            flag(
                "--take-status", text="also change the status of tasks that are in the list already, as the file says"
            ),
            flag("--replace", text="replace the list by these tasks; other unfinished tasks stay"),
        ),
        (
            "punch import plan.md",
            "punch import .beads/issues.jsonl --dry-run",
            "task export | punch import -",
            "punch import ~/.claude/tasks",
            "gh issue list --json number,title,body,state,labels,assignees,url | punch import -",
        ),
    ),
    "export": Usage(
        (
            Argument(
                ("file",), "file, or - for standard output", {"metavar": "FILE", "nargs": "?", "default": "-"}, "file"
            ),
            choice(
                "--format", text="json or markdown for tasks, jsonl for events", choices=("json", "markdown", "jsonl")
            ),
            flag("--force", text="overwrite an existing file"),
        ),
        ("punch export plan.md", "punch export --format jsonl > events.jsonl"),
    ),
}

_BY_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_ROUNDS = 50
"""How often a list that changes meanwhile is compared anew."""

_LONG = 5_000
"""From so many tasks on, somebody at a terminal is told how far the import is."""

_PROSE = ("lines of text that belong to no task", "lines of front matter", "the document's title")


def run_import(context: Context) -> int:
    """Add the tasks of a file and bring those that are there up to date, all or none."""
    args = context.args
    _report(context, f"reading {args.file}", args.file)
    draft = formats.build_draft(formats.read_documents(args.file), args.form or "")
    if args.strict:
        _refuse_losses(draft)
    if args.dry_run:
        comparison, _ = _compared(context, draft)
        head = summary(draft, comparison, dry=True)
        lines = [head, *change_lines(draft, comparison, context.style), *remark_lines(draft, context.style)]
        return context.answer({**as_json(draft, comparison), "tasks": comparison.call}, lines)
    comparison, calls, version = _imported(context, draft)
    lines = [summary(draft, comparison), *remark_lines(draft, context.style)]
    if calls:
        count = f" -n {calls}" if calls > 1 else ""
        lines.append(context.style.paint("dim", f"  take it back: punch undo{count}"))
    return context.answer({**as_json(draft, comparison), "version": version}, lines)


def _compared(context: Context, draft: Draft) -> tuple[Comparison, int]:
    """The draft beside the list, and the list's version."""
    args = context.args
    listed = context.call("task.list", conversation=context.conversation)
    now = round(time.time() * 1000)
    if args.replace:
        return plan_replacement(draft, listed["tasks"], now=now, take_status=args.take_status), listed["version"]
    return compare(draft, listed["tasks"], now=now, take_status=args.take_status), listed["version"]


def _imported(context: Context, draft: Draft) -> tuple[Comparison, int, int]:
    """Make the calls; what was done in all, how many calls, and the list's version.

    One call does all of it, but for more tasks than one takes: then each is made on the list that the one before has
    left, and an import that was interrupted goes on where it was when it is repeated.
    """
    done = Comparison()
    calls = conflicts = 0
    total = len(draft.items)
    while True:
        comparison, version = _compared(context, draft)
        if not calls:
            done = comparison
        if not comparison.call or (context.args.replace and calls):
            return done, calls, version
        try:
            method = "list.replace" if context.args.replace else "task.add_many"
            result = context.change(method, tasks=comparison.call, expect_version=version)
        except RequestRefused as error:
            conflicts += 1
            if error.kind != "version_conflict" or conflicts > _ROUNDS:
                raise
            continue  # somebody else changed the list: another import, perhaps of the same file
        calls += 1
        if comparison.is_whole:
            return done, calls, int(result["version"])
        _report(context, f"{max(total - len(comparison.added) + len(comparison.call), 0):,} of {total:,} tasks")


def _report(context: Context, text: str, path: str = "") -> None:
    """Say to somebody at a terminal how far long work is."""
    if not sys.stderr.isatty() or context.args.json:
        return
    try:
        is_long = not path or (path != "-" and os.stat(path).st_size > _LONG * 100)
    except OSError:
        is_long = False
    if is_long:
        context.note(f"punch: {text}")


def _refuse_losses(draft: Draft) -> None:
    """Refuse a draft that is not the whole file, prose apart."""
    lost = [one for one in (*draft.skipped.values(), *draft.converted.values()) if one.text not in _PROSE]
    if lost:
        first = lost[0]
        more = f", and {len(lost) - 1} more kinds (without --strict they are shown)" if len(lost) > 1 else ""
        message = f"not taken over whole: {first.count} × {first.text}{more}"
        raise FormatError(message, draft.name, first.lines[0] if first.lines else 0)


def run_export(context: Context) -> int:
    args = context.args
    form = args.format or _BY_SUFFIX.get(os.path.splitext(args.file)[1].lower(), "json")
    text = "".join(_render(context, form))
    if args.file == "-":
        write(_shown(text, form) if context.style.terminal else text)
        return 0
    _write(args.file, text, replace=args.force)
    context.note(f"wrote {args.file} ({form})")
    return 0


def _shown(text: str, form: str) -> str:
    """What a terminal is shown of a file: the titles of others must not steer it."""
    return safe_block(text) if form == "markdown" else safe_json(text)


def _write(path: str, text: str, *, replace: bool) -> None:
    """All of a file or nothing: what is written is beside it until it is whole."""
    if not replace and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "there is a file already; --force replaces it", path)
    path = os.path.realpath(path)  # a link stays one
    if os.path.lexists(path) and not os.path.isfile(path):
        raise FileExistsError(errno.EEXIST, "not a regular file, which is not replaced", path)
    atomic_write(path, text.encode(), mode=None)


def _render(context: Context, form: str) -> Iterator[str]:
    if form == "jsonl":
        for event in events(context):
            yield json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"
        return
    tasks: list[dict[str, Any]] = context.ask("task.list")["tasks"]
    if form == "markdown":
        rows = as_tree(tasks)
        yield markdown.write([task for _, task in rows], [depth for depth, _ in rows])
        return
    conversation = context.ask("conversation.get")["conversation"]
    yield json.dumps(export.build_export(conversation, tasks), ensure_ascii=False, indent=2) + "\n"
