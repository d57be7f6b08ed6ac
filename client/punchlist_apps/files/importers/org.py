"""Org mode: headings with a keyword and check boxes are tasks; other headings above tasks are their parents."""

import re
from collections.abc import Sequence

import msgspec

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft, Item

_HEADING = re.compile(r"^(\*+)\s+(.*)$")
_KEYWORDS = re.compile(r"^#\+(?:SEQ_|TYP_)?TODO:\s*(.*)$", re.IGNORECASE)
_BOX = re.compile(r"^(\s*)(?:[-+*]|\d+[.)])\s+(?:\[@\d+\]\s*)?\[([ xX-])\]\s*(.*)$")
_PRIORITY = re.compile(r"^\[#([A-Za-z0-9]+)\]\s*")
_TAGS = re.compile(r"(?<!\s)\s++:([\w@#%:]+):\s*$")
_COOKIE = re.compile(r"(?<!\s)\s*+\[\d*(?:/\d*|%)\]")
_PLANNED = re.compile(
    r"(SCHEDULED|DEADLINE|CLOSED):\s*+[<\[](\d{4}-\d\d-\d\d)(?:\s++[^\W\d][^\s<>\[\]]*+)?(?:\s++(\d\d?:\d\d))?"
    r"([^<>\[\]]*)[>\]]"
)
_DRAWER = re.compile(r"^\s*:([\w-]+):\s*$")
_PROPERTY = re.compile(r"^\s*:([\w-]+):\s+(.*)$")
_LINK = re.compile(r"\[\[([^\[\]]+)\](?:\[([^\[\]]+)\])?\]")
_STATUSES = {
    **dict.fromkeys(("TODO", "NEXT", "PROJ", "PROJECT", "TASK", "BUG", "SOMEDAY", "MAYBE", "IDEA", "FIXME"), "pending"),
    **dict.fromkeys(("STARTED", "STRT", "DOING", "INPROGRESS", "IN-PROGRESS", "ACTIVE", "REVIEW"), "in_progress"),
    **dict.fromkeys(("WAITING", "WAIT", "HOLD", "BLOCKED", "DEFERRED", "DELEGATED", "PAUSED"), "paused"),
    **dict.fromkeys(("DONE", "FIXED", "COMPLETED", "FINISHED", "CLOSED"), "completed"),
    **dict.fromkeys(("CANCELLED", "CANCELED", "KILL", "WONTFIX", "REJECTED", "ABORTED"), words.CANCELLED),
}
_PRIORITIES = {"A": "high", "B": "normal", "C": "low"}
_BOXES = {" ": "pending", "-": "in_progress"}


class _Heading(msgspec.Struct):
    """A heading as read: its depth, its members, and the lines below it."""

    depth: int
    line: int
    title: str
    members: words.Members
    tags: list[str]
    ident: str = ""
    body: list[str] = []
    boxes: list[tuple[int, int, str, str]] = []
    """Indent, line, box and text."""


def is_like(text: str) -> bool:
    """Whether a text is in this form: a heading with a keyword, or a line of settings."""
    keywords = "|".join(_STATUSES)
    return bool(
        re.search(rf"^(?:\*+ (?:{keywords})\s|#\+(?:TITLE|TODO|STARTUP|FILETAGS):)", text, re.MULTILINE | re.IGNORECASE)
    )


def read(documents: Sequence[Document]) -> Draft:
    document = documents[0]
    draft = Draft("org", document.name)
    headings = _headings(draft, document)
    if not any(heading.members or heading.boxes for heading in headings):
        _take_all(draft, headings)
    above: list[tuple[_Heading, str, list[str]]] = []
    for index, heading in enumerate(headings):
        while above and above[-1][0].depth >= heading.depth:
            above.pop()
        parent = next((ref for _, ref, _ in reversed(above) if ref), "")
        tags = [*(above[-1][2] if above else []), *heading.tags]
        item = None
        if heading.members or heading.boxes or _has_tasks(headings, index):
            item = _add(draft, heading, tags, parent)
        elif heading.title:
            draft.pass_over("headings without a task", heading.line)
        if item is None or not heading.members:
            _pass_over_text(draft, heading)
        above.append((heading, item.ref if item else "", tags))
        _add_boxes(draft, heading, item.ref if item else parent)
    open_ones = [one for one in headings if not one.members]
    draft.finish_headings({f"\0h{one.line}" for one in open_ones} | {one.ident for one in open_ones})
    return draft.finish()


def _take_all(draft: Draft, headings: list[_Heading]) -> None:
    """In an outline with neither keywords nor boxes each heading is a task."""
    for heading in headings[1:]:
        heading.members = {"status": "pending"}
        draft.change("headings without a keyword, which are to do here", heading.line)


