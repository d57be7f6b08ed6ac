"""The tally of a list's events, compared with the events themselves."""

import random
from collections import Counter

import msgspec
import pytest

from punchlistd.domain.state.tally import MAX_CELLS, Bar, Tally


def count(events: list[tuple[int, str]]) -> Tally:
    tally = Tally()
    for version, (at, actor) in enumerate(events, start=1):
        tally.add(at, version, version, actor)
    return tally


def test_an_empty_tally_has_no_bars() -> None:
    assert Tally().build_bars(200) == []


@pytest.mark.parametrize("seed", range(20))
def test_bars_agree_with_events(seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    at, events = chance.randrange(1 << 41), list[tuple[int, str]]()
    for _ in range(chance.randrange(1, 1_500)):
        at += chance.choice((0, 1, 1_000, 60_000, chance.randrange(1 << chance.randrange(1, 34))))
        events.append((at, f"a{chance.randrange(5)}"))
    tally = count(events)
    assert len(tally.cells) <= MAX_CELLS
    for most in (1, 7, 200):
        bars = tally.build_bars(most)
        assert 0 < len(bars) <= most
        starts = [start for start, *_ in bars]
        assert starts[0] <= events[0][0] and len({b - a for a, b in zip(starts, starts[1:], strict=False)}) <= 1
        ends = [*starts[1:], 1 << 63]
        for (start, version, by), end in zip(bars, ends, strict=True):
            inside = Counter(actor for at, actor in events if start <= at < end)
            assert dict(by) == inside
            assert version == sum(at < end for at, _ in events)


def test_most_active_actors_are_shown() -> None:
    events = [(0, f"a{number:02}") for number in range(30) for _ in range(1 if number > 9 else 10 + number)]
    ((_, version, by),) = count(events).build_bars(1)
    assert (version, sum(n for _, n in by)) == (len(events), len(events))
    assert by[:8] == tuple((f"a{number:02}", 10 + number) for number in range(9, 1, -1))
    assert by[8][0] == ""


def test_later_bars_have_later_versions_after_a_clock_was_set_back() -> None:
    tally = count([(100, "a"), (5_000, "a"), (0, "b"), (50, "b"), (9_000, "a")])
    bars: list[Bar] = [bar for bar in tally.build_bars(200) if bar[2]]
    assert [version for _, version, _ in bars] == [1, 4, 5]
    assert bars[1][2] == (("b", 2), ("a", 1))


def test_positions_precede_versions_and_times() -> None:
    tally = count([(1_000 * number, "a") for number in range(10_000)])
    for version in (1, 2, 777, 10_000):
        before, seq = tally.find_before(version=version)
        assert version - 200 < before + 1 <= version and seq == before
        before, _ = tally.find_before(at=1_000 * (version - 1))
        assert version - 200 < before + 1 <= version


def test_tally_survives_encoding() -> None:
    tally = count([(1 << number, "a") for number in range(40)])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(tally), type=Tally) == tally
