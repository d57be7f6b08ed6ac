"""The queue of claims that wait for a task, first come, first served.

A claim that finds no task is parked. When a commit makes tasks ready, the same number of waiting claims go through the
writer again, in order of arrival. New claims don't overtake them. A claim that timed out, was cancelled by its caller
or was ended by a shutdown is never executed afterwards.
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

CANCELLED = Rejection("cancelled", "The claim was cancelled before a task was ready.")


class WaitingClaim:
    """A claim in the queue."""

    def __init__(self, write: Write, params: TaskClaim, ticket: int) -> None:
        self.write = write
        self.params = params
        self.ticket = ticket
        self.is_timed_out = not params.wait_ms
        self.timer: asyncio.TimerHandle | None = None


class WaitingClaims:
    """The waiting claims of all conversations.

    Args:
        submit: Queues a call for the writer.
    """

    def __init__(self, submit: Callable[[Write], None]) -> None:
        self._submit = submit
        self._waiting: dict[str, dict[int, WaitingClaim]] = {}
        self._by_write: dict[Write, tuple[str, WaitingClaim]] = {}
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._by_write)

    # between decision and commit

    def check_given_up(self, write: Write) -> Rejection | None:
        """Return the rejection for a claim that its caller has cancelled, else None."""
        holder = write.caller.holder
        return write.cancellation or (CANCELLED if holder is not None and holder.is_gone else None)

    def must_yield(self, state: State, write: Write, params: TaskClaim) -> bool:
        """Return True if earlier waiting claims will take all tasks that are available now."""
        waiting = self._waiting.get(state.conversation)
        if not waiting or params.task is not None:
            return False
        entry = self._by_write.get(write)
        supply = claim.Supply(state)
        for waiter in waiting.values():
            if entry is not None and waiter is entry[1]:
                break
            if waiter.params.task is None and waiter.write.cancellation is None:
                supply.take(claim.caller_names(waiter.params), waiter.params.count)
        return not supply.take(claim.caller_names(params), 1)

    def should_wait(self, write: Write, params: TaskClaim) -> bool:
        """Return True if a claim that found no task should wait and has time left."""
        entry = self._by_write.get(write)
        return not entry[1].is_timed_out if entry is not None else params.wait_ms > 0

    def enqueue(self, state: State, write: Write, params: TaskClaim) -> None:
        """Add a claim that found no task to the queue, and start its timeout."""
        if write not in self._by_write:
            self._tickets += 1
            waiter = WaitingClaim(write, params, self._tickets)
            self._waiting.setdefault(state.conversation, {})[waiter.ticket] = waiter
            self._by_write[write] = (state.conversation, waiter)
            loop = asyncio.get_running_loop()
            waiter.timer = loop.call_later(params.wait_ms / 1000, self._on_timeout, write)

    def start_waiting(self, write: Write) -> None:
        """Let a parked claim wait for a task, now that its transaction is published.

        If it has been cancelled since, answer it. If it has timed out, retry it one last time.
        """
        write.to(Stage.WAITING)
        waiter = self._by_write[write][1]
        if write.cancellation is not None:
            self._answer(waiter, write.cancellation)
        elif waiter.is_timed_out:
            self._requeue(waiter)

    def wake(self, state: State) -> None:
        """Resubmit the claims that may succeed now that this state is published."""
        waiting = self._waiting.get(state.conversation)
        if not waiting:
            return
        supply = claim.Supply(state)
        for waiter in list(waiting.values()):
            if waiter.params.task is not None:
                may_succeed = claim.is_decided(state, waiter.params)
            else:
                may_succeed = supply.take(claim.caller_names(waiter.params), waiter.params.count) > 0
            if may_succeed and waiter.write.stage is Stage.WAITING:
                self._requeue(waiter)

    def forget(self, write: Write) -> None:
        """Remove an answered claim from the queue."""
        entry = self._by_write.pop(write, None)
        if entry is None:
            return
        conversation, waiter = entry
        if waiter.timer is not None:
            waiter.timer.cancel()
        waiting = self._waiting[conversation]
        del waiting[waiter.ticket]
        if not waiting:
            del self._waiting[conversation]

    # giving up

    def give_up(self, write: Write, answer: Rejection) -> None:
        """Cancel a claim on behalf of its caller. If it is already decided, the writer releases its tasks."""
        write.cancellation = answer
        entry = self._by_write.get(write)
        if entry is not None and write.stage is Stage.WAITING:
            self._answer(entry[1], answer)

    def _on_timeout(self, write: Write) -> None:
        waiter = self._by_write[write][1]
        waiter.is_timed_out = True
        if write.stage is Stage.WAITING:
            self._requeue(waiter)

    def _requeue(self, waiter: WaitingClaim) -> None:
        write = waiter.write
        write.to(Stage.QUEUED)
        write.command = msgspec.structs.replace(write.command, at=now_ms())
        self._submit(write)
        if write.stage is Stage.ANSWERED:  # it was rejected, because the daemon is stopping
            self.forget(write)

    def _answer(self, waiter: WaitingClaim, answer: Rejection) -> None:
        self.forget(waiter.write)
        waiter.write.refuse(answer)
