"""Recognizes the format of a JSON file or a table by the names of its members or columns."""

import re
from typing import Any, cast

from punchlist_apps.files.importers.document import Document, parse_json
from punchlist_apps.files.importers.fields import EVIDENCE, FIELDS, TITLES, find_title, normalize
from punchlist_apps.files.importers.tables import read_header, read_rows
from punchlist_apps.files.importers.wrong import FormatError

_COMMON = ("", "rows", "issues", "items")
"""Members that contain records in the files of many programs."""

_SHAPES: tuple[tuple[str, str, str], ...] = (
    ("gemini", "todos", "description status"),
    ("todowrite", "todos", ""),
    ("codex", "plan", "step status"),
    ("prd", "userStories", "title|description"),
    ("prd", "stories", "title passes|status|state"),
    ("features", "features", "title|name|description passes|status|state|done|completed|complete"),
    ("trello", "cards", "id name idList"),
    ("taskmaster", "tasks", "title dependencies|subtasks|testStrategy|details"),
    ("shrimp", "tasks", "name description dependencies|implementationGuide|verificationCriteria|relatedFiles"),
    ("taskmaster", "tasks", "description|id dependencies|subtasks|testStrategy|details"),
    ("json", "tasks", "title status_changed_at"),
    ("features", "tasks", "title"),
    ("googletasks", "items", "kind title"),
    *(
        (form, container, needs)
        for container in _COMMON
        for form, needs in (
            ("todowrite", "content status"),
            ("claude", "id subject"),
            ("taskwarrior", "uuid description"),
            ("taskwarrior", "description entry"),
            ("gitlab", "iid title"),
            ("github", "number title"),
            ("beads", "id title issue_type"),
            ("features", "title|name|description passes|complete"),
            ("codex", "step status"),
            ("beads", "id title status"),
            ("gemini", "=description status"),
            ("todowrite", "content"),
        )
    ),
)
"""Format, the member that contains the records, and the members of the records; `|` separates alternatives, and `=`
excludes others. The first match wins. The member is empty if the file is a list or has a record in each line."""

_LINEAR = frozenset(("team", "parent issue", "cycle number", "project id"))
_EVENT = frozenset(("seq", "version"))
_SAMPLE_LINES = 20
_MAX_NAMES = 8


def detect_json(document: Document) -> str:
    """Return the format of a JSON file.

    Raises:
        FormatError: The file isn't JSON, or its format is unknown. The message names the nearest format.
    """
    text = document.text.lstrip()
    lines = text.split("\n", _SAMPLE_LINES)
    if text.startswith("{") and "".join(lines[1:]).strip() and (members := _get_members(document.name, lines)):
        return _match_members("", members, document.name)
    value = parse_json(document)
    if isinstance(value, list):
        if not value:
            raise FormatError("no tasks found: an empty list", document.name)
        return _match_members("", _unite(cast("list[Any]", value)), document.name)
    file = cast("dict[str, Any]", value)
    if file.get("format") == "punchlist":
        return "json"
    if any(isinstance(tag, dict) and "tasks" in tag for tag in file.values()):
        return "taskmaster"
    for container in dict.fromkeys(container for _, container, _ in _SHAPES if isinstance(file.get(container), list)):
        if not file[container]:
            raise FormatError(f"no tasks found: `{container}` is an empty list", document.name)
        return _match_members(container, _unite(file[container]), document.name)
    return _match_members("", set(file), document.name)


def _get_members(name: str, lines: list[str]) -> set[str]:
    """Return the members of the objects in the first lines; an empty set if the first line isn't an object."""
    members: set[str] = set()
    for line in lines[:_SAMPLE_LINES]:
        try:
            members |= _unite([parse_json(Document(name, line.strip().rstrip(",")))])
        except FormatError:
            break
    return members


def _unite(records: list[Any]) -> set[str]:
    return {name for record in records if isinstance(record, dict) for name in cast("dict[str, Any]", record)}


def _match_members(container: str, members: set[str], name: str) -> str:
    if members >= _EVENT and "title" not in members:
        raise FormatError(
            "these are events, which can't be imported; to export the list: punch export --format json", name
        )
    nearest: tuple[int, int, str] = (1 << 20, 0, "")
    for form, where, needs in _SHAPES:
        groups = [group.split("|") for group in needs.lstrip("=").split()]
        prefix = f"{where}[]." if where else ""
        missing = [f"`{prefix}{group[0]}`" for group in groups if not members.intersection(group)]
        if where == container and not missing and (not needs.startswith("=") or members == set(needs[1:].split())):
            return form
        if where != container:
            missing.append(f"`{where}`" if where else "a list")
        is_near = len(missing) * 2 < len(groups) or (where == container and where not in _COMMON)
        if is_near and missing:
            nearest = min(nearest, (len(missing), -len(groups), f"{form}, but it lacks {' and '.join(missing)}"))
    names = ", ".join(sorted(members)[:_MAX_NAMES]) or "none"
    near = f"; the nearest is {nearest[2]}" if nearest[2] else ""
    raise FormatError(f"unknown JSON format (members: {names}){near}; name the format with --from", name)


def is_tabular(text: str) -> bool:
    """Return whether text of an unnamed file is a table of tasks."""
    rows = text.split("\n", 2)[:2]
    if not re.search("[,;\t]", rows[0]):
        return False
    try:
        names = [normalize(name) for name in read_header(Document("", "\n".join(rows)))]
    except FormatError:
        return False
    return find_title(names) != "" and _has_evidence(names)


def _has_evidence(names: list[str]) -> bool:
    title = find_title(names)
    return any(FIELDS.get(name) in EVIDENCE for name in names if name != title)


def _has_linear_ids(document: Document) -> bool:
    """Return whether the first row has an id such as `ENG-12`."""
    row = next(read_rows(document), (0, {"id": "ENG-12"}))[1]
    return re.fullmatch(r"[A-Z][A-Z0-9]*-\d+", str(row.get("id"))) is not None


def detect_table(document: Document) -> str:
    """Return the format of a table.

    Raises:
        FormatError: The table has no column for titles, or none that only tasks have.
    """
    columns = read_header(document)
    names = frozenset(columns)
    if "summary" in names and names & {"issue key", "key", "issue id", "issue type"}:
        return "jira"
    if names >= {"id", "title", "issue_type"}:
        return "beads"
    if names >= {"id", "title", "status"} and names & _LINEAR and _has_linear_ids(document):
        return "linear"
    normalized = list(map(normalize, columns))
    has_title = find_title(normalized) or any(re.fullmatch(r"title \d", name) for name in normalized)
    if has_title and _has_evidence(normalized):
        return "csv"
    missing = (
        "no column is status, due, priority, owner, labels or parent; to import it anyway: --from csv"
        if has_title
        else f"no column is {', '.join(TITLES[:4])} or the like; rename the one with the titles"
    )
    shown = ", ".join(sorted(names)[:_MAX_NAMES])
    raise FormatError(f"unknown table format (columns: {shown}): {missing}", document.name, 1)
