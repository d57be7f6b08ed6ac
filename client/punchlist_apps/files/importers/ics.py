"""iCalendar: the VTODOs of a calendar (RFC 5545). Ten properties matter, so a small reader does."""

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
_COUNTED = frozenset("DTSTAMP LAST-MODIFIED SEQUENCE".split())
_HIGHEST, _HIGH, _MEDIUM = 1, 4, 5


class _Property(NamedTuple):
    """A content line: its name, parameters and raw value, and where it stands."""

    line: int
    name: str
    parameters: dict[str, str]
    raw: str

    @property
    def text(self) -> str:
        return _plain(self.raw)


def read(documents: Sequence[Document]) -> Draft:
    """The to-dos of a calendar; its events are passed over."""
    document = documents[0]
    draft = Draft("ics", document.name)
    open_: list[tuple[str, int]] = []
    todo: list[_Property] = []
    for found in _properties(draft, document):
        if found.name == "BEGIN":
            open_.append((found.raw.strip().upper(), found.line))
            if open_[-1][0] in ("VEVENT", "VJOURNAL", "VALARM"):
                draft.pass_over(f"{open_[-1][0]}", found.line)
            if open_[-1][0] == "VTODO":
                todo = []
        elif found.name == "END":
            name = found.raw.strip().upper()
            if not open_ or open_[-1][0] != name:
                raise FormatError(f"END:{name} closes nothing", document.name, found.line)
            open_.pop()
            if name == "VTODO":
                _add(draft, todo)
        elif open_ and open_[-1][0] == "VTODO":
            todo.append(found)
    if open_:
        raise FormatError(f"{open_[-1][0]} is not closed: the file ends in the middle", document.name, open_[-1][1])
    return draft.finish()


def _properties(draft: Draft, document: Document) -> Iterator[_Property]:
    """The content lines, unfolded: a line that begins with a space goes on with the one before it."""
    start, whole = 0, ""
    for number, line in enumerate((*document.text.split("\n"), ""), 1):
        if line[:1] in (" ", "\t") and whole:
            whole += line[1:]
            continue
        if match := _LINE.match(whole):
            parameters = {name.upper(): value.strip('"') for name, value in _PARAMETER.findall(match[2])}
            yield _Property(start, match[1].upper(), parameters, match[3])
        elif whole.strip():
            draft.pass_over("lines that are no property", start)
        start, whole = number, line


def _add(draft: Draft, todo: list[_Property]) -> None:  # noqa: C901 - one property after the other
    first = {found.name: found for found in reversed(todo)}
    line = todo[0].line if todo else 0

    def text(name: str) -> str:
        return first[name].text if name in first else ""

    def when(name: str) -> When | None:
        found = first.get(name)
        if found is None:
            return None
        return words.when(draft, found.raw.strip(), name, found.line, zone=found.parameters.get("TZID", ""))

    for found in todo:
        if found.name not in _READ | _COUNTED:
            draft.pass_over(f"`{found.name}`", found.line)
    done = "COMPLETED" in first or text("PERCENT-COMPLETE").strip() == "100"
    begun = text("PERCENT-COMPLETE").strip() not in ("", "0")
    word = _STATUSES.get(text("STATUS").strip().upper(), text("STATUS").strip())
    state = words.status(draft, word or ("completed" if done else "in_progress" if begun else "pending"), line)
    urls = [one.raw.strip() for one in todo if one.name in ("URL", "ATTACH") and "://" in one.raw[:40]]
    item = draft.add(
        text("SUMMARY") or text("DESCRIPTION").strip().partition("\n")[0],
        key=" ".join(filter(None, (text("UID").strip(), text("RECURRENCE-ID").strip()))),
        line=line,
        description=text("DESCRIPTION"),
        state=state,
        priority=_priority(text("PRIORITY")),
        due=when("DUE"),
        not_before=when("DTSTART"),
        estimate_ms=words.duration_ms(text("ESTIMATED-DURATION") or text("DURATION")),
        notes=[one.text for one in todo if one.name == "COMMENT"],
        links=[("url", url) for url in urls],
        labels=[_plain(part) for one in todo if one.name == "CATEGORIES" for part in _COMMA.split(one.raw)],
    )
    if item is None:
        return
    for one in todo:
        kind = one.parameters.get("RELTYPE", "PARENT").upper()
        if one.name == "RELATED-TO" and kind == "PARENT":
            item.parent = one.text.strip()
        elif one.name == "RELATED-TO" and kind in ("DEPENDS-ON", "FINISHTOSTART"):
            item.blocked_by.append(one.text.strip())
        elif one.name == "RELATED-TO" and kind != "CHILD":  # the child says so, too
            item.relations.append(("relates-to", one.text.strip()))


def _plain(raw: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], raw)


def _priority(text: str) -> str:
    """1 is the highest, 5 the middle, 9 the lowest, 0 none."""
    number = int(text) if text.strip().isdecimal() else 0
    if not 0 < number < 10:  # noqa: PLR2004 - what there is
        return "normal"
    return "urgent" if number <= _HIGHEST else "high" if number <= _HIGH else "normal" if number == _MEDIUM else "low"
