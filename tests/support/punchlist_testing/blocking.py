"""What tests of the blocking client wait for, in threads beside a daemon of this process."""

import gc
import time
from collections.abc import Callable

from punchlistd.net.connection import Connection

PATIENCE_S = 30.0
"""How long a test waits for anything, in seconds."""


def waits() -> bool:
    """Whether a call waits in the daemon, which runs in this process."""
    return any(len(one.waiting) for one in gc.get_objects() if type(one) is Connection)


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes to hold; each look at it is a call of its own."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
    return True
