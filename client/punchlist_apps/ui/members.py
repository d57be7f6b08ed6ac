"""A task's members as the lines of a form: how each is shown, and what the line means."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from punchlist.base.dates import When
from punchlist_apps.common.terminal.argument_types import parse_estimate, parse_time
from punchlist_apps.ui.parts import time_text
from punchlist_schemas.things import PRIORITIES, Link, Task

_LINK = re.compile(r"([a-z][a-z0-9-]*)=(.+)")
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))


class Member(NamedTuple):
    """A member in the form: its name and label, its text, what the text means on the wire, and its lines."""

    name: str
    label: str
    text: Callable[[Task], str]
    meaning: Callable[[str], Any]
    height: int = 1


def duration_text(ms: int | None) -> str:
    """Format a duration in the largest unit that divides it evenly."""
    return next((f"{ms // size}{unit}" for unit, size in _UNITS if ms % size == 0), "") if ms else ""


def _labels(line: str) -> tuple[str, ...]:
    words = (word.strip().removeprefix("+") for word in line.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def _links(text: str) -> tuple[Link, ...]:
    found: list[Link] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        named = _LINK.match(line)
        kind = named[1] if named else "url" if line.startswith(("http://", "https://")) else "path"
        found.append(Link(kind=kind, to=named[2] if named else line))
    return tuple(found)


def _links_text(task: Task) -> str:
    return "\n".join(f"{link.kind}={link.to}" for link in task.links)


def _words(text: str) -> str | None:
    return text or None


def _priority(line: str) -> str | None:
    if line and line not in PRIORITIES:
        raise ArgumentTypeError(f"there is no priority {line!r}: {', '.join(PRIORITIES)}")
    return line or None


def _member(
    name: str, label: str, text: Callable[[Task], str], meaning: Callable[[str], Any], height: int = 1
) -> Member:
    return Member(name, label, text, meaning, height)


MEMBERS = (
    _member("title", "title", lambda task: task.title, str),
    _member("labels", "labels, with commas between them", lambda task: ", ".join(task.labels), _labels),
    _member("priority", f"priority: {', '.join(PRIORITIES)}", lambda task: task.priority, _priority),
    _member("owner", "owner", lambda task: task.owner, _words),
    _member(
        "due",
        "due: 2026-12-24, tomorrow 17:00, friday, or 3d",
        lambda task: time_text(task.due, task.due_day),
        parse_time,
    ),
    _member(
        "not_before", "not before: the same", lambda task: time_text(task.not_before, task.not_before_day), parse_time
    ),
    _member("estimate_ms", "estimate: 30m, 2h, 3d", lambda task: duration_text(task.estimate_ms), parse_estimate),
    _member("active_form", "while it is done", lambda task: task.active_form, _words),
    _member("description", "description", lambda task: task.description, _words, 5),
    _member("links", "leads to: an address or a path a line, or KIND=TARGET", _links_text, _links, 3),
)
"""The form, from above."""


def changes(texts: Mapping[str, str]) -> dict[str, Any]:
    """Texts as members of the wire; an empty one clears."""
    meaning = {member.name: member.meaning for member in MEMBERS}
    try:
        meant = {name: meaning[name](text) for name, text in texts.items()}
    except ArgumentTypeError as error:
        raise ValueError(str(error)) from None
    members: dict[str, Any] = {}
    for name, value in meant.items():
        members |= value.members(name) if isinstance(value, When) else {name: value or None}
    return members
