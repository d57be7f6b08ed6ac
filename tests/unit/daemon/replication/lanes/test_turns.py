"""The order of members' posts to a list."""

import pytest

from punchlistd.replication.lanes import turns
from punchlistd.replication.lanes.turns import IN_FLIGHT_FRACTION, QUEUE_S, TURN_S, Turns


class Clock:
    """A clock that the test controls."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(turns, "time", moved)
    return moved


def test_members_take_turns_in_request_order(clock: Clock) -> None:
    mine = Turns("ann")
    assert mine.wait_s() == 0
    mine.enqueue("bob", 0.02)
    mine.enqueue("ann", 0.001)
    mine.enqueue("eve", 0.02)
    assert mine.wait_s() == pytest.approx(0.11)
    mine.record_post("bob")
    assert mine.wait_s() == 0, "it is ann's turn, and eve follows"
    mine.record_post("ann")
    assert mine.should_request(0.001, posts=True)
    mine.enqueue("ann", 0.001)
    assert mine.wait_s() == pytest.approx(0.11)
    mine.record_post("eve")
    mine.record_post("nobody")
    assert mine.wait_s() == 0


def test_turn_times_out_after_its_round_trip(clock: Clock) -> None:
    mine = Turns("ann")
    mine.enqueue("bob", 60.0)
    mine.enqueue("eve", 0.05)
    mine.enqueue("ann", 0.001)
    assert mine.wait_s() == TURN_S
    clock.now += TURN_S / 2
    mine.enqueue("bob", 60.0)
    assert mine.wait_s() == TURN_S / 2, "a second request doesn't give a second turn"
    clock.now += TURN_S / 2
    assert mine.wait_s() == pytest.approx(0.2), "it is eve's turn now"
    clock.now += 0.3
    assert mine.wait_s() == 0
    mine.enqueue("bob", 60.0)
    clock.now += 60
    mine.enqueue("eve", 0.05)
    assert mine.should_request(0.001, posts=True)
    mine.enqueue("ann", 0.001)
    assert mine.wait_s() == pytest.approx(0.2), "bob's turn timed out long ago"


def test_forged_requests_delay_members_briefly(clock: Clock) -> None:
    mine = Turns("ann")
    mine.enqueue("ann", 60.0)
    assert mine.wait_s() <= TURN_S
    mine.record_post("ann")
    for number in range(1_000):
        mine.enqueue(f"eve{number}", 60.0)
        if number == 100:
            mine.enqueue("ann", 0.001)
    began = clock.now
    while (left_s := mine.wait_s()) > 0:
        clock.now += left_s
    assert clock.now - began <= QUEUE_S + TURN_S


def test_member_that_lost_a_post_requests_one_turn(clock: Clock) -> None:
    mine = Turns("ann")
    assert not mine.should_request(0.01, posts=True), "a single member posts without a request"
    mine.record_lost_race()
    assert mine.should_request(0.01, posts=True)
    assert mine.wait_s() == pytest.approx(0.08), "the wait ends even if the request is lost"
    mine.enqueue("ann", 0.01)
    assert mine.wait_s() == pytest.approx(0.01 * IN_FLIGHT_FRACTION), "posts in flight may arrive first"
    clock.now += 0.01
    assert mine.wait_s() == 0
    mine.record_lost_race()
    assert not mine.should_request(0.01, posts=True), "no second request while the turn lasts"
    mine.record_post("ann")
    mine.enqueue("bob", 0.01)
    assert not mine.should_request(0.01, posts=False), "a member that is unlikely to post requests no turn"
    assert mine.should_request(0.01, posts=True)


def test_queued_member_requests_again_under_contention(clock: Clock) -> None:
    mine = Turns("ann")
    mine.record_post("bob")
    assert not mine.should_request(0.01, posts=True), "no race was lost yet"
    mine.record_lost_race()
    assert mine.should_request(0.01, posts=True)
    mine.enqueue("ann", 0.01)
    mine.record_post("ann")
    mine.record_post("bob")
    clock.now += 0.07
    assert mine.should_request(0.01, posts=True)
    mine.enqueue("ann", 0.01)
    mine.record_post("ann")
    clock.now += 0.07
    assert not mine.should_request(0.01, posts=True), "bob has stopped"
    mine.record_post("bob")
    assert not mine.should_request(0.01, posts=True)
