"""Cooperative scheduling of long work: an iterable of steps that runs in slices, with other calls in between."""

import asyncio
from collections.abc import Generator, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

SLICE_EVENTS = 32
"""Number of steps of work, or of stored events, in one slice."""


async def in_slices(steps: Iterable[T], turn: AbstractAsyncContextManager[None] | None = None) -> T | None:
    """Run all steps and return the last one.

    Args:
        steps: The steps. Each iteration runs one.
        turn: Context manager to enter for each slice, for example a lock that several jobs share.
    """
    turn, steps = turn or nullcontext(), iter(steps)
    last = None
    while True:
        async with turn:
            slice_ = list(islice(steps, SLICE_EVENTS))
            last = slice_[-1] if slice_ else last
            if len(slice_) < SLICE_EVENTS:
                return last
            await asyncio.sleep(0)


def run_through(work: Generator[None, None, T]) -> T:
    """Run a generator to its end without pauses, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
