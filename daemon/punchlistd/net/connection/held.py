"""Counts the bytes that the daemon buffers for its clients, and rejects long frames and replies above a limit."""

from collections.abc import Callable, Iterable

from punchlist_schemas.errors import Rejection
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces, size_of


class Held:
    """Memory account of all connections: incomplete frames, calls that haven't started, and unread replies.

    A bytes object sent to several clients counts once.

    Args:
        maximum: Memory limit in bytes; long replies and frames beyond it are rejected.
        make_room: Called when the limit is reached; ends connections whose peers have stopped reading.
    """

    def __init__(self, maximum: int, make_room: Callable[[], None]) -> None:
        self.bytes = 0
        self._maximum = maximum
        self._make_room = make_room
        self._owners: dict[int, int] = {}

    def hold(self, pieces: Iterable[bytes]) -> None:
        owners = self._owners
        for piece in pieces:
            count = owners.get(id(piece), 0)
            owners[id(piece)] = count + 1
            if not count:
                self.bytes += len(piece)

    def release(self, pieces: Iterable[bytes]) -> None:
        """Undo one `hold` call for these objects."""
        owners = self._owners
        for piece in pieces:
            owners[id(piece)] -= 1
            if not owners[id(piece)]:
                del owners[id(piece)]
                self.bytes -= len(piece)

    def add(self, size: int) -> None:
        self.bytes += size

    def check_room(self, size: int = 0) -> Rejection | None:
        """Return a rejection if `size` more bytes would exceed the limit, else None."""
        if self.bytes + size <= self._maximum:
            return None
        self._make_room()
        if (value := self.bytes + size) <= self._maximum:
            return None
        message = "The daemon has buffered too many bytes that its clients have not read. Try again in a few seconds."
        return Rejection("limit_exceeded", message, {"limit": "held_bytes", "value": value, "maximum": self._maximum})

    def admit(self, outcome: Outcome) -> Outcome:
        """Return `outcome`, or a rejection if it is long and would exceed the limit."""
        if (whole := size_of(outcome)) <= LONG_BYTES or self.bytes + whole <= self._maximum:
            return outcome
        parts = outcome.parts if type(outcome) is Pieces else (outcome,) if type(outcome) is bytes else ()
        size = sum(len(part) for part in parts if id(part) not in self._owners)
        return (self.check_room(size) or outcome) if size else outcome
