"""A nudge between two tasks of one loop: given before it is taken, it is not lost; given twice, it counts once."""

import asyncio


class Signal:
    """Wakes those who wait for it; cheaper than an event that has to be made anew each time."""

    __slots__ = ("_given", "_waiters")

    def __init__(self) -> None:
        """Not given yet."""
        self._given = False
        self._waiters: list[asyncio.Future[None]] = []

    def give(self) -> None:
        """Wake everybody who waits, or whoever comes next."""
        if not self._waiters:
            self._given = True
            return
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def take(self) -> None:
        """Return at once if it was given since it was last taken, else when it is given."""
        if self._given:
            self._given = False
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter
