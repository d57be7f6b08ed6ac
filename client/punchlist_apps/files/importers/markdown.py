"""Markdown: check lists as people write them, and the form in which a list is written so that it reads back whole.

Boxes alone are tasks where there are boxes; without any, each item of a list is one. Headings above tasks become their
parents, nesting is `parent`, what else stands in an item is its description. What a check list has no words for is
written into an HTML comment at the item's end. A heading, or an item that only groups others, is written as one again.
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
from punchlist_apps.files.importers.draft import MOST_TASKS, Draft, Item, Note, too_many
from punchlist_apps.files.importers.outline import ANY_BOX, Entry, outline
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
"""What a box says of its task."""

_OBVIOUS = frozenset(" xX/=✗")
_KIRO = re.compile(r"^[^\S\n]*+- _Requirements: ", re.MULTILINE)
"""In Kiro's task lists `[-]` is in progress; elsewhere it is cancelled."""

BOX_OF = {"pending": " ", "completed": "x", "in_progress": "/", "paused": "=", "failed": "✗"}
_LEVELS = 6
_STATUS = "\0status"
"""Where a heading that is written holds the status that its comment has to name."""
EXTRAS = re.compile(r"<!-- punchlist: (?P<json>\{[^<]*\}) -->[ \t]*$")
"""What `write` puts behind a title and a space."""

