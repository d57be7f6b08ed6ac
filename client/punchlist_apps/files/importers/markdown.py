"""Markdown: reads checklists, and writes lists in a form that reads back unchanged.

List items with checkboxes are tasks. In text without checkboxes, all list items are. Headings above tasks become their
parents, and so do items with nested items. The rest of an item's text is its description. Members that a checklist
can't express are written into an HTML comment at the end of the title. Headings and items that only group others are
written as headings and plain items.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from punchlist.base import dates
from punchlist.base.metadata import visible_items
from punchlist.base.text import one_line
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import MAX_TASKS, Draft, Item, Note, build_too_many_error
from punchlist_apps.files.importers.outline import ANY_BOX, Entry, parse_outline
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.vocabulary import is_heading

BOXES: dict[str, dict[str, Any]] = {
    **dict.fromkeys((" ", "", "\u00a0", ".", "<", "_"), {}),
    **dict.fromkeys(("x", "X", "✓", "✔", "✅", "v", "V", "y"), {"status": "completed"}),
    **dict.fromkeys(("/", "~", "o", "O", "◐"), {"status": "in_progress"}),
    **dict.fromkeys(("=", ">"), {"status": "paused"}),
    "-": {"status": "completed", "labels": ["cancelled"]},
    **dict.fromkeys(("!", "*"), {"priority": "high"}),
    **dict.fromkeys(("✗", "✘"), {"status": "failed"}),
    "?": {"labels": ["question"]},
}
"""Character in a checkbox -> members of the task."""

_OBVIOUS = frozenset(" xX/=✗")
"""Characters in checkboxes whose conversion needs no remark."""
_KIRO = re.compile(r"^[^\S\n]*+- _Requirements: ", re.MULTILINE)
"""Matches Kiro's task lists, in which `[-]` means in progress. Elsewhere it means cancelled."""

BOX_OF = {"pending": " ", "completed": "x", "in_progress": "/", "paused": "=", "failed": "✗"}
_LEVELS = 6
_STATUS = "\0status"
"""Internal member for a status that the comment after a heading must contain."""
EXTRAS = re.compile(r"<!-- punchlist: (?P<json>\{[^<]*\}) -->[ \t]*$")
"""The comment that `write` adds after a title and a space."""

