"""Fields of the form that edits a task: how each member is formatted and parsed."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from punchlist.base.dates import When
from punchlist_apps.common.terminal.argument_types import parse_estimate, parse_time
from punchlist_apps.ui.parts import format_date
from punchlist_schemas.things import PRIORITIES, Link, Task

_LINK = re.compile(r"([a-z][a-z0-9-]*)=(.+)")
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))


class Member(NamedTuple):
    """A form field: name, label, formatter, parser, and height in lines."""

    name: str
    label: str
    text: Callable[[Task], str]
    parse: Callable[[str], Any]
    height: int = 1


def format_duration(ms: int | None) -> str:
    """Format a duration in the largest unit that divides it evenly."""
    return next((f"{ms // size}{unit}" for unit, size in _UNITS if ms % size == 0), "") if ms else ""


def _parse_labels(line: str) -> tuple[str, ...]:
    words = (word.strip().removeprefix("+") for word in line.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def _parse_links(text: str) -> tuple[Link, ...]:
    links: list[Link] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        match = _LINK.match(line)
        kind = match[1] if match else "url" if line.startswith(("http://", "https://")) else "path"
        links.append(Link(kind=kind, to=match[2] if match else line))
    return tuple(links)


def _format_links(task: Task) -> str:
    return "\n".join(f"{link.kind}={link.to}" for link in task.links)


def _parse_text(text: str) -> str | None:
    return text or None


def _parse_priority(line: str) -> str | None:
    if line and line not in PRIORITIES:
        raise ArgumentTypeError(f"unknown priority {line!r}: use {', '.join(PRIORITIES)}")
    return line or None


def _member(name: str, label: str, text: Callable[[Task], str], parse: Callable[[str], Any], height: int = 1) -> Member:
    return Member(name, label, text, parse, height)


MEMBERS = (
    _member("title", "title", lambda task: task.title, str),
    _member("labels", "labels, comma-separated", lambda task: ", ".join(task.labels), _parse_labels),
    _member("priority", f"priority: {', '.join(PRIORITIES)}", lambda task: task.priority, _parse_priority),
    _member("owner", "owner", lambda task: task.owner, _parse_text),
    _member(
        "due",
        "due: 2026-12-24, tomorrow 17:00, friday, or 3d",
        lambda task: format_date(task.due, task.due_day),
        parse_time,
    ),
    _member(
        "not_before",
        "not before: same formats",
        lambda task: format_date(task.not_before, task.not_before_day),
        parse_time,
    ),
    _member("estimate_ms", "estimate: 30m, 2h, 3d", lambda task: format_duration(task.estimate_ms), parse_estimate),
    _member("active_form", "shown while it is in progress", lambda task: task.active_form, _parse_text),
    _member("description", "description", lambda task: task.description, _parse_text, 5),
    _member("links", "links: a URL, a path or KIND=TARGET per line", _format_links, _parse_links, 3),
)
"""The fields of the form, in order."""


def parse_changes(texts: Mapping[str, str]) -> dict[str, Any]:
    """Parse texts into members of `task.edit`. Empty text clears the member.

    Raises:
        ValueError: A member's text can't be parsed.
    """
    parsers = {member.name: member.parse for member in MEMBERS}
    try:
        values = {name: parsers[name](text) for name, text in texts.items()}
    except ArgumentTypeError as error:
        raise ValueError(str(error)) from None
    members: dict[str, Any] = {}
    for name, value in values.items():
        members |= value.members(name) if isinstance(value, When) else {name: value or None}
    return members
