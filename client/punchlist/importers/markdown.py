"""Markdown: check lists as people write them, and the form in which a list is written so that it reads back whole.

Boxes alone are tasks where there are boxes; without any, each item of a list is one. Headings above tasks become their
parents, nesting is `parent`, what else stands in an item is its description. What a check list has no words for is
written into an HTML comment at the item's end.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from punchlist import dates
from punchlist.importers.document import Document
from punchlist.importers.draft import MOST_TASKS, Draft, Item, Note, too_many
from punchlist.importers.outline import ANY_BOX, Entry, outline
from punchlist.importers.wrong import FormatError
from punchlist.text import one_line

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
    """The tasks of a text, in order.

    Raises:
        FormatError: A comment of ours is broken, tasks wait for each other in a circle, or there are none.
    """
    document = documents[0]
    if beyond := next(islice(ANY_BOX.finditer(document.text), MOST_TASKS, None), None):  # parsing it takes a minute
        raise too_many(document.name, document.text.count("\n", 0, beyond.start()) + 1)
    draft = Draft("markdown", document.name)
    found = outline(document.text)
    is_kiro = bool(_KIRO.search(document.text))
    refs: list[str] = []
    for index, entry in enumerate(found.entries):
        item = _add(draft, entry, f"\0{index}", is_kiro=is_kiro)
        refs.append(item.ref if item else refs[entry.above] if entry.above >= 0 else "")
        if item is not None and entry.above >= 0:
            item.parent = refs[entry.above]
    _finish_above(draft, {f"\0{index}" for index, entry in enumerate(found.entries) if entry.kind != "task"})
    for text, count, line in (
        ("lines of front matter", found.front, 1),
        ("the document's title", int(found.title >= 0), found.title + 1),
        ("lines of text that belong to no task", found.prose, 0),
        ("boxes in code, tables, quotations or comments", found.hidden, 0),
    ):
        if count:
            draft.pass_over(text, line, count)
    return draft.finish()


def _add(draft: Draft, entry: Entry, ref: str, *, is_kiro: bool) -> Item | None:
    line = entry.line + 1
    title, extras = entry.title, {}
    if match := EXTRAS.search(title):
        title, extras = title[: match.start()].rstrip(), _extras_in(match["json"], draft.name, line)
    if entry.kind == "heading":
        return draft.add(title, ref=ref, line=line, metadata={"heading": entry.indent})
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
    item = draft.add(merged.pop("title", title), exact="title" in extras, ref=own or ref, line=line, **merged)
    if item is not None:
        item.blocked_by = blocked_by
    return item


def _finish_above(draft: Draft, plain: set[str]) -> None:
    """What stands above tasks without being one is completed when all of them are."""
    below: dict[str, list[Item]] = {}
    for item in draft.items:
        below.setdefault(item.parent, []).append(item)
    for item in reversed(draft.items):
        parts = below.get(item.ref, ())
        if item.ref in plain and parts and all(one.members.get("status") == "completed" for one in parts):
            item.members["status"] = "completed"


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
            members[member] = dates.read(given)
            if members[member] is None:
                raise FormatError(f"the punchlist comment has a wrong {member}", name, line)
    members["notes"] = [_note(one, name, line) for one in members.get("notes", [])]
    return members


def _note(one: Any, name: str, line: int) -> Note:
    """A note: its text, or an object that also names its author and when it was written."""
    note: dict[str, Any] = cast("dict[str, Any]", one) if isinstance(one, dict) else {"text": one}
    text, author, at = cast("tuple[Any, Any, Any]", (note.get("text"), note.get("author", ""), note.get("at", 0)))
    if isinstance(at, str) and (written := dates.read(at)) is not None:
        at = written.at
    if not isinstance(text, str) or not isinstance(author, str) or not isinstance(at, int):
        raise FormatError("the punchlist comment has a wrong note", name, line)
    return Note(text, author, at)


def without_extras(title: str) -> str:
    """Return a title without what `write` puts behind it."""
    match = EXTRAS.search(title)
    return title[: match.start()].rstrip(" \t") if match else title


def write(tasks: Iterable[dict[str, Any]], depths: Sequence[int]) -> str:
    """Tasks as a check list that `read` reads back; `depths` are their levels of nesting."""
    lines: list[str] = []
    for task, depth in zip(tasks, depths, strict=True):
        indent = "  " * depth
        title = str(task["title"])
        extras = _extras(task, title)
        box = "-" if _is_cancelled(task) else BOX_OF[str(task.get("status", "pending"))]
        lines.append(f"{indent}- [{box}] {one_line(title)}{extras}")
        description = str(task.get("description", ""))
        if description and _is_plain(description):
            lines.extend(f"{indent}  > {line}" if line else f"{indent}  >" for line in description.split("\n"))
    return "".join(f"{line}\n" for line in lines)


def _utc(at: int) -> str | int:
    """A time in milliseconds since 1970 as people read it, exactly, if the calendar goes so far."""
    try:
        return datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return at


def _is_cancelled(task: dict[str, Any]) -> bool:
    return task.get("status") == "completed" and "cancelled" in task.get("labels", ())


def _is_plain(description: str) -> bool:
    """Whether lines that are quoted read back the same."""
    return "\r" not in description and description == description.strip("\n").rstrip() and "\t" not in description


def _extras(task: dict[str, Any], title: str) -> str:
    members = {key: task[key] for key in _SAME if task.get(key) not in (None, "", [], (), {}, "normal")}
    for name in ("due", "not_before"):
        if name in members:
            members[name] = task.get(f"{name}_day") or _utc(task[name])
    if task.get("status") in ("failed",):
        members["status"] = task["status"]
    if notes := [
        {"text": note["text"], "author": note["actor"], "at": _utc(note["at"])} for note in task.get("notes", ())
    ]:
        members["notes"] = notes
    if one_line(title) != title or "<!--" in title:
        members["title"] = title
    description = str(task.get("description", ""))
    if description and not _is_plain(description):
        members["description"] = description
    if "id" in task and (members.get("blocked_by") or task.get("blocks")):
        members["ref"] = task["id"]
    if not members:
        return ""
    text = json.dumps(members, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    return f" <!-- punchlist: {text} -->"
