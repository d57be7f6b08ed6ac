"""Runs coroutines from any thread on the event loop shared by all blocking clients of this process.

The loop runs in a daemon thread, started by the first call. Each call is a task on the loop, so calls from several
threads run concurrently and without locks. An interrupt (Ctrl-C) ends the wait and cancels the task. If the task has
already finished, its result is not lost: a claim is released, and a watch's item is kept for the next call. A forked
child starts its own loop. When the interpreter exits, the connections are closed and the thread ends.
"""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar

from punchlist.connection.forks import on_fork
from punchlist.connection.link import Link
from punchlist.errors import ConnectionLost

P = ParamSpec("P")
R = TypeVar("R")

_MAX_SLEEP_S = 1.0
"""Longest time a thread waits without checking for signals, in seconds. A signal that arrives just before the wait does
not interrupt it."""

_EXITING = "The interpreter is exiting."

_CLOSE_TIMEOUT_S = 2.0
"""Longest time that the interpreter waits at exit for connections to close, in seconds."""


class _Call(Generic[R]):
    """One call. Its methods run on the loop, so that completion and an interrupt can't race.

    Attributes:
        done: Set when `result` and `error` are final.
        result: Result of the function, if it has returned.
        error: Exception of the function; while it runs, the error to raise if the loop ends first.
    """

    result: R
    error: Exception | None

    def __init__(self, function: Callable[[], Coroutine[Any, Any, R]], on_unread: Callable[[R], object]) -> None:
        self.done = threading.Event()
        self.error = ConnectionLost(_EXITING, final=True)
        self._function = function
        self._on_unread = on_unread
        self._task: asyncio.Task[None] | None = None
        self._is_abandoned = False

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def abandon(self) -> None:
        """Cancel the function after an interrupt. If it has finished, pass its result to `on_unread`."""
        self._is_abandoned = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
        elif self.error is None:
            self._on_unread(self.result)

    async def _run(self) -> None:
        try:
            self.result = await self._function()
            self.error = None
            if self._is_abandoned:
                self._on_unread(self.result)
        except Exception as error:
            self.error = error
        finally:
            self.done.set()


class Portal:
    """An event loop in its own thread."""

    _loop: asyncio.AbstractEventLoop
    _stop: asyncio.Event

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="punchlist", daemon=True)
        self._thread.start()
        self._ready.wait()

    def call(self, function: Callable[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.deliver(lambda: function(*args, **kwargs), _ignore)

    def deliver(self, function: Callable[[], Coroutine[Any, Any, R]], on_unread: Callable[[R], object]) -> R:
        """Run an async function on the loop and wait for its result.

        Args:
            function: Called on the loop.
            on_unread: Called on the loop with the result, if an interrupt ends this call after the function has
                returned. It must not wait.

        Raises:
            RuntimeError: Called in the loop's own thread, which would wait for itself.
            ConnectionLost: The interpreter is exiting.
        """
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError(
                "The blocking client was called on its own event loop, as by a finalizer: use another thread."
            )
        call = _Call(function, on_unread)
        try:
            try:
                self._loop.call_soon_threadsafe(call.start)
            except RuntimeError as error:
                raise ConnectionLost(_EXITING, final=True) from error
            while not call.done.wait(_MAX_SLEEP_S):
                pass
            if self._closing and threading.current_thread().daemon:
                # The interpreter is exiting and will end this thread. Wait for that, so that the thread doesn't fail
                # with an error first.
                threading.Event().wait()
            if call.error is None:
                return call.result
        except BaseException:
            self.post(call.abandon)
            raise
        error, call.error = call.error, None
        try:
            raise error
        finally:
            del error  # breaks the reference cycle between this frame and the error's traceback

    def post(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel running calls, close the connections and end the thread."""
        self._closing = True
        self.post(self._stop.set)
        self._thread.join(_CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            self._ready.set()
            await self._stop.wait()
            await Link.close_all()

        with asyncio.Runner(debug=False, loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(main())


def _ignore(_result: object) -> None: ...


class _PortalSlot:
    """The portal of this process, if one was started."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.portal: Portal | None = None
        on_fork(self, _PortalSlot.reset_after_fork)
        atexit.register(self.close)

    def reset_after_fork(self) -> None:
        self.lock = threading.Lock()
        self.portal = None

    def close(self) -> None:
        if self.portal is not None:
            self.portal.close()


_slot = _PortalSlot()


def portal() -> Portal:
    with _slot.lock:
        if _slot.portal is None:
            _slot.portal = Portal()
        return _slot.portal


def post(function: Callable[[], object]) -> None:
    """Call `Portal.post` if the portal was started. For finalizers, which must not start a portal or take its lock."""
    if _slot.portal is not None:
        _slot.portal.post(function)