_SAME = (
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
_ALLOWED = frozenset((*_SAME, "title", "description", "ref", "status", "notes"))


def read(documents: Sequence[Document]) -> Draft:
    """The tasks of a text, in order."""
    document = documents[0]
    if beyond := next(islice(ANY_BOX.finditer(document.text), MOST_TASKS, None), None):  # parsing it takes a minute
        raise too_many(document.name, document.text.count("\n", 0, beyond.start()) + 1)
    draft = Draft("markdown", document.name)
    found = outline(document.text)
    is_kiro = bool(_KIRO.search(document.text))
    refs: list[str] = []
    plain: set[str] = set()
    for index, entry in enumerate(found.entries):
        parent = refs[entry.above] if entry.above >= 0 else ""
        item = _add(draft, entry, f"\0{index}", parent, plain, is_kiro=is_kiro)
        refs.append(item.ref if item else parent)
    draft.finish_headings(plain)
    for text, count, line in (
        ("lines of front matter", found.front, 1),
        ("the document's title", int(found.title >= 0), found.title + 1),
        ("lines of text that belong to no task", found.prose, 0),
        ("boxes in code, tables, quotations or comments", found.hidden, 0),
    ):
        if count:
            draft.pass_over(text, line, count)
    return draft.finish()


def _add(draft: Draft, entry: Entry, ref: str, parent: str, plain: set[str], *, is_kiro: bool) -> Item | None:  # noqa: PLR0913
    """Add an entry's task, also to `plain` if what is below it says its status."""
    line = entry.line + 1
    title, extras = entry.title, {}
    if match := EXTRAS.search(title):
        title, extras = title[: match.start()].rstrip(), _extras_in(match["json"], draft.name, line)
    box = entry.box or ""
    members = dict(BOXES.get(box, {}))
    if "status" in extras:
        members = {}  # an older version wrote a failed task with the box that means important
    elif box == "-" and is_kiro:
        members = {"status": "in_progress"}
    if box not in BOXES:
        draft.change(f"box [{box}], which is to do here", line)
    elif box and box not in _OBVIOUS and "status" not in extras:
        meaning = " ".join(members.get("labels", [])) or members.get("status") or members.get("priority", "to do")
        draft.change(f"box [{box}], which is {meaning} here".replace("_", " "), line)
    labels = [*extras.pop("labels", []), *members.pop("labels", [])]
    links = [(str(one.get("kind")), one.get("to")) for one in extras.pop("links", [])]
    blocked_by = [f"\0{one}" if one.startswith("line-") else one for one in extras.pop("blocked_by", [])]
    own = extras.pop("ref", "")
    merged: dict[str, Any] = {"description": entry.description, **members, **extras, "labels": labels, "links": links}
    merged |= {"parent": parent, "blocked_by": blocked_by}
    if entry.kind != "task":
        merged["metadata"] = heading_of(entry) | merged.get("metadata", {})
    item = draft.add(merged.pop("title", title), exact="title" in extras, ref=own or ref, line=line, **merged)
    if item is not None and entry.kind != "task" and "status" not in extras:
        plain.add(item.ref)
    return item


def heading_of(entry: Entry) -> dict[str, int]:
    """The metadata of what stands above tasks without being one: the level of a heading, 0 of an item."""
    return {"heading": entry.indent if entry.kind == "heading" else 0}


def _extras_in(text: str, name: str, line: int) -> dict[str, Any]:
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
    if not all(isinstance(one, str) for member in ("blocked_by", "labels") for one in members.get(member, [])):
        raise FormatError("the punchlist comment has a list of something else than words", name, line)
    for member in ("due", "not_before"):
        if isinstance(given := members.get(member), str):
            members[member] = dates.parse(given)
            if members[member] is None:
                raise FormatError(f"the punchlist comment has a wrong {member}", name, line)
    members["notes"] = [_note(one, name, line) for one in members.get("notes", [])]
    return members


def _note(one: Any, name: str, line: int) -> Note:
    note: dict[str, Any] = cast("dict[str, Any]", one) if isinstance(one, dict) else {"text": one}
    text, author, at = cast("tuple[Any, Any, Any]", (note.get("text"), note.get("author", ""), note.get("at", 0)))
    if isinstance(at, str) and (written := dates.parse(at)) is not None:
        at = written.at
    if not isinstance(text, str) or not isinstance(author, str) or not isinstance(at, int):
        raise FormatError("the punchlist comment has a wrong note", name, line)
    return Note(text, author, at)


def without_extras(title: str) -> str:
    """Return a title without what `write` puts behind it."""
    match = EXTRAS.search(title)
    return title[: match.start()].rstrip(" \t") if match else title


def write(tasks: Iterable[dict[str, Any]], depths: Sequence[int]) -> str:
    """Tasks as a check list that `read` reads back; `depths` are their levels of nesting.

    In a file, tasks of a section stand before the headings in it, since what follows a heading is below it.
    """
    rows = list(zip(depths, tasks, strict=True))
    lines: list[str] = []
    firsts = [rows_of[0][1] for rows_of in _subtrees(rows)]
    levels = [_level(task) for task in firsts]
    # A lone heading of the first level at the top would be read as the document's title.
    is_title = levels.count(1) == 1 and all(levels)
    _write_section(lines, rows, 1 if is_title else 0)
    return "".join(f"{line}\n" for line in lines)


_Rows = Sequence[tuple[int, dict[str, Any]]]


def _level(task: dict[str, Any]) -> int:
    metadata: dict[str, Any] = task.get("metadata") or {}
    return max(0, min(int(metadata["heading"]), _LEVELS)) if is_heading(metadata) else 0


def _subtrees(rows: _Rows) -> list[_Rows]:
    starts = [index for index, (depth, _) in enumerate(rows) if depth == rows[0][0]]
    return [rows[start:end] for start, end in zip(starts, [*starts[1:], len(rows)], strict=True)]


def _write_section(lines: list[str], rows: _Rows, above: int) -> None:
    """What stands below a heading of a level: tasks, then headings of deeper levels."""
    trees = _subtrees(rows) if rows else []
    sections = [tree for tree in trees if _level(tree[0][1]) and len(tree) > 1 and above < _LEVELS]
    items = [tree for tree in trees if tree not in sections]
    lines += [""] if lines and items else []
    for tree in items:
        _write_items(lines, tree)
    most = _LEVELS
    for tree in sections:
        task = tree[0][1]
        most = level = min(max(_level(task), above + 1), most)  # a deeper one would stand below its neighbour
        title = str(task["title"])
        lines += [""] if lines else []
        lines.append(f"{'#' * level} {one_line(title)}{_extras(_as_heading(tree, level), title, is_section=True)}")
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
        shown = _as_heading(_subtrees(tree[index:])[0], 0) if is_group else task
        lines.append(f"{indent}- {'' if is_group else f'[{box}] '}{one_line(title)}{_extras(shown, title)}")
        description = str(task.get("description", ""))
        if description and _is_plain(description):
            lines.extend(f"{indent}  > {line}" if line else f"{indent}  >" for line in description.split("\n"))


def _as_heading(tree: _Rows, level: int) -> dict[str, Any]:
    """A heading with what its line doesn't say by itself: its level, and its status, which follows from those below."""
    task = tree[0][1]
    metadata: dict[str, Any] = dict(task["metadata"])
    if metadata["heading"] == level:
        del metadata["heading"]
    done = all(below[0][1].get("status") == "completed" for below in _subtrees(tree[1:]))
    says_so = task.get("status", "pending") == ("completed" if done else "pending")
    return {**task, "metadata": metadata, _STATUS: "" if says_so else task["status"]}


def _utc(at: int) -> str | int:
    """A time in milliseconds since 1970 as people read it, exactly, if the calendar goes so far."""
    try:
        return datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return at


def _is_plain(description: str) -> bool:
    """Whether lines that are quoted read back the same."""
    return "\r" not in description and description == description.strip("\n").rstrip() and "\t" not in description


def _extras(task: dict[str, Any], title: str, *, is_section: bool = False) -> str:
    told = {**task, "metadata": dict(visible_items(task.get("metadata") or {}))}
    members = {key: told[key] for key in _SAME if told.get(key) not in (None, "", [], (), {}, "normal")}
    for name in ("due", "not_before"):
        if name in members:
            members[name] = task.get(f"{name}_day") or _utc(task[name])
    if status := task.get(_STATUS, "failed" if task.get("status") == "failed" else ""):
        members["status"] = status
    if notes := [
        {"text": note["text"], "author": note["actor"], "at": _utc(note["at"])} for note in task.get("notes", ())
    ]:
        members["notes"] = notes
    if one_line(title) != title or "<!--" in title or title.endswith("#"):
        members["title"] = title
    description = str(task.get("description", ""))
    if description and (is_section or not _is_plain(description)):
        members["description"] = description
    if "id" in task and (members.get("blocked_by") or task.get("blocks")):
        members["ref"] = task["id"]
    if not members:
        return ""
    text = json.dumps(members, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    return f" <!-- punchlist: {text} -->"
