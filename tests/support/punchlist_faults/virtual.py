"""An event loop in virtual time: it jumps to the next timer, and runs ready tasks in a seeded order."""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any, TypeVar, cast
from unittest.mock import patch

from punchlist_faults.options import Violation

T = TypeVar("T")


class Deadlock(Exception):
    """No task is ready and there are no timers."""


class Endless(Exception):
    """The loop exceeded `MOST_TURNS`."""


MOST_TURNS = 100_000


class _NoFiles(selectors.SelectSelector):
    """A selector without files: a timeout advances the virtual time immediately."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Deadlock
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. `on_turn` is called before each iteration."""

    def __init__(self, random: Random) -> None:
        self._files = _NoFiles()
        self.random = random
        self.on_turn: Callable[[], None] = lambda: None
        self.turns = 0
        super().__init__(self._files)

    def time(self) -> float:
        return self._files.now

    def _run_once(self) -> None:
        self.turns += 1
        if self.turns > MOST_TURNS:
            self.turns = 0  # so that the remaining tasks can be cancelled
            raise Endless
        self.on_turn()
        # Tasks that wake at the same time may continue in any order; callbacks keep their order.
        ready = cast("deque[Any]", self._ready)  # pyright: ignore[reportAttributeAccessIssue]
        places = [place for place, handle in enumerate(ready) if _is_wakeup(handle)]
        order = self.random.sample(places, len(places))
        handles = [ready[place] for place in order]
        for place, handle in zip(places, handles, strict=True):
            ready[place] = handle
        super()._run_once()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def _is_wakeup(handle: Any) -> bool:
    return isinstance(getattr(getattr(handle, "_callback", None), "__self__", None), asyncio.Task)


def run(main: Coroutine[Any, Any, T], loop: VirtualLoop) -> T:
    """Run a coroutine with virtual clocks and seeded randomness, then cancel the remaining tasks."""
    began_ns = 1_700_000_000_000_000_000
    try:
        with (
            patch("time.monotonic", loop.time),
            patch("time.time_ns", lambda: began_ns + int(loop.time() * 1e9)),
            patch("os.urandom", loop.random.randbytes),
        ):
            return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(_wait_for_end(left))
        loop.close()


async def _wait_for_end(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def live_through(seed: object, main: Coroutine[Any, Any, None], loop: VirtualLoop) -> None:
    try:
        run(main, loop)
    except Exception as error:
        raise Violation(f"seed {seed}: {error!r}") from error
