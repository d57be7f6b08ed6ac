"""How much is done between two turns of the event loop, counted in calls of functions: the same on every machine."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import CodeType, FrameType
from typing import Any

import anyio


class Turns:
    """How often some functions were called, or went on behind a pause, between two turns at most, and at all."""

    def __init__(self, work: set[CodeType]) -> None:
        self.longest = 0
        self.total = 0
        self._work = work
        self._now = 0

    def note(self, frame: FrameType, event: str, _arg: object) -> None:
        """What `sys.setprofile` calls."""
        self._now += event == "call" and frame.f_code in self._work

    async def watch(self) -> None:
        """Count each turn."""
        while True:
            await asyncio.sleep(0)
            self.longest, self.total = max(self.longest, self._now), self.total + self._now
            self._now = 0


@asynccontextmanager
async def turns(*work: Callable[..., Any]) -> AsyncGenerator[Turns]:
    """Count the calls of these functions as long as the context lasts."""
    counted = Turns({each.__code__ for each in work})
    async with anyio.create_task_group() as beside:
        beside.start_soon(counted.watch)
        await asyncio.sleep(0)
        sys.setprofile(counted.note)
        try:
            yield counted
        finally:
            sys.setprofile(None)
            beside.cancel_scope.cancel()
