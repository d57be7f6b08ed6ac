"""Wakes deferred tasks when their time comes, using the wall clock and one timer for all lists.

The wall clock may be changed while the timer runs, and the timer stops while the machine sleeps. So the clock is
checked at least once a minute. If it was set back, deferred tasks wait until their time comes again. Tasks that are
already ready stay ready, because waking a task is an event.
"""

import asyncio
from collections.abc import Callable

from punchlist_schemas.methods import METHODS
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command, Wake
from punchlistd.domain.state import State
from punchlistd.engine.calls import DaemonCaller, Write

CHECK_S = 60.0
"""Maximum time between checks of the clock while a task is deferred, in seconds."""

_EDIT = METHODS["task.edit"]


class Deferrals:
    """The lists with deferred tasks, and the timer that wakes them.

    Args:
        submit: Queues the calls that wake tasks.
        clock: The wall clock, in milliseconds.
    """

    def __init__(self, submit: Callable[[Write], None], clock: Callable[[], int] = now_ms) -> None:
        self.due: dict[str, int] = {}
        """When the first deferred task of each list wakes, in milliseconds since 1970."""
        self._submit = submit
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def follow(self, state: State) -> None:
        """Update a list's wake-up time.

        Call after loading the list, and after each change if it has or had deferred tasks.
        """
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
        """Submit calls to wake tasks in the lists that are due, and restart the timer."""
        now = self._clock()
        for name, at in list(self.due.items()):
            if at <= now:
                params = Wake(conversation=name)
                self._submit(Write(DaemonCaller(), None, _EDIT, params, Command(params, now, DaemonCaller.actor)))
        self._timer = None
        if self.due and not self._closed:
            # The calls for lists that are due are in flight. If a call fails, its list stays in `due` for the next
            # check.
            later = [at for at in self.due.values() if at > now]
            wait_s = min((min(later) - now) / 1000, CHECK_S) if later else CHECK_S
            self._timer = asyncio.get_running_loop().call_later(wait_s, self.check)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
