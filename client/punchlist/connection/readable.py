"""Waits until a descriptor can be read, whatever its number: `select` takes none above 1,023."""

import select


def is_readable(descriptor: int, seconds: float) -> bool:
    """Return whether data or the end arrives within some seconds."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
