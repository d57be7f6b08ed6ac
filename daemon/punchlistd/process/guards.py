"""Detection of fatal conditions: a lost lock or socket, an exception in a callback or thread, a hanging shutdown."""

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
"""Maximum duration of an orderly shutdown after a fatal error, in seconds."""


class Replaced(Exception):
    """The daemon's lock or socket was replaced or removed. The daemon must not send more responses."""


async def watch(paths: dict[str, Callable[[], bool]], every_s: float) -> NoReturn:
    """Poll whether the daemon's files are still its own.

    The checks run on the event loop, because they are so fast that a thread would cost an idle daemon more.

    Args:
        paths: For each path, a function that returns whether it still leads to this daemon's file.
        every_s: Interval in seconds.

    Raises:
        Replaced: A file was removed or replaced.
    """
    while True:
        await anyio.sleep(every_s)
        lost = next((path for path, is_in_place in paths.items() if not is_in_place()), None)
        if lost is not None:
            raise Replaced(f"{lost} was removed or replaced while in use: the daemon stops; start it again")


class Faults:
    """Captures exceptions in callbacks of the event loop, which asyncio would only log.

    MemoryError is captured wherever it is reported, because the state that it leaves behind is unknown.

    Args:
        ending: Called first when the daemon has to end.
    """

    def __init__(self, ending: Callable[[], None] = lambda: None) -> None:
        self._first: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._ending = ending

    @contextmanager
    def capture(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        previous = loop.get_exception_handler()

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, MemoryError) or ("handle" in context and isinstance(error, Exception)):
                self._ending()
                if not self._first.done():
                    self._first.set_result(error)
            elif previous is not None:
                previous(loop, context)
            else:
                loop.default_exception_handler(context)

        loop.set_exception_handler(handle)
        try:
            yield
        finally:
            loop.set_exception_handler(previous)

    async def raise_first(self) -> NoReturn:
        try:
            raise await self._first
        finally:
            self._ending()


class LastResort:
    """Ends the process when an orderly shutdown is impossible. Create it in the main thread.

    If running out of memory prevented a task from waking up, the task can't be cancelled either, and waiting for it
    would never end. A thread that ends with an exception leaves its callers waiting.

    Args:
        code: The exit code.
    """

    def __init__(self, code: int) -> None:
        self._code = code
        signal.signal(signal.SIGALRM, self._end)
        threading.excepthook = self._on_thread_error
        sys.unraisablehook = self._on_unraisable

    def start_timer(self) -> None:
        """End the process after `END_S` seconds, unless it ends earlier. The kernel's timer needs no memory."""
        signal.setitimer(signal.ITIMER_REAL, END_S, 1.0)

    def _end(self, *_: object) -> NoReturn:
        try:
            logger.critical("the daemon did not stop within %g s", END_S)
        finally:
            os._exit(self._code)

    def _on_thread_error(self, args: threading.ExceptHookArgs) -> None:
        try:
            logger.critical("an exception ended a thread", exc_info=args.exc_value)
        finally:
            os._exit(self._code)

    def _on_unraisable(self, args: "sys.UnraisableHookArgs") -> None:
        if not isinstance(args.exc_value, MemoryError):
            sys.__unraisablehook__(args)
            return
        try:
            logger.critical("out of memory where no client can be informed")
        finally:
            os._exit(self._code)


def pick_exception(group: ExceptionGroup[Exception], order: tuple[type[Exception], ...]) -> Exception:
    """Return the group's exception to report: one of the first class in `order` that occurs, or else the first one."""
    errors = list(_flatten(group))
    return next((error for kind in order for error in errors if isinstance(error, kind)), errors[0])


def _flatten(group: ExceptionGroup[Exception]) -> Generator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _flatten(error)  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield error
