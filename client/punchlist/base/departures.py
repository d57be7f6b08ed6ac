"""Text about tasks whose owner has left: its session has ended, or its machine sends no heartbeats.

Imports little, because shell prompts load this module.
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
    """Describe the owner's departure, such as `left 20 min ago, free at 23:10`. Return "" if the owner is present.

    Args:
        task: JSON form of a task, or of a reason or error about a task.
        now: Milliseconds since 1970 UTC. With 0, only times of day are used, for text that must not change over time.
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
    """Format the time (milliseconds since 1970 UTC) when the task of a departed owner becomes free."""
    return f"free at {clock(until)}"


def facts_of(task: "Task | Running") -> "dict[str, Any]":
    """Return the members that `departure` reads, as plain JSON."""
    return {name: getattr(task, name) for name in ("left_at", "silent_at", "machine", "lease_expires_at")}


def ago(at: int, now: int) -> str:
    """Format the time between two times (milliseconds) in its largest unit: `20 min`."""
    count, unit = largest_unit(now - at)
    return f"{count} {unit}"


def largest_unit(ms: int) -> "tuple[int, str]":
    """Convert milliseconds to the largest unit of d, h, min and s that fits."""
    seconds = max(ms, 0) // 1000
    size, unit = next((row for row in _UNITS if seconds >= row[0]), _UNITS[-1])
    return seconds // size, unit


def clock(at: int) -> str:
    """Format a time in milliseconds since 1970 UTC as local time of day, with the date unless it is today."""
    try:
        then = localtime(at / 1000)
    except (OverflowError, ValueError, OSError):
        return str(at)
    is_today = then[:3] == localtime(time())[:3]
    return strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", then)
