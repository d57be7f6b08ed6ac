"""Org mode: headings with keywords, and checkboxes, are tasks. Other headings above tasks become their parents."""

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
    """A parsed heading: its depth, its members, and the lines below it."""

    depth: int
    line: int
    title: str
    members: words.Members
    tags: list[str]
    ident: str = ""
    body: list[str] = []
    boxes: list[tuple[int, int, str, str]] = []
    """Indentation, line, checkbox and text."""


def is_org(text: str) -> bool:
    """Return whether the text has a heading with a keyword, or a settings line."""
    keywords = "|".join(_STATUSES)
    return bool(
        re.search(rf"^(?:\*+ (?:{keywords})\s|#\+(?:TITLE|TODO|STARTUP|FILETAGS):)", text, re.MULTILINE | re.IGNORECASE)
    )


def read(documents: Sequence[Document]) -> Draft:
    document = documents[0]
    draft = Draft("org", document.name)
    headings = _parse_headings(draft, document)
    if not any(heading.members or heading.boxes for heading in headings):
        _make_all_tasks(draft, headings)
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
            draft.skip("headings without a task", heading.line)
        if item is None or not heading.members:
            _skip_text(draft, heading)
        above.append((heading, item.ref if item else "", tags))
        _add_boxes(draft, heading, item.ref if item else parent)
    plain = [heading for heading in headings if not heading.members]
    draft.complete_headings({f"\0h{heading.line}" for heading in plain} | {heading.ident for heading in plain})
    return draft.finish()


def _make_all_tasks(draft: Draft, headings: list[_Heading]) -> None:
    """Make each heading a task, for an outline without keywords or checkboxes."""
    for heading in headings[1:]:
        heading.members = {"status": "pending"}
        draft.note_change("headings without a keyword, imported as pending", heading.line)


def _parse_headings(draft: Draft, document: Document) -> list[_Heading]:
    statuses = dict(_STATUSES)
    headings = [_Heading(0, 0, "", {}, [])]
    drawer = block = ""
    for number, line in enumerate(document.text.split("\n"), 1):
        heading = headings[-1]
        if not block and (match := _KEYWORDS.match(line)):
            statuses |= _parse_keywords(match[1], statuses)
        elif not block and line.startswith("#"):
            block = "end_" if line[:8].lower() == "#+begin_" else ""
            heading.body += [line] if block else []
        elif block:
            heading.body.append(line)
            block = "" if line.strip()[:6].lower() == "#+end_" else block
        elif match := _HEADING.match(line):
            drawer = ""
            headings.append(_parse_heading(match, number, statuses, draft))
        elif drawer:
            drawer = _parse_drawer_line(draft, heading, drawer, line, number)
        elif match := _DRAWER.match(line):
            drawer = match[1].upper()
        elif dates := _PLANNED.findall(line):
            _set_dates(draft, heading, dates, number)
        elif match := _BOX.match(line):
            heading.boxes.append((len(match[1].expandtabs()), number, match[2], match[3]))
        else:
            heading.body.append(line)
    return headings


def _parse_keywords(text: str, statuses: dict[str, str]) -> dict[str, str]:
    """Parse `TODO NEXT | DONE DROPPED`. The words after the bar mean completed; without a bar, the last word does."""
    names = [name.partition("(")[0] for name in text.split()]
    bar = names.index("|") if "|" in names else len(names) - 1
    states = {name: "pending" for name in names[:bar]} | {name: "completed" for name in names[bar:]}
    return {name: statuses.get(name.upper(), state) for name, state in states.items() if name != "|"}


def _parse_heading(match: re.Match[str], line: int, statuses: dict[str, str], draft: Draft) -> _Heading:
    text = match[2]
    word, _, rest = text.partition(" ")
    members: words.Members = {}
    if word in statuses:
        members["status"], text = statuses[word], rest.strip()
    if priority := _PRIORITY.match(text):
        members["priority"] = _PRIORITIES.get(priority[1].upper()) or words.parse_priority(draft, "", line)
        text = text[priority.end() :]
        if "status" not in members:
            members = {}
    tags: list[str] = []
    if suffix := _TAGS.search(f" {text}"):
        tags = [tag for tag in suffix[1].split(":") if tag]
        text = f" {text}"[: suffix.start()]
    if text.startswith("COMMENT "):
        members = {}
    title = _LINK.sub(lambda link: link[2] or link[1], _COOKIE.sub("", text)).strip()
    return _Heading(len(match[1]), line, title, members, tags)


def _parse_drawer_line(draft: Draft, heading: _Heading, drawer: str, line: str, number: int) -> str:
    if line.strip().upper() == ":END:":
        return ""
    if drawer != "PROPERTIES":
        draft.skip(f"lines of the drawer {drawer}", number)
    elif match := _PROPERTY.match(line):
        name, value = match[1].upper(), match[2].strip()
        if name in ("ID", "CUSTOM_ID"):
            heading.ident = heading.ident or value
        elif name == "EFFORT" and heading.members:
            heading.members["estimate_ms"] = words.parse_duration_ms(value)
        else:
            draft.skip(f"property `{match[1]}`", number)
    return drawer


def _set_dates(draft: Draft, heading: _Heading, dates: list[tuple[str, str, str, str]], line: int) -> None:
    for name, date, clock, rest in dates:
        if name == "CLOSED" or not heading.members:
            draft.skip(name, line)
            continue
        at = words.parse_when(draft, f"{date} {clock.zfill(5)}" if clock else date, name, line)
        heading.members["due" if name == "DEADLINE" else "not_before"] = at
        if "+" in rest:
            draft.skip("repetitions of dates", line)


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
        links=[("url", url) for url, _ in _LINK.findall(body) if url.startswith(("http://", "https://"))],
        parent=parent,
        **members,
    )


def _skip_text(draft: Draft, heading: _Heading) -> None:
    lines = sum(bool(line.strip()) for line in heading.body)
    if lines:
        draft.skip("lines of text that belong to no task", heading.line + 1, lines)


def _add_boxes(draft: Draft, heading: _Heading, parent: str) -> None:
    stack: list[tuple[int, str]] = []
    for indent, line, box, text in heading.boxes:
        while stack and stack[-1][0] >= indent:
            stack.pop()
        above = stack[-1][1] if stack else parent
        title = _COOKIE.sub("", f" {text}").strip()
        item = draft.add(title, line=line, status=_BOXES.get(box, "completed"), parent=above)
        stack.append((indent, item.ref if item else above))
