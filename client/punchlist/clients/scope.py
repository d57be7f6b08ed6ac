"""Which list is meant: the argument, the scope around the code, or the environment; never the working directory.

The scope lives in a context variable. Tasks inherit it when they are started, and so do threads started through
`anyio.to_thread.run_sync` or `asyncio.to_thread`. `threading.Thread`, `threading.Timer`, `ThreadPoolExecutor` and
`loop.run_in_executor` don't copy the context: run their target by `contextvars.copy_context().run`.

A generator has no context of its own: each of its steps runs in the context of its consumer, which may be another task
or thread each time and may run other generators in between. A scope that a generator opened would be lost or exchanged,
and calls would go to another list, so that is an error. Its scope comes from outside, by `punchlist.scoped`. Some
generators have no consumer but a block: context managers made by `contextlib` (which dependencies of FastAPI with
`yield` become), fixtures of pytest, and hook wrappers of pluggy. Their scope holds for that block. A generator in
`yield from` of another one has the consumer of that one, which decides then.
"""

import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from opcode import opmap
from threading import current_thread, main_thread
from types import FrameType, TracebackType
from typing import NamedTuple

from punchlist.errors import MisplacedScope, NoConversation

_CO_GENERATOR = 0x20
_CO_ITERABLE_COROUTINE = 0x100
_CO_ASYNC_GENERATOR = 0x200

_ENTERS = frozenset({"__enter__", "__aenter__", "enter_context", "enter_async_context"})
"""Functions that enter a context manager for their caller."""

_FIXTURES = "_pytest.fixtures"

_BLOCKS = frozenset({_FIXTURES, "pluggy._callers", "pluggy._execution"})
"""Modules that run both steps of a generator in one context, around a test or a hook."""

_ELSEWHERE = frozenset(
    {"asyncio.events", "concurrent.futures.thread", "threading", "anyio._backends._asyncio", "trio._threads"}
)
"""Modules that run functions outside their caller's context, as a task or in a thread."""

_SEND = opmap["SEND"]
_CACHE = opmap.get("CACHE", 0)

_THREAD = (
    " This thread has no scope: `threading` and executors don't copy the context. Run its function by "
    "`contextvars.copy_context().run`, or start it by `asyncio.to_thread`."
)


class _Scope(NamedTuple):
    """An open scope: who opened it, and the one around it."""

    opener: "conversation"
    outer: "_Scope | None"


_scope: ContextVar[_Scope | None] = ContextVar("punchlist_conversation", default=None)


class conversation:  # noqa: N801  (reads as a statement: `with punchlist.conversation("website"):`)
    """Makes a conversation the one that is meant by the code inside, with `with` or `async with`. It nests.

    It holds for the block, for all that is called there, and for tasks started there. Threads inherit it from
    `asyncio.to_thread` and `anyio.to_thread.run_sync`; any other needs `contextvars.copy_context().run` as its target.
    A stream can't open a scope: give it one by `punchlist.scoped`.

    Args:
        name: The conversation's id.

    Raises:
        MisplacedScope: A generator opens it, or a thread opens it for its caller, or it is closed in another task or
            thread than it was opened in.
    """

    def __init__(self, name: str) -> None:
        if not name:
            raise NoConversation("A conversation's id can't be empty.")
        self.name = name

    def __enter__(self) -> str:
        self._check(sys._getframe(1))  # pyright: ignore[reportPrivateUsage] - what inspect.currentframe is
        _scope.set(_Scope(self, _scope.get()))
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The outer scope is kept in the value itself, not in a token of this object: one object can then be entered
        # by many tasks at once.
        scope = _scope.get()
        if scope is not None and scope.opener is self:
            _scope.set(scope.outer)
        elif error is None:
            raise MisplacedScope(
                f"The scope of conversation {self.name!r} is closed in another task or thread than it was opened in, "
                "so it did not hold for the code in between. Open and close it in one task."
            )

    async def __aenter__(self) -> str:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def _check(self, frame: FrameType | None) -> None:
        """Reject a scope that would not hold for the block it is opened for.

        Args:
            frame: The frame that opens the scope. What enters context managers is passed over on the way to the frame
                with the block.
        """
        while frame is not None:
            is_generator = _is_generator(frame)
            if is_generator:
                frame = _outermost_delegate(frame)
                if _is_fixture_or_hook(frame):
                    return
            if is_generator and not _is_context_manager(frame):
                raise MisplacedScope(
                    f"A generator can't open the scope of conversation {self.name!r}, which would not hold after its "
                    f"next yield. Give it the scope from outside: "
                    f"punchlist.scoped({frame.f_code.co_name}(...), {self.name!r}). "
                    "Or open the scope in a function that the generator calls, with no yield in it. "
                    "A context manager can open it itself or in a generator that it runs by `yield from`."
                )
            if frame.f_globals.get("__name__") in _ELSEWHERE:
                raise MisplacedScope(
                    f"The scope of conversation {self.name!r} would be opened in a thread or task of its own and not "
                    "hold for the caller. Open it where its block is; a dependency of FastAPI must be an `async def`."
                )
            if not is_generator and frame.f_code.co_name not in _ENTERS:
                return
            frame = frame.f_back


def current_conversation() -> str | None:
    """The conversation of the innermost scope, or None outside of any."""
    scope = _scope.get()
    return scope.opener.name if scope else None


def resolve(name: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """The conversation that is meant: `name`, the scope, PUNCHLIST_CONVERSATION, in this order.

    Raises:
        NoConversation: None of them names one.
    """
    chosen = name or current_conversation() or (os.environ if env is None else env).get("PUNCHLIST_CONVERSATION")
    if not chosen:
        raise NoConversation(
            "No conversation is named: pass its id, use `with punchlist.conversation(...)`, "
            f"or set PUNCHLIST_CONVERSATION.{_THREAD if current_thread() is not main_thread() else ''}"
        )
    return chosen


def _is_generator(frame: FrameType) -> bool:
    flags = frame.f_code.co_flags
    return bool(flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR)) and not flags & _CO_ITERABLE_COROUTINE


def _is_context_manager(generator: FrameType) -> bool:
    """Whether a generator is run by what enters it as a context manager."""
    return generator.f_back is not None and generator.f_back.f_code.co_name in _ENTERS


def _is_fixture_or_hook(generator: FrameType) -> bool:
    """Return whether a generator wraps a test or a hook, as a fixture or a hook wrapper does."""
    caller = generator.f_back
    if generator.f_code.co_flags & _CO_ASYNC_GENERATOR:
        # Plugins of pytest run an async fixture in an event loop, so their frames are in between.
        while caller is not None and caller.f_globals.get("__name__") != _FIXTURES:
            caller = caller.f_back
    return caller is not None and caller.f_globals.get("__name__") in _BLOCKS


def _outermost_delegate(generator: FrameType) -> FrameType:
    """Return the outermost generator whose `yield from` runs this one, or this one itself."""
    while (outer := generator.f_back) is not None and _is_generator(outer) and _is_at_yield_from(outer):
        generator = outer
    return generator


def _is_at_yield_from(frame: FrameType) -> bool:
    """Return whether a generator waits at `yield from`, rather than calling the other one by `next` or a loop."""
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and code[at] == _CACHE:  # a specialized SEND leaves the position in its cache
        at -= 2
    return code[at] == _SEND
