"""The wall clock."""

import time


def now_ms() -> int:
    """The wall clock in milliseconds; only a label, never what decides an order."""
    return time.time_ns() // 1_000_000
