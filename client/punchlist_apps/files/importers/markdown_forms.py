"""The forms of Markdown plans: how a file's form is recognized, its tasks are read, and statuses are written."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from punchlist_apps.files.exporters.markdown import BOX_OF
from punchlist_apps.files.importers import backlog, logseq, markdown_specs, obsidian
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.outline import BOX_LINE, Entry, Outline, list_above, parse_outline
from punchlist_apps.files.importers.wrong import FormatError

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

_SPEC_BOXES = "".join(BOXES)
_TICKS = {"completed": "x"}
"""Status -> character, for programs that know only open and ticked boxes."""

_BOX = r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[[ xX/~-]\]"
_FRONT = r"\A---[ \t]*\n(?:(?!---).*\n)*?"
_OPTIONAL = {"priority": "low", "labels": ["optional"]}


class MarkdownForm(NamedTuple):
    """A form of Markdown plans.

    Attributes:
        needs: What each file of this form contains, for errors.
        sign: Matches the text of a file of this form.
        least: Matches what a file must contain to be read in this form by request.
        folder: Part of the path of a file of this form; empty if its path doesn't show its form.
        read: Reads the marks of the entries.
        statuses: Character in a checkbox -> status, where it differs from other plans.
        written: Status -> character to write. Other statuses are written as an open box.
        boxes: The characters that a checkbox may contain; empty for all characters.
        has_markers: Whether words instead of checkboxes show the status.
        wraps: Whether a long title may continue on the next line. Where programs write fields below a title, it may
            not.
    """

    name: str
    needs: str
    sign: re.Pattern[str]
    least: re.Pattern[str]
    folder: str = ""
    read: Callable[[Outline, Sequence[str]], None] | None = None
    statuses: Mapping[str, str] = {}
    written: Mapping[str, str] = BOX_OF
    boxes: str = ""
    has_markers: bool = False
    wraps: bool = True


_ANY_BOX = re.compile(_BOX, re.MULTILINE)

MARKDOWN = MarkdownForm(
    "markdown",
    "list items, or checkboxes such as - [ ] Title",
    re.compile("", re.MULTILINE),
    re.compile("", re.MULTILINE),
)

FORMS: tuple[MarkdownForm, ...] = (
    MarkdownForm(
        "kanban",
        "kanban-plugin in its front matter, and lanes with cards such as - [ ] Title",
        re.compile(rf"{_FRONT}kanban-plugin:", re.MULTILINE),
        _ANY_BOX,
        read=obsidian.read_kanban,
        written=_TICKS,
        wraps=False,
    ),
    MarkdownForm(
        "kiro",
        "numbered tasks such as - [ ] 2.1 Title, with _Requirements: 1.1_ below them",
        re.compile(rf"^[^\S\n]*[-*] _Requirements?: |{_BOX}\\?\*[ \t]", re.MULTILINE),
        _ANY_BOX,
        folder="/.kiro/specs/",
        read=markdown_specs.read_kiro,
        statuses={"-": "in_progress"},
        written={**_TICKS, "in_progress": "-"},
        boxes=_SPEC_BOXES,
        wraps=False,
    ),
    MarkdownForm(
        "spec-kit",
        "tasks with ids such as - [ ] T001 Title",
        re.compile(rf"{_BOX}[ \t]+\**T\d{{3}}", re.MULTILINE),
        re.compile(rf"{_BOX}[ \t]+\**T\d{{3}}", re.MULTILINE),
        read=markdown_specs.read_spec_kit,
        written=_TICKS,
        boxes=_SPEC_BOXES,
        wraps=False,
    ),
    MarkdownForm(
        "openspec",
        "numbered sections such as ## 1. Title, with tasks such as - [ ] 1.1 Title",
        re.compile(rf"^## \d+\.? .*\n(?:[^\S\n]*\n)*{_BOX[1:]}[ \t]+\**\d+\.\d+", re.MULTILINE),
        _ANY_BOX,
        folder="/openspec/changes/",
        read=markdown_specs.read_openspec,
        written=_TICKS,
        boxes=_SPEC_BOXES,
    ),
    MarkdownForm(
        "logseq",
        "blocks such as - TODO Title",
        re.compile(rf"\A(?:(?!{_BOX}).*\n)*?{logseq.MARKER.pattern}", re.MULTILINE),
        logseq.MARKER,
        read=logseq.read,
        has_markers=True,
        wraps=False,
    ),
    MarkdownForm(
        "obsidian",
        "checkboxes with fields such as 📅 2026-12-24 or [due:: 2026-12-24]",
        re.compile(
            rf"{_BOX}.*(?:[📅📆🗓⏳⌛🛫➕✅❌]\ufe0f?[ ]*\d{{4}}-|[🆔⛔]\ufe0f?[ ]*\w|🔁[ ]*every"
            r"|[🔺⏫🔼🔽⏬]\ufe0f?[ ]*$"
            r"|[\[(](?:due|scheduled|start|priority|repeat|id|dependsOn)::)",
            re.MULTILINE,
        ),
        _ANY_BOX,
        read=obsidian.read_tasks,
        wraps=False,
    ),
)
"""The forms, in the order in which they are tried."""

BY_NAME = {form.name: form for form in (*FORMS, MARKDOWN)}


def detect_form(document: Document) -> MarkdownForm:
    """Return the form of a file by its folder, or else by its text.

    Raises:
        FormatError: The file is a task of Backlog.md, whose checkboxes are not tasks.
    """
    if backlog.is_task(document):
        raise FormatError("a task of Backlog.md is not a plan; to import it: punch import backlog", document.name)
    path = os.path.abspath(document.name).replace(os.sep, "/")
    possible = [form for form in FORMS if form.least.search(document.text)]
    by_folder = (form for form in possible if form.folder and form.folder in path)
    by_text = (form for form in possible if form.sign.search(document.text))
    return next(by_folder, None) or next(by_text, MARKDOWN)


def require_form(document: Document, name: str) -> MarkdownForm:
    """Return the form `name`.

    Raises:
        FormatError: The file contains nothing of this form.
    """
    form = BY_NAME[name]
    if not form.least.search(document.text):
        near = detect_form(document).name
        raise FormatError(f"not {name}, which needs {form.needs}; the nearest form is {near}", document.name)
    return form


def read_outline(text: str, form: MarkdownForm, *, boxes_only: bool = False) -> Outline:
    """Parse text in a form, with the members that its marks set."""
    marked = logseq.to_boxes(text) if form.has_markers else text
    outline = parse_outline(marked, boxes_only=boxes_only, boxes=form.boxes, wraps=form.wraps)
    for entry in outline.entries:
        if entry.is_optional:
            entry.members = {**_OPTIONAL, "labels": [*_OPTIONAL["labels"]]}
    if form.read is not None:
        form.read(outline, text.split("\n"))
        _complete_blockers(outline)
    return outline


def _complete_blockers(outline: Outline) -> None:
    """Drop dependencies between a task and its own parts, and make the parts of each task wait for its blockers.

    The parts need their own, because the daemon hands out a task even if its parent has open blockers.
    """
    entries = outline.entries
    for index, entry in enumerate(entries):
        above = set(list_above(entries, index))
        kept = [other for other in entry.blockers if other not in above and index not in list_above(entries, other)]
        dropped = len(entry.blockers) - len(kept)
        outline.left_out += [("dependencies between a task and its own part", entry.line + 1)] * dropped
        entry.blockers = kept
    for entry in entries:
        inherited = entries[entry.above].blockers if entry.above >= 0 else []
        entry.blockers = list(dict.fromkeys((*entry.blockers, *inherited)))


def get_members(entry: Entry, form: MarkdownForm) -> dict[str, Any]:
    """Return the members that an entry's checkbox and marks set."""
    box = entry.box or ""
    members = {"status": form.statuses[box]} if box in form.statuses else BOXES.get(box, {})
    labels = [*entry.members.get("labels", ()), *members.get("labels", ())]
    return {**entry.members, **members, **({"labels": labels} if labels else {})}


def get_status(entry: Entry, form: MarkdownForm) -> str:
    return str(get_members(entry, form).get("status", "pending"))


def write_status(line: str, status: str, form: MarkdownForm) -> str:
    """Return an entry's first line with a status. Only its checkbox or marker changes."""
    if form.has_markers and logseq.MARKER.match(line):
        return logseq.write_marker(line, status)
    match = BOX_LINE.match(line)
    return f"{match['head']}{form.written.get(status, ' ')}{match['rest']}" if match else line


def format_status(status: str, form: MarkdownForm) -> str:
    """Return the checkbox or marker of a new task."""
    line = logseq.write_marker("- TODO .", status) if form.has_markers else write_status("- [ ] .", status, form)
    return line.removeprefix("- ").removesuffix(" .")
