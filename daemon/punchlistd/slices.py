"""Work in slices: what takes long is a generator that pauses after each step, and all others go on between slices."""

import asyncio
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeVar

T = TypeVar("T")

SLICE_EVENTS = 32
"""How many steps of work, or stored events, are done before all others have their turn."""


async def in_slices(work: Generator[None, None, T], turn: AbstractAsyncContextManager[None] | None = None) -> T:
    """Run work that pauses after each step, and give what it returns.

    Args:
        work: what to do.
        turn: entered for each slice, where only one of several works may have its turn at a time.
    """
    turn = turn or nullcontext()
    while True:
        async with turn:
            for _ in range(SLICE_EVENTS):
                try:
                    next(work)
                except StopIteration as end:
                    return end.value
            await asyncio.sleep(0)
