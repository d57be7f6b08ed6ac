"""Work in slices: long work is an iterable of its steps, and other calls go on between slices of it."""

import asyncio
from collections.abc import Generator, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

SLICE_EVENTS = 32
"""How many steps of work, or stored events, are done before all others have their turn."""


async def in_slices(steps: Iterable[T], turn: AbstractAsyncContextManager[None] | None = None) -> T | None:
    """Go through the steps of some work; return the last one.

    Args:
        steps: The steps, each done when it is asked for.
        turn: Entered for each slice, where only one of several works may have its turn at a time.
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
    """Do work without its pauses, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
