"""The single writer: decides what waits, appends it in batches, and only then publishes, answers and pushes.

It is a line of two steps. Deciding takes calls as they come and adds their events to the batch that is forming, while
the batch before it is being committed; as soon as that is durable the next one is sent on its way, and while the disk
has it the first is published. So processor and disk work at the same time, and everything that came during a commit
shares the next one. Where the log can commit at once, because the disk is quick, there is nothing to overlap, and both
steps are one.

States run ahead of the log: a conversation is dirty as long as a batch that touches it is not published, and nobody
reads a dirty one except in turn. A refused append drops all that was decided since, and every call in it gets the
error, also the rejected ones, since their refusal may rest on what never came to be.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from time import perf_counter_ns
from typing import Any

import anyio

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import ConversationAttach, ConversationDelete, ConversationDetach, ListUndo, TaskClaim
from punchlistd.engine.calls import Caller, Item, Read, Write
from punchlistd.engine.confirm import Confirmer
from punchlistd.engine.decider import Batch, Decider
from punchlistd.engine.fanout import Fanout
from punchlistd.engine.idle import Idle
from punchlistd.engine.leases import Leases
from punchlistd.engine.meters import Meters
from punchlistd.engine.registry import Registry, damage_of
from punchlistd.engine.repeats import rebuild
from punchlistd.engine.signal import Signal
from punchlistd.engine.totals import Totals
from punchlistd.engine.upkeep import Upkeep
from punchlistd.engine.waiters import Waiters
from punchlistd.settings import Settings
from punchlistd.store.port import Damaged, EventLog, StorageFailed, StorageFull

SHUTTING_DOWN = Rejection("shutting_down", "The daemon is stopping. Reconnect and retry with the same key.")
STORAGE_FULL = Rejection(
    "storage_full", "The disk is full: nothing was written, reads go on. Free some space, then retry with the same key."
)
OUTCOME_UNKNOWN = Rejection(
    "outcome_unknown",
    "The disk failed during the write, and the daemon stops. Retry with the same key once it is back: it is done once.",
)
ALONE = frozenset({ListUndo, ConversationAttach, ConversationDetach, ConversationDelete})
"""Calls that are a batch of their own: they look at the log or change where names lead, not only one state."""

LAST_WORDS_S = 0.1
"""How long a writer whose log failed still answers calls that were on their way, in seconds."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Writer:
    """Decides and commits mutations.

    Args:
        log: where events are kept.
        registry: the conversations in use.
        fanout: who is told.
        totals: the work in all conversations.
        settings: batch and indexing limits.
        spawn: runs a coroutine beside the writer for as long as the daemon lives.
    """

    def __init__(
        self, log: EventLog, registry: Registry, fanout: Fanout, totals: Totals, settings: Settings, *, spawn: Spawn
    ) -> None:
        """A writer with nothing to do; `run` makes it work."""
        self._log = log
        self._registry = registry
        registry.settled = self.settled
        self._fanout = fanout
        self._totals = totals
        self._settings = settings
        self._spawn = spawn
        self.leases = registry.leases = Leases(settings.grace_s, self.submit)
        self.waiters = Waiters(self.submit)
        self.idle = registry.idle = Idle(settings.idle_clear_s, self.submit)
        self.confirmer = Confirmer(settings.confirm_s, settings.later_s)
        self._decider = Decider(log, registry, self.confirmer, leases=self.leases, waiters=self.waiters, idle=self.idle)
        self._queue: deque[Item] = deque()
        self._forming = Batch(log.head)
        self._work = Signal()  # something to decide, something due, or the end
        self._formed = Signal()  # something to commit
        self._moved = Signal()  # the forming batch was taken, or everything decided is published
        self._deciding: list[Item] = []
        self._pausing: list[asyncio.Future[None]] = []
        self._committing = False
        self._closing = False
        self.meters = Meters()
        self.upkeep = Upkeep(log, registry, totals, meters=self.meters, settings=settings, nudge=self._work.give)

    # the door in

    def submit(self, item: Item) -> None:
        """Queue a call; its caller is answered after the commit, or at once if the daemon is stopping."""
        if self._closing:
            self._refuse((item,), SHUTTING_DOWN)
            return
        if type(item.params) is ListUndo and type(item) is Write and item.past is None:
            self._spawn(self._look_back(item, item.params))
            return
        self._queue.append(item)
        self._work.give()

    def close(self) -> None:
        """Take no more calls; `run` returns when those taken are answered."""
        self._closing = True
        self._work.give()

    async def settled(self) -> None:
        """Wait until all that is decided is published or refused; deciding stops for it, so it is never in vain."""
        done = asyncio.get_running_loop().create_future()
        self._pausing.append(done)
        self._work.give()
        await done

    async def run(self) -> None:
        """Work until closed.

        Raises:
            StorageFailed: in a group; a write's outcome is unknown. Every waiting call was told so, and the daemon must
                stop.
        """
        try:
            async with anyio.create_task_group() as steps:
                steps.start_soon(self._commit_batches)
                await self._decide_calls()
                steps.cancel_scope.cancel()
        except* StorageFailed as failures:
            self._closing = True
            self.meters.error(f"outcome_unknown: {failures.exceptions[0]}")
            self._refuse((*self._forming.items, *self._deciding, *self._queue), OUTCOME_UNKNOWN)
            with anyio.CancelScope(shield=True):
                await anyio.sleep(LAST_WORDS_S)  # what was sent meanwhile is read and told to come again
            raise

    # the first step: deciding

    async def _decide_calls(self) -> None:
        while True:
            if self.upkeep.due:
                await self._drained()
                await self.upkeep.run()
            elif self._pausing:
                await self._pause()
            elif self._queue and len(self._forming.items) >= self._settings.batch_calls:
                await self._moved.take()
            elif self._queue:
                await self._decide_some()
            elif self._closing:
                break
            else:
                await self._work.take()
        await self._pause()
        self.leases.close()
        self.idle.close()
        await self.upkeep.run(everything=True)

    async def _decide_some(self) -> None:
        """Decide what waits, up to the next call that must be alone."""
        queue = self._queue
        alone = type(queue[0].params) in ALONE
        if alone:
            await self._drained()
        items = self._deciding = [queue.popleft()]
        room = 1 if alone else self._settings.batch_calls - len(self._forming.items)
        while queue and len(items) < room and type(queue[0].params) not in ALONE:
            items.append(queue.popleft())
        await self._decider.prepare(items)
        self._deciding = []
        forming = self._forming
        for index, item in enumerate(items):
            if item.opened is not None and item.opened.dropped:  # by a refused append
                queue.extendleft(reversed(items[index:]))
                break
            if self._decider.decide(item, forming) and item.outcome is not None:
                item.answer(item.outcome)
                item.caller.flush()
            else:
                forming.items.append(item)
        if self._forming.items and not self._commit_at_once():
            self._formed.give()
        if alone:
            await self._drained()

    async def _pause(self) -> None:
        """Let those read who wait for a settled state."""
        await self._drained()
        pausing, self._pausing = self._pausing, []
        for done in pausing:
            if not done.done():
                done.set_result(None)
        await asyncio.sleep(0)

    async def _drained(self) -> None:
        """Wait until everything that was decided is published."""
        while self._forming.items or self._committing:
            await self._moved.take()

    def _commit_at_once(self) -> bool:
        """Commit and publish what has formed without waiting; False: the second step has to do it."""
        batch = self._forming
        if self._committing or batch.deleted:
            return False
        self._forming = Batch(batch.head)
        started = perf_counter_ns()
        try:
            if batch.entries and not self._log.append_now(batch.entries):
                self._forming = batch
                return False
        except (StorageFull, Damaged) as refused:
            self._take_back(batch, refused)
            return True
        except StorageFailed:
            self._refuse(batch.items, OUTCOME_UNKNOWN)
            raise
        if batch.entries:
            self.meters.commit(perf_counter_ns() - started, len(batch.entries))
        self._publish(batch)
        self._moved.give()
        return True

    # the second step: committing

    async def _commit_batches(self) -> None:
        done: Batch | None = None
        while True:
            if not self._forming.items or self._log.quick:
                self._publish(done)
                done, self._committing = None, False
                if not self._forming.items or self._commit_at_once():
                    self._moved.give()
                    await self._formed.take()
                    continue
            self._committing = True
            batch, self._forming = self._forming, Batch(self._forming.head)
            self._moved.give()
            stored = False
            with anyio.CancelScope(shield=True):  # a commit that has begun is seen to its end, whoever stops this task
                stored = await self._append_while_publishing(batch, done)
            done = batch if stored else None

    async def _append_while_publishing(self, batch: Batch, done: Batch | None) -> bool:
        if done is None:
            return await self._append(batch)
        appending = asyncio.ensure_future(self._append(batch))
        await asyncio.sleep(0)  # the next batch is on its way to the disk before this one is published
        self._publish(done)
        return await appending

    async def _append(self, batch: Batch) -> bool:
        """Commit a batch; False if there was no room for it, and everything decided so far is taken back."""
        if not batch.entries:
            return True
        started = perf_counter_ns()
        try:
            await self._log.append(batch.entries)
            self.meters.commit(perf_counter_ns() - started, len(batch.entries))
            for name in batch.deleted:
                await self.upkeep.erase(name)
        except (StorageFull, Damaged) as refused:
            self._take_back(batch, refused)
            return False
        except StorageFailed:
            self._refuse(batch.items, OUTCOME_UNKNOWN)
            raise
        return True

    def _take_back(self, batch: Batch, refused: StorageFull | Damaged) -> None:
        """Nothing was written: forget the batch and all that was decided on top of it."""
        rejection = STORAGE_FULL if isinstance(refused, StorageFull) else damage_of(refused)
        self.meters.error(rejection.kind if isinstance(refused, StorageFull) else f"nothing is written: {refused}")
        later, self._forming = self._forming, Batch(self._log.head)
        for each in (batch, later):
            for name in each.touched:
                self._registry.drop(name)
        items = [*batch.items, *later.items]
        self._refuse([item for item in items if isinstance(item, Write)], rejection)
        self._queue.extendleft(reversed([item for item in items if isinstance(item, Read)]))
        self._work.give()
        self._fanout.lead_lists()

    # after the commit

    def _publish(self, batch: Batch | None) -> None:
        """Make a durable batch visible: answers first, then pushes."""
        if batch is None:
            return
        for opened in batch.touched.values():
            opened.dirty -= 1
        self._note_sessions(batch)
        callers: dict[Caller, None] = {}
        for item in batch.items:
            if type(item) is Write and item.unwanted is not None:
                self._give_back(item)
            if item.outcome is not None:
                item.answer(item.outcome)
                callers[item.caller] = None
            else:
                self._answer_otherwise(item)
        for caller in callers:
            caller.flush()
        self._wake_waiters(batch)
        if batch.lines:
            self._totals.follow(batch.touched.values())
            self._fanout.publish(batch.lines, batch.head, batch.deleted)
            self.upkeep.plan()

    def _answer_otherwise(self, item: Item) -> None:
        if isinstance(item, Read):
            run = item.run or item.later
            assert run is not None, "a read that is decided has an outcome"
            run()
        elif item.parked:
            self.waiters.park(item)
        elif item.again:
            self.submit(item)
        else:
            self._spawn(self._answer_repeat(item))

    def _give_back(self, item: Write) -> None:
        """A claim was given up after it was decided: nobody is there to take what it got."""
        if item.claims and item.opened is not None:
            self.leases.end(item.opened.state.conversation, item.claims, "released")
            item.outcome = item.unwanted

    def _wake_waiters(self, batch: Batch) -> None:
        """What was published may be what somebody waits for; who gave up makes room for those behind."""
        if not self.waiters:
            return
        found = {id(opened): opened for opened in batch.touched.values()}
        for item in batch.items:
            if isinstance(item.params, TaskClaim) and item.opened is not None:
                found[id(item.opened)] = item.opened
        for opened in found.values():
            self.waiters.wake(opened.state)

    def _note_sessions(self, batch: Batch) -> None:
        for name in batch.deleted:
            self._registry.history.forget(name)
            self._registry.access.detach(name)
        for name, event in batch.sessions:
            if isinstance(event.detached, str):
                self._registry.access.detach(name, event.detached)
            if isinstance(event.attached, str):
                self._registry.access.attach(event.attached, name)

    async def _look_back(self, item: Write, params: ListUndo) -> None:
        """Read the history that an undo takes back, then queue it; in its turn only what came meanwhile is read."""
        item.again = False
        try:
            await self._decider.undos.look_back(item, params)
        except StorageFailed:  # by a write, which ends the daemon
            self._refuse((item,), OUTCOME_UNKNOWN)
            return
        if self._closing:
            self._refuse((item,), SHUTTING_DOWN)
        else:
            self._queue.append(item)
            self._work.give()

    async def _answer_repeat(self, item: Write) -> None:
        """Give a key's first answer again, rebuilt from the log."""
        try:
            async with item.caller.turn():
                found = await rebuild(self._log, self._registry, item)
        except StorageFailed:  # by a write, which ends the daemon
            found = OUTCOME_UNKNOWN
        if found is None:
            item.repeat, item.fresh = False, True
            self.submit(item)
        else:
            if isinstance(item.params, TaskClaim) and isinstance(found, bytes) and item.opened is not None:
                opened = await self._registry.load(item.opened.state.conversation)
                self.leases.rejoin(opened.state, found, item.caller.holder)
            self.waiters.forget(item)
            item.answer(found)
            item.caller.flush()

    def _refuse(self, items: Iterable[Item], rejection: Rejection) -> None:
        for item in items:
            if isinstance(item, Write):
                self.waiters.forget(item)
            item.answer(rejection)
            item.caller.flush()
