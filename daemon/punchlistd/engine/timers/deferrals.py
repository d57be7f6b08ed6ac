"""Deferred tasks become ready when their time has come, by the wall clock and one timer for all lists.

The clock may be set while the timer runs, and stands still to it while the machine sleeps. So the timer rings at least
once a minute and asks the clock again: a clock that was set back lets a task wait until its time comes once more, and
what is ready by then stays so, because waking a task is an event.
"""

import asyncio
from collections.abc import Callable

from punchlist_schemas.methods import METHODS
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command, Wake
from punchlistd.domain.state import State
from punchlistd.engine.calls import Nobody, Write

CHECK_S = 60.0
"""How long the clock goes unasked while a task is deferred."""

_EDIT = METHODS["task.edit"]


class Deferrals:
    """When which list has a deferred task to wake.

    Args:
        submit: takes what wakes it.
        clock: the wall clock, in milliseconds.
    """

    def __init__(self, submit: Callable[[Write], None], clock: Callable[[], int] = now_ms) -> None:
        self.due: dict[str, int] = {}
        """The time of the first deferred task of each list that has one."""
        self._submit = submit
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def follow(self, state: State) -> None:
        """A list was loaded, or changed while it has deferred tasks or had some."""
        name, at = state.conversation, state.wakes_at
        if self.due.get(name) == at:
            return
        if at is None:
            del self.due[name]
        else:
            self.due[name] = at
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.due and not self._closed:
            wait_s = min(max(0.0, (min(self.due.values()) - self._clock()) / 1000), CHECK_S)
            self._timer = asyncio.get_running_loop().call_later(wait_s, self.check)

    def check(self) -> None:
        """Ask the clock, and wake what is due."""
        now = self._clock()
        for name, at in list(self.due.items()):
            if at <= now:
                params = Wake(conversation=name)
                self._submit(Write(Nobody(), None, _EDIT, params, Command(params, now, Nobody.actor)))
        self._timer = None
        if self.due and not self._closed:
            # What is due now is on its way, and comes back here if it can't be written.
            later = [at for at in self.due.values() if at > now]
            wait_s = min((min(later) - now) / 1000, CHECK_S) if later else CHECK_S
            self._timer = asyncio.get_running_loop().call_later(wait_s, self.check)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
