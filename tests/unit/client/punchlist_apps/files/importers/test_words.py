from datetime import datetime
from typing import Any

import pytest

from punchlist.base.dates import When
from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.draft import Draft, Note


def local(year: int, month: int, day: int, hour: int = 0) -> int:
    return round(datetime(year, month, day, hour).timestamp() * 1000)  # noqa: DTZ001 - local


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-12-24", "2026-12-24"),
        ("2026-12-24T18:00:00Z", 1_798_135_200_000),
        ("20261224T180000Z", 1_798_135_200_000),
        ("20261224T180000", local(2026, 12, 24, 18)),
        ("20261224", "2026-12-24"),
        ("30/Sep/26 12:00 AM", local(2026, 9, 30)),
        ("5/17/25", "2025-05-17"),
        ("17/5/2025", "2025-05-17"),
        ("17.05.2025", "2025-05-17"),
        ("May 17, 2025", "2025-05-17"),
        (1_798_135_200, 1_798_135_200_000),
        (1_798_135_200_000, 1_798_135_200_000),
        ("", None),
        (None, None),
        (True, None),
        ("0001-01-01", None),
    ],
)
def test_dates_are_read_as_programs_write_them(text: Any, at: int | str | None) -> None:
    draft = Draft("x", "f")
    found = words.parse_when(draft, text, "due")
    assert (found and (found.day or found.at)) == at
    assert (not draft.skipped) is (text is not True)


@pytest.mark.parametrize("text", ["2026-02-30", "20260230T000000Z", "31/Feb/26", "soon", "2026-13-01T00:00:00Z"])
def test_invalid_date_is_skipped_with_its_line(text: str) -> None:
    draft = Draft("x", "f")
    assert words.parse_when(draft, text, "due", 7) is None
    assert draft.skipped[f"`due` that is not a date (“{text}”)"].lines == [7]


def test_unknown_zone_gives_a_remark() -> None:
    draft = Draft("x", "f")
    assert words.parse_when(draft, "20261224T180000", "due", zone="Asia/Tokyo") == When(1_798_102_800_000)
    assert words.parse_when(draft, "20261224T180000", "due", zone="No/Where") == When(local(2026, 12, 24, 18))
    assert list(draft.converted) == ["time zone “No/Where”, read as the local zone"]


@pytest.mark.parametrize(
    ("word", "status", "labels"),
    [
        ("In Progress", "in_progress", None),
        ("in-review", "in_progress", None),
        ("Won't Do", "completed", ["cancelled"]),
        ("BLOCKED", "paused", None),
        ("Done", "completed", None),
        ("", "pending", None),
        ("Weird", "pending", None),
    ],
)
def test_status_words_are_parsed(word: str, status: str, labels: list[str] | None) -> None:
    draft = Draft("x", "f")
    found = words.parse_status(draft, word)
    assert (found["status"], found.get("labels")) == (status, labels)
    assert bool(draft.converted) is (word == "Weird")


@pytest.mark.parametrize(
    ("word", "priority"), [("Highest", "urgent"), ("P1", "high"), ("No priority", "normal"), ("?", "normal")]
)
def test_priority_words_are_parsed(word: str, priority: str) -> None:
    draft = Draft("x", "f")
    assert words.parse_priority(draft, word) == priority
    assert bool(draft.converted) is (word == "?")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT2H30M", 9_000_000),
        ("2h 30m", 9_000_000),
        ("1:30", 5_400_000),
        ("90", 90_000),
        ("1w", 604_800_000),
        ("P1DT1S", 86_401_000),
    ]
    + [("x", None), ("", None), (None, None)],
)
def test_durations_are_read_as_programs_write_them(text: Any, ms: int | None) -> None:
    assert words.parse_duration_ms(text) == ms


def test_a_note_keeps_its_day_and_author() -> None:
    assert words.build_note(" text ", "ann", "2026-01-02T03:04:05Z") == Note("text", "ann", 1_767_323_045_000)
    assert words.build_note("text") == Note("text")
    assert words.build_note("text", "ann", "0001-01-01") == Note("text", "ann")
