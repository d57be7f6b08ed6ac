import time
from typing import Any

import pytest

from punchlist.base.departures import ago, clock, departure, is_gone

MINUTE = 60_000


def test_departure_shows_leaving_time_and_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    now = int(time.time() * 1000)
    free = time.strftime("%H:%M", time.gmtime(now / 1000))
    task: dict[str, Any] = {"left_at": now - 20 * MINUTE, "lease_expires_at": now}
    assert is_gone(task)
    assert departure(task, now) == f"left 20 min ago, free at {free}"
    assert departure(task).startswith("left at ")
    silent: dict[str, Any] = {"silent_at": now - 3 * MINUTE, "machine": "mb\x1b[2J"}
    assert departure(silent, now) == "machine mb\\x1b[2J not heard of for 3 min"
    assert departure(silent).startswith("machine mb\\x1b[2J not heard of since ")


def test_present_owner_is_not_gone() -> None:
    task: dict[str, Any] = {"lease_expires_at": 5, "machine": "mb"}
    assert not is_gone(task)
    assert departure(task, 1) == ""


@pytest.mark.parametrize(
    ("passed", "said"),
    [(-5_000, "0 s"), (0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (7_200_000, "2 h"), (3 * 86_400_000, "3 d")],
)
def test_times_are_in_their_largest_unit(passed: int, said: str) -> None:
    assert ago(1_000_000_000, 1_000_000_000 + passed) == said


def test_another_day_has_its_date() -> None:
    assert clock(0).startswith("19")
    assert clock(2**80) == str(2**80), "no calendar contains this date"
