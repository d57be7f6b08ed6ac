"""Clears finished lists that have `auto_clear` set to `idle`, after a time without changes.

Each such list has a timer on the monotonic clock, which starts at the last change or when the daemon starts. An agent
that finished the list and is still connected may be in the middle of its turn. So the list is cleared only when the
turn or the connection ends, or after `AGENTS_S`. The call that clears a list expects the list's version, so it fails if
the list has changed in the meantime. An undo doesn't start the timer, because a user who undoes a clearing wants to see
the list.
"""

import asyncio
from collections.abc import Callable

from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import TurnEnd
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command
from punchlistd.domain.decide.edit import clears_when_idle
from punchlistd.domain.state import State
from punchlistd.engine.calls import DaemonCaller, Holder, Write

AGENTS_S = 600.0
"""Maximum time that a finished list waits for connected agents after its last change, in seconds."""

_TURN_END = METHODS["turn.end"]


class Idle:
    """The finished lists that will be cleared.

    Args:
        after_s: Time from the last change until the list is cleared, in seconds.
        submit: Queues the calls that clear lists.
        agents_s: See `AGENTS_S`.
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
        """Restart or stop the timer of a list that was loaded or changed.

        Args:
            undone: Whether the change was an undo.
            by: The connection that made the change.
        """
        name = state.conversation
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()
        if by is not None and by.is_agents:
            self._agents[name] = by
        if clears_when_idle(state) and not undone and not self._closed:
            self._start_timer(name, state.version, asyncio.get_running_loop().time() + self._agents_s)
        elif not state.tasks:
            self._agents.pop(name, None)

    def _start_timer(self, name: str, version: int, until: float) -> None:
        timer = asyncio.get_running_loop().call_later(self._after_s, self._on_timer, name, version, until)
        self._timers[name] = timer

    def _on_timer(self, name: str, version: int, until: float) -> None:
        """Clear a list, or wait again if an agent that worked on it is still connected."""
        agent = self._agents.get(name)
        if agent is None or agent.is_gone or asyncio.get_running_loop().time() >= until:
            self._clear(name, version)
        else:
            self._start_timer(name, version, until)

    def _clear(self, name: str, version: int) -> None:
        del self._timers[name]
        self._agents.pop(name, None)
        params = TurnEnd(conversation=name, expect_version=version)
        self._submit(Write(DaemonCaller(), None, _TURN_END, params, Command(params, now_ms(), DaemonCaller.actor)))

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._agents.clear()
