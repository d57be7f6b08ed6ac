"""Finished lists whose `auto_clear` is `idle` are cleared when nothing has changed for a while.

By the monotonic clock and a timer for each such list. The time begins with the last change, or with a start of the
daemon. What is then asked for names the version that the list had, so a change that comes first wins. An undo is no
reason to clear: who takes a clearing back wants to see the list.
"""

import asyncio
from collections.abc import Callable

from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import TurnEnd
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command
from punchlistd.domain.decide.edit import is_over
from punchlistd.domain.state import State
from punchlistd.engine.calls import Nobody, Write

_TURN_END = METHODS["turn.end"]


class Idle:
    """The finished lists that are going to be cleared.

    Args:
        after_s: how long such a list stays as it is, in seconds.
        submit: takes what clears it.
    """

    def __init__(self, after_s: float, submit: Callable[[Write], None]) -> None:
        """No lists."""
        self._after_s = after_s
        self._submit = submit
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closed = False

    def __len__(self) -> int:
        """How many lists are going to be cleared."""
        return len(self._timers)

    def follow(self, state: State, *, undone: bool = False) -> None:
        """A list was loaded or changed; `undone` says that the change was an undo."""
        name = state.conversation
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()
        if is_over(state) and not undone and not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(self._after_s, self._clear, name, state.version)

    def _clear(self, name: str, version: int) -> None:
        del self._timers[name]
        params = TurnEnd(conversation=name, expect_version=version)
        self._submit(Write(Nobody(), None, _TURN_END, params, Command(params, now_ms(), Nobody.actor)))

    def close(self) -> None:
        """Clear nothing any more."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
