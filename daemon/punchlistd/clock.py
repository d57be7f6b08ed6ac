"""The wall clock."""

import time


def now_ms() -> int:
    """Return the wall-clock time in milliseconds since 1970. It only labels events and never decides their order."""
    return time.time_ns() // 1_000_000
