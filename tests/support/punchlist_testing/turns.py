"""Counts the work between two iterations of the event loop in function calls, which is the same on every machine."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import CodeType, FrameType
from typing import Any

import anyio


class Turns:
    """Counter of calls and resumptions of some functions.

    Attributes:
        longest: Largest number between two iterations.
        total: Number over all iterations.
    """

    def __init__(self, work: set[CodeType]) -> None:
        self.longest = 0
        self.total = 0
        self._work = work
        self._now = 0

    def note(self, frame: FrameType, event: str, _arg: object) -> None:
        """Count a call or a resumption; called by `sys.setprofile`."""
        self._now += event == "call" and frame.f_code in self._work

    async def watch(self) -> None:
        """Update `longest` and `total` after each iteration of the event loop, until cancelled."""
        while True:
            await asyncio.sleep(0)
            self.longest, self.total = max(self.longest, self._now), self.total + self._now
            self._now = 0


@asynccontextmanager
async def turns(*work: Callable[..., Any]) -> AsyncGenerator[Turns]:
    """Count the calls of these functions until the end of the block."""
    counter = Turns({function.__code__ for function in work})
    async with anyio.create_task_group() as group:
        group.start_soon(counter.watch)
        await asyncio.sleep(0)
        sys.setprofile(counter.note)
        try:
            yield counter
        finally:
            sys.setprofile(None)
            group.cancel_scope.cancel()
