"""Writes lists as Markdown in a form that reads back unchanged.

Members that a checklist can't express are written into an HTML comment at the end of the title. Headings and items that
only group others are written as headings and plain items.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from punchlist.base.metadata import visible_items
from punchlist.base.text import one_line
from punchlist_schemas.vocabulary import is_heading

BOX_OF = {"pending": " ", "completed": "x", "in_progress": "/", "paused": "=", "failed": "✗"}
_LEVELS = 6
_STATUS = "\0status"
"""Internal member for a status that the comment after a heading must contain."""

MEMBERS = (
    *(
        "priority",
        "owner",
        "active_form",
        "metadata",
        "result_summary",
        "fail_reason",
        "blocked_by",
        "due",
        "not_before",
    ),
    *("labels", "links", "estimate_ms", "gate"),
)
"""Members that the comment after a title can contain, in addition to title, description, ref, status and notes."""


def write(tasks: Iterable[dict[str, Any]], depths: Sequence[int]) -> str:
    """Format tasks as a checklist. `depths` are the tasks' levels of nesting.

    A section's own tasks are written before its subheadings. After a subheading, they would belong to that subheading.
    """
    rows = list(zip(depths, tasks, strict=True))
    lines: list[str] = []
    levels = [_get_level(tree[0][1]) for tree in _split_subtrees(rows)]
    # If there were only one heading of level 1, it would be read as the document's title.
    is_title = levels.count(1) == 1 and all(levels)
    _write_section(lines, rows, 1 if is_title else 0)
    return "".join(f"{line}\n" for line in lines)


_Rows = Sequence[tuple[int, dict[str, Any]]]


def _get_level(task: dict[str, Any]) -> int:
    metadata: dict[str, Any] = task.get("metadata") or {}
    return max(0, min(int(metadata["heading"]), _LEVELS)) if is_heading(metadata) else 0


def _split_subtrees(rows: _Rows) -> list[_Rows]:
    starts = [index for index, (depth, _) in enumerate(rows) if depth == rows[0][0]]
    return [rows[start:end] for start, end in zip(starts, [*starts, len(rows)][1:], strict=True)]


def _write_section(lines: list[str], rows: _Rows, above: int) -> None:
    """Write the tasks directly below a heading of level `above`, then its subheadings."""
    trees = _split_subtrees(rows)
    sections = [tree for tree in trees if _get_level(tree[0][1]) and len(tree) > 1 and above < _LEVELS]
    items = [tree for tree in trees if tree not in sections]
    lines += [""] if lines and items else []
    for tree in items:
        _write_items(lines, tree)
    max_level = _LEVELS
    for tree in sections:
        task = tree[0][1]
        # At a deeper level than the previous section, this section would become its subsection.
        max_level = level = min(max(_get_level(task), above + 1), max_level)
        title = str(task["title"])
        lines += [""] if lines else []
        lines.append(
            f"{'#' * level} {one_line(title)}{_format_extras(_prepare_heading(tree, level), title, is_section=True)}"
        )
        _write_section(lines, tree[1:], level)


def _write_items(lines: list[str], tree: _Rows) -> None:
    top = tree[0][0]
    for index, (depth, task) in enumerate(tree):
        indent = "  " * (depth - top)
        is_item = is_heading(task.get("metadata")) and task["metadata"]["heading"] == 0
        is_group = is_item and index + 1 < len(tree) and tree[index + 1][0] > depth
        title = str(task["title"])
        box = BOX_OF[str(task.get("status", "pending"))]
        box = "-" if box == "x" and "cancelled" in task.get("labels", ()) else box
        source = _prepare_heading(_split_subtrees(tree[index:])[0], 0) if is_group else task
        lines.append(f"{indent}- {'' if is_group else f'[{box}] '}{one_line(title)}{_format_extras(source, title)}")
        description = str(task.get("description", ""))
        if description and _can_quote(description):
            lines.extend(f"{indent}  > {line}" if line else f"{indent}  >" for line in description.split("\n"))


def _prepare_heading(tree: _Rows, level: int) -> dict[str, Any]:
    """Return a heading's members, except those that follow from its line or its subtasks' statuses."""
    task = tree[0][1]
    metadata: dict[str, Any] = dict(task["metadata"])
    if metadata["heading"] == level:
        del metadata["heading"]
    is_done = all(below[0][1].get("status") == "completed" for below in _split_subtrees(tree[1:]))
    is_implied = task.get("status", "pending") == ("completed" if is_done else "pending")
    return {**task, "metadata": metadata, _STATUS: "" if is_implied else task["status"]}


def _format_time(at: int) -> str | int:
    """Format milliseconds since 1970 as ISO 8601. Times beyond the calendar are returned unchanged."""
    try:
        return datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return at


def _can_quote(description: str) -> bool:
    """Return whether the lines, written as a block quote, read back unchanged."""
    return "\r" not in description and description == description.strip("\n").rstrip() and "\t" not in description


def _format_extras(task: dict[str, Any], title: str, *, is_section: bool = False) -> str:
    visible = {**task, "metadata": dict(visible_items(task.get("metadata") or {}))}
    members = {key: visible[key] for key in MEMBERS if visible.get(key) not in (None, "", [], (), {}, "normal")}
    for name in ("due", "not_before"):
        if name in members:
            members[name] = task.get(f"{name}_day") or _format_time(task[name])
    if status := task.get(_STATUS, "failed" if task.get("status") == "failed" else ""):
        members["status"] = status
    if notes := [
        {"text": note["text"], "author": note["actor"], "at": _format_time(note["at"])}
        for note in task.get("notes", ())
    ]:
        members["notes"] = notes
    if one_line(title) != title or "<!--" in title or title.endswith("#"):
        members["title"] = title
    description = str(task.get("description", ""))
    if description and (is_section or not _can_quote(description)):
        members["description"] = description
    if "id" in task and (members.get("blocked_by") or task.get("blocks")):
        members["ref"] = task["id"]
    if not members:
        return ""
    text = json.dumps(members, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    return f" <!-- punchlist: {text} -->"
