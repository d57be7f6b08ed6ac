"""What the daemon counts about itself, for `daemon.status`."""

from collections import deque

from punchlist_schemas.errors import Rejection
from punchlist_schemas.results import Durations

KEPT = 1_024
"""How many of the last commits are in the distribution."""


class Metrics:
    """Counters and the last durations; cheap enough for every call."""

    def __init__(self) -> None:
        """All at zero."""
        self.calls = 0
        self.refused = 0
        self.commits = 0
        self.events = 0
        self.errors: deque[str] = deque(maxlen=10)
        self._durations: deque[int] = deque(maxlen=KEPT)

    def commit(self, duration_ns: int, events: int) -> None:
        """One group commit of `events` events took so many nanoseconds."""
        self.commits += 1
        self.events += events
        self._durations.append(duration_ns)

    def answered(self, outcome: object) -> None:
        """One call was answered."""
        self.calls += 1
        if type(outcome) is Rejection:
            self.refused += 1

    def error(self, text: str) -> None:
        """Something went wrong that a person should know of."""
        self.errors.append(text)

    def durations(self) -> Durations:
        """The distribution of the last commits."""
        ordered = sorted(self._durations)
        if not ordered:
            return Durations(count=0, p50_us=0, p99_us=0)
        p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        return Durations(count=self.commits, p50_us=ordered[len(ordered) // 2] // 1000, p99_us=p99 // 1000)
