"""Durations and counts as people write them on a command line. A text that is none raises ArgumentTypeError."""

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchlist.base.dates import When


_MAX_PORT = 65_535
_MIN_LEASE_MS, _MAX_LEASE_MS = 1_000, 86_400_000


def milliseconds(text: str) -> int:
    """`90`, `90s`, `1.5m`, `500ms`, `2 hours` as milliseconds; a bare number is seconds."""
    from punchlist.base.dates import duration_ms

    if (found := duration_ms(text)) is None:
        raise ArgumentTypeError(f"{text!r} is not a duration; write 90s, 10m or 2h")
    return found


def when(text: str) -> "When":
    """A day or a moment: `2026-12-24`, `tomorrow 17:00` (local), `friday`, `3d`; empty is none."""
    from punchlist.base import dates

    if not text.strip():
        return dates.When(0)
    found = dates.parse(text)
    if found is None or found.at <= 0:
        raise ArgumentTypeError(f"{text!r} is not a time; write {dates.EXAMPLES}")
    return found


def past(text: str) -> int:
    """A time that was, as milliseconds since 1970 UTC: `10m`, `10 min ago`, `yesterday`, `2026-12-24 18:00`."""
    from punchlist.base import dates

    found = dates.parse(text, past=True)
    if found is None or found.at <= 0:
        raise ArgumentTypeError(f"{text!r} is not a time; write 10m, '2 hours ago', yesterday or '2026-12-24 18:00'")
    return found.at


def point(text: str) -> tuple[int | None, int]:
    """A point in a list's history: `12` as a version, anything else as a time that was, like `past`."""
    return (int(text), 0) if text.isdecimal() else (None, past(text))


def work(text: str) -> int:
    """An estimate as milliseconds; empty is 0."""
    return milliseconds(text) if text.strip() else 0


def lease(text: str) -> int:
    """How long a claim may last, in milliseconds: 1 s to 24 h."""
    value = milliseconds(text)
    if not _MIN_LEASE_MS <= value <= _MAX_LEASE_MS:
        raise ArgumentTypeError(f"{text!r} is not between 1s and 24h")
    return value


def whole(text: str) -> int:
    """A count, a version or another number that may be 0."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} must be a whole number, 0 or more")
    return int(text)


def port(text: str) -> int:
    """A port of TCP that can be named in an address."""
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_PORT:
        raise ArgumentTypeError(f"{text!r} is not a port from 1 to {_MAX_PORT}")
    return int(text)


def group(text: str) -> tuple[str, int]:
    """A label and how many lanes its tasks have: `gpu=1`."""
    label, _, count = text.rpartition("=")
    if not label.strip():
        raise ArgumentTypeError(f"{text!r} must be LABEL=N, such as gpu=1")
    return label.strip(), positive(count)


def positive(text: str) -> int:
    """A count of at least one."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)
