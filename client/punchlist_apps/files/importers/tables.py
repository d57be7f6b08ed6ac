"""Tables with a header: CSV exports of Jira and Linear, separated by commas, semicolons or tabs."""

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
"""Lowercase column name -> cell, or a list of cells if the name occurs more than once."""

_MAX_CELL = 1 << 24
_JIRA = frozenset(
    "summary|issue key|key|issue id|issue type|status|status category|priority|resolution|assignee|due date|due|labels"
    "|description|comment|original estimate|parent|parent id|parent key|component/s|components|custom field (epic link)"
    "|custom field (parent link)|epic link|url|custom field (story points)|story points".split("|")
)
_LINEAR = frozenset(
    "id|title|description|status|estimate|priority|assignee|labels|due date|parent issue|project|related to|blocked by"
    "|duplicate of|completed|canceled|url".split("|")
)
_DERIVED = frozenset(
    "updated|last viewed|votes|watchers|watchers id|work ratio|uuid|status category changed|project type|project id|"
    "issue color|project lead|project description|project url|custom field (rank)|rank".split("|")
)


def read_header(document: Document) -> list[str]:
    """Return the column names of a table in lowercase."""
    first = document.text.lstrip("\n").split("\n", 1)[0]
    return [name.strip().lower() for name in next(csv.reader([first], delimiter=_detect_delimiter(first)), list[str]())]


def read_rows(document: Document, spread: str = "") -> Iterator[tuple[int, Row]]:
    """Yield the rows of a table with their line numbers.

    Args:
        spread: A column that is in the header once but may have several cells. Extra cells of a row belong to this
            column.

    Raises:
        FormatError: A quote isn't closed, or a cell is too large.
    """
    text = document.text
    delimiter = _detect_delimiter(text.lstrip("\n").split("\n", 1)[0])
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    names: list[str] = []
    line = 1
    try:
        for cells in reader:
            if not names:
                names = [name.strip().lower() for name in cells]
            elif any(cell.strip() for cell in cells):
                yield line, _build_row(names, cells, spread)
            line = reader.line_num + 1
    except csv.Error as error:
        raise FormatError(f"not a table: {error}", document.name, line) from error


def read_jira(documents: Sequence[Document]) -> Draft:
    """Read the issues in a CSV export from Jira, with all fields or only some."""
    document = documents[0]
    draft = Draft("jira", document.name)
    added: list[tuple[Item, Row]] = []
    by_number: dict[str, str] = {}
    for line, row in read_rows(document, spread="labels"):
        if row.pop(_SPREAD, None):
            draft.note_change("rows with more cells than columns, whose surplus was imported as labels", line)
        key = _get_first(row, "issue key", "key")
        by_number[_get_first(row, "issue id")] = key
        links = [name for name in row if "issue link (" in name or name.startswith(("comment", "sub-task"))]
        draft.skip_unread(row, _JIRA | _DERIVED | {*links}, line)
        state = words.parse_status(draft, _get_status(row), line)
        kind = _get_first(row, "issue type").lower()
        item = draft.add(
            _get_first(row, "summary"),
            key=key,
            line=line,
            description=_get_first(row, "description"),
            priority=words.parse_priority(draft, _get_first(row, "priority"), line),
            owner=_get_first(row, "assignee"),
            due=words.parse_when(draft, _get_first(row, "due date", "due"), "due date", line, is_day=True),
            estimate_ms=words.parse_duration_ms(_get_first(row, "original estimate")),
            result_summary=_get_first(row, "resolution") if state["status"] == "completed" else "",
            notes=[_parse_comment(text) for text in _get_all(row, "comment")],
            links=[("url", _get_first(row, "url"))],
            metadata={"points": _get_first(row, "custom field (story points)", "story points")},
            state=state,
            labels=[
                *(label for cell in _get_all(row, "labels") for label in cell.replace(",", " ").split()),
                *(f"component:{label}" for name in ("component/s", "components") for label in _get_all(row, name)),
                *([kind] if kind not in ("", "task", "sub-task", "subtask") else []),
            ],
        )
        if item is not None:
            added.append((item, row))
    for item, row in added:
        above = _get_first(
            row, "parent", "parent key", "parent id", *(f"custom field ({kind} link)" for kind in ("epic", "parent"))
        )
        item.parent = by_number.get(above, above) if above else ""
        _add_jira_links(draft, item, row)
    return draft.finish()


