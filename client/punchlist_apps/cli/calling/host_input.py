"""Reads what a host writes to a command's standard input. A host may leave it open."""

import os
import sys
import time
from io import UnsupportedOperation

from punchlist.connection.readable import is_readable

_MAX_BYTES = 1 << 20


def read_host_input(seconds: float) -> bytes:
    """Return standard input up to its end, a deadline or a maximum length."""
    try:
        descriptor = sys.stdin.fileno()
    except UnsupportedOperation:
        return sys.stdin.buffer.read(_MAX_BYTES)
    data, deadline = b"", time.monotonic() + seconds
    while (
        len(data) < _MAX_BYTES
        and is_readable(descriptor, deadline - time.monotonic())
        and (more := os.read(descriptor, 1 << 16))
    ):
        data += more
    return data
