"""Queue of members that want to post to one list at the same time.

Without the queue, a distant machine would lose every race, because its state would be stale before its post arrived. A
member that has lost a race, or that sees others in the queue, requests a turn and waits for one round trip. By then all
other members have received the request. They delay their posts until the members ahead of them have posted, or until
those members' turns have expired. This is an optimization: a member that misses a request loses time, not correctness.
"""

import time

TURN_S = 1.0
"""Upper limit for one member's turn, in seconds."""

QUEUE_S = 4 * TURN_S
"""Maximum time in the queue, in seconds. Needed because a member may request turns under invented names."""

MAX_QUEUE = 256
"""Maximum number of members in the queue."""

IN_FLIGHT_FRACTION = 1 / 8
"""Time that a member whose turn starts immediately waits for posts in flight, as a fraction of a round trip."""


class Turns:
    """The queue as this member sees it.

    Args:
        own: ID of this member.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        # Member -> upper limit for its turn in seconds, in the order of requests.
        self._queue: dict[str, float] = {}
        self._turn_ends_at = 0.0  # when the first member's turn expires
        # The time until which this member waits for its own request to arrive, or for posts in flight.
        self._waits_until = 0.0
        self._has_lost = False
        self._queued_at = 0.0  # when this member entered the queue
        self._requested_last = False  # whether this member requested a turn before its last post
        self._other_posted_at = -TURN_S  # when another member's post was last received

    def enqueue(self, member: str, round_trip_s: float) -> None:
        """Add a member to the queue. `round_trip_s` is the time that one of its posts takes."""
        self._expire_turns()
        now = time.monotonic()
        if member == self._own:
            self._waits_until = now if self._queue else now + min(TURN_S, round_trip_s * IN_FLIGHT_FRACTION)
        if member not in self._queue and len(self._queue) < MAX_QUEUE:
            self._queue[member] = _turn_limit_s(round_trip_s)
            if member == self._own:
                self._queued_at = now
            if len(self._queue) == 1:
                self._begin_turn(now)

    def record_post(self, member: str) -> None:
        self._expire_turns()
        if member != self._own:
            self._other_posted_at = time.monotonic()
        first = next(iter(self._queue), None)
        self._queue.pop(member, None)
        if member == first:
            self._begin_turn(time.monotonic())

    def record_lost_race(self) -> None:
        self._has_lost = True

    def should_request(self, round_trip_s: float, *, posts: bool) -> bool:
        """Return True if this member should request a turn now. If so, start waiting for the request to arrive.

        Args:
            round_trip_s: Time that one of this member's posts takes, in seconds.
            posts: Whether this member is likely to post. If not, the others would wait for nothing.
        """
        self._expire_turns()
        lost, self._has_lost = self._has_lost, False
        if self._own in self._queue:
            return False
        now, patience_s = time.monotonic(), _turn_limit_s(round_trip_s)
        others = bool(self._queue) or (self._requested_last and now - self._other_posted_at < patience_s)
        self._requested_last = lost or (posts and others)
        if self._requested_last:
            self._waits_until = now + patience_s
        return self._requested_last

    def wait_s(self) -> float:
        """Return the seconds to wait before posting or checking again; 0 if this member may post now."""
        self._expire_turns()
        now = time.monotonic()
        waits = self._own in self._queue and next(iter(self._queue)) != self._own and now - self._queued_at < QUEUE_S
        return max(0.0, (self._turn_ends_at if waits else self._waits_until) - now)

    def _begin_turn(self, now: float) -> None:
        if self._queue:
            self._turn_ends_at = now + next(iter(self._queue.values()))

    def _expire_turns(self) -> None:
        while self._queue and self._turn_ends_at <= time.monotonic():
            del self._queue[next(iter(self._queue))]
            self._begin_turn(self._turn_ends_at)


def _turn_limit_s(round_trip_s: float) -> float:
    return min(TURN_S, 0.05 + 3 * round_trip_s)
