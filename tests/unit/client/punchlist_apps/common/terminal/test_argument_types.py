import time
from argparse import ArgumentTypeError

import pytest

from punchlist_apps.common.terminal.argument_types import (
    parse_duration,
    parse_history_point,
    parse_lease,
    parse_past_time,
    parse_port,
    parse_positive,
    parse_time,
    parse_whole_number,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90_000),
        ("90s", 90_000),
        ("1.5m", 90_000),
        ("500ms", 500),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("2 weeks", 1_209_600_000),
        ("5 minutes", 300_000),
    ],
)
def test_duration_without_unit_is_in_seconds(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1", "1y", "m", "nan", "inf", "1e99", "5 moons", "1sm"])
def test_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="not a duration"):
        parse_duration(text)


def test_past_and_future_times_are_parsed() -> None:
    now = time.time() * 1000
    for text, behind in (("10m", 600_000), ("10 min ago", 600_000), ("2 hours ago", 7_200_000), ("1d", 86_400_000)):
        assert abs(parse_past_time(text) - (now - behind)) < 5_000, text
    assert abs(parse_time("in 2 hours").at - (now + 7_200_000)) < 5_000
    assert parse_past_time("yesterday") < parse_past_time("today") <= now < parse_time("tomorrow").at
    assert parse_past_time("2026-01-02 03:04") == parse_time("2026-01-02 03:04").at
    assert (parse_history_point("12"), parse_history_point("0")) == ((12, 0), (0, 0))
    assert parse_history_point("2026-01-02")[0] is None
    for text in ("", "soon", "10 ago", "2026-13-01"):
        with pytest.raises(ArgumentTypeError):
            parse_past_time(text if text != "10 ago" else "ten ago")


def test_error_for_time_gives_examples() -> None:
    with pytest.raises(ArgumentTypeError) as refused:
        parse_time("soon")
    examples = str(refused.value).partition("write ")[2].replace(" or ", ", ").split(", ")
    assert len(examples) > 3
    for example in examples:
        assert parse_time(example.strip("'")).at, example


def test_positive_number_starts_at_one() -> None:
    assert parse_positive("3") == 3
    for text in ("0", "-1", "x", "1.5"):
        with pytest.raises(ArgumentTypeError):
            parse_positive(text)


def test_a_number_may_be_zero() -> None:
    assert (parse_whole_number("0"), parse_whole_number("12")) == (0, 12)
    for text in ("-1", "x", "1.5", ""):
        with pytest.raises(ArgumentTypeError, match="must be a whole number, 0 or more"):
            parse_whole_number(text)


def test_claim_lasts_1_s_to_24_h() -> None:
    assert (parse_lease("1s"), parse_lease("24h")) == (1_000, 86_400_000)
    for text in ("0", "999ms", "25h"):
        with pytest.raises(ArgumentTypeError, match="is not between 1s and 24h"):
            parse_lease(text)


def test_a_port_can_be_named_in_an_address() -> None:
    assert (parse_port("1"), parse_port("65535")) == (1, 65_535)
    for text in ("0", "65536", "-1", "http", ""):
        with pytest.raises(ArgumentTypeError, match="not a port from 1 to 65535"):
            parse_port(text)
