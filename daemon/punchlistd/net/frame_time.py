"""A frame that was begun must be finished in time: a slow sender must not hold memory for ever."""

import asyncio
from collections.abc import Callable

from punchlist_schemas.errors import Rejection


class FrameTime:
    """The time of one connection's unfinished frame.

    Args:
        seconds: how long a frame may take from its first byte to its last.
        late: called when one took longer.
    """

    __slots__ = ("_late", "_seconds", "timer")

    def __init__(self, seconds: float, late: Callable[[], None]) -> None:
        """No frame was begun."""
        self._seconds = seconds
        self._late = late
        self.timer: asyncio.TimerHandle | None = None
        """Runs while a frame is unfinished."""

    @property
    def refusal(self) -> Rejection:
        """What the sender of a late frame is told."""
        facts = {"limit": "frame_seconds", "value": self._seconds, "maximum": self._seconds}
        return Rejection("limit_exceeded", f"A frame must be finished within {self._seconds:g} seconds.", facts)

    def note(self, *, finished: bool, pending: bool) -> None:
        """Bytes came: they finished frames, or left one unfinished, or both."""
        if finished or not pending:
            self.stop()
        if pending and self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(self._seconds, self.end)

    def stop(self) -> None:
        """Wait for no frame."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def end(self) -> None:
        """The time is over."""
        self.stop()
        self._late()
