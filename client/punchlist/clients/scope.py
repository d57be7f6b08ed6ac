"""The current list: from the argument, the surrounding scope, or the environment; never from the working directory.

The scope is a context variable. Tasks inherit it when they are started, and so do threads started by
`anyio.to_thread.run_sync` or `asyncio.to_thread`. `threading.Thread`, `threading.Timer`, `ThreadPoolExecutor` and
`loop.run_in_executor` don't copy the context: run their target with `contextvars.copy_context().run`.

A generator has no context of its own. Each step runs in the context of its consumer, which may be a different task or
thread each time, and may run other generators in between. A scope opened by a generator could be lost or replaced, and
calls would go to another list, so opening one is an error. Use `punchlist.scoped` around the generator instead.

Some generators run around a block and may open a scope, which covers that block: context managers made by `contextlib`
(which include FastAPI dependencies with `yield`), pytest fixtures and pluggy hook wrappers. For a generator that
another one delegates to with `yield from`, the outermost generator determines whether this is allowed.
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
"""Modules that run both steps of a generator, before and after a test or a hook, in the same context."""

_ELSEWHERE = frozenset(
    {"asyncio.events", "concurrent.futures.thread", "threading", "anyio._backends._asyncio", "trio._threads"}
)
"""Modules that run functions in another task or thread, outside their caller's context."""

_SEND = opmap["SEND"]
_CACHE = opmap.get("CACHE", 0)

_THREAD = (
    " This thread has no scope: `threading` and executors don't copy the context. Run its function with "
    "`contextvars.copy_context().run`, or start it with `asyncio.to_thread`."
)


class _Scope(NamedTuple):
    """An open scope: the object that opened it, and the enclosing scope."""

    opener: "conversation"
    outer: "_Scope | None"


_scope: ContextVar[_Scope | None] = ContextVar("punchlist_conversation", default=None)


class conversation:  # noqa: N801  (reads as a statement: `with punchlist.conversation("website"):`)
    """Scope in which calls that name no conversation use this one. Use it with `with` or `async with`. Scopes can be
    nested.

    It covers the block, and the functions called and tasks started there. Threads started by `asyncio.to_thread` and
    `anyio.to_thread.run_sync` inherit it; other threads need `contextvars.copy_context().run` as their target. A
    generator can't open a scope: use `punchlist.scoped` around it.

    Args:
        name: The conversation's id.

    Raises:
        NoConversation: The id is empty.
        MisplacedScope: The scope is opened in a generator, or in a thread other than the one its block runs in. Or it
            is closed in a task or thread other than the one it was opened in.
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
        # The outer scope is stored in the context variable's value, not in this object, so that several tasks can
        # enter the same object concurrently.
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
        """Reject a scope that would not cover its block.

        Args:
            frame: The frame that opens the scope. Frames that enter context managers for their caller are skipped to
                find the frame that contains the block.
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
    """Return the conversation of the innermost scope, or None outside any scope."""
    scope = _scope.get()
    return scope.opener.name if scope else None


def resolve(name: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return `name`, else the conversation of the scope, else PUNCHLIST_CONVERSATION.

    Raises:
        NoConversation: None of these names a conversation.
    """
    chosen = name or current_conversation() or (os.environ if env is None else env).get("PUNCHLIST_CONVERSATION")
    if not chosen:
        raise NoConversation(
            "No conversation given: pass its id, use `with punchlist.conversation(...)`, "
            f"or set PUNCHLIST_CONVERSATION.{_THREAD if current_thread() is not main_thread() else ''}"
        )
    return chosen


def _is_generator(frame: FrameType) -> bool:
    flags = frame.f_code.co_flags
    return bool(flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR)) and not flags & _CO_ITERABLE_COROUTINE


def _is_context_manager(generator: FrameType) -> bool:
    return generator.f_back is not None and generator.f_back.f_code.co_name in _ENTERS


def _is_fixture_or_hook(generator: FrameType) -> bool:
    """Return whether a generator is a pytest fixture or a hook wrapper."""
    caller = generator.f_back
    if generator.f_code.co_flags & _CO_ASYNC_GENERATOR:
        # Pytest plugins run async fixtures on an event loop, so other frames come in between.
        while caller is not None and caller.f_globals.get("__name__") != _FIXTURES:
            caller = caller.f_back
    return caller is not None and caller.f_globals.get("__name__") in _BLOCKS


def _outermost_delegate(generator: FrameType) -> FrameType:
    """Return the outermost generator that runs this one with `yield from`, or this generator if none does."""
    while (outer := generator.f_back) is not None and _is_generator(outer) and _is_at_yield_from(outer):
        generator = outer
    return generator


def _is_at_yield_from(frame: FrameType) -> bool:
    """Return whether a generator runs another one with `yield from`, rather than with `next` or a loop."""
    code, offset = frame.f_code.co_code, frame.f_lasti
    # After a specialized SEND, `f_lasti` points into the instruction's inline cache.
    while offset > 0 and code[offset] == _CACHE:
        offset -= 2
    return code[offset] == _SEND
