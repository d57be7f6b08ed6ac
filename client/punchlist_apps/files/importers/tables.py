"""Tables with a header: CSV of Jira and Linear, with commas, semicolons or tabs between."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, timedelta
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft, Item, Note
from punchlist_apps.files.importers.wrong import FormatError

Row = dict[str, Any]
"""Columns by their names in lower case; a column that comes several times is a list, `name` the first."""

_CELL = 1 << 24
_JIRA = frozenset(
    "summary|issue key|key|issue id|issue type|status|status category|priority|resolution|assignee|due date|due|labels"
    "|description|comment|original estimate|parent|parent id|parent key|component/s|components|custom field (epic link)"
    "|custom field (parent link)|epic link|url|custom field (story points)|story points".split("|")
)
_LINEAR = frozenset(
    "id|title|description|status|estimate|priority|assignee|labels|due date|parent issue|project|related to|blocked by"
    "|duplicate of|completed|canceled|url".split("|")
)
_COUNTED = frozenset(
    "updated|last viewed|votes|watchers|watchers id|work ratio|uuid|status category changed|project type|project id|"
    "issue color|project lead|project description|project url|custom field (rank)|rank".split("|")
)


def header(document: Document) -> list[str]:
    """The columns of a table, in lower case; empty if the first line is no header."""
    first = document.text.lstrip("\n").split("\n", 1)[0]
    return [name.strip().lower() for name in next(csv.reader([first], delimiter=_delimiter(first)), list[str]())]


def rows(document: Document, spread: str = "") -> Iterator[tuple[int, Row]]:
    """The rows of a table with their lines; what stands behind the last column belongs to the last one but that.

    Args:
        spread: A column that may have several cells where the header names it once: it gets what a row has too much.

    Raises:
        FormatError: A quote is opened and never closed, or a cell is too large.
    """
    text = document.text
    delimiter = _delimiter(text.lstrip("\n").split("\n", 1)[0])
    csv.field_size_limit(_CELL)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    names: list[str] = []
    line = 1
    try:
        for cells in reader:
            if not names:
                names = [name.strip().lower() for name in cells]
            elif any(cell.strip() for cell in cells):
                yield line, _row(names, cells, spread)
            line = reader.line_num + 1
    except csv.Error as error:
        raise FormatError(f"not a table: {error}", document.name, line) from error


def read_jira(documents: Sequence[Document]) -> Draft:
    """Read the issues of Jira's CSV export, all fields or some."""
    document = documents[0]
    draft = Draft("jira", document.name)
    found: list[tuple[Item, Row]] = []
    by_number: dict[str, str] = {}
    for line, row in rows(document, spread="labels"):
        if row.pop(_SPREAD, None):
            draft.change("row with more cells than columns, whose surplus is labels here", line)
        key = _first(row, "issue key", "key")
        by_number[_first(row, "issue id")] = key
        links = [name for name in row if "issue link (" in name or name.startswith(("comment", "sub-task"))]
        draft.pass_over_rest(row, _JIRA | _COUNTED | {*links}, line)
        state = words.status(draft, _state(row), line)
        kind = _first(row, "issue type").lower()
        item = draft.add(
            _first(row, "summary"),
            key=key,
            line=line,
            description=_first(row, "description"),
            priority=words.priority(draft, _first(row, "priority"), line),
            owner=_first(row, "assignee"),
            due=words.when(draft, _first(row, "due date", "due"), "due date", line, is_day=True),
            estimate_ms=words.duration_ms(_first(row, "original estimate")),
            result_summary=_first(row, "resolution") if state["status"] == "completed" else "",
            notes=[_comment(text) for text in _all(row, "comment")],
            links=[("url", _first(row, "url"))],
            metadata={"points": _first(row, "custom field (story points)", "story points")},
            state=state,
            labels=[
                *(one for cell in _all(row, "labels") for one in cell.replace(",", " ").split()),
                *(f"component:{one}" for name in ("component/s", "components") for one in _all(row, name)),
                *([kind] if kind not in ("", "task", "sub-task", "subtask") else []),
            ],
        )
        if item is not None:
            found.append((item, row))
    for item, row in found:
        above = _first(
            row, "parent", "parent key", "parent id", *(f"custom field ({one} link)" for one in ("epic", "parent"))
        )
        item.parent = by_number.get(above, above) if above else ""
        _jira_links(draft, item, row)
    return draft.finish()


