"""Fair eviction: the holder with the most places loses one."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def pick_to_evict(places: Iterable[tuple[T, Hashable, Any]]) -> T:
    """Return the place with the lowest rank among those of the holders with most places, of `(place, holder, rank)`."""
    entries = list(places)
    counts = Counter(holder for _, holder, _ in entries)
    most = max(counts.values())
    return min((entry for entry in entries if counts[entry[1]] == most), key=lambda entry: entry[2])[0]
