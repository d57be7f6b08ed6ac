"""Whose post of a list comes next where several machines want to post at once.

A machine that is far away would lose every race: its state is old before its post arrives. Who lost one asks for a
turn, and the others hold their posts until his is seen, or long enough for it to arrive. It is a courtesy: who does
not hear of it loses nothing but time.
"""

import time

TURN_S = 1.0
"""At most so long another member is let in first, in seconds."""


class Turns:
    """Who asked to be let in first.

    Args:
        own: this member.
    """

    def __init__(self, own: str) -> None:
        """Nobody did."""
        self._own = own
        self._wants: dict[str, float] = {}  # in the order of asking, and until when each is waited for

    def wanted(self, member: str, round_trip_s: float) -> None:
        """A member asks for a turn; a post of his takes about so long."""
        if member not in self._wants:
            self._wants[member] = time.monotonic() + min(TURN_S, 0.05 + 3 * round_trip_s)

    def had(self, member: str) -> None:
        """A member's post is in."""
        self._wants.pop(member, None)

    def left_s(self) -> float:
        """How long others are to be let in first, in seconds; 0 if it is this member's turn."""
        for member, until in list(self._wants.items()):
            left_s = until - time.monotonic()
            if member == self._own:
                break
            if left_s > 0:
                return left_s
            del self._wants[member]
        return 0.0
