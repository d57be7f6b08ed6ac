"""Counters for `daemon.status`."""

from collections import deque

from punchlist_schemas.errors import Rejection
from punchlist_schemas.results import Durations

KEPT = 1_024
"""Number of recent commits in the distribution of commit durations."""


class Metrics:
    """Counters and recent commit durations. Updates are cheap enough for every call."""

    def __init__(self) -> None:
        self.calls = 0
        self.refused = 0
        self.commits = 0
        self.events = 0
        self.errors: deque[str] = deque(maxlen=10)
        self._durations: deque[int] = deque(maxlen=KEPT)

    def record_commit(self, duration_ns: int, events: int) -> None:
        """Record a group commit of `events` events."""
        self.commits += 1
        self.events += events
        self._durations.append(duration_ns)

    def count_answer(self, outcome: object) -> None:
        """Count an answered call."""
        self.calls += 1
        if type(outcome) is Rejection:
            self.refused += 1

    def error(self, text: str) -> None:
        """Record an error for `daemon.status`; the last 10 are kept."""
        self.errors.append(text)

    def durations(self) -> Durations:
        """Return the distribution of recent commit durations."""
        ordered = sorted(self._durations)
        if not ordered:
            return Durations(count=0, p50_us=0, p99_us=0)
        p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        return Durations(count=self.commits, p50_us=ordered[len(ordered) // 2] // 1000, p99_us=p99 // 1000)
