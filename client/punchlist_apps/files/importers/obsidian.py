"""Reads the marks of Obsidian's plugins: Tasks (emoji or Dataview fields at the end of a task) and Kanban (lanes)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from punchlist.base import dates
from punchlist.base.dates import When
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.outline import Entry, Outline
from punchlist_apps.files.importers.words import parse_status

_EMOJI: Mapping[str, str] = {
    **dict.fromkeys("📅📆🗓", "due"),
    **dict.fromkeys("⏳⌛", "scheduled"),
    **{"🛫": "start", "➕": "created", "✅": "completion", "❌": "cancelled", "🔁": "repeat", "🏁": "onCompletion"},
    **{"🆔": "id", "⛔": "dependsOn"},
}
_PRIORITIES = {
    **{"🔺": "urgent", "⏫": "high", "🔼": "normal", "🔽": "low", "⏬": "low"},
    **{"highest": "urgent", "high": "high", "medium": "normal", "low": "low", "lowest": "low"},
}
_DATES = frozenset(("due", "scheduled", "start", "created", "completion", "cancelled"))
_TAIL = re.compile(
    rf"(?<!\S)(?:(?P<emoji>[{''.join(_EMOJI)}])\ufe0f?[ ]*+(?P<value>\d{{4}}-\d\d-\d\d|[\w!][\w,! -]*)"
    r"|[\[(][ ]*+(?P<name>due|scheduled|start|created|completion|cancelled|priority|repeat|onCompletion|id|dependsOn)"
    r"[ ]*+::(?P<text>[^\[\]()]*)[\])],?"
    rf"|(?P<priority>[🔺⏫🔼🔽⏬])\ufe0f?|@\{{(?P<day>\d{{4}}-\d\d-\d\d)\}}|@@\{{(?P<clock>[\d:]+)\}}"
    r"|(?P<tag>\#[^\s#\[\]()]+)|(?P<anchor>\^[\w-]+))$"
)
"""Matches the last field of a title."""

_MAX_FIELDS = 32
_MAX_FIELD = 300
"""Maximum length of a field."""

_TAG = re.compile(r"(?<!\S)#([^\s#\[\](),.;:!?]+)")
_LEADING = re.compile(r"(?:#[^\s#]+[ ]+)+(?=\S)")
_ARCHIVE = "archive"


def read_tasks(outline: Outline, _lines: Sequence[str]) -> None:
    ids: dict[str, int] = {}
    needs: dict[int, list[str]] = {}
    for index, entry in enumerate(outline.entries):
        if entry.kind != "task":
            continue
        entry.members.setdefault("labels", []).extend(_TAG.findall(entry.title))
        for name, value in _take_fields(entry):
            if not _set_member(entry, name, value):
                outline.left_out.append((f"`{name}` of a task", entry.line + 1))
            if name == "id":
                entry.key = value
                ids.setdefault(value, index)
            elif name == "dependsOn":
                needs[index] = [other.strip() for other in value.split(",") if other.strip()]
    for index, names in needs.items():
        entry = outline.entries[index]
        entry.blockers = [ids[name] for name in names if name in ids]
        missing = len(names) - len(entry.blockers)
        outline.left_out += [("dependencies on tasks that are not in the file", entry.line + 1)] * missing


def _take_fields(entry: Entry) -> list[tuple[str, str]]:
    """Return the fields at the end of a task's line, and set its title to the words before them."""
    rest = entry.title
    fields: list[tuple[str, str]] = []
    for _ in range(_MAX_FIELDS):
        match = _TAIL.search(rest, max(0, len(rest) - _MAX_FIELD))
        if match is None or not match.start():
            break
        if match["tag"] or match["anchor"]:
            name, value = "", ""
        elif match["emoji"]:
            name, value = _EMOJI[match["emoji"]], match["value"].strip()
        elif match["name"]:
            name, value = match["name"], match["text"].strip()
        elif match["priority"]:
            name, value = "priority", match["priority"]
        else:
            name, value = ("due", match["day"]) if match["day"] else ("time", match["clock"])
        if name in _DATES and dates.parse_day(value) is None:
            break
        fields += [(name, value)] if name else []
        rest = rest[: match.start()].rstrip()
    if leading := _LEADING.match(rest):
        rest = rest[leading.end() :]
    if rest != entry.title:
        entry.title = entry.words = rest
    return fields[::-1]


def _set_member(entry: Entry, name: str, value: str) -> bool:
    """Set the member for a field. Return False if tasks have no such member."""
    to: dict[str, Any] = entry.members
    day = dates.parse_day(value) if name in _DATES else None
    if name == "due":
        to["due"] = day
    elif name in ("scheduled", "start") and day is not None:
        earlier: When | None = to.get("not_before")
        to["not_before"] = day if earlier is None or day.at > earlier.at else earlier
    elif name == "priority" and value in _PRIORITIES:
        to["priority"] = _PRIORITIES[value]
    elif name == "repeat":
        to.setdefault("metadata", {})["recurrence"] = value
    else:
        return name in ("id", "dependsOn")
    return True


def read_kanban(outline: Outline, lines: Sequence[str]) -> None:
    """Read a board. Lanes that are named like a status give their cards that status; other lanes are headings."""
    read_tasks(outline, lines)
    for number, line in enumerate(lines):
        if line.startswith("## "):
            outline.lanes.setdefault(_parse_lane(line[3:]).get("status", ""), number)
    state_of: dict[int, dict[str, Any]] = {}
    for index, entry in enumerate(outline.entries):
        if entry.kind == "heading" and (state := _parse_lane(entry.title)):
            state_of[index] = state
        elif entry.above in state_of:
            state = state_of[entry.above]
            entry.members["status"] = state["status"]
            entry.members["labels"] = [*entry.members.get("labels", ()), *state.get("labels", ())]
    kept = [index for index in range(len(outline.entries)) if index not in state_of]
    numbers = {index: number for number, index in enumerate(kept)}
    for index in kept:
        entry = outline.entries[index]
        entry.above = numbers.get(entry.above, -1)
        entry.blockers = [numbers[other] for other in entry.blockers]
    outline.entries[:] = [outline.entries[index] for index in kept]


def _parse_lane(title: str) -> dict[str, Any]:
    """Return the members for a lane's name, such as `In Progress (3)`; empty if it names no status."""
    name = re.sub(r"\(\d+\)|[^\w\s'’-]", "", title).strip()
    draft = Draft("kanban", "")
    members = parse_status(draft, "archived" if name.lower() == _ARCHIVE else name)
    return {} if draft.converted or not name else members