def _add_jira_links(draft: Draft, item: Item, row: Row) -> None:
    for name in row:
        if "issue link (" not in name:
            continue
        is_blocking = "block" in name
        for other in _get_all(row, name):
            if not is_blocking:
                item.relations.append(("relates-to", other))
            elif name.startswith("inward"):  # "is blocked by"
                item.blocked_by.append(other)
            elif (blocked := draft.find(other)) is not None:
                blocked.blocked_by.append(item.ref)


def read_linear(documents: Sequence[Document]) -> Draft:
    document = documents[0]
    draft = Draft("linear", document.name)
    for line, row in read_rows(document):
        draft.skip_unread(row, _LINEAR | _DERIVED, line)
        word = "canceled" if _get_first(row, "canceled") else _get_first(row, "status")
        state = words.parse_status(draft, "done" if _get_first(row, "completed") and word != "canceled" else word, line)
        project = _get_first(row, "project")
        draft.add(
            _get_first(row, "title"),
            key=_get_first(row, "id"),
            line=line,
            description=_get_first(row, "description"),
            priority=words.parse_priority(draft, _get_first(row, "priority"), line),
            owner=_get_first(row, "assignee"),
            due=words.parse_when(draft, _convert_linear_day(_get_first(row, "due date")), "due date", line),
            links=[("url", _get_first(row, "url"))],
            metadata={"points": _get_first(row, "estimate")},
            state=state,
            labels=[*_split_cells(row, "labels"), *([f"project:{project}"] if project else [])],
            parent=_get_first(row, "parent issue"),
            blocked_by=_split_cells(row, "blocked by"),
            relations=[
                ("relates-to", ref) for name in ("related to", "duplicate of") for ref in _split_cells(row, name)
            ],
        )
    return draft.finish()


_SPREAD = "(more cells than columns)"


def _detect_delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _build_row(names: list[str], cells: list[str], spread: str) -> Row:
    row: Row = {}
    surplus = len(cells) - len(names)
    if surplus > 0 and names.count(spread) == 1:
        at = names.index(spread)
        names = [*names[:at], *[spread] * surplus, *names[at:]]
        row[_SPREAD] = ["yes"]
    for index, cell in enumerate(cells):
        name = names[index] if index < len(names) else "(after the last column)"
        if text := cell.strip():
            row.setdefault(name, []).append(text)
    return {name: values[0] if len(values) == 1 else values for name, values in row.items()}


def _get_first(row: Row, *names: str) -> str:
    return next((values[0] for name in names if (values := _get_all(row, name))), "")


def _get_all(row: Row, name: str) -> list[str]:
    value = row.get(name, [])
    return cast("list[str]", value) if isinstance(value, list) else [value]


def _convert_linear_day(text: str) -> str:
    """Convert a due date to a day. Linear writes midnight in the user's zone as a time in another zone."""
    at = words.parse_moment(text)
    return text if at is None or at.tzinfo is None else (at.astimezone(UTC) + timedelta(hours=12)).date().isoformat()


def _split_cells(row: Row, name: str) -> list[str]:
    return [part.strip() for cell in _get_all(row, name) for part in cell.split(",") if part.strip()]


def _get_status(row: Row) -> str:
    """Return a word for the status. If the project defines its own statuses, this is the status category."""
    word, category = _get_first(row, "status"), _get_first(row, "status category")
    is_abandoned = _get_first(row, "resolution").lower() in (
        "won't do",
        "won't fix",
        "duplicate",
        "declined",
        "cancelled",
        "abandoned",
    )
    return "cancelled" if is_abandoned else word if not category or category.lower() == "to do" else category


def _parse_comment(text: str) -> Note:
    """Parse a comment in Jira's form `date;author;text`."""
    at, _, rest = text.partition(";")
    author, mark, body = rest.partition(";")
    return words.build_note(body, author, at) if mark and words.parse_moment(at) else Note(text)
