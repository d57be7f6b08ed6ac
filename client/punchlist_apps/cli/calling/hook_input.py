"""Reads the standard input of a command that an agent's host runs. A host may leave this input open."""

import os
import sys
import time

from punchlist.connection.readable import is_readable

_MAX_BYTES = 1 << 20


def read_hook_input(timeout_s: float) -> bytes:
    """Return the input up to its end, a timeout or a maximum length. A terminal isn't read."""
    if sys.stdin.isatty():
        return b""
    descriptor, data, deadline = sys.stdin.fileno(), b"", time.monotonic() + timeout_s
    while (
        len(data) < _MAX_BYTES
        and is_readable(descriptor, deadline - time.monotonic())
        and (more := os.read(descriptor, 1 << 16))
    ):
        data += more
    return data
