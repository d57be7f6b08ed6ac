"""Reservations of sessions: they end when the session has left and its grace period is over.

Claims end with their leases, but reserved tasks have no leases. This module therefore records which sessions have
reserved tasks in each list, and runs a timer for each such session that has left. Reservations for people, and for
names that never called `agent.enter`, don't end.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from punchlist_schemas.methods import METHODS
from punchlist_schemas.things import Task, names_of
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command, EndReservations
from punchlistd.domain.decide.sessions import find_unclaimed
from punchlistd.domain.state import State
from punchlistd.engine.calls import DaemonCaller, Write
from punchlistd.engine.claims.agents import Agents, belongs_to

AGAIN_S = 60.0
"""Pause before the end of a reservation is requested again, in seconds.

The first request may have failed because the disk was full.
"""

_EDIT = METHODS["task.edit"]


class Departure(msgspec.Struct, frozen=True):
    """The times when a task's session left and when the task becomes free, in milliseconds since 1970."""

    left_at: int
    free_at: int


class _Reserved(msgspec.Struct, frozen=True):
    """A list's tasks that are reserved for sessions, grouped by session."""

    user: str
    grace_ms: int
    tasks: dict[str, list[str]]


class Reservations:
    """The sessions with reserved tasks, and the timers that end their reservations.

    Args:
        agents: The known agents.
        is_elsewhere: Returns whether the given keeper of a list's claims is another machine.
        submit: Queues the calls that end reservations.
    """

    def __init__(
        self, agents: Agents, is_elsewhere: Callable[[str, str], bool], submit: Callable[[Write], None]
    ) -> None:
        self._agents = agents
        self._is_elsewhere = is_elsewhere
        self._submit = submit
        self._began = now_ms()
        self.show: Callable[[str, list[str]], None] = lambda _conversation, _tasks: None
        """Pushes tasks whose displayed state has changed without a new event."""
        self.lists: dict[str, _Reserved] = {}
        """Tasks reserved for sessions, by list."""
        self.loaded: Callable[[], Iterable[State]] = tuple
        """Returns the lists in use."""
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._closed = False

    def follow(self, state: State) -> None:
        """Update the reservations of a list that was loaded or changed."""
        name, previous = state.conversation, self.lists.pop(state.conversation, None)
        tasks = find_unclaimed(state, partial(self._is_session, state))
        grace_ms = state.settings.leave_grace * 1000
        if previous is not None:
            for owner in previous.tasks:
                if owner not in tasks or previous.grace_ms != grace_ms:
                    self._stop((name, owner))
        if not tasks:
            return
        reserved = self.lists[name] = _Reserved(state.user, grace_ms, tasks)
        for owner in tasks:
            if (name, owner) not in self._timers:
                self._start(name, reserved, owner)

    def on_agent_changed(self, agent: str) -> None:
        """Restart the timers of an agent that has entered or left, and push its tasks again."""
        for state in self.loaded():
            # The agent's tasks may have been reserved before it first called `agent.enter`.
            if any(belongs_to(owner, agent) for owner in state.reserved):
                self.follow(state)
        for name, reserved in self.lists.items():
            owners = [owner for owner in reserved.tasks if belongs_to(owner, agent)]
            for owner in owners:
                self._stop((name, owner))
                self._start(name, reserved, owner)
            if owners:
                tasks = [task for owner in owners for task in reserved.tasks[owner]]
                asyncio.get_running_loop().call_soon(self.show, name, tasks)

    def departure(self, state: State, task: Task) -> Departure | None:
        """Return the departure of an unclaimed task's owner; None if the owner is present or not a session."""
        if not task.owner or task.id in state.claims or task.status not in ("pending", "in_progress"):
            return None
        if not self._is_session(state, task.owner) or self._agents.is_present(state.user, task.owner):
            return None
        left_at = self._left_at(state.user, task.owner)
        return Departure(left_at, left_at + state.settings.leave_grace * 1000)

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()

    def _is_session(self, state: State, owner: str) -> bool:
        if self._agents.has_entered(state.user, owner):
            return True
        entries = [entry for name in names_of(owner) if (entry := state.agents.get(name)) is not None]
        return bool(entries) and not self._is_elsewhere(entries[0].keeper, state.conversation)

    def _left_at(self, user: str, owner: str) -> int:
        return self._agents.left_at(user, owner) or self._began

    def _start(self, conversation: str, reserved: _Reserved, owner: str) -> None:
        """Start a session's timer, unless the session is present."""
        if not self._agents.is_present(reserved.user, owner):
            free_at = self._left_at(reserved.user, owner) + reserved.grace_ms
            self._set_timer(max(free_at - now_ms(), 0) / 1000, conversation, owner)

    def _set_timer(self, wait_s: float, conversation: str, owner: str) -> None:
        if not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[conversation, owner] = loop.call_later(wait_s, self._end, conversation, owner)

    def _end(self, conversation: str, owner: str) -> None:
        params = EndReservations(conversation=conversation, owners=(owner,))
        self._submit(Write(DaemonCaller(), None, _EDIT, params, Command(params, now_ms(), DaemonCaller.actor)))
        self._set_timer(AGAIN_S, conversation, owner)

    def _stop(self, key: tuple[str, str]) -> None:
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
