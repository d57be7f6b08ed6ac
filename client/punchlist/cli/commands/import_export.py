"""`punch import` and `punch export`: files on one side, one atomic call on the other."""

import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any

from punchlist.atomic import atomic_write
from punchlist.cli.arguments import Argument, Usage, choice, flag
from punchlist.cli.context import Context
from punchlist.cli.events import events
from punchlist.cli.failure import FormatError
from punchlist.cli.formats import detect, markdown, objects
from punchlist.cli.formats.detect import FORMATS
from punchlist.cli.formats.document import Document
from punchlist.cli.render import as_tree, list_lines
from punchlist.cli.style import write
from punchlist.text import safe_block, safe_json
from punchlist_schemas.things import STATUSES

_FILE: dict[str, Any] = {"metavar": "FILE"}

COMMANDS = {
    "import": Usage(
        (
            Argument(("file",), "file, folder, or - for standard input", _FILE, "file"),
            choice("--format", text="how to read it (detected)", choices=FORMATS),
            flag("--replace", text="make the list be these tasks (unfinished others stay)"),
            flag("--dry-run", text="only show what would be added"),
        ),
        (
            "punch import plan.md",
            "punch import ~/.claude/tasks/SESSION",
            "punch import - < todos.json",
        ),
    ),
    "export": Usage(
        (
            Argument(
                ("file",), "file, or - for standard output", {"metavar": "FILE", "nargs": "?", "default": "-"}, "file"
            ),
            choice("--format", text="json, markdown, or jsonl for events", choices=("json", "markdown", "jsonl")),
            flag("--force", text="replace an existing file"),
        ),
        ("punch export plan.md", "punch export --format jsonl > events.jsonl"),
    ),
}

_MAX_FILE_BYTES = 16 << 20
_MAX_FILES = 10_000
_BY_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def run_import(context: Context) -> int:
    """Add the tasks of a file, all or none."""
    args = context.args
    documents = _read(args.file)
    name, plan = detect.parse(documents, args.format or "")
    if not plan:
        raise FormatError("no tasks found", args.file)
    if args.dry_run:
        return context.answer({"format": name, "tasks": plan}, _preview(plan, context))
    result = context.change("list.replace" if args.replace else "task.add_many", tasks=plan)
    added = len(plan)
    lines = [f"imported {added} task{'s' if added != 1 else ''} ({name})"]
    return context.answer(result, [*lines, context.style.paint("dim", "  take it back: punch undo")])


def run_export(context: Context) -> int:
    """Write the list or its events."""
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
    yield json.dumps(objects.export(conversation, tasks), ensure_ascii=False, indent=2) + "\n"


def _read(path: str) -> list[Document]:
    if path == "-":
        return [Document("standard input", _decode(sys.stdin.buffer.read(_MAX_FILE_BYTES + 1), "standard input"))]
    if not os.path.isdir(path):
        return [_read_file(path)]
    names = sorted(name for name in os.listdir(path) if name.endswith(".json") and not name.startswith("."))
    if len(names) > _MAX_FILES:
        raise FormatError(f"more than {_MAX_FILES} files", path)
    found = [_read_file(f"{path.rstrip('/')}/{name}") for name in names]
    if not found:
        raise FormatError("no .json files in this folder", path)
    return found


def _read_file(path: str) -> Document:
    # Not blocking: opening a named pipe must not hang the import.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FormatError("not a regular file", path)
        return Document(path, _decode(file.read(_MAX_FILE_BYTES + 1), path))


def _decode(data: bytes, name: str) -> str:
    if len(data) > _MAX_FILE_BYTES:
        raise FormatError(f"larger than {_MAX_FILE_BYTES >> 20} MiB", name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"not UTF-8: byte 0x{data[error.start]:02x}", name, line) from error


def _preview(plan: list[dict[str, Any]], context: Context) -> list[str]:
    """The tasks as they would look, numbered as they come."""
    number = {task["ref"]: str(index) for index, task in enumerate(plan, 1) if "ref" in task}
    finished = {number[task["ref"]] for task in plan if task.get("status") == "completed" and "ref" in task}
    shown: list[dict[str, Any]] = []
    for index, task in enumerate(plan, 1):
        waits = [number[one] for one in task.get("blocked_by", ()) if number[one] not in finished]
        members = {**task, "id": str(index), "parent": number.get(task.get("parent", "")), "open_blockers": waits}
        shown.append({"status": "pending", "priority": "normal", **members})
    counts = {status: sum(task["status"] == status for task in shown) for status in STATUSES}
    return list_lines(context.conversation, shown, counts, context.style, note="would be added")
