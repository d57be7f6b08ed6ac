"""Parses dates and durations as people write them.

Without a time of day, the result is a day, which is the same day in every time zone. Otherwise it is a moment.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from math import inf
from typing import Any

EXAMPLES = "2026-12-24, 'tomorrow 17:00', friday, 'next week', 3d or eom"
"""Examples of dates, for error messages."""

UNITS_MS = {
    **{"ms": 1, "w": 604_800_000, "week": 604_800_000},
    **dict.fromkeys(("s", "sec", "second"), 1_000),
    **dict.fromkeys(("m", "min", "minute"), 60_000),
    **dict.fromkeys(("h", "hour"), 3_600_000),
    **dict.fromkeys(("d", "day"), 86_400_000),
}


def _next_week(day: date) -> date:
    return day + timedelta(days=7 - day.weekday())


def _month_start(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    return date(day.year + years, month + 1, 1)


def _add_months(day: date, months: int) -> date:
    first = _month_start(day, months)
    last = _month_start(day, months + 1) - timedelta(days=1)
    return first.replace(day=min(day.day, last.day))


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = tuple("january february march april may june july august september october november december".split())
_IN_UNITS: "dict[str, Callable[[date, int], date]]" = {
    **dict.fromkeys(("d", "day"), lambda day, count: day + timedelta(days=count)),
    **dict.fromkeys(("w", "week"), lambda day, count: day + timedelta(weeks=count)),
    **dict.fromkeys(("mo", "month"), _add_months),
    **dict.fromkeys(("y", "year"), lambda day, count: _add_months(day, 12 * count)),
}
_WORDS: "dict[str, Callable[[date], date]]" = {
    **dict.fromkeys(("today", "eod", "end of day"), lambda day: day),
    "yesterday": lambda day: day - timedelta(days=1),
    "tomorrow": lambda day: day + timedelta(days=1),
    "day after tomorrow": lambda day: day + timedelta(days=2),
    **dict.fromkeys(("weekend", "this weekend"), lambda day: day + timedelta(days=max(5 - day.weekday(), 0))),
    **dict.fromkeys(("eow", "end of week", "end of this week"), lambda day: _next_week(day) - timedelta(days=1)),
    **dict.fromkeys(("eom", "end of month", "end of this month"), lambda day: _month_start(day, 1) - timedelta(days=1)),
    **dict.fromkeys(("eoy", "end of year", "end of this year"), lambda day: date(day.year, 12, 31)),
    "next week": _next_week,
    "next month": lambda day: _month_start(day, 1),
    "next year": lambda day: date(day.year + 1, 1, 1),
    "end of next week": lambda day: _next_week(day) + timedelta(days=6),
    "end of next month": lambda day: _month_start(day, 2) - timedelta(days=1),
}
"""Words for days, relative to today. Weeks start on Monday."""

_EVENING, _LAST_MINUTE = time(20), time(23, 59)
_CLOCK_WORDS = {"noon": time(12), "midday": time(12)}
_LEAD_INS = ("on ", "by ", "at ", "due ")


class When:
    """A moment or a day.

    Attributes:
        at: The moment in milliseconds since 1970 UTC, or the local start of the day; 0 for none.
        day: The day in ISO 8601; empty for a moment.
    """

    __slots__ = ("at", "day")

    def __init__(self, at: int, day: str = "") -> None:
        self.at = at
        self.day = day

    def __eq__(self, other: object) -> bool:
        return isinstance(other, When) and (self.at, self.day) == (other.at, other.day)

    def __hash__(self) -> int:
        return hash((self.at, self.day))

    def __repr__(self) -> str:
        return f"When({self.at}, {self.day!r})"

    def members(self, name: str) -> "dict[str, Any]":
        """Return this as members of a task on the wire.

        A due day has no time, because the daemon determines when the day is over. A deferral ends when the day starts
        in local time.

        Args:
            name: `due` or `not_before`.
        """
        if self.day and name == "due":
            return {"due_day": self.day}
        return {name: self.at or None} | ({f"{name}_day": self.day} if self.day else {})

    def is_due_by(self) -> "dict[str, Any]":
        """Return this as filters of `task.list` for tasks due on that day or earlier, or before that moment."""
        if not self.at:
            return {}
        day = date.fromisoformat(self.day) if self.day else datetime.fromtimestamp(self.at / 1000).date()
        if self.day:
            return {"due_by": self.day, "due_before": _start_ms(day + timedelta(days=1))}
        # A task due on a day is due at the end of that day, so it isn't due before a moment within the day.
        return {"due_by": (day - timedelta(days=1)).isoformat(), "due_before": self.at}


def parse(text: str, now: datetime | None = None, *, past: bool = False) -> When | None:
    """Parse a day or moment. Return None if the text is neither.

    Args:
        text: Such as `2026-12-24`, `tomorrow 17:00`, `friday`, `in 2 weeks`, `eom`, `2 hours ago`.
        now: Local time to start from; by default the current one.
        past: Whether weekdays, times and bare durations are in the past. The result for a duration is then a moment,
            not a day.
    """
    now = now or datetime.now()
    words = " ".join(text.lower().replace(",", " ").replace(" the ", " ").split())
    try:
        return _parse_calendar(text.strip()) or _parse_words(words, now, past=past)
    except (ValueError, OverflowError, OSError):
        return None


def duration_ms(text: str) -> int | None:
    """Parse a duration such as `90`, `90s`, `1.5m`, `500ms` or `2 hours` into milliseconds; None if it is invalid."""
    number, unit = _split_unit(text)
    unit = unit or "s"
    unit = unit if unit in UNITS_MS else unit.removesuffix("s")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if unit not in UNITS_MS or not 0 <= value < 1e9:  # noqa: PLR2004 - against overflow
        return None
    return round(value * UNITS_MS[unit])


def parse_day(day: str) -> When | None:
    """Parse a day in ISO 8601. Return None if it is invalid or starts before 1970."""
    try:
        when = _day(date.fromisoformat(day))
    except (ValueError, OverflowError, OSError):
        return None
    return when if when.at > 0 else None


def is_late(due: int | None, due_day: str | None, now_ms: int) -> bool:
    """Return whether a due date has passed. A day has passed when it is over in local time."""
    if due_day:
        return due_day < datetime.fromtimestamp(now_ms / 1000).date().isoformat()
    return due is not None and due < now_ms


def due_at(task: "Mapping[str, Any]") -> float:
    """Return when a task (plain JSON) is due, in milliseconds. A due day ends in local time. Infinity means never."""
    if day := task.get("due_day"):
        try:
            return _start_ms(date.fromisoformat(day) + timedelta(days=1))
        except (OverflowError, OSError):
            pass  # the last day that Python supports
    return task.get("due") or inf


def _parse_calendar(text: str) -> When | None:
    """Parse a date in ISO 8601, with or without a time, or like `24.12.2026`."""
    day, dot, year = text.rpartition(".")
    if dot and len(day.split(".")) == 2:  # noqa: PLR2004 - a day and a month
        day, month = day.split(".")
        text = f"{year.strip():0>4}-{month.strip():0>2}-{day.strip():0>2}"
    if (day := parse_day(text)) is not None:
        return day
    try:
        return _moment(datetime.fromisoformat(text))
    except ValueError:
        return None


def _parse_words(words: str, now: datetime, *, past: bool) -> When | None:
    for lead_in in _LEAD_INS:
        words = words.removeprefix(lead_in)
    if words == "now":
        return _moment(now)
    if words == "tonight":
        return _moment(datetime.combine(now.date(), _EVENING if now.time() < _EVENING else _LAST_MINUTE))
    if (distance := _parse_distance(words, now, past=past)) is not None:
        return distance
    if (day := _parse_day_name(words, now.date(), past=past)) is not None:
        return _day(day)
    return _parse_time_of_day(words, now, past=past)


def _parse_time_of_day(words: str, now: datetime, *, past: bool) -> When | None:
    """Parse words that end in a time of day. Without a day, it is the next such time, or with `past` the latest one."""
    rest, clock = _split_clock(words)
    if clock is None:
        return None
    if not rest:
        at = datetime.combine(now.date(), clock)
        return _moment(at + timedelta(days=(at < now and not past) - (at > now and past)))
    calendar_day = _parse_calendar(rest)
    day = date.fromisoformat(calendar_day.day) if calendar_day else _parse_day_name(rest, now.date(), past=past)
    return None if day is None else _moment(datetime.combine(day, clock))


def _parse_distance(words: str, now: datetime, *, past: bool) -> When | None:
    """Parse a duration from now. Return a day if its unit is a day or longer and it is in the future."""
    is_ago, is_ahead = words.endswith(" ago"), words.startswith("in ")
    words = words.removesuffix(" ago").removeprefix("in ")
    number, unit = _split_unit(words)
    sign = -1 if is_ago or (past and not is_ahead) else 1
    number = "1" if number in ("", "a ", "an ") and (is_ago or is_ahead) else number.strip()
    add = _IN_UNITS.get(unit) or _IN_UNITS.get(unit.removesuffix("s"))
    if add is not None and sign > 0 and number.isdecimal():
        return _day(add(now.date(), int(number)))
    ms = duration_ms(f"{number}{unit}")
    return None if ms is None else _moment(now + sign * timedelta(milliseconds=ms))


def _parse_day_name(words: str, today: date, *, past: bool) -> date | None:
    """Parse words for a day. A weekday is the next one after today, or with `past` the latest one up to today."""
    if words in _WORDS:
        return _WORDS[words](today)
    head, _, name = words.rpartition(" ")
    weekday = _match_prefix(name, _WEEKDAYS)
    if weekday is None:
        return _parse_month_day(words, today)
    if head == "next":
        return _next_week(today) + timedelta(days=weekday)
    if head not in ("", "this"):
        return None
    if past:
        return today - timedelta(days=(today.weekday() - weekday) % 7)
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def _parse_month_day(words: str, today: date) -> date | None:
    """Parse `24 dec`, `december 24th` or `24 dec 2026`. Without a year, it is the next such day."""
    parts = words.split()
    months = [month for part in parts if (month := _match_prefix(part, _MONTHS)) is not None]
    numbers = [number for part in parts if (number := part.rstrip("stndrh.")).isdecimal()]
    if len(months) != 1 or len(months) + len(numbers) != len(parts) or len(numbers) not in (1, 2):
        return None
    day, year = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else today.year
    result = date(year, months[0] + 1, day)
    return result.replace(year=year + 1) if result < today and len(numbers) == 1 else result


def _match_prefix(word: str, names: tuple[str, ...]) -> int | None:
    """Return the index of the name that starts with `word`, which must have at least three letters."""
    return next((index for index, name in enumerate(names) if len(word) > 2 and name.startswith(word)), None)  # noqa: PLR2004


def _split_clock(words: str) -> tuple[str, time | None]:
    """Split off a time of day at the end of words. Return the rest and the time."""
    rest, _, last = words.rpartition(" ")
    if last in ("am", "pm"):
        rest, _, number = rest.rpartition(" ")
        last = number + last
    clock = _CLOCK_WORDS.get(last) or _parse_clock(last)
    return (" " + rest).removesuffix(" at").strip(), clock


def _parse_clock(text: str) -> time | None:
    half = text[-2:] if text.endswith(("am", "pm")) else ""
    hour, colon, minute = text.removesuffix(half).partition(":")
    if not hour.isdecimal() or not (colon or half) or (colon and len(minute) != 2):  # noqa: PLR2004
        return None
    if half and not 1 <= int(hour) <= 12:  # noqa: PLR2004
        return None
    return time(int(hour) % 12 + 12 * (half == "pm") if half else int(hour), int(minute or 0))


def _split_unit(text: str) -> tuple[str, str]:
    text = text.strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return number, text[len(number) :]


def _day(day: date) -> When:
    return When(_start_ms(day), day.isoformat())


def _start_ms(day: date) -> int:
    return round(datetime.combine(day, time()).timestamp() * 1000)


def _moment(at: datetime) -> When:
    return When(round(at.timestamp() * 1000))
