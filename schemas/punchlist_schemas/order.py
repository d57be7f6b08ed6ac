"""Finds the items that can stay in place when a sequence is sorted with the fewest moves."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K", int, str)


def longest_rise(keys: Iterable[K]) -> set[int]:
    """Return the indices of a longest increasing subsequence, by patience sorting."""
    tops: list[K] = []
    indices: list[int] = []
    below: list[int] = []
    for index, key in enumerate(keys):
        pile = bisect_left(tops, key)
        below.append(indices[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [key]
        indices[pile : pile + 1] = [index]
    rise: set[int] = set()
    index = indices[-1] if indices else -1
    while index >= 0:
        rise.add(index)
        index = below[index]
    return rise
