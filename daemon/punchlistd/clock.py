"""The wall clock."""

import time


def now_ms() -> int:
    """Return wall-clock time in milliseconds. It only labels events and never decides their order."""
    return time.time_ns() // 1_000_000
