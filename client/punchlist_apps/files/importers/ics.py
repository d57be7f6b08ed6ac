"""iCalendar: the VTODOs in a calendar (RFC 5545). The parser is small because few properties are needed."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from punchlist.base.dates import When
from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.wrong import FormatError

_LINE = re.compile(r'^([A-Za-z0-9-]+)((?:;[^=:;"]+=(?:"[^"]*"|[^";:]*)(?:,(?:"[^"]*"|[^";:,]*))*)*):(.*)$', re.DOTALL)
_PARAMETER = re.compile(r';([^=:;"]+)=("[^"]*"|[^";:]*)')
_ESCAPE = re.compile(r"\\([\\;,nN])")
_COMMA = re.compile(r"(?<!\\),")
_STATUSES = {"NEEDS-ACTION": "pending", "IN-PROCESS": "in_progress", "COMPLETED": "completed", "CANCELLED": "cancelled"}
_READ = frozenset(
    "UID SUMMARY DESCRIPTION DUE DTSTART STATUS PERCENT-COMPLETE PRIORITY CATEGORIES RELATED-TO URL COMMENT ATTACH"
    " ESTIMATED-DURATION DURATION COMPLETED RECURRENCE-ID".split()
)
_DERIVED = frozenset("DTSTAMP LAST-MODIFIED SEQUENCE".split())
_HIGHEST, _HIGH, _MEDIUM = 1, 4, 5


class _Property(NamedTuple):
    """A content line: its number, name, parameters and raw value."""

    line: int
    name: str
    parameters: dict[str, str]
    raw: str

    @property
    def text(self) -> str:
        return _unescape(self.raw)


def read(documents: Sequence[Document]) -> Draft:
    """Read the to-dos in a calendar. Events are skipped."""
    document = documents[0]
    draft = Draft("ics", document.name)
    components: list[tuple[str, int]] = []
    todo: list[_Property] = []
    for prop in _parse_properties(draft, document):
        if prop.name == "BEGIN":
            components.append((prop.raw.strip().upper(), prop.line))
            if components[-1][0] in ("VEVENT", "VJOURNAL", "VALARM"):
                draft.skip(f"{components[-1][0]}", prop.line)
            if components[-1][0] == "VTODO":
                todo = []
        elif prop.name == "END":
            name = prop.raw.strip().upper()
            if not components or components[-1][0] != name:
                raise FormatError(f"END:{name} closes nothing", document.name, prop.line)
            components.pop()
            if name == "VTODO":
                _add(draft, todo)
        elif components and components[-1][0] == "VTODO":
            todo.append(prop)
    if components:
        raise FormatError(f"{components[-1][0]} is not closed: the file is truncated", document.name, components[-1][1])
    return draft.finish()


def _parse_properties(draft: Draft, document: Document) -> Iterator[_Property]:
    """Yield the unfolded content lines. A line that starts with a space continues the previous line."""
    start, whole = 0, ""
    for number, line in enumerate((*document.text.split("\n"), ""), 1):
        if line[:1] in (" ", "\t") and whole:
            whole += line[1:]
            continue
        if match := _LINE.match(whole):
            parameters = {name.upper(): value.strip('"') for name, value in _PARAMETER.findall(match[2])}
            yield _Property(start, match[1].upper(), parameters, match[3])
        elif whole.strip():
            draft.skip("lines that are not properties", start)
        start, whole = number, line


def _add(draft: Draft, todo: list[_Property]) -> None:  # noqa: C901 - one property after the other
    first = {prop.name: prop for prop in reversed(todo)}
    line = todo[0].line if todo else 0

    def text(name: str) -> str:
        return first[name].text if name in first else ""

    def when(name: str) -> When | None:
        prop = first.get(name)
        if prop is None:
            return None
        return words.parse_when(draft, prop.raw.strip(), name, prop.line, zone=prop.parameters.get("TZID", ""))

    for prop in todo:
        if prop.name not in _READ | _DERIVED:
            draft.skip(f"`{prop.name}`", prop.line)
    done = "COMPLETED" in first or text("PERCENT-COMPLETE").strip() == "100"
    is_started = text("PERCENT-COMPLETE").strip() not in ("", "0")
    word = _STATUSES.get(text("STATUS").strip().upper(), text("STATUS").strip())
    state = words.parse_status(
        draft, word or ("completed" if done else "in_progress" if is_started else "pending"), line
    )
    urls = [prop.raw.strip() for prop in todo if prop.name in ("URL", "ATTACH") and "://" in prop.raw[:40]]
    item = draft.add(
        text("SUMMARY") or text("DESCRIPTION").strip().partition("\n")[0],
        key=" ".join(filter(None, (text("UID").strip(), text("RECURRENCE-ID").strip()))),
        line=line,
        description=text("DESCRIPTION"),
        state=state,
        priority=_parse_priority(text("PRIORITY")),
        due=when("DUE"),
        not_before=when("DTSTART"),
        estimate_ms=words.parse_duration_ms(text("ESTIMATED-DURATION") or text("DURATION")),
        notes=[prop.text for prop in todo if prop.name == "COMMENT"],
        links=[("url", url) for url in urls],
        labels=[_unescape(part) for prop in todo if prop.name == "CATEGORIES" for part in _COMMA.split(prop.raw)],
    )
    if item is None:
        return
    for prop in todo:
        kind = prop.parameters.get("RELTYPE", "PARENT").upper()
        if prop.name == "RELATED-TO" and kind == "PARENT":
            item.parent = prop.text.strip()
        elif prop.name == "RELATED-TO" and kind in ("DEPENDS-ON", "FINISHTOSTART"):
            item.blocked_by.append(prop.text.strip())
        elif prop.name == "RELATED-TO" and kind != "CHILD":  # The child names its parent.
            item.relations.append(("relates-to", prop.text.strip()))


def _unescape(raw: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], raw)


def _parse_priority(text: str) -> str:
    """Convert a priority, where 1 is the highest, 5 medium, 9 the lowest, and 0 none."""
    number = int(text) if text.strip().isdecimal() else 0
    if not 0 < number < 10:  # noqa: PLR2004 - the range of the RFC
        return "normal"
    return "urgent" if number <= _HIGHEST else "high" if number <= _HIGH else "normal" if number == _MEDIUM else "low"
