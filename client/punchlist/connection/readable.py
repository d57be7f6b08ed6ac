"""Waits until a file descriptor is readable. Uses `poll`, because `select` accepts no descriptors above 1,023."""

import select


def is_readable(descriptor: int, seconds: float) -> bool:
    """Return whether data or end of file arrives within `seconds`."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
