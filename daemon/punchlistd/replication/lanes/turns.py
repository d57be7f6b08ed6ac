"""Whose post of a list comes next where several machines want to post at once.

A machine that is far away would lose every race: its state is old before its post arrives. So they stand in line. Who
lost a post, or sees others in line, asks for a turn and waits until the way there and back has been gone: by then all
others know, and hold their posts until those who asked before have had their turn, or have let it pass. It is a
courtesy: who does not hear of it loses nothing but time.
"""

import time

TURN_S = 1.0
"""At most so long a member is waited for whose turn it is, in seconds."""

LINE_S = 4 * TURN_S
"""Upper limit for the turns of all others together, in seconds: any member may ask for turns in names of its own."""

MAX_LINE = 256
"""Members that may wait for a turn."""

UNDER_WAY = 1 / 8
"""For this part of what its post takes, a member whose turn it is at once waits for posts that were under way."""


class Turns:
    """The line, as it is known here.

    Args:
        own: this member.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._line: dict[str, float] = {}  # in the order of asking, and how long each is waited for
        self._until = 0.0  # when whoever is first has let his turn pass
        self._wait_until = 0.0  # how long its own question, or what was under way then, is waited for
        self._lost = False
        self._in_line_at = 0.0  # since when this member waits for its turn
        self._stood = False  # whether this member asked before it posted last
        self._another_at = -TURN_S  # when another one's post was heard of

    def wanted(self, member: str, round_trip_s: float) -> None:
        """A member asks for a turn; a post of his takes about so long."""
        self._pass()
        now = time.monotonic()
        if member == self._own:
            self._wait_until = now if self._line else now + min(TURN_S, round_trip_s * UNDER_WAY)
        if member not in self._line and len(self._line) < MAX_LINE:
            self._line[member] = _patience_s(round_trip_s)
            if member == self._own:
                self._in_line_at = now
            if len(self._line) == 1:
                self._begin(now)

    def had(self, member: str) -> None:
        self._pass()
        if member != self._own:
            self._another_at = time.monotonic()
        first = next(iter(self._line), None)
        self._line.pop(member, None)
        if member == first:
            self._begin(time.monotonic())

    def lost(self) -> None:
        self._lost = True

    def asks(self, round_trip_s: float, *, posts: bool) -> bool:
        """Whether this member is to ask for a turn now; if so, it has.

        Args:
            round_trip_s: how long a post of it takes.
            posts: whether it is likely to post: others would wait in vain for what is none.
        """
        self._pass()
        lost, self._lost = self._lost, False
        if self._own in self._line:
            return False
        now, patience_s = time.monotonic(), _patience_s(round_trip_s)
        others = bool(self._line) or (self._stood and now - self._another_at < patience_s)
        self._stood = lost or (posts and others)
        if self._stood:
            self._wait_until = now + patience_s
        return self._stood

    def left_s(self) -> float:
        """How long others are to be let in first, in seconds; 0 if it is this member's turn, or it wants none."""
        self._pass()
        now = time.monotonic()
        waits = self._own in self._line and next(iter(self._line)) != self._own and now - self._in_line_at < LINE_S
        return max(0.0, (self._until if waits else self._wait_until) - now)

    def _begin(self, now: float) -> None:
        if self._line:
            self._until = now + next(iter(self._line.values()))

    def _pass(self) -> None:
        while self._line and self._until <= time.monotonic():
            del self._line[next(iter(self._line))]
            self._begin(self._until)


def _patience_s(round_trip_s: float) -> float:
    return min(TURN_S, 0.05 + 3 * round_trip_s)
