"""Fair eviction: the holder with the most places loses one of them."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def pick_to_evict(places: Iterable[tuple[T, Hashable, Any]]) -> T:
    """Return the place to evict.

    The evicted place has the lowest rank among the places of the holders with the most places. `places` contains
    `(place, holder, rank)` tuples.
    """
    entries = list(places)
    counts = Counter(holder for _, holder, _ in entries)
    most = max(counts.values())
    return min((entry for entry in entries if counts[entry[1]] == most), key=lambda entry: entry[2])[0]
