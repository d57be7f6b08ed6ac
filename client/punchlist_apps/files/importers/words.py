"""Parses other programs' words for statuses and priorities, and their dates and durations."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from punchlist.base import dates
from punchlist.base.dates import When
from punchlist.base.text import clip, one_line
from punchlist_apps.files.importers.draft import Draft, Note, replace_surrogates

CANCELLED = "cancelled"
"""Label of a cancelled task, which is imported as completed so that it doesn't block other tasks."""

_STATUSES = {
    "pending": "open opened todo to_do pending new backlog ready triage unstarted not_started reopened needs_action"
    " needs_triage selected_for_development selected icebox planned approved proposed next pinned queued waiting later",
    "in_progress": "in_progress doing started active wip in_review review in_development development testing in_testing"
    " in_qa qa inreview committed code_review needs_review ready_for_review in_process strt inprogress half underway"
    " hooked",
    "paused": "paused deferred hold on_hold blocked wait stalled parked suspended snoozed delegated",
    "completed": "completed complete done closed resolved finished fixed merged released shipped verified archived"
    " passing passed",
    "failed": "failed error",
    CANCELLED: "cancelled canceled cancel wont_do wontfix wont_fix rejected declined duplicate not_planned obsolete"
    " abandoned invalid kill removed deprecated",
}
_STATUS = {word: parse_status for parse_status, words in _STATUSES.items() for word in words.split()}
_PRIORITIES = {
    "urgent": "urgent highest critical blocker p0 asap immediate",
    "high": "high h major p1 important",
    "normal": "normal medium m moderate none no_priority default p2 undefined unset",
    "low": "low l lowest minor trivial p3 p4 optional",
}
_PRIORITY = {word: parse_priority for parse_priority, words in _PRIORITIES.items() for word in words.split()}
_SEPARATORS = re.compile(r"[\s\-_/]+|(?<=[a-z])(?=[A-Z])")
_DURATION = re.compile(
    r"-?P?(?:(\d+(?:\.\d+)?)\s*+w)?\s*+(?:(\d+(?:\.\d+)?)\s*+d)?\s*+T?(?:(\d+(?:\.\d+)?)\s*+h)?"
    r"\s*+(?:(\d+(?:\.\d+)?)\s*+m(?:in)?)?\s*+(?:(\d+(?:\.\d+)?)\s*+s)?",
    re.IGNORECASE,
)
_PART_MS = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000)
_CLOCK = re.compile(r"(\d{1,4}):([0-5]\d)")
_FORMATS = (
    *("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d", "%d/%b/%y %I:%M %p", "%d/%b/%Y %I:%M %p", "%d/%b/%y", "%d/%b/%Y"),
    *(
        "%d.%m.%Y",
        "%d.%m.%Y %H:%M",
        "%d.%m.%y",
        "%b %d, %Y",
        "%B %d, %Y",
        "%d %b %Y",
        "%m/%d/%Y %H:%M",
        "%m/%d/%y %H:%M",
    ),
    *("%m/%d/%Y", "%m/%d/%y", "%Y/%m/%d", "%d/%m/%Y", "%d/%m/%y", "%Y-%m-%d %a", "%Y-%m-%d %a %H:%M", "%a, %d %b %Y"),
    *("%B %d, %Y %I:%M %p", "%b %d %Y", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p"),
    *("%a %b %d %Y %H:%M:%S GMT%z",),
)
"""Accepted date formats in addition to ISO 8601. In ambiguous dates, the month comes first."""

_MAX_NUMBER = 1e18
"""Limit of numbers that are read as times. Larger integers don't fit into a float."""

_ZONE_NAME = re.compile(r"(?<!\s)\s++\([^()]*\)$")
"""The zone name that JavaScript writes after a time."""

Members = dict[str, Any]


def parse_status(draft: Draft, word: str, line: int = 0) -> Members:
    """Return the status and labels for a word. Unknown words become pending, with a remark."""
    normalized = _normalize(word)
    status = _STATUS.get(normalized)
    if status is None and normalized:
        draft.note_change(f"status “{clip(one_line(word), 40)}”, imported as pending", line)
    if status == CANCELLED:
        return {"status": "completed", "labels": [CANCELLED]}
    return {"status": status or "pending"}


def get_status(word: str) -> str:
    """Return the status for a word, which may be `cancelled`; an empty string for an unknown word."""
    return _STATUS.get(_normalize(word), "")


def parse_priority(draft: Draft, word: str, line: int = 0) -> str:
    """Return the priority for a word. Unknown words become normal, with a remark."""
    normalized = _normalize(word)
    if normalized and normalized not in _PRIORITY:
        draft.note_change(f"priority “{clip(one_line(word), 40)}”, imported as normal", line)
    return _PRIORITY.get(normalized, "normal")


def _normalize(word: str) -> str:
    """Return a word in lowercase, with `_` between its parts: `needsAction` becomes `needs_action`."""
    return _SEPARATORS.sub("_", word.strip().replace("'", "").replace("’", "")).lower()


class Midnight(When):
    """A time in a file that is imported as a day, since it is midnight in the local zone."""


def parse_when(  # noqa: PLR0913 - differences between programs
    draft: Draft,
    text: Any,
    name: str,
    line: int = 0,
    *,
    zone: str = "",
    is_day: bool = False,
    midnight_is_day: bool = False,
) -> When | None:
    """Parse a date or a time. Invalid dates are skipped, with a remark.

    Args:
        text: The date in the file. A number is in seconds or milliseconds since 1970.
        name: The member's name, for the remark.
        zone: The zone of a time without an offset; by default the local zone.
        is_day: Whether the program has only dates, in which case the time of day is ignored.
        midnight_is_day: Whether the program writes a date as midnight of that day.
    """
    if isinstance(text, int | float) and not isinstance(text, bool) and abs(text) < _MAX_NUMBER:
        seconds = float(text)
        return When(round(seconds if seconds > 1e11 else seconds * 1000)) if seconds > 0 else None  # noqa: PLR2004 - larger numbers are milliseconds
    normalized = one_line(str(text or ""))
    parsed, has_time = _parse(normalized)
    if parsed is None:
        if normalized:
            draft.skip(f"`{name}` that is not a date (“{clip(normalized, 30)}”)", line)
        return None
    if is_day or not has_time:
        return dates.parse_day(parsed.date().isoformat())
    if zone and parsed.tzinfo is None:
        try:
            parsed = parsed.replace(tzinfo=ZoneInfo(zone))
        except (KeyError, OSError, ValueError):
            draft.note_change(f"time zone “{clip(zone, 40)}”, read as the local zone", line)
    return _build_when(parsed, midnight_is_day=midnight_is_day)


def _build_when(parsed: datetime, *, midnight_is_day: bool) -> When | None:
    """Return a time, or a day if the time is midnight in the local zone or in its own offset."""
    try:
        at, local = round(parsed.timestamp() * 1000), parsed.astimezone()
    except (OverflowError, OSError, ValueError):
        return None
    if at <= 0:
        return None
    midnights = (
        value for value in (local, parsed) if value.time() == time() and (value is local or parsed.utcoffset())
    )
    day = next(midnights, None) if midnight_is_day else None
    return When(at) if day is None else Midnight(at, day.date().isoformat())


def parse_moment(text: str) -> datetime | None:
    """Parse a date or time, or return None. The result has a zone only if the text has one."""
    return _parse(text)[0]


def _parse(text: str) -> tuple[datetime | None, bool]:
    if not text:
        return None, False
    text = _ZONE_NAME.sub("", text)
    try:
        return datetime.combine(date.fromisoformat(text), time()), False
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text), True
    except ValueError:
        pass
    for form in _FORMATS:
        try:
            parsed = datetime.strptime(text, form)  # noqa: DTZ007 - the caller adds the zone
        except ValueError:
            continue
        return parsed.replace(tzinfo=UTC) if form.endswith("Z") else parsed, "%H" in form or "%I" in form
    return None, False


def build_note(text: Any, author: Any = "", at: Any = "") -> Note:
    moment = parse_moment(one_line(str(at or "")))
    try:
        at_ms = 0 if moment is None else max(round(moment.timestamp() * 1000), 0)
    except (OverflowError, OSError, ValueError):
        at_ms = 0
    return Note(replace_surrogates(str(text or "")).strip(), one_line(replace_surrogates(str(author or ""))), at_ms)


def parse_duration_ms(text: Any) -> int | None:
    """Parse `PT2H30M`, `2h 30m`, `1:30` or `90` (seconds) and return milliseconds; None if invalid."""
    normalized = str(text or "").strip()
    if match := _CLOCK.fullmatch(normalized):
        return int(match[1]) * 3_600_000 + int(match[2]) * 60_000
    if normalized.replace(".", "", 1).isdecimal():
        return round(timedelta(seconds=min(float(normalized), 1e12)).total_seconds() * 1000)
    match = _DURATION.fullmatch(normalized)
    if not match or not any(match.groups()):
        return None
    return round(sum(float(part) * unit for part, unit in zip(match.groups(), _PART_MS, strict=True) if part))
