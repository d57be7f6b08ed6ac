"""Reservations of sessions: a task that is reserved for an agent's session is free once the session's grace is over.

A claim has a lease for this. A reserved task has none, so each list's owners of such tasks are kept here, with a timer
for each one that has left. Persons, and names that never entered, keep what is reserved for them.
"""

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec

from punchlist_schemas.methods import METHODS
from punchlist_schemas.things import Task, names_of
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command, EndReservations
from punchlistd.domain.decide.sessions import unclaimed
from punchlistd.domain.state import State
from punchlistd.engine.calls import Nobody, Write
from punchlistd.engine.claims.agents import Agents, belongs_to

AGAIN_S = 60.0
"""How long after a reservation should have ended that is asked for again, in seconds: a full disk may have refused."""

_EDIT = METHODS["task.edit"]


class Departure(msgspec.Struct, frozen=True):
    """When the session left that a task is reserved for, and when the task is free, in milliseconds since 1970."""

    left_at: int
    free_at: int


class _Reserved(msgspec.Struct, frozen=True):
    """The tasks of a list that are reserved for sessions, by session."""

    user: str
    grace_ms: int
    tasks: dict[str, list[str]]


class Reservations:
    """The sessions that tasks are reserved for.

    Args:
        agents: Who is there, and who has left.
        is_elsewhere: Returns whether another machine keeps the claims of this keeper in a list.
        submit: Takes the calls that end reservations.
    """

    def __init__(
        self, agents: Agents, is_elsewhere: Callable[[str, str], bool], submit: Callable[[Write], None]
    ) -> None:
        self._agents = agents
        self._is_elsewhere = is_elsewhere
        self._submit = submit
        self._began = now_ms()
        self.show: Callable[[str, list[str]], None] = lambda _conversation, _tasks: None
        """Shows tasks again that look different, though the log does not go on."""
        self.lists: dict[str, _Reserved] = {}
        """What is reserved for sessions, by list."""
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._closed = False

    def follow(self, state: State) -> None:
        """Take in a list that was loaded or changed."""
        name, was = state.conversation, self.lists.pop(state.conversation, None)
        tasks = unclaimed(state, partial(self._is_session, state))
        for owner in () if was is None else was.tasks.keys() - tasks.keys():
            self._stop((name, owner))
        if not tasks:
            return
        reserved = self.lists[name] = _Reserved(state.user, state.settings.leave_grace * 1000, tasks)
        for owner in tasks:
            if (name, owner) not in self._timers:
                self._start(name, reserved, owner)

    def changed(self, agent: str) -> None:
        """Take in that an agent has entered or left."""
        for name, reserved in self.lists.items():
            its = [owner for owner in reserved.tasks if belongs_to(owner, agent)]
            for owner in its:
                self._stop((name, owner))
                self._start(name, reserved, owner)
            if its:
                tasks = [task for owner in its for task in reserved.tasks[owner]]
                asyncio.get_running_loop().call_soon(self.show, name, tasks)

    def departure(self, state: State, task: Task) -> Departure | None:
        """Return since when the session is gone that has a task without a claim; None if it is there, or no session."""
        if not task.owner or task.id in state.claims or task.status not in ("pending", "in_progress"):
            return None
        if not self._is_session(state, task.owner) or self._agents.is_present(state.user, task.owner):
            return None
        left_at = self._left_at(state.user, task.owner)
        return Departure(left_at, left_at + state.settings.leave_grace * 1000)

    def close(self) -> None:
        """Stop all timers."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()

    def _is_session(self, state: State, owner: str) -> bool:
        """Return whether an owner is an agent's session of this daemon."""
        if self._agents.has_entered(state.user, owner):
            return True
        known = [claim for name in names_of(owner) if (claim := state.agents.get(name)) is not None]
        return bool(known) and not self._is_elsewhere(known[0].keeper, state.conversation)

    def _left_at(self, user: str, owner: str) -> int:
        return self._agents.left_at(user, owner) or self._began

    def _start(self, conversation: str, reserved: _Reserved, owner: str) -> None:
        """Start the timer of a session that is not there."""
        if not self._agents.is_present(reserved.user, owner):
            free_at = self._left_at(reserved.user, owner) + reserved.grace_ms
            self._ring_in(max(free_at - now_ms(), 0) / 1000, conversation, owner)

    def _ring_in(self, wait_s: float, conversation: str, owner: str) -> None:
        if not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[conversation, owner] = loop.call_later(wait_s, self._end, conversation, owner)

    def _end(self, conversation: str, owner: str) -> None:
        params = EndReservations(conversation=conversation, owners=(owner,))
        self._submit(Write(Nobody(), None, _EDIT, params, Command(params, now_ms(), Nobody.actor)))
        self._ring_in(AGAIN_S, conversation, owner)

    def _stop(self, key: tuple[str, str]) -> None:
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
