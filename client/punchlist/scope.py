"""Which list is meant: the argument, the scope around the code, or the environment; never the working directory.

The scope lives in a context variable. Tasks inherit it when they are started, and so do threads started through
`anyio.to_thread.run_sync` or `asyncio.to_thread`. A plain `threading.Thread` starts with an empty context: run its
target by `contextvars.copy_context().run`.
"""

import os
from collections.abc import Mapping
from contextvars import ContextVar
from types import TracebackType

from punchlist.errors import NoConversation

_Frame = tuple[str, "_Frame | None"]
_scope: ContextVar["_Frame | None"] = ContextVar("punchlist_conversation", default=None)


class conversation:  # noqa: N801  (reads as a statement: `with punchlist.conversation("website"):`)
    """Makes a conversation the one that is meant by the code inside, with `with` or `async with`. It nests.

    Args:
        name: The conversation's id.
    """

    def __init__(self, name: str) -> None:
        if not name:
            raise NoConversation("A conversation's id can't be empty.")
        self.name = name

    def __enter__(self) -> str:
        _scope.set((self.name, _scope.get()))
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The outer scope is kept in the value itself, not in a token of this object: one object can then be entered
        # by many tasks at once.
        frame = _scope.get()
        _scope.set(frame[1] if frame else None)

    async def __aenter__(self) -> str:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def current_conversation() -> str | None:
    """The conversation of the innermost scope, or None outside of any."""
    frame = _scope.get()
    return frame[0] if frame else None


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
