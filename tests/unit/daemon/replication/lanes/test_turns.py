"""Whose post of a list comes next."""

import pytest

from punchlistd.replication.lanes import turns
from punchlistd.replication.lanes.turns import LINE_S, TURN_S, UNDER_WAY, Turns


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


def test_those_who_asked_before_are_let_in_first_until_their_posts_are_in(clock: Clock) -> None:
    mine = Turns("ann")
    assert mine.left_s() == 0
    mine.wanted("bob", 0.02)
    mine.wanted("ann", 0.001)
    mine.wanted("eve", 0.02)
    assert mine.left_s() == pytest.approx(0.11)
    mine.had("bob")
    assert mine.left_s() == 0, "it is ours, and eve comes behind"
    mine.had("ann")
    assert mine.asks(0.001, posts=True)
    mine.wanted("ann", 0.001)
    assert mine.left_s() == pytest.approx(0.11)
    mine.had("eve")
    mine.had("nobody")
    assert mine.left_s() == 0


def test_nobody_is_waited_for_longer_than_his_post_takes_from_when_his_turn_began(clock: Clock) -> None:
    mine = Turns("ann")
    mine.wanted("bob", 60.0)
    mine.wanted("eve", 0.05)
    mine.wanted("ann", 0.001)
    assert mine.left_s() == TURN_S
    clock.now += TURN_S / 2
    mine.wanted("bob", 60.0)
    assert mine.left_s() == TURN_S / 2, "asking again is no second turn"
    clock.now += TURN_S / 2
    assert mine.left_s() == pytest.approx(0.2), "it is eve's turn now"
    clock.now += 0.3
    assert mine.left_s() == 0
    mine.wanted("bob", 60.0)
    clock.now += 60
    mine.wanted("eve", 0.05)
    assert mine.asks(0.001, posts=True)
    mine.wanted("ann", 0.001)
    assert mine.left_s() == pytest.approx(0.2), "bob's turn is long over"


def test_forged_wishes_hold_up_no_member_for_long(clock: Clock) -> None:
    mine = Turns("ann")
    mine.wanted("ann", 60.0)
    assert mine.left_s() <= TURN_S
    mine.had("ann")
    for number in range(1_000):
        mine.wanted(f"eve{number}", 60.0)
        if number == 100:
            mine.wanted("ann", 0.001)
    began = clock.now
    while (left_s := mine.left_s()) > 0:
        clock.now += left_s
    assert clock.now - began <= LINE_S + TURN_S


def test_who_lost_a_post_or_sees_others_in_line_asks_once_and_waits_to_hear_of_it(clock: Clock) -> None:
    mine = Turns("ann")
    assert not mine.asks(0.01, posts=True), "alone, it just posts"
    mine.lost()
    assert mine.asks(0.01, posts=True)
    assert mine.left_s() == pytest.approx(0.08), "or the question is lost"
    mine.wanted("ann", 0.01)
    assert mine.left_s() == pytest.approx(0.01 * UNDER_WAY), "what was under way is let in"
    clock.now += 0.01
    assert mine.left_s() == 0
    mine.lost()
    assert not mine.asks(0.01, posts=True), "the turn is not over: nobody needs to be asked again"
    mine.had("ann")
    mine.wanted("bob", 0.01)
    assert not mine.asks(0.01, posts=False), "who is not likely to post lets nobody wait for it"
    assert mine.asks(0.01, posts=True)


def test_who_stood_in_line_asks_again_as_long_as_others_post_as_often_as_it_does(clock: Clock) -> None:
    mine = Turns("ann")
    mine.had("bob")
    assert not mine.asks(0.01, posts=True), "no post was lost yet"
    mine.lost()
    assert mine.asks(0.01, posts=True)
    mine.wanted("ann", 0.01)
    mine.had("ann")
    mine.had("bob")
    clock.now += 0.07
    assert mine.asks(0.01, posts=True)
    mine.wanted("ann", 0.01)
    mine.had("ann")
    clock.now += 0.07
    assert not mine.asks(0.01, posts=True), "bob has stopped"
    mine.had("bob")
    assert not mine.asks(0.01, posts=True)
