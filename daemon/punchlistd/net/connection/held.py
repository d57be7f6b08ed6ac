"""Accounts for all bytes that the daemon holds for its peers, and rejects more when there are too many."""

from collections.abc import Callable, Iterable

from punchlist_schemas.errors import Rejection
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces, size_of


class Held:
    """What waits for all peers together: frames that have not ended, calls that wait, answers that are not taken.

    A list that many are sent is one object, and counts once.

    Args:
        maximum: above so many bytes whoever wants to add a long answer or frame is refused.
        make_room: called then; ends connections whose peers take nothing.
    """

    def __init__(self, maximum: int, make_room: Callable[[], None]) -> None:
        self.bytes = 0
        self._maximum = maximum
        self._make_room = make_room
        self._owners: dict[int, int] = {}

    def take(self, pieces: Iterable[bytes]) -> None:
        owners = self._owners
        for piece in pieces:
            count = owners.get(id(piece), 0)
            owners[id(piece)] = count + 1
            if not count:
                self.bytes += len(piece)

    def give(self, pieces: Iterable[bytes]) -> None:
        """Count these as taken by one of the peers that they waited for."""
        owners = self._owners
        for piece in pieces:
            owners[id(piece)] -= 1
            if not owners[id(piece)]:
                del owners[id(piece)]
                self.bytes -= len(piece)

    def add(self, size: int) -> None:
        self.bytes += size

    def refusal(self, size: int = 0) -> Rejection | None:
        """Return the rejection if there is no room for this many more bytes, else None."""
        if self.bytes + size <= self._maximum:
            return None
        self._make_room()
        if (value := self.bytes + size) <= self._maximum:
            return None
        message = "The daemon holds too many bytes that its clients have not taken yet. Try again in a few seconds."
        return Rejection("limit_exceeded", message, {"limit": "held_bytes", "value": value, "maximum": self._maximum})

    def admit(self, outcome: Outcome) -> Outcome:
        """Return the answer to a read, or the rejection of a long one that there is no room for."""
        if (whole := size_of(outcome)) <= LONG_BYTES or self.bytes + whole <= self._maximum:
            return outcome
        parts = outcome.parts if type(outcome) is Pieces else (outcome,) if type(outcome) is bytes else ()
        size = sum(len(part) for part in parts if id(part) not in self._owners)
        return (self.refusal(size) or outcome) if size else outcome
