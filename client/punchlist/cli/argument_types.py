"""Durations and counts as people write them on a command line."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentTypeError

_UNITS_MS = {
    **{"ms": 1, "w": 604_800_000, "week": 604_800_000},
    **dict.fromkeys(("s", "sec", "second"), 1_000),
    **dict.fromkeys(("m", "min", "minute"), 60_000),
    **dict.fromkeys(("h", "hour"), 3_600_000),
    **dict.fromkeys(("d", "day"), 86_400_000),
}
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_MAX_PORT = 65_535
_MIN_LEASE_MS, _MAX_LEASE_MS = 1_000, 86_400_000


def milliseconds(text: str) -> int:
    """`90`, `90s`, `1.5m`, `500ms`, `2 hours` as milliseconds; a bare number is seconds.

    Raises:
        ArgumentTypeError: It is none.
    """
    if (found := _duration(text)) is None:
        raise _refusal(f"{text!r} is not a duration; write 90s, 10m or 2h")
    return found


def when(text: str) -> int:
    """A time as milliseconds since 1970 UTC: `2026-12-24`, `2026-12-24 18:00` (local), `3d` from now; empty is 0.

    Raises:
        ArgumentTypeError: It is none, or the calendar has no such day.
    """
    if not text.strip():
        return 0
    at = _moment(text, 1)
    if at <= 0:
        raise _refusal(f"{text!r} is not a time; write 2026-12-24, '2026-12-24 18:00', or 3d for in three days")
    return at


def past(text: str) -> int:
    """A time that was, as milliseconds since 1970 UTC: `10m`, `10 min ago`, `yesterday`, `2026-12-24 18:00`.

    Raises:
        ArgumentTypeError: It is none.
    """
    at = _moment(text, -1)
    if at <= 0:
        raise _refusal(f"{text!r} is not a time; write 10m, '2 hours ago', yesterday or '2026-12-24 18:00'")
    return at


def point(text: str) -> tuple[int | None, int]:
    """A point in a list's history: `12` as a version, anything else as a time that was, like `past`.

    Raises:
        ArgumentTypeError: It is neither.
    """
    return (int(text), 0) if text.isdecimal() else (None, past(text))


def _moment(text: str, sign: int) -> int:
    """A time in milliseconds, 0 if the text is none; a bare duration lies ahead (1) or behind (-1)."""
    from datetime import datetime, time, timedelta

    words = text.strip().lower()
    if words in _DAYS:
        day = datetime.now().date() + timedelta(days=_DAYS[words])
        return round(datetime.combine(day, time()).timestamp() * 1000)
    try:
        return round(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        pass
    sign = -1 if words.endswith(" ago") else 1 if words.startswith("in ") else sign
    distance = _duration(words.removesuffix(" ago").removeprefix("in "))
    return 0 if distance is None else round(datetime.now().timestamp() * 1000) + sign * distance


def work(text: str) -> int:
    """An estimate as milliseconds; empty is 0.

    Raises:
        ArgumentTypeError: It is no duration.
    """
    return milliseconds(text) if text.strip() else 0


def lease(text: str) -> int:
    """How long a claim may last, in milliseconds: 1 s to 24 h.

    Raises:
        ArgumentTypeError: It is not a duration, or out of these bounds.
    """
    value = milliseconds(text)
    if not _MIN_LEASE_MS <= value <= _MAX_LEASE_MS:
        raise _refusal(f"{text!r} is not between 1s and 24h")
    return value


def whole(text: str) -> int:
    """A count, a version or another number that may be 0.

    Raises:
        ArgumentTypeError: It is none.
    """
    if not text.isdecimal():
        raise _refusal(f"{text!r} must be a whole number, 0 or more")
    return int(text)


def port(text: str) -> int:
    """A port of TCP that can be named in an address.

    Raises:
        ArgumentTypeError: It is none.
    """
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_PORT:
        raise _refusal(f"{text!r} is not a port from 1 to {_MAX_PORT}")
    return int(text)


def group(text: str) -> tuple[str, int]:
    """A label and how many lanes its tasks have: `gpu=1`.

    Raises:
        ArgumentTypeError: It is none.
    """
    label, _, count = text.rpartition("=")
    if not label.strip():
        raise _refusal(f"{text!r} must be LABEL=N, such as gpu=1")
    return label.strip(), positive(count)


def positive(text: str) -> int:
    """A count of at least one.

    Raises:
        ArgumentTypeError: It is none.
    """
    if not text.isdecimal() or not int(text):
        raise _refusal(f"{text!r} must be a whole number, 1 or more")
    return int(text)


def _refusal(message: str) -> "ArgumentTypeError":
    from argparse import ArgumentTypeError

    return ArgumentTypeError(message)


def _duration(text: str) -> int | None:
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text.strip()[len(number) :] or "s"
    unit = unit if unit in _UNITS_MS else unit.removesuffix("s")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if unit not in _UNITS_MS or not 0 <= value < 1e9:  # noqa: PLR2004 - a bound of sense, against overflow
        return None
    return round(value * _UNITS_MS[unit])