def _headings(draft: Draft, document: Document) -> list[_Heading]:
    statuses = dict(_STATUSES)
    found = [_Heading(0, 0, "", {}, [])]
    drawer = block = ""
    for number, line in enumerate(document.text.split("\n"), 1):
        now = found[-1]
        if not block and (match := _KEYWORDS.match(line)):
            statuses |= _declared(match[1], statuses)
        elif not block and line.startswith("#"):
            block = "end_" if line[:8].lower() == "#+begin_" else ""
            now.body += [line] if block else []
        elif block:
            now.body.append(line)
            block = "" if line.strip()[:6].lower() == "#+end_" else block
        elif match := _HEADING.match(line):
            drawer = ""
            found.append(_heading(match, number, statuses, draft))
        elif drawer:
            drawer = _in_drawer(draft, now, drawer, line, number)
        elif match := _DRAWER.match(line):
            drawer = match[1].upper()
        elif planned := _PLANNED.findall(line):
            _plan(draft, now, planned, number)
        elif match := _BOX.match(line):
            now.boxes.append((len(match[1].expandtabs()), number, match[2], match[3]))
        else:
            now.body.append(line)
    return found


def _declared(text: str, known: dict[str, str]) -> dict[str, str]:
    """`TODO NEXT | DONE DROPPED`: behind the bar, or the last one, is the end of work."""
    names = [name.partition("(")[0] for name in text.split()]
    bar = names.index("|") if "|" in names else len(names) - 1
    states = {name: "pending" for name in names[:bar]} | {name: "completed" for name in names[bar:]}
    return {name: known.get(name.upper(), state) for name, state in states.items() if name != "|"}


def _heading(match: re.Match[str], line: int, statuses: dict[str, str], draft: Draft) -> _Heading:
    text = match[2]
    word, _, rest = text.partition(" ")
    members: words.Members = {}
    if word in statuses:
        members["status"], text = statuses[word], rest.strip()
    if found := _PRIORITY.match(text):
        members["priority"] = _PRIORITIES.get(found[1].upper()) or words.priority(draft, "", line)
        text = text[found.end() :]
        if "status" not in members:
            members = {}
    tags: list[str] = []
    if found := _TAGS.search(f" {text}"):
        tags = [tag for tag in found[1].split(":") if tag]
        text = f" {text}"[: found.start()]
    if text.startswith("COMMENT "):
        members = {}
    title = _LINK.sub(lambda one: one[2] or one[1], _COOKIE.sub("", text)).strip()
    return _Heading(len(match[1]), line, title, members, tags)


def _in_drawer(draft: Draft, heading: _Heading, drawer: str, line: str, number: int) -> str:
    if line.strip().upper() == ":END:":
        return ""
    if drawer != "PROPERTIES":
        draft.pass_over(f"lines of the drawer {drawer}", number)
    elif match := _PROPERTY.match(line):
        name, value = match[1].upper(), match[2].strip()
        if name in ("ID", "CUSTOM_ID"):
            heading.ident = heading.ident or value
        elif name == "EFFORT" and heading.members:
            heading.members["estimate_ms"] = words.duration_ms(value)
        else:
            draft.pass_over(f"property `{match[1]}`", number)
    return drawer


def _plan(draft: Draft, heading: _Heading, planned: list[tuple[str, str, str, str]], line: int) -> None:
    for what, date, clock, rest in planned:
        if what == "CLOSED" or not heading.members:
            draft.pass_over(what, line)
            continue
        at = words.when(draft, f"{date} {clock.zfill(5)}" if clock else date, what, line)
        heading.members["due" if what == "DEADLINE" else "not_before"] = at
        if "+" in rest:
            draft.pass_over("repetitions of dates", line)


def _has_tasks(headings: list[_Heading], index: int) -> bool:
    depth = headings[index].depth
    for heading in headings[index + 1 :]:
        if heading.depth <= depth:
            return False
        if heading.members or heading.boxes:
            return True
    return False


def _add(draft: Draft, heading: _Heading, tags: list[str], parent: str) -> Item | None:
    if not heading.depth:
        return None
    body = "\n".join(heading.body).strip("\n") if heading.members else ""
    members = dict(heading.members)
    state = members.pop("status", "pending")
    is_cancelled = state == words.CANCELLED
    return draft.add(
        heading.title,
        key=heading.ident,
        ref=heading.ident or f"\0h{heading.line}",
        line=heading.line,
        description=body,
        status="completed" if is_cancelled else state,
        labels=[*tags, *([words.CANCELLED] if is_cancelled else [])],
        metadata={} if heading.members else {"heading": heading.depth},
        links=[("url", found[0]) for found in _LINK.findall(body) if found[0].startswith(("http://", "https://"))],
        parent=parent,
        **members,
    )


def _pass_over_text(draft: Draft, heading: _Heading) -> None:
    lines = sum(bool(line.strip()) for line in heading.body)
    if lines:
        draft.pass_over("lines of text that belong to no task", heading.line + 1, lines)


def _add_boxes(draft: Draft, heading: _Heading, parent: str) -> None:
    stack: list[tuple[int, str]] = []
    for indent, line, box, text in heading.boxes:
        while stack and stack[-1][0] >= indent:
            stack.pop()
        above = stack[-1][1] if stack else parent
        title = _COOKIE.sub("", f" {text}").strip()
        item = draft.add(title, line=line, status=_BOXES.get(box, "completed"), parent=above)
        stack.append((indent, item.ref if item else above))
