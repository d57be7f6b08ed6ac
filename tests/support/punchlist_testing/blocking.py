"""Helpers with which tests of the blocking client wait for conditions; the daemon must run in the same process."""

import gc
import time
from collections.abc import Callable

from punchlistd.net.connection import Connection

PATIENCE_S = 30.0
"""Timeout of `eventually`, in seconds."""


def waits() -> bool:
    """Return whether any call is waiting in the daemon, which must run in this process."""
    return any(len(item.waiting) for item in gc.get_objects() if type(item) is Connection)


def eventually(condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true in time. Polls without a pause, because the condition makes a call."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
    return True