_MEMBERS = (
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
_ALLOWED = frozenset((*_MEMBERS, "title", "description", "ref", "status", "notes"))


def read(documents: Sequence[Document]) -> Draft:
    """Read the tasks in a document, in order."""
    document = documents[0]
    # Checkboxes are counted first, since parsing too many tasks would take a minute.
    if beyond := next(islice(ANY_BOX.finditer(document.text), MAX_TASKS, None), None):
        raise build_too_many_error(document.name, document.text.count("\n", 0, beyond.start()) + 1)
    draft = Draft("markdown", document.name)
    outline = parse_outline(document.text)
    is_kiro = bool(_KIRO.search(document.text))
    refs: list[str] = []
    open_refs: set[str] = set()
    for index, entry in enumerate(outline.entries):
        parent = refs[entry.above] if entry.above >= 0 else ""
        item = _add(draft, entry, f"\0{index}", parent, open_refs, is_kiro=is_kiro)
        refs.append(item.ref if item else parent)
    draft.complete_headings(open_refs)
    for text, count, line in (
        ("lines of front matter", outline.front, 1),
        ("the document's title", int(outline.title >= 0), outline.title + 1),
        ("lines of text that belong to no task", outline.prose, 0),
        ("boxes in code, tables, quotations or comments", outline.hidden, 0),
    ):
        if count:
            draft.skip(text, line, count)
    return draft.finish()


def _add(draft: Draft, entry: Entry, ref: str, parent: str, open_refs: set[str], *, is_kiro: bool) -> Item | None:  # noqa: PLR0913
    """Add an entry's task, and add its `ref` to `open_refs` if its status depends on its subtasks."""
    line = entry.line + 1
    title, extras = entry.title, {}
    if match := EXTRAS.search(title):
        title, extras = title[: match.start()].rstrip(), _parse_extras(match["json"], draft.name, line)
    box = entry.box or ""
    members = dict(BOXES.get(box, {}))
    if "status" in extras:
        members = {}  # Older versions wrote failed tasks with the checkbox of important tasks.
    elif box == "-" and is_kiro:
        members = {"status": "in_progress"}
    if box not in BOXES:
        draft.note_change(f"box [{box}], imported as pending", line)
    elif box and box not in _OBVIOUS and "status" not in extras:
        meaning = " ".join(members.get("labels", [])) or members.get("status") or members.get("priority", "pending")
        draft.note_change(f"box [{box}], imported as {meaning}".replace("_", " "), line)
    labels = [*extras.pop("labels", []), *members.pop("labels", [])]
    links = [(str(link.get("kind")), link.get("to")) for link in extras.pop("links", [])]
    blocked_by = [f"\0{ref}" if ref.startswith("line-") else ref for ref in extras.pop("blocked_by", [])]
    own_ref = extras.pop("ref", "")
    merged: dict[str, Any] = {"description": entry.description, **members, **extras, "labels": labels, "links": links}
    merged |= {"parent": parent, "blocked_by": blocked_by}
    if entry.kind != "task":
        merged["metadata"] = get_heading_metadata(entry) | merged.get("metadata", {})
    item = draft.add(merged.pop("title", title), exact="title" in extras, ref=own_ref or ref, line=line, **merged)
    if item is not None and entry.kind != "task" and "status" not in extras:
        open_refs.add(item.ref)
    return item


def get_heading_metadata(entry: Entry) -> dict[str, int]:
    """Return the metadata of a heading or a group, which contains the heading's level, or 0 for a list item."""
    return {"heading": entry.indent if entry.kind == "heading" else 0}


def _parse_extras(text: str, name: str, line: int) -> dict[str, Any]:
    try:
        members = cast("dict[str, Any]", json.loads(text))
    except ValueError as error:
        raise FormatError(f"the punchlist comment is not JSON: {error}", name, line) from error
    if unknown := sorted(set(members) - _ALLOWED):
        raise FormatError(f"the punchlist comment has an unknown member: {unknown[0]}", name, line)
    kinds: dict[str, type | tuple[type, ...]] = {
        **dict.fromkeys(("blocked_by", "labels", "links", "notes"), list),
        **dict.fromkeys(("due", "not_before"), (int, str)),
        "estimate_ms": int,
        **dict.fromkeys(("metadata", "gate"), dict),
    }
    for member, value in members.items():
        if not isinstance(value, kinds.get(member, str)):
            raise FormatError(f"the punchlist comment has a wrong {member}", name, line)
    if not all(isinstance(word, str) for member in ("blocked_by", "labels") for word in members.get(member, [])):
        raise FormatError("the punchlist comment has a list with values other than strings", name, line)
    for member in ("due", "not_before"):
        if isinstance(written := members.get(member), str):
            members[member] = dates.parse(written)
            if members[member] is None:
                raise FormatError(f"the punchlist comment has a wrong {member}", name, line)
    members["notes"] = [_parse_note(note, name, line) for note in members.get("notes", [])]
    return members


def _parse_note(value: Any, name: str, line: int) -> Note:
    note: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {"text": value}
    text, author, at = cast("tuple[Any, Any, Any]", (note.get("text"), note.get("author", ""), note.get("at", 0)))
    if isinstance(at, str) and (time := dates.parse(at)) is not None:
        at = time.at
    if not isinstance(text, str) or not isinstance(author, str) or not isinstance(at, int):
        raise FormatError("the punchlist comment has a wrong note", name, line)
    return Note(text, author, at)


def remove_extras(title: str) -> str:
    """Return a title without the comment that `write` adds."""
    match = EXTRAS.search(title)
    return title[: match.start()].rstrip(" \t") if match else title


def write(tasks: Iterable[dict[str, Any]], depths: Sequence[int]) -> str:
    """Format tasks as a checklist that `read` can parse. `depths` are the tasks' levels of nesting.

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
    members = {key: visible[key] for key in _MEMBERS if visible.get(key) not in (None, "", [], (), {}, "normal")}
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
