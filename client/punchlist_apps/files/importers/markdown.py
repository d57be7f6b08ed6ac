"""Reads checklists in Markdown.

List items with checkboxes are tasks. In text without checkboxes, all list items are. Headings above tasks become their
parents, and so do items with nested items. The rest of an item's text is its description. `exporters.markdown` writes
checklists that read back unchanged.
"""

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, cast

from punchlist.base import dates
from punchlist.base.text import one_line
from punchlist_apps.files.exporters.markdown import MEMBERS
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import MAX_TASKS, Draft, Item, Note, build_too_many_error
from punchlist_apps.files.importers.markdown_forms import (
    BOXES,
    MARKDOWN,
    MarkdownForm,
    detect_form,
    get_members,
    read_outline,
    require_form,
)
from punchlist_apps.files.importers.outline import ANY_BOX, Entry, parse_outline
from punchlist_apps.files.importers.wrong import FormatError

_OBVIOUS = frozenset(" xX/=✗")
"""Characters in checkboxes whose conversion needs no remark."""
EXTRAS = re.compile(r"<!-- punchlist: (?P<json>\{[^<]*\}) -->[ \t]*$")
"""The comment that the exporter adds after a title and a space."""

_ALLOWED = frozenset((*MEMBERS, "title", "description", "ref", "status", "notes"))


def read(documents: Sequence[Document], name: str = "") -> Draft:
    """Read the tasks in a document, in order. Without the `name` of a form, detect the form.

    Raises:
        FormatError: The file contains no tasks, or nothing of the form.
    """
    document = documents[0]
    return read_form(document, require_form(document, name) if name else detect_form(document))


def read_form(document: Document, form: MarkdownForm) -> Draft:
    """Read the tasks in a document of a form."""
    # Checkboxes are counted first, since parsing too many tasks would take a minute.
    if beyond := next(islice(ANY_BOX.finditer(document.text), MAX_TASKS, None), None):
        raise build_too_many_error(document.name, document.text.count("\n", 0, beyond.start()) + 1)
    draft = Draft(form.name, document.name)
    outline = read_outline(document.text, form)
    items: list[Item | None] = []
    refs: list[str] = []
    open_refs: set[str] = set()
    for index, entry in enumerate(outline.entries):
        parent = refs[entry.above] if entry.above >= 0 else ""
        item = _add(draft, entry, f"\0{index}", parent, open_refs, form)
        items.append(item)
        refs.append(item.ref if item else parent)
    for item, entry in zip(items, outline.entries, strict=True):
        if item is not None:
            item.blocked_by += [refs[other] for other in entry.blockers if items[other] is not None]
    if form is not MARKDOWN:
        whole = {entry.line + 1: one_line(remove_extras(entry.title)) for entry in parse_outline(document.text).entries}
        for item in draft.items:
            item.whole_title = whole.get(item.line, "")
    draft.complete_headings(open_refs)
    for text, count, line in (
        ("lines of front matter", outline.front, 1),
        ("the document's title", int(outline.title >= 0), outline.title + 1),
        ("lines of text that belong to no task", outline.prose, 0),
        ("boxes in code, tables, quotations or comments", outline.hidden, 0),
        *((text, 1, line) for text, line in outline.left_out),
    ):
        if count:
            draft.skip(text, line, count)
    if not draft.items:
        raise FormatError(f"no tasks found; the nearest form is {form.name}, which needs {form.needs}", document.name)
    return draft.finish()


def _add(  # noqa: PLR0913
    draft: Draft, entry: Entry, ref: str, parent: str, open_refs: set[str], form: MarkdownForm
) -> Item | None:
    """Add an entry's task, and add its `ref` to `open_refs` if its status depends on its subtasks."""
    line = entry.line + 1
    title, extras = entry.title, {}
    if match := EXTRAS.search(title):
        title, extras = title[: match.start()].rstrip(), _parse_extras(match["json"], draft.name, line)
    box = entry.box or ""
    members = get_members(entry, form)
    if "status" in extras:
        members = dict(entry.members)  # Older versions wrote failed tasks with the checkbox of important tasks.
    if box not in BOXES:
        draft.note_change(f"box [{box}], imported as pending", line)
    elif box and box not in _OBVIOUS and box not in form.statuses and "status" not in extras:
        meaning = BOXES[box]
        word = " ".join(meaning.get("labels", [])) or meaning.get("status") or meaning.get("priority", "pending")
        draft.note_change(f"box [{box}], imported as {word}".replace("_", " "), line)
    labels = [*extras.pop("labels", []), *members.pop("labels", [])]
    links = [(str(link.get("kind")), link.get("to")) for link in extras.pop("links", [])]
    blocked_by = [f"\0{ref}" if ref.startswith("line-") else ref for ref in extras.pop("blocked_by", [])]
    own_ref = extras.pop("ref", "")
    metadata = {**members.pop("metadata", {}), **(get_heading_metadata(entry) if entry.kind != "task" else {})}
    merged: dict[str, Any] = {"description": entry.description, **members, **extras, "labels": labels, "links": links}
    merged |= {"parent": parent, "blocked_by": blocked_by, "metadata": metadata | merged.get("metadata", {})}
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
    """Return a title without the comment that the exporter adds."""
    match = EXTRAS.search(title)
    return title[: match.start()].rstrip(" \t") if match else title
