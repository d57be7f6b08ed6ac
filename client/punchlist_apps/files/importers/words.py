"""Words of other programs for statuses and priorities, and their dates and durations."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from punchlist.base import dates
from punchlist.base.dates import When
from punchlist.base.text import clip, one_line
from punchlist_apps.files.importers.draft import Draft, Note, clean

CANCELLED = "cancelled"
"""The label of a task that was given up elsewhere. Here it is completed: nothing waits for it any more."""

_STATUSES = {
    "pending": "open todo to_do pending new backlog ready triage unstarted not_started reopened needs_action"
    " needs_triage selected_for_development selected icebox planned proposed next pinned queued waiting later",
    "in_progress": "in_progress doing started active wip in_review review in_development development testing in_testing"
    " in_qa qa code_review needs_review ready_for_review in_process strt inprogress half underway hooked",
    "paused": "paused deferred hold on_hold blocked wait stalled parked suspended snoozed delegated",
    "completed": "completed complete done closed resolved finished fixed merged released shipped verified archived",
    "failed": "failed error",
    CANCELLED: "cancelled canceled cancel wont_do wontfix wont_fix rejected declined duplicate not_planned obsolete"
    " abandoned invalid kill removed",
}
_STATUS = {word: status for status, words in _STATUSES.items() for word in words.split()}
_PRIORITIES = {
    "urgent": "urgent highest critical blocker p0 asap immediate",
    "high": "high h major p1 important",
    "normal": "normal medium m moderate none no_priority default p2 undefined unset",
    "low": "low l lowest minor trivial p3 p4 optional",
}
_PRIORITY = {word: priority for priority, words in _PRIORITIES.items() for word in words.split()}
_SEPARATORS = re.compile(r"[\s\-_/]+")
_DURATION = re.compile(
    r"-?P?(?:(\d+(?:\.\d+)?)\s*+w)?\s*+(?:(\d+(?:\.\d+)?)\s*+d)?\s*+T?(?:(\d+(?:\.\d+)?)\s*+h)?"
    r"\s*+(?:(\d+(?:\.\d+)?)\s*+m(?:in)?)?\s*+(?:(\d+(?:\.\d+)?)\s*+s)?",
    re.IGNORECASE,
)
_PART_MS = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000)
_CLOCK = re.compile(r"(\d{1,4}):([0-5]\d)")
_FORMS = (
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
    *("%a %b %d %Y %H:%M:%S GMT%z",),
)
"""Dates that ISO 8601 does not know; with the month first where both would do."""

_ZONE_NAME = re.compile(r"(?<!\s)\s++\([^()]*\)$")
"""What JavaScript writes behind a time."""

Members = dict[str, Any]


def status(draft: Draft, word: str, line: int = 0) -> Members:
    """The members that a word for a status means; an unknown one is pending, which is noted."""
    spelled = _SEPARATORS.sub("_", word.strip().lower().replace("'", "").replace("’", ""))
    found = _STATUS.get(spelled)
    if found is None and spelled:
        draft.change(f"status “{clip(one_line(word), 40)}”, which is pending here", line)
    if found == CANCELLED:
        return {"status": "completed", "labels": [CANCELLED]}
    return {"status": found or "pending"}


def priority(draft: Draft, word: str, line: int = 0) -> str:
    """The priority that a word means; an unknown one is normal, which is noted."""
    spelled = _SEPARATORS.sub("_", word.strip().lower())
    if spelled and spelled not in _PRIORITY:
        draft.change(f"priority “{clip(one_line(word), 40)}”, which is normal here", line)
    return _PRIORITY.get(spelled, "normal")


class Midnight(When):
    """A moment in a file that stands for a day, since it is midnight where the file is read."""


def when(  # noqa: PLR0913 - how programs differ in their dates
    draft: Draft,
    text: Any,
    what: str,
    line: int = 0,
    *,
    zone: str = "",
    is_day: bool = False,
    midnight_is_day: bool = False,
) -> When | None:
    """A date as a day, or a time as a moment; a time without a zone is a local one.

    What is no date, or one that the calendar does not have, is passed over, which is noted.

    Args:
        text: The date as the file has it; a number is seconds or milliseconds since 1970.
        zone: The zone of a time that names none.
        is_day: Whether the program knows no times, so that the day in the text is what counts.
        midnight_is_day: Whether the program writes a day as its midnight.
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds = float(text)
        return When(round(seconds if seconds > 1e11 else seconds * 1000)) if seconds > 0 else None  # noqa: PLR2004 - both ways
    spelled = one_line(str(text or ""))
    found, has_time = _read(spelled)
    if found is None:
        if spelled:
            draft.pass_over(f"`{what}` that is no date (“{clip(spelled, 30)}”)", line)
        return None
    if is_day or not has_time:
        return dates.parse_day(found.date().isoformat())
    if zone and found.tzinfo is None:
        try:
            found = found.replace(tzinfo=ZoneInfo(zone))
        except (KeyError, OSError, ValueError):
            draft.change(f"time zone “{clip(zone, 40)}”, read as the local one", line)
    return _at(found, midnight_is_day=midnight_is_day)


def _at(found: datetime, *, midnight_is_day: bool) -> When | None:
    """A time as a moment, or as a day if it is midnight here or in the offset that it names."""
    try:
        at, local = round(found.timestamp() * 1000), found.astimezone()
    except (OverflowError, OSError, ValueError):
        return None
    if at <= 0:
        return None
    midnights = (one for one in (local, found) if one.time() == time() and (one is local or found.utcoffset()))
    day = next(midnights, None) if midnight_is_day else None
    return When(at) if day is None else Midnight(at, day.date().isoformat())


def moment(text: str) -> datetime | None:
    """A date or time as other programs write it, or None if it is none; what has no zone is told without."""
    return _read(text)[0]


def _read(text: str) -> tuple[datetime | None, bool]:
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
    for form in _FORMS:
        try:
            found = datetime.strptime(text, form)  # noqa: DTZ007 - the zone is the caller's
        except ValueError:
            continue
        return found.replace(tzinfo=UTC) if form.endswith("Z") else found, "%H" in form or "%I" in form
    return None, False


def note(text: Any, by: Any = "", at: Any = "") -> Note:
    found = moment(one_line(str(at or "")))
    try:
        written = 0 if found is None else max(round(found.timestamp() * 1000), 0)
    except (OverflowError, OSError, ValueError):
        written = 0
    return Note(clean(str(text or "")).strip(), one_line(clean(str(by or ""))), written)


def duration_ms(text: Any) -> int | None:
    """`PT2H30M`, `2h 30m`, `1:30` or `90` (seconds) in milliseconds; None if it is none."""
    spelled = str(text or "").strip()
    if match := _CLOCK.fullmatch(spelled):
        return int(match[1]) * 3_600_000 + int(match[2]) * 60_000
    if spelled.replace(".", "", 1).isdecimal():
        return round(timedelta(seconds=min(float(spelled), 1e12)).total_seconds() * 1000)
    match = _DURATION.fullmatch(spelled)
    if not match or not any(match.groups()):
        return None
    return round(sum(float(part) * unit for part, unit in zip(match.groups(), _PART_MS, strict=True) if part))
