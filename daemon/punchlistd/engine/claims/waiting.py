"""Claims that wait for a task: first come, first served, and nobody asks twice.

A claim that finds nothing is parked. When a commit makes something ready, as many of the parked ones as there are tasks
go through the writer again, in the order in which they came; newcomers do not overtake them. One that is given up, by
time, by its caller or by a shutdown, is never executed afterwards.
"""

import asyncio
from collections.abc import Callable

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import TaskClaim
from punchlistd.clock import now_ms
from punchlistd.domain.decide import claim
from punchlistd.domain.state import State
from punchlistd.engine.calls import Stage, Write

CANCELLED = Rejection("cancelled", "The claim was given up before it got a task.")


class WaitingClaim:
    """A claim that waits. `write` is the call, and `waited` says that its time is over."""

    def __init__(self, write: Write, params: TaskClaim, ticket: int) -> None:
        self.write = write
        self.params = params
        self.ticket = ticket
        self.waited = not params.wait_ms
        self.timer: asyncio.TimerHandle | None = None


class WaitingClaims:
    """The claims that wait, by conversation.

    Args:
        submit: the door into the writer.
    """

    def __init__(self, submit: Callable[[Write], None]) -> None:
        self._submit = submit
        self._waiting: dict[str, dict[int, WaitingClaim]] = {}
        self._by_write: dict[Write, tuple[str, WaitingClaim]] = {}
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._by_write)

    # between decision and commit

    def given_up(self, write: Write) -> Rejection | None:
        """Return the answer of a claim that was given up."""
        holder = write.caller.holder
        return write.cancellation or (CANCELLED if holder is not None and holder.is_gone else None)

    def yields(self, state: State, write: Write, params: TaskClaim) -> bool:
        """Return True if earlier waiting claims get everything that is available now."""
        waiting = self._waiting.get(state.conversation)
        if not waiting or params.task is not None:
            return False
        known = self._by_write.get(write)
        supply = claim.Supply(state)
        for waiter in waiting.values():
            if known is not None and waiter is known[1]:
                break
            if waiter.params.task is None and waiter.write.cancellation is None:
                supply.take(claim.names(waiter.params), waiter.params.count)
        return not supply.take(claim.names(params), 1)

    def waits(self, write: Write, params: TaskClaim) -> bool:
        """Return True if a claim that found nothing is to wait."""
        known = self._by_write.get(write)
        return not known[1].waited if known is not None else params.wait_ms > 0

    def join(self, state: State, write: Write, params: TaskClaim) -> None:
        """Put a claim that found nothing at the end of the line."""
        if write not in self._by_write:
            self._tickets += 1
            waiter = WaitingClaim(write, params, self._tickets)
            self._waiting.setdefault(state.conversation, {})[waiter.ticket] = waiter
            self._by_write[write] = (state.conversation, waiter)
            loop = asyncio.get_running_loop()
            waiter.timer = loop.call_later(params.wait_ms / 1000, self._time_is_up, write)

    def wait(self, write: Write) -> None:
        """Start the time limit of a claim in the line, now that its transaction is published."""
        write.to(Stage.WAITING)
        waiter = self._by_write[write][1]
        if write.cancellation is not None:
            self._answer(waiter, write.cancellation)
        elif waiter.waited:
            self._requeue(waiter)

    def wake(self, state: State) -> None:
        """Resubmit the claims that may succeed after what was published."""
        waiting = self._waiting.get(state.conversation)
        if not waiting:
            return
        supply = claim.Supply(state)
        for waiter in list(waiting.values()):
            if waiter.params.task is not None:
                wanted = claim.is_decided(state, waiter.params)
            else:
                wanted = supply.take(claim.names(waiter.params), waiter.params.count) > 0
            if wanted and waiter.write.stage is Stage.WAITING:
                self._requeue(waiter)

    def forget(self, write: Write) -> None:
        """Remove an answered claim from the line."""
        known = self._by_write.pop(write, None)
        if known is None:
            return
        conversation, waiter = known
        if waiter.timer is not None:
            waiter.timer.cancel()
        waiting = self._waiting[conversation]
        del waiting[waiter.ticket]
        if not waiting:
            del self._waiting[conversation]

    # giving up

    def give_up(self, write: Write, answer: Rejection) -> None:
        """The caller does not want the task any more. What is decided already is given back by the writer."""
        write.cancellation = answer
        known = self._by_write.get(write)
        if known is not None and write.stage is Stage.WAITING:
            self._answer(known[1], answer)

    def _time_is_up(self, write: Write) -> None:
        waiter = self._by_write[write][1]
        waiter.waited = True
        if write.stage is Stage.WAITING:
            self._requeue(waiter)

    def _requeue(self, waiter: WaitingClaim) -> None:
        write = waiter.write
        write.to(Stage.QUEUED)
        write.command = msgspec.structs.replace(write.command, at=now_ms())
        self._submit(write)
        if write.stage is Stage.ANSWERED:  # by a daemon that stops
            self.forget(write)

    def _answer(self, waiter: WaitingClaim, answer: Rejection) -> None:
        self.forget(waiter.write)
        waiter.write.refuse(answer)
