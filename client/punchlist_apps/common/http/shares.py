"""Fair shares of a limited number of places: the holder of the most gives one up."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def first_to_go(places: Iterable[tuple[T, Hashable, Any]]) -> T:
    """Return what gives up its place, of `(place, holder, rank)`: of the holders with most places, the lowest rank."""
    taken = list(places)
    counts = Counter(holder for _, holder, _ in taken)
    most = max(counts.values())
    return min((place for place in taken if counts[place[1]] == most), key=lambda place: place[2])[0]
