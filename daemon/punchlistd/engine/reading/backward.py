"""Reads the newest events before a position.

The log can only be read forward, so ranges that end at the position are read, each larger than the one before.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from punchlistd.store.port import EventLog, Gap, Stored

SCANNED_BYTES = 4 << 20
"""Number of bytes after which a read stops, although the caller may see fewer events than it requested. A range with
more bytes is given up, and a smaller one is read instead."""

_SHRINKS = 8
"""Factor by which a range is smaller than the one that was given up."""


class Room(msgspec.Struct):
    """How many more events a read may return, and how many bytes they may have together."""

    events: int
    bytes: int


class Backward:
    """One read of the newest events.

    Args:
        visible: Returns the events that the caller may see.
        conversation: The conversation to read; None for all.
    """

    def __init__(
        self,
        log: EventLog,
        visible: Callable[[list[Stored]], Awaitable[list[Stored]]],
        conversation: str | None,
        room: Room,
    ) -> None:
        self._log = log
        self._visible = visible
        self._conversation = conversation
        self._room = room
        self._events: list[Stored] = []
        self._scanned = 0

    async def read(self, end: int) -> tuple[list[Stored], int]:
        """Return the newest events before `end`, and the position before which to continue; 0 if none are older.

        Raises:
            Damaged: The next event of the conversation is unreadable.
            Gap: The newest events are unreadable.
        """
        reach, latest = self._room.events, end
        while end > 1 and self._room.events and (self._scanned < SCANNED_BYTES or end == latest):
            start = max(end - reach, 1)
            reached = await self._read_range(start, end)
            if reached is None:
                reach = max(reach // _SHRINKS, 1)
                continue
            end = reached
            if end > start:  # the rest of the range doesn't fit or is lost
                break
            reach *= 2
        return self._events, end if end > 1 else 0

    async def _read_range(self, start: int, end: int) -> int | None:
        """Add the newest events from `start` up to `end`, and return the position from which on all are included.

        Return None if the range is too large; then no event is added.
        """
        page, size, after, limit = deque[Stored](), 0, start - 1, self._scanned + SCANNED_BYTES
        is_one = start + 1 == end
        while after < end - 1:
            if self._scanned >= limit and not is_one:
                return None
            try:
                part = await self._log.read(
                    after, self._room.events, conversation=self._conversation, max_bytes=self._room.bytes
                )
            except Gap as gap:
                if gap.first >= end and not self._events:
                    raise
                # Don't return older events next to newer ones as if none were missing in between.
                page, size, start = deque[Stored](), 0, min(gap.first, end)
                after = start - 1
                continue
            part = [event for event in part if event.seq < end]
            after = part[-1].seq if part else end
            self._scanned += sum(len(event.line) for event in part)
            for event in await self._visible(part):
                page.append(event)
                size += len(event.line)
                # Return at least one event, even if it is larger than allowed.
                while len(page) > self._room.events or (size > self._room.bytes and (self._events or len(page) > 1)):
                    oldest = page.popleft()
                    size -= len(oldest.line)
                    start = oldest.seq + 1
        self._room = Room(self._room.events - len(page), max(self._room.bytes - size, 0))
        self._events = [*page, *self._events]
        return start
