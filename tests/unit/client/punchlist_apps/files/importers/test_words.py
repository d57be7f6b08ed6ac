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
    found = words.when(draft, text, "due")
    assert (found and (found.day or found.at)) == at
    assert (not draft.passed) is (text is not True)


@pytest.mark.parametrize("text", ["2026-02-30", "20260230T000000Z", "31/Feb/26", "soon", "2026-13-01T00:00:00Z"])
def test_a_date_that_does_not_exist_is_passed_over_with_its_line(text: str) -> None:
    draft = Draft("x", "f")
    assert words.when(draft, text, "due", 7) is None
    assert draft.passed[f"`due` that is no date (“{text}”)"].lines == [7]


def test_a_zone_counts_and_an_unknown_one_is_noted() -> None:
    draft = Draft("x", "f")
    assert words.when(draft, "20261224T180000", "due", zone="Asia/Tokyo") == When(1_798_102_800_000)
    assert words.when(draft, "20261224T180000", "due", zone="No/Where") == When(local(2026, 12, 24, 18))
    assert list(draft.changed) == ["time zone “No/Where”, read as the local one"]


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
def test_words_for_statuses_are_known(word: str, status: str, labels: list[str] | None) -> None:
    draft = Draft("x", "f")
    found = words.status(draft, word)
    assert (found["status"], found.get("labels")) == (status, labels)
    assert bool(draft.changed) is (word == "Weird")


@pytest.mark.parametrize(
    ("word", "priority"), [("Highest", "urgent"), ("P1", "high"), ("No priority", "normal"), ("?", "normal")]
)
def test_words_for_priorities_are_known(word: str, priority: str) -> None:
    draft = Draft("x", "f")
    assert words.priority(draft, word) == priority
    assert bool(draft.changed) is (word == "?")


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
    assert words.duration_ms(text) == ms


def test_a_note_keeps_its_day_and_author() -> None:
    assert words.note(" text ", "ann", "2026-01-02T03:04:05Z") == Note("text", "ann", 1_767_323_045_000)
    assert words.note("text") == Note("text")
    assert words.note("text", "ann", "0001-01-01") == Note("text", "ann")
