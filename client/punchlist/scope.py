"""Which list is meant: the argument, the scope around the code, or the environment; never the working directory.

The scope lives in a context variable. Tasks inherit it when they are started, and so do threads started through
`anyio.to_thread.run_sync` or `asyncio.to_thread`. A plain `threading.Thread` starts with an empty context: run its
target by `contextvars.copy_context().run`.

An async generator has no context of its own: what it sets stays set in its consumer while it is suspended at a yield,
and another one may set its own meanwhile. So a scope that an async generator has open is kept with its frame, and holds
where that frame is being run, and in the tasks and threads that it starts. What the consumer does between two steps is
out of it; only a task that the consumer itself starts there takes the scope along. `punchlist.scoped` has no such
exception. A generator of `contextlib.asynccontextmanager` is none of these: its scope holds for the `async with`.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import NamedTuple
from weakref import ref

from punchlist.errors import NoConversation

_CO_ASYNC_GENERATOR = 0x200


class _Scope(NamedTuple):
    """An open scope and the one around it; for one of an async generator, the task or thread that has run it."""

    name: str
    outer: "_Scope | None"
    stream: FrameType | None = None
    runner: object = None


_scope: ContextVar[_Scope | None] = ContextVar("punchlist_conversation", default=None)
_streams: dict[FrameType, list[str]] = {}
"""The frames of async generators that have scopes open → the names of these, innermost last."""


class conversation:  # noqa: N801  (reads as a statement: `with punchlist.conversation("website"):`)
    """Makes a conversation the one that is meant by the code inside, with `with` or `async with`. It nests.

    In an async generator it holds for the generator's own code, not for who consumes it; to give a stream that is
    made elsewhere a scope, or one in a plain generator, use `punchlist.scoped`.

    Args:
        name: The conversation's id.
    """

    def __init__(self, name: str) -> None:
        if not name:
            raise NoConversation("A conversation's id can't be empty.")
        self.name = name

    def __enter__(self) -> str:
        stream = _stream_around(_caller())
        if stream is None:
            _scope.set(_Scope(self.name, _in_force()))
        else:
            _streams.setdefault(stream, []).append(self.name)
            _show(stream)
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The outer scope is kept in the value itself, not in a token of this object: one object can then be entered
        # by many tasks at once.
        stream = _running(_caller())
        if stream is None:
            scope = _in_force()
            _scope.set(scope.outer if scope else None)
        else:
            _streams[stream].pop()
            _show(stream)

    async def __aenter__(self) -> str:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def current_conversation() -> str | None:
    """The conversation of the innermost scope, or None outside of any."""
    stream = _running(_caller())
    if stream is not None:
        return _streams[stream][-1]
    scope = _in_force()
    return scope.name if scope else None


def resolve(name: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """The conversation that is meant: `name`, the scope, PUNCHLIST_CONVERSATION, in this order.

    Raises:
        NoConversation: None of them names one.
    """
    chosen = name or current_conversation() or (os.environ if env is None else env).get("PUNCHLIST_CONVERSATION")
    if not chosen:
        raise NoConversation(
            "No conversation is named: pass its id, use `with punchlist.conversation(...)`, "
            "or set PUNCHLIST_CONVERSATION."
        )
    return chosen


def _caller() -> FrameType:
    """The frame of the function that calls ours."""
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - what inspect.currentframe is, without inspect


def _in_force(without: FrameType | None = None) -> _Scope | None:
    """The scope of this context, passing over what steps of async generators have left in it."""
    scope = _scope.get()
    while scope is not None and scope.stream is not None and (scope.stream is without or scope.runner == _runner()):
        scope = scope.outer
    return scope


def _show(stream: FrameType) -> None:
    """Let the tasks and threads that a generator starts from here on find its innermost scope in their context."""
    around = _in_force(stream)
    if _streams[stream]:
        _scope.set(_Scope(_streams[stream][-1], around, stream, _runner()))
    else:
        del _streams[stream]
        _scope.set(around)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _running(frame: FrameType) -> FrameType | None:
    """The async generator that runs this frame and has a scope open."""
    return next((one for one in _stack(frame) if one in _streams), None) if _streams else None


def _stream_around(frame: FrameType) -> FrameType | None:
    """The async generator that runs this frame, other than one which serves as a context manager."""
    for one in _stack(frame):
        if one.f_code.co_flags & _CO_ASYNC_GENERATOR:
            driver = one.f_back
            if driver is None or driver.f_code.co_filename != contextlib.__file__:
                return one
    return None


def _runner() -> object:
    """The task that is being run, else the thread."""
    asyncio = sys.modules.get("asyncio")  # where nobody has loaded it there is no task
    try:
        task = asyncio.current_task() if asyncio else None
    except RuntimeError:
        task = None
    return threading.get_ident() if task is None else ref(task)
