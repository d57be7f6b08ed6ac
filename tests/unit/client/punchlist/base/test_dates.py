"""Display of days and times in the local time zone."""

import time
from datetime import datetime

import pytest

from punchlist.base.dates import When, is_late, parse

NOW = datetime(2026, 11, 25, 14, 30)
"""A Wednesday."""

DAYS = {
    "2026-12-24": "2026-12-24",
    "20261224": "2026-12-24",
    "24.12.2026": "2026-12-24",
    "24 dec": "2026-12-24",
    "Dec 24": "2026-12-24",
    "december 24th, 2027": "2027-12-24",
    "24 November": "2027-11-24",
    "today": "2026-11-25",
    "Tomorrow": "2026-11-26",
    "yesterday": "2026-11-24",
    "day after tomorrow": "2026-11-27",
    "friday": "2026-11-27",
    "fri": "2026-11-27",
    "this friday": "2026-11-27",
    "on monday": "2026-11-30",
    "wednesday": "2026-12-02",
    "next friday": "2026-12-04",
    "next monday": "2026-11-30",
    "next week": "2026-11-30",
    "next month": "2026-12-01",
    "next year": "2027-01-01",
    "weekend": "2026-11-28",
    "eod": "2026-11-25",
    "eow": "2026-11-29",
    "end of week": "2026-11-29",
    "end of the week": "2026-11-29",
    "end of next week": "2026-12-06",
    "eom": "2026-11-30",
    "end of month": "2026-11-30",
    "by the end of the month": "2026-11-30",
    "end of next month": "2026-12-31",
    "eoy": "2026-12-31",
    "3d": "2026-11-28",
    "1w": "2026-12-02",
    "in 2 weeks": "2026-12-09",
    "in a week": "2026-12-02",
    "3mo": "2027-02-25",
    "in 1 year": "2027-11-25",
}
MOMENTS = {
    "2026-12-24 18:00": datetime(2026, 12, 24, 18),
    "2026-12-24T18:00": datetime(2026, 12, 24, 18),
    "24.12.2026 18:00": datetime(2026, 12, 24, 18),
    "tomorrow 17:00": datetime(2026, 11, 26, 17),
    "tomorrow at 5pm": datetime(2026, 11, 26, 17),
    "friday 9 am": datetime(2026, 11, 27, 9),
    "next week 08:15": datetime(2026, 11, 30, 8, 15),
    "noon": datetime(2026, 11, 26, 12),
    "17:00": datetime(2026, 11, 25, 17),
    "at 9:00": datetime(2026, 11, 26, 9),
    "tonight": datetime(2026, 11, 25, 20),
    "now": NOW,
    "in 2 hours": datetime(2026, 11, 25, 16, 30),
    "in an hour": datetime(2026, 11, 25, 15, 30),
    "90m": datetime(2026, 11, 25, 16),
    "1.5d": datetime(2026, 11, 27, 2, 30),
    "2 hours ago": datetime(2026, 11, 25, 12, 30),
}
NONE = (
    *("", " ", "soon", "ten ago", "2026-02-30", "2026-13-01", "31 nov", "dec", "24 dec 2026 5", "next", "m"),
    *("in", "in a", "friday next", "25:00", "9:60", "13pm", "0am", "tomorrow at", "9" * 30 + "d", "9" * 30 + "mo"),
)


@pytest.mark.parametrize(("text", "day"), DAYS.items())
def test_text_without_time_is_day(text: str, day: str) -> None:
    found = parse(text, NOW)
    assert found == When(round(datetime.fromisoformat(day).timestamp() * 1000), day)


@pytest.mark.parametrize(("text", "at"), MOMENTS.items())
def test_text_with_time_is_moment(text: str, at: datetime) -> None:
    assert parse(text, NOW) == When(round(at.timestamp() * 1000))


@pytest.mark.parametrize("text", NONE)
def test_other_text_is_rejected(text: str) -> None:
    assert parse(text, NOW) is None


def test_weekday_is_never_today() -> None:
    friday = datetime(2026, 11, 27, 9)
    assert parse("friday", friday) == parse("2026-12-04", friday)
    assert parse("friday", friday, past=True) == parse("today", friday)


def test_last_day_of_month_stays_last() -> None:
    found = parse("in 1 month", datetime(2027, 1, 31, 9))
    assert found is not None and found.day == "2027-02-28"


def test_tonight_is_not_over_in_the_evening() -> None:
    assert parse("tonight", datetime(2026, 11, 25, 21)) == parse("2026-11-25 23:59")


def test_past_duration_is_exact() -> None:
    found = parse("2d", NOW, past=True)
    assert found == When(round(datetime(2026, 11, 23, 14, 30).timestamp() * 1000))


def test_day_is_late_after_its_local_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 1_798_070_400_000  # 2026-12-24 00:00 UTC
    for zone, ends in (("Pacific/Kiritimati", 10), ("UTC", 24), ("America/New_York", 29), ("Pacific/Pago_Pago", 35)):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        over = begun + ends * 3_600_000
        assert not is_late(None, "2026-12-24", over - 1), zone
        assert is_late(None, "2026-12-24", over), zone
    monkeypatch.undo()
    time.tzset()
    assert (is_late(5, None, 6), is_late(5, None, 5), is_late(None, None, 5)) == (True, False, False)


def test_filter_compares_days_with_days() -> None:
    today = parse("today", NOW)
    assert today is not None
    midnight = round(datetime(2026, 11, 26).timestamp() * 1000)
    assert today.is_due_by() == {"due_by": "2026-11-25", "due_before": midnight}
    at = parse("2026-11-25 18:00")
    assert at is not None
    assert at.is_due_by() == {"due_by": "2026-11-24", "due_before": at.at}
    assert When(0).is_due_by() == {}
