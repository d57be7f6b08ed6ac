"""Tables with a header, separated by commas, semicolons or tabs: exports of Jira, Linear and other programs."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, timedelta
from itertools import islice
from typing import Any, NamedTuple, cast

from punchlist.base.text import clip
from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import STDIN, Document
from punchlist_apps.files.importers.draft import MAX_TASKS, Draft, Item, Note, build_too_many_error
from punchlist_apps.files.importers.fields import FIELDS, Reader, find_title, normalize
from punchlist_apps.files.importers.wrong import FormatError

Row = dict[str, Any]
"""Lowercase column name -> cell, or a list of cells if the name occurs more than once."""

_MAX_CELL = 1 << 24
_MAX_LEVEL = 100
_ABOVE = re.compile(r"\n*(?:sep=.\n+)?")
_MONTHS = 12
_JIRA = frozenset(
    "summary|issue key|key|issue id|issue type|status|status category|priority|resolution|assignee|due date|due|labels"
    "|description|comment|original estimate|parent|parent id|parent key|component/s|components|custom field (epic link)"
    "|custom field (parent link)|epic link|url|custom field (story points)|story points".split("|")
)
_DERIVED = frozenset(
    "updated|last viewed|votes|watchers|watchers id|work ratio|uuid|status category changed|project type|project id|"
    "issue color|project lead|project description|project url|custom field (rank)|rank".split("|")
)


def read_header(document: Document) -> list[str]:
    """Return the column names of a table in lowercase."""
    try:
        return [name.strip().lower() for name in next(_open(document), list[str]())]
    except csv.Error as error:
        raise FormatError(f"not a table: {error}", document.name, 1) from error


def _open(document: Document) -> Any:
    text = document.text[_find_start(document.text) :]
    first = text.split("\n", 1)[0]
    csv.field_size_limit(_MAX_CELL)
    return csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count), strict=True)


def _find_start(text: str) -> int:
    """Return the position of the header, below empty lines and Excel's `sep=;`."""
    match = _ABOVE.match(text)
    return match.end() if match else 0


def read_rows(document: Document, spread: str = "") -> Iterator[tuple[int, Row]]:
    """Yield the rows of a table with their line numbers.

    Args:
        spread: A column that is in the header once but may have several cells. Extra cells of a row belong to this
            column.

    Raises:
        FormatError: A quote isn't closed, or a cell is too large.
    """
    reader = _open(document)
    names: list[str] = []
    skipped = document.text.count("\n", 0, _find_start(document.text))
    line = 1 + skipped
    try:
        for cells in reader:
            if not names:
                names = [name.strip().lower() for name in cells]
            elif any(cell.strip() for cell in cells):
                yield line, _build_row(names, cells, spread)
            line = reader.line_num + 1 + skipped
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


class _Origin(NamedTuple):
    """A program that writes tables: columns by which it is recognized, and their fields if they differ from the usual
    ones."""

    columns: frozenset[str]
    names: dict[str, str] = {}
    priorities: dict[str, str] = {}


_ORIGINS = {
    "trello": _Origin(frozenset(("card id", "card name"))),
    "asana": _Origin(frozenset(("task id", "section column")), {"notes": "description"}),
    "todoist": _Origin(
        frozenset(("type", "content", "indent")),
        {"date": "due", "type": "derived", "indent": "derived", "author": "derived"},
        {"1": "urgent", "2": "high", "3": "normal", "4": "normal"},
    ),
    "notion": _Origin(frozenset(("name", "assign")), {"date": "due"}),
    "azure": _Origin(frozenset(("work item type", "state")), {"original estimate": "hours"}),
    "gitlab": _Origin(frozenset(("issue id", "url", "state"))),
    "github": _Origin(frozenset(("number", "title", "state"))),
}
_TITLE_LEVEL = re.compile(r"title (\d)")
"""Columns of Azure DevOps that contain the titles of one level of the tree."""

_TODOIST_LABEL = re.compile(r"(?:^|(?<=\s))@(\S+)")
_COLOR = re.compile(r" \((?:green|yellow|orange|red|purple|blue|sky|lime|pink|black)(?:_dark|_light)?\)(?=,|$)")
_SLASHES = re.compile(r"(\d\d?)/(\d\d?)/")


