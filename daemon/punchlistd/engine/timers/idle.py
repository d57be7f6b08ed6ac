"""Finished lists whose `auto_clear` is `idle` are cleared when nothing has changed for a while.

By the monotonic clock and a timer for each such list. The time begins with the last change, or with a start of the
daemon. An agent that finished the list and is still connected may be in the middle of its turn: the list waits for the
turn's end, for the end of the connection, or for `AGENTS_S`. What is then asked for names the version that the list
had, so a change that comes first wins. An undo is no reason to clear: who takes a clearing back wants to see the list.
"""

import asyncio
from collections.abc import Callable

from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import TurnEnd
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command
from punchlistd.domain.decide.edit import clears_when_idle
from punchlistd.domain.state import State
from punchlistd.engine.calls import Holder, Nobody, Write

AGENTS_S = 600.0
"""Upper limit for the time that a finished list waits for connected agents after its last change, in seconds."""

_TURN_END = METHODS["turn.end"]


class Idle:
    """The finished lists that are going to be cleared.

    Args:
        after_s: how long such a list stays as it is, in seconds.
        submit: takes what clears it.
        agents_s: see `AGENTS_S`.
    """

    def __init__(self, after_s: float, submit: Callable[[Write], None], agents_s: float = AGENTS_S) -> None:
        self._after_s = after_s
        self._agents_s = agents_s
        self._submit = submit
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._agents: dict[str, Holder] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._timers)

    def follow(self, state: State, *, undone: bool = False, by: Holder | None = None) -> None:
        """A list was loaded or changed, by a connection; `undone` says that the change was an undo."""
        name = state.conversation
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()
        if by is not None and by.is_agents:
            self._agents[name] = by
        if clears_when_idle(state) and not undone and not self._closed:
            self._wait(name, state.version, asyncio.get_running_loop().time() + self._agents_s)
        elif not state.tasks:
            self._agents.pop(name, None)

    def _wait(self, name: str, version: int, until: float) -> None:
        timer = asyncio.get_running_loop().call_later(self._after_s, self._look, name, version, until)
        self._timers[name] = timer

    def _look(self, name: str, version: int, until: float) -> None:
        """Clear a list, unless an agent that worked on it may go on with it."""
        agent = self._agents.get(name)
        if agent is None or agent.is_gone or asyncio.get_running_loop().time() >= until:
            self._clear(name, version)
        else:
            self._wait(name, version, until)

    def _clear(self, name: str, version: int) -> None:
        del self._timers[name]
        self._agents.pop(name, None)
        params = TurnEnd(conversation=name, expect_version=version)
        self._submit(Write(Nobody(), None, _TURN_END, params, Command(params, now_ms(), Nobody.actor)))

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._agents.clear()
