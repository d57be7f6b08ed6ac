"""Encoded lists that are kept for those who ask again: the newest, up to a limit of bytes together."""

from typing import Protocol

LISTED_BYTES = 4 << 20
"""So much is kept of all conversations together; of a single list that is larger, all."""


class Listed(Protocol):
    """What has an encoded list."""

    def forget_listing(self) -> None:
        """Encode it anew the next time."""
        ...


class Listings:
    """Which encoded lists are kept.

    Args:
        limit: how many bytes they may have together.
    """

    def __init__(self, limit: int = LISTED_BYTES) -> None:
        """None are kept."""
        self._limit = limit
        self._sizes: dict[Listed, int] = {}
        self._size = 0

    def keep(self, listed: Listed, size: int) -> None:
        """A list was encoded anew; the oldest others go."""
        self.drop(listed)
        self._sizes[listed] = size
        self._size += size
        while self._size > self._limit and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.drop(oldest)
            oldest.forget_listing()

    def drop(self, listed: Listed) -> None:
        """It is kept no more."""
        self._size -= self._sizes.pop(listed, 0)
