"""Reads Logseq's pages: blocks that begin with `TODO`, `DOING` or `DONE`, and the dates and properties below them."""

import re
from collections.abc import Sequence

from punchlist.base import dates
from punchlist_apps.files.importers.outline import Outline

BOX_OF_MARKER = {
    **dict.fromkeys(("TODO", "LATER"), " "),
    **dict.fromkeys(("DOING", "NOW", "IN-PROGRESS"), "/"),
    **dict.fromkeys(("WAITING", "WAIT"), "="),
    **dict.fromkeys(("CANCELED", "CANCELLED"), "-"),
    "DONE": "x",
}
MARKER = re.compile(
    rf"^(?P<head>[ \t]*[-*+][ \t]+)(?P<marker>{'|'.join(BOX_OF_MARKER)})(?P<rest>[ \t].*)$", re.MULTILINE
)
"""Matches a line with a marker, split into the text before it, the marker, and the rest."""

_PRIORITY = re.compile(r"\[#([ABC])\][ \t]*")
_PRIORITIES = {"A": "high", "B": "normal", "C": "low"}
_PLANNED = re.compile(r"^\s*(SCHEDULED|DEADLINE):\s*<(\d{4}-\d\d-\d\d)([^<>]*)>\s*$")
_CLOCK = re.compile(r"\d\d?:\d\d")
_PROPERTY = re.compile(r"^\s*[\w-]+::\s")
_DRAWER = re.compile(r"^\s*:([A-Z]+):\s*$")


def to_boxes(text: str) -> str:
    """Return the text with checkboxes in place of the markers. Lines stay lines."""
    return MARKER.sub(lambda match: f"{match['head']}[{BOX_OF_MARKER[match['marker']]}]{match['rest']}", text)


def write_marker(line: str, status: str) -> str:
    """Return a line with the marker of a status. A page with `LATER` and `NOW` keeps to these two words."""

    def replace(match: re.Match[str]) -> str:
        is_later = match["marker"] in ("LATER", "NOW")
        todo, doing = ("LATER", "NOW") if is_later else ("TODO", "DOING")
        marker = {"in_progress": doing, "paused": "WAITING", "completed": "DONE"}.get(status, todo)
        return f"{match['head']}{marker}{match['rest']}"

    return MARKER.sub(replace, line)


def read(outline: Outline, _lines: Sequence[str]) -> None:
    for entry in outline.entries:
        if entry.kind != "task":
            continue
        if match := _PRIORITY.match(entry.title):
            entry.members["priority"] = _PRIORITIES[match[1]]
            entry.title = entry.words = entry.title[match.end() :]
        kept: list[str] = []
        drawer = ""
        for line in entry.description.split("\n"):
            kind = ""
            if drawer or (match := _DRAWER.match(line)):
                drawer = "" if line.strip() == ":END:" else drawer or (match[1] if match else "")
                kind = "lines of drawers"
            elif match := _PLANNED.match(line):
                day, clock = match[2], _CLOCK.search(match[3])
                at = dates.parse(f"{day} {clock[0].zfill(5)}") if clock else dates.parse_day(day)
                entry.members["due" if match[1] == "DEADLINE" else "not_before"] = at
                kind = "repetitions of dates" if "+" in match[3] else "" if at else f"`{match[1]}` that is not a date"
            elif _PROPERTY.match(line):
                kind = "properties of blocks"
            else:
                kept.append(line)
            if kind:
                outline.left_out.append((kind, entry.line + 1))
        entry.description = "\n".join(kept).strip("\n")