def _jira_links(draft: Draft, item: Item, row: Row) -> None:
    for name in row:
        if "issue link (" not in name:
            continue
        blocking = "block" in name
        for other in _all(row, name):
            if not blocking:
                item.relations.append(("relates-to", other))
            elif name.startswith("inward"):  # "is blocked by"
                item.blocked_by.append(other)
            elif (blocked := draft.find(other)) is not None:
                blocked.blocked_by.append(item.ref)


def read_linear(documents: Sequence[Document]) -> Draft:
    document = documents[0]
    draft = Draft("linear", document.name)
    for line, row in rows(document):
        draft.pass_over_rest(row, _LINEAR | _COUNTED, line)
        word = "canceled" if _first(row, "canceled") else _first(row, "status")
        state = words.status(draft, "done" if _first(row, "completed") and word != "canceled" else word, line)
        project = _first(row, "project")
        draft.add(
            _first(row, "title"),
            key=_first(row, "id"),
            line=line,
            description=_first(row, "description"),
            priority=words.priority(draft, _first(row, "priority"), line),
            owner=_first(row, "assignee"),
            due=words.when(draft, _linear_day(_first(row, "due date")), "due date", line),
            links=[("url", _first(row, "url"))],
            metadata={"points": _first(row, "estimate")},
            state=state,
            labels=[*_split(row, "labels"), *([f"project:{project}"] if project else [])],
            parent=_first(row, "parent issue"),
            blocked_by=_split(row, "blocked by"),
            relations=[("relates-to", one) for name in ("related to", "duplicate of") for one in _split(row, name)],
        )
    return draft.finish()


_SPREAD = "(more cells than columns)"


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _row(names: list[str], cells: list[str], spread: str) -> Row:
    row: Row = {}
    surplus = len(cells) - len(names)
    if surplus > 0 and names.count(spread) == 1:
        at = names.index(spread)
        names = [*names[:at], *[spread] * surplus, *names[at:]]
        row[_SPREAD] = ["yes"]
    for index, cell in enumerate(cells):
        name = names[index] if index < len(names) else "(behind the last column)"
        if text := cell.strip():
            row.setdefault(name, []).append(text)
    return {name: found[0] if len(found) == 1 else found for name, found in row.items()}


def _first(row: Row, *names: str) -> str:
    return next((found[0] for name in names if (found := _all(row, name))), "")


def _all(row: Row, name: str) -> list[str]:
    value = row.get(name, [])
    return cast("list[str]", value) if isinstance(value, list) else [value]


def _linear_day(text: str) -> str:
    """A due date as a day: Linear writes midnight at its user's place, as the time in another zone."""
    at = words.moment(text)
    return text if at is None or at.tzinfo is None else (at.astimezone(UTC) + timedelta(hours=12)).date().isoformat()


def _split(row: Row, name: str) -> list[str]:
    return [part.strip() for cell in _all(row, name) for part in cell.split(",") if part.strip()]


def _state(row: Row) -> str:
    """A status of the project's own is known by its category."""
    word, category = _first(row, "status"), _first(row, "status category")
    given_up = _first(row, "resolution").lower() in (
        "won't do",
        "won't fix",
        "duplicate",
        "declined",
        "cancelled",
        "abandoned",
    )
    return "cancelled" if given_up else word if not category or category.lower() == "to do" else category


def _comment(text: str) -> Note:
    """`date;author;text`, as Jira writes it."""
    at, _, rest = text.partition(";")
    by, mark, said = rest.partition(";")
    return words.note(said, by, at) if mark and words.moment(at) else Note(text)
