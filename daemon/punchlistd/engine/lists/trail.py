"""The newest events of a list, kept in memory for the turns of its agents. Older ones are in the log."""

from collections import deque
from itertools import takewhile
from typing import NamedTuple

from punchlist_schemas.events import KnownEvent
from punchlistd.domain.undo.trace import task_id_of

MAX_EVENTS = 512
MAX_BYTES = 64 << 10
"""Limits for the events that are kept of each list. They also bound the events in a turn."""


class _Entry(NamedTuple):
    """An event. `task` is "" if it is about the whole list."""

    seq: int
    actor: str
    task: str
    wire: bytes


class Trail:
    """The newest events of a list.

    Args:
        start: Position in the log after which the trail contains each event of the list.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._entries: deque[_Entry] = deque()
        self._bytes = 0

    def add(self, seq: int, actor: str, event: KnownEvent, wire: bytes) -> None:
        """Add the list's next event, and drop the oldest ones above the limits."""
        self._entries.append(_Entry(seq, actor, task_id_of(event), wire))
        self._bytes += len(wire)
        while self._bytes > MAX_BYTES or len(self._entries) > MAX_EVENTS:
            oldest = self._entries.popleft()
            self._bytes -= len(oldest.wire)
            self._start = oldest.seq

    def find_last(self, agent: str) -> bytes | None:
        """Return an agent's last event; "" if the list has none by it, None if it may have been dropped."""
        unknown = None if self._start else b""
        return next((entry.wire for entry in reversed(self._entries) if entry.actor == agent), unknown)

    def select(self, after: int, agent: str) -> list[tuple[str, bytes]] | None:
        """Return the events after a position that concern an agent, with their tasks; None if some were dropped.

        These are the events by other actors, and later ones about the same tasks.
        """
        if after < self._start:
            return None
        touched = set[str]()
        newest = list(takewhile(lambda entry: entry.seq > after, reversed(self._entries)))
        return [(entry.task, entry.wire) for entry in reversed(newest) if _concerns(entry, agent, touched)]


def _concerns(entry: _Entry, agent: str, touched: set[str]) -> bool:
    if entry.actor != agent:
        touched.add(entry.task)
        return True
    return bool(entry.task) and entry.task in touched