def read_linear(documents: Sequence[Document]) -> Draft:
    document = documents[0]
    reader = Reader(
        Draft("linear", document.name),
        {"canceled": "derived", "project id": "derived", "archived": ""},
        scope="",
        convert_day=_convert_linear_day,
    )
    for line, row in read_rows(document):
        reader.add(row | ({"status": "canceled"} if row.get("canceled") else {}), line=line)
    return reader.finish()


def read_csv(documents: Sequence[Document]) -> Draft:
    """Read a table that has a column with titles. Its origin is recognized by the other columns."""
    document = documents[0]
    draft = Draft("csv", document.name)
    columns = {normalize(name) for name in read_header(document)}
    title = find_title(list(columns))
    levels = sorted(name for name in columns if _TITLE_LEVEL.fullmatch(name))
    if not title and not levels:
        names = ", ".join(read_header(document))
        raise FormatError(f"no column has titles; rename one of them to title: {names}", document.name, 1)
    name = next((name for name, origin in _ORIGINS.items() if columns >= origin.columns), "")
    origin = _ORIGINS.get(name, _Origin(frozenset()))
    read = _read_todoist(draft, document) if name == "todoist" else read_rows(document)
    rows = list(islice(read, MAX_TASKS + 1))
    if len(rows) > MAX_TASKS:
        raise build_too_many_error(document.name, rows[MAX_TASKS][0])
    reader = Reader(
        draft,
        origin.names | dict.fromkeys(levels, "title"),
        scope=None if document.name == STDIN else document.stem,
        title="" if levels else title,
        convert_day=_choose_day_order(draft, rows),
        priorities=origin.priorities,
    )
    above: list[Item] = []
    for line, row in rows:
        if name == "trello":
            row["labels"] = _COLOR.sub("", _get_first(row, "labels"))
        level = _get_level(row)
        del above[max(level - 1, 0) :]
        item = reader.add(row, line=line, parent=above[-1].ref if above and level > 1 else "")
        if item is not None and level:
            above.append(item)
    return reader.finish()


def _get_level(row: Row) -> int:
    """Return the level of a row in a tree, counted from 1; 0 if the table has no tree."""
    if (indent := _get_first(row, "indent")).isdecimal():
        return min(int(indent), _MAX_LEVEL)
    return next((int(match[1]) for name in row if (match := _TITLE_LEVEL.fullmatch(normalize(name)))), 0)


def _read_todoist(draft: Draft, document: Document) -> Iterator[tuple[int, Row]]:
    """Yield the tasks, each with its section, the labels in its text, and the comments in the rows below it."""
    section = ""
    last: Row = {}
    for line, row in read_rows(document):
        kind, text = _get_first(row, "type"), _get_first(row, "content")
        if kind == "task":
            labels = _TODOIST_LABEL.findall(text)
            last = {**row, "content": _TODOIST_LABEL.sub("", text), "labels": labels, "section": section, "notes": []}
            yield line, last
        elif kind == "note" and last:
            cast("list[str]", last["notes"]).append(text)
        elif kind == "section":
            section = text
        elif kind:
            draft.skip(f"rows of type “{clip(kind, 40)}”", line)


def _choose_day_order(draft: Draft, rows: list[tuple[int, Row]]) -> Callable[[str], str]:
    """Return the function that rewrites dates like 31/03/2026, depending on the order of day and month in the table."""
    days = [
        match
        for _, row in rows
        for name in row
        if FIELDS.get(normalize(name)) in ("due", "not_before") and (match := _SLASHES.match(_get_first(row, name)))
    ]
    if any(int(match[1]) > _MONTHS for match in days):
        return lambda text: _SLASHES.sub(r"\1.\2.", text, count=1)
    if days and not any(int(match[2]) > _MONTHS for match in days):
        draft.note_change("dates that may be month/day or day/month, imported as month/day", count=len(days))
    return str


_SPREAD = "(more cells than columns)"


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
