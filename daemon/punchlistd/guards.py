"""What ends a daemon that is not whole any more: a lost lock or socket, a fault in something that runs beside."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import anyio


class Replaced(Exception):
    """The daemon's lock or socket is no longer its own: it must not answer any more."""


async def watch(paths: dict[str, Callable[[], bool]], every_s: float) -> NoReturn:
    """Look again and again whether what must be ours still is, also while nobody calls.

    A look is so quick that a thread for it would cost an idle daemon more.

    Args:
        paths: what tells for each path whether it still leads to what is ours.
        every_s: seconds from one look to the next.

    Raises:
        Replaced: it was removed or replaced.
    """
    while True:
        await anyio.sleep(every_s)
        lost = next((path for path, still_ours in paths.items() if not still_ours()), None)
        if lost is not None:
            raise Replaced(f"{lost} was removed or replaced while in use: this daemon ends; start another one")


class Faults:
    """Notices exceptions that ended a callback of the event loop, of which asyncio would merely write to the log."""

    def __init__(self) -> None:
        self._first: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    @contextmanager
    def noticed(self) -> Generator[None]:
        """Notice them while this context lasts; all else goes to the loop's handler as before."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if "handle" in context and isinstance(error, Exception):
                if not self._first.done():
                    self._first.set_result(error)
            elif before is not None:
                before(loop, context)
            else:
                loop.default_exception_handler(context)

        loop.set_exception_handler(handle)
        try:
            yield
        finally:
            loop.set_exception_handler(before)

    async def rise(self) -> NoReturn:
        """Raise the first of them, once there is one."""
        raise await self._first


def most_telling(group: ExceptionGroup[Exception], order: tuple[type[Exception], ...]) -> Exception:
    """The one exception that stands for a group: of the first class of `order` that occurs, else the first of all."""
    leaves = list(_leaves(group))
    return next((error for kind in order for error in leaves if isinstance(error, kind)), leaves[0])


def _leaves(group: ExceptionGroup[Exception]) -> Generator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(error)  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield error
