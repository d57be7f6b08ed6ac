"""What ends a daemon that is not whole any more: a lost lock or socket, a fault in something that runs beside."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import anyio

logger = logging.getLogger(__name__)

END_S = 10.0
"""So many seconds a daemon that has to end has for it."""


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
        lost = next((path for path, is_in_place in paths.items() if not is_in_place()), None)
        if lost is not None:
            raise Replaced(f"{lost} was removed or replaced while in use: this daemon ends; start another one")


class Faults:
    """Notices exceptions that ended a callback of the event loop, of which asyncio would merely write to the log.

    Want of memory is noticed wherever it comes up: what it leaves half done can't be told from there.

    Args:
        ending: called when everything has to end, for whatever reason, before anything else is done about it.
    """

    def __init__(self, ending: Callable[[], None] = lambda: None) -> None:
        self._first: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._ending = ending

    @contextmanager
    def noticed(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, MemoryError) or ("handle" in context and isinstance(error, Exception)):
                self._ending()
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
        try:
            raise await self._first
        finally:
            self._ending()


class LastResort:
    """Ends the process where it can't end by itself.

    A task that was not woken for want of memory can't be cancelled either, and whoever waits for its end waits for
    ever. A thread that ends by an exception leaves its callers waiting. Made in the main thread.

    Args:
        code: the exit code.
    """

    def __init__(self, code: int) -> None:
        self._code = code
        signal.signal(signal.SIGALRM, self._end)
        threading.excepthook = self._thread_ended
        sys.unraisablehook = self._unraisable

    def begin(self) -> None:
        """From now on there are `END_S` seconds for an orderly end. The system keeps the time: that takes no memory."""
        signal.setitimer(signal.ITIMER_REAL, END_S, 1.0)

    def _end(self, *_: object) -> NoReturn:
        try:
            logger.critical("the daemon could not end by itself within %g s", END_S)
        finally:
            os._exit(self._code)

    def _thread_ended(self, args: threading.ExceptHookArgs) -> None:
        try:
            logger.critical("a thread ended by an exception", exc_info=args.exc_value)
        finally:
            os._exit(self._code)

    def _unraisable(self, args: "sys.UnraisableHookArgs") -> None:
        if not isinstance(args.exc_value, MemoryError):
            sys.__unraisablehook__(args)
            return
        try:
            logger.critical("memory ran out where nobody can be told")
        finally:
            os._exit(self._code)


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
