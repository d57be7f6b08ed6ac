"""Whose post of a list comes next."""

import pytest

from punchlistd.shared import turns
from punchlistd.shared.turns import TURN_S, Turns


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(turns, "time", moved)
    return moved


def test_who_asked_first_is_let_in_first_until_his_post_is_in(clock: Clock) -> None:
    mine = Turns("ann")
    assert mine.left_s() == 0
    mine.wanted("bob", 0.02)
    mine.wanted("ann", 0.001)
    mine.wanted("eve", 0.02)
    assert mine.left_s() == pytest.approx(0.11)
    mine.had("bob")
    assert mine.left_s() == 0, "it is ours, and eve comes behind"
    mine.had("ann")
    assert mine.left_s() > 0
    mine.had("eve")
    mine.had("nobody")
    assert mine.left_s() == 0


def test_nobody_is_waited_for_longer_than_his_post_takes_and_asking_again_is_no_second_turn(clock: Clock) -> None:
    mine = Turns("ann")
    mine.wanted("bob", 60.0)
    assert mine.left_s() == TURN_S
    clock.now += TURN_S / 2
    mine.wanted("bob", 60.0)
    assert mine.left_s() == TURN_S / 2
    clock.now += TURN_S / 2
    assert mine.left_s() == 0
    mine.wanted("bob", 60.0)
    assert mine.left_s() == TURN_S
