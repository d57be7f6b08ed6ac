"""Texts about tasks whose owner has left: its session has ended, or its machine is silent.

Light enough for a shell prompt.
"""

from time import localtime, strftime, time
from typing import TYPE_CHECKING

from punchlist.base.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from punchlist_schemas.things import Running, Task

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def is_gone(task: "Mapping[str, Any]") -> bool:
    """Return whether the owner of a task (plain JSON) has left, so that any caller may claim it by id."""
    return bool(task.get("left_at") or task.get("silent_at"))


def departure(task: "Mapping[str, Any]", now: int = 0) -> str:
    """Return when the owner left and when the task becomes free: `left 20 min ago, free at 23:10`; empty if present.

    Args:
        task: A task, or the reason or error that names one, as the wire has it.
        now: In milliseconds; 0 for times of day alone, which stay the same in a file.
    """
    left, silent, until = task.get("left_at"), task.get("silent_at"), task.get("lease_expires_at")
    if left:
        words = f"left {ago(left, now)} ago" if now else f"left at {clock(left)}"
    elif silent:
        machine = f"machine {safe(one_line(str(task.get('machine', ''))))} not heard of"
        words = f"{machine} for {ago(silent, now)}" if now else f"{machine} since {clock(silent)}"
    else:
        return ""
    return f"{words}, {free_at(until)}" if until else words


def free_at(until: int) -> str:
    """Return when the task of a departed owner becomes free."""
    return f"free at {clock(until)}"


def facts_of(task: "Task | Running") -> "dict[str, Any]":
    """Return the members that `departure` reads, as plain JSON."""
    return {name: getattr(task, name) for name in ("left_at", "silent_at", "machine", "lease_expires_at")}


def ago(at: int, now: int) -> str:
    """Return how long ago a time in milliseconds was, in its largest unit: `20 min`."""
    count, unit = largest_unit(now - at)
    return f"{count} {unit}"


def largest_unit(ms: int) -> "tuple[int, str]":
    """Return a duration in its largest unit, d, h, min or s."""
    seconds = max(ms, 0) // 1000
    size, unit = next((row for row in _UNITS if seconds >= row[0]), _UNITS[-1])
    return seconds // size, unit


def clock(at: int) -> str:
    """Return a time in milliseconds as the local time of day, with the date unless that is today."""
    try:
        then = localtime(at / 1000)
    except (OverflowError, ValueError, OSError):
        return str(at)
    is_today = then[:3] == localtime(time())[:3]
    return strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)
