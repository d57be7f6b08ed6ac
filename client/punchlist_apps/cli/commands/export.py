"""`punch export`: writes a list, or its events, to a file."""

import errno
import json
import os
from collections.abc import Iterator
from typing import Any

from punchlist.base.text import safe_block, safe_json
from punchlist.base.tree import as_tree
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.events import read_events
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag
from punchlist_apps.common.terminal.style import write
from punchlist_apps.files.exporters import json as json_document
from punchlist_apps.files.exporters import markdown
from punchlist_schemas.system.atomic import atomic_write

COMMANDS = {
    "export": Usage(
        (
            Argument(
                ("file",),
                "the file, or - for standard output (default)",
                {"metavar": "FILE", "nargs": "?", "default": "-"},
                "file",
            ),
            choice(
                "--format",
                text="write tasks (json or markdown) or events (jsonl)",
                choices=("json", "markdown", "jsonl"),
            ),
            flag("--force", text="overwrite an existing file"),
        ),
        ("punch export plan.md", "punch export --format jsonl > events.jsonl"),
    ),
}

_BY_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def run_export(context: Context) -> int:
    args = context.args
    form = args.format or _BY_SUFFIX.get(os.path.splitext(args.file)[1].lower(), "json")
    text = "".join(_render(context, form))
    if args.file == "-":
        write(_sanitize(text, form) if context.style.terminal else text)
        return 0
    _write(args.file, text, replace=args.force)
    context.note(f"wrote {args.file} ({form})")
    return 0


def _sanitize(text: str, form: str) -> str:
    """Escape control characters, because titles from other users must not control the terminal."""
    return safe_block(text) if form == "markdown" else safe_json(text)


def _write(path: str, text: str, *, replace: bool) -> None:
    if not replace and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "the file exists; to replace it, add --force", path)
    path = os.path.realpath(path)  # replace the target of a link, not the link
    if os.path.lexists(path) and not os.path.isfile(path):
        raise FileExistsError(errno.EEXIST, "not a regular file; name another file", path)
    atomic_write(path, text.encode(), mode=None)


def _render(context: Context, form: str) -> Iterator[str]:
    if form == "jsonl":
        for event in read_events(context):
            yield json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"
        return
    tasks: list[dict[str, Any]] = context.read("task.list")["tasks"]
    if form == "markdown":
        rows = as_tree(tasks)
        yield markdown.write([task for _, task in rows], [depth for depth, _ in rows])
        return
    conversation = context.read("conversation.get")["conversation"]
    yield json.dumps(json_document.build_export(conversation, tasks), ensure_ascii=False, indent=2) + "\n"
