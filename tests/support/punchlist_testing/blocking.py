"""Conditions that tests of the blocking client wait for, in threads of the daemon's process."""

import gc
import time
from collections.abc import Callable

from punchlistd.net.connection import Connection

PATIENCE_S = 30.0
"""Timeout of `eventually`, in seconds."""


def waits() -> bool:
    """Return whether a call waits in the daemon, which must run in this process."""
    return any(len(item.waiting) for item in gc.get_objects() if type(item) is Connection)


def eventually(condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true in time. Polls without a pause: the condition makes a call."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
    return True
