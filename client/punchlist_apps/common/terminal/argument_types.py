"""Argument types of the command line: durations, times and counts. Invalid text raises ArgumentTypeError."""

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchlist.base.dates import When


_MAX_PORT = 65_535
_MIN_LEASE_MS, _MAX_LEASE_MS = 1_000, 86_400_000


def parse_duration(text: str) -> int:
    """Return the milliseconds in `90`, `90s`, `1.5m`, `500ms` or `2 hours`; a bare number is in seconds."""
    from punchlist.base.dates import duration_ms

    if (duration := duration_ms(text)) is None:
        raise ArgumentTypeError(f"{text!r} is not a duration; write 90s, 10m or 2h")
    return duration


def parse_time(text: str) -> "When":
    """Parse a day or a local time: `2026-12-24`, `tomorrow 17:00`, `friday`, `3d`. Empty text is parsed as
    `When(0)`."""
    from punchlist.base import dates

    if not text.strip():
        return dates.When(0)
    time = dates.parse(text)
    if time is None or time.at <= 0:
        raise ArgumentTypeError(f"{text!r} is not a time; write {dates.EXAMPLES}")
    return time


def parse_past_time(text: str) -> int:
    """Return a past time in ms since 1970 UTC: `10m`, `10 min ago`, `yesterday`, `2026-12-24 18:00`."""
    from punchlist.base import dates

    time = dates.parse(text, past=True)
    if time is None or time.at <= 0:
        raise ArgumentTypeError(f"{text!r} is not a time; write 10m, '2 hours ago', yesterday or '2026-12-24 18:00'")
    return time.at


def parse_history_point(text: str) -> tuple[int | None, int]:
    """Return a version and 0 for digits such as `12`, else None and a past time in milliseconds."""
    return (int(text), 0) if text.isdecimal() else (None, parse_past_time(text))


def parse_estimate(text: str) -> int:
    """Return an estimate in milliseconds; 0 for empty text."""
    return parse_duration(text) if text.strip() else 0


def parse_lease(text: str) -> int:
    """Return the duration of a claim in milliseconds, from 1 s to 24 h."""
    value = parse_duration(text)
    if not _MIN_LEASE_MS <= value <= _MAX_LEASE_MS:
        raise ArgumentTypeError(f"{text!r} is not between 1s and 24h")
    return value


def parse_whole_number(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} must be a whole number, 0 or more")
    return int(text)


def parse_port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port from 1 to {_MAX_PORT}")
    return int(text)


def parse_group_limit(text: str) -> tuple[str, int]:
    """Return a label and the number of its tasks that may run at the same time: `gpu=1`."""
    label, _, count = text.rpartition("=")
    if not label.strip():
        raise ArgumentTypeError(f"{text!r} must be LABEL=N, such as gpu=1")
    return label.strip(), parse_positive(count)


def parse_positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)
