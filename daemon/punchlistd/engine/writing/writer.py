"""The single writer: decides calls, commits their events in batches, then answers and publishes.

Writing is a pipeline of two steps. The first decides calls and adds their events to the forming transaction, while the
second commits the previous transaction. Once that is durable, the next commit starts, and the durable transaction is
published while the disk works. Calls that arrive during a commit share the next one. If the disk is fast, the log
commits without waiting, and both steps run together.

States run ahead of the log: a conversation is dirty until every transaction that touches it is published. Only reads in
the queue see dirty states. A failed append drops its transaction and everything decided after it. All their calls get
the error, including rejected ones, because the rejections may be based on events that were never written.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from time import perf_counter_ns
from typing import Any

import anyio

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import ListUndo, TaskClaim
from punchlistd.domain.state import State
from punchlistd.engine.calls import Arrival, Barrier, Caller, Item, Read, Stage, Write
from punchlistd.engine.claims import Claims
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations, damage_of
from punchlistd.engine.lists.history import History
from punchlistd.engine.replies import OUTCOME_UNKNOWN, STORAGE_FULL
from punchlistd.engine.watching.subscriptions import Subscriptions
from punchlistd.engine.writing.idempotency import Replays
from punchlistd.engine.writing.inbox import Inbox, Signal, is_exclusive
from punchlistd.engine.writing.maintenance import Maintenance
from punchlistd.engine.writing.transaction import MAX_PARTS, PARTS, Transaction, Transactor
from punchlistd.engine.writing.undos import Undos
from punchlistd.metrics import Metrics
from punchlistd.slices import in_slices
from punchlistd.store.port import Damaged, EventLog, StorageFailed, StorageFull

LAST_WORDS_S = 0.1
"""How long the writer continues to reject incoming calls after its log has failed, in seconds."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Writer:
    """Decides and commits mutations.

    Args:
        batch_calls: Maximum number of calls in one group commit.
        spawn: Starts a background task that lives as long as the daemon.
    """

    def __init__(  # noqa: PLR0913 - one collaborator for each effect of a commit
        self,
        log: EventLog,
        inbox: Inbox,
        transactor: Transactor,
        *,
        conversations: Conversations,
        access: Access,
        history: History,
        claims: Claims,
        undos: Undos,
        replays: Replays,
        subscriptions: Subscriptions,
        maintenance: Maintenance,
        metrics: Metrics,
        batch_calls: int,
        spawn: Spawn,
    ) -> None:
        self._log = log
        self._inbox = inbox
        self._transactor = transactor
        self._conversations = conversations
        self._access = access
        self._history = history
        self._claims = claims
        self._undos = undos
        self._replays = replays
        self._subscriptions = subscriptions
        self._maintenance = maintenance
        self._metrics = metrics
        self._batch_calls = batch_calls
        self._spawn = spawn
        self._forming = Transaction(log.head)
        self._formed = Signal()  # the forming transaction is ready for its commit
        self._progress = Signal()  # the forming transaction has been taken, or everything decided is published
        self._deciding: list[Item] = []
        self._committing = False
        self._last_size = 0  # length of the queue when the previous batch was taken

    def submit(self, item: Write) -> None:
        """Queue a call. Its caller is answered after the commit. An undo is queued once its history has been read."""
        if type(item.params) is ListUndo and not self._inbox.closing:
            item.to(Stage.READING_PAST)
            self._spawn(self._read_past(item))
        else:
            self._inbox.submit(item)

    async def run(self) -> None:
        """Run until the inbox is closed and all its calls are answered.

        Raises:
            StorageFailed: In an exception group. The outcome of a write is unknown, and all waiting calls were answered
                with an error that reports this. The daemon must stop.
        """
        try:
            async with anyio.create_task_group() as steps:
                steps.start_soon(self._commit_formed)
                await self._decide_calls()
                steps.cancel_scope.cancel()
        except* StorageFailed as failures:
            self._inbox.close()
            self._metrics.error(f"outcome_unknown: {failures.exceptions[0]}")
            self._refuse((*self._forming.items, *self._deciding, *self._inbox.queue), OUTCOME_UNKNOWN)
            with anyio.CancelScope(shield=True):
                # The closed inbox rejects calls that still arrive, so that their callers retry.
                await anyio.sleep(LAST_WORDS_S)
            raise

    # First step: deciding

    async def _decide_calls(self) -> None:
        inbox = self._inbox
        while True:
            if self._maintenance.is_due:
                await self._drain()
                await self._maintenance.run()
            elif inbox.settle_waiters:
                await self._settle()
            elif inbox.queue and (self._forming.parts >= MAX_PARTS or len(self._forming.items) >= self._batch_calls):
                await self._progress.take()
            elif inbox.queue:
                await self._decide_batch()
            elif inbox.closing:
                break
            else:
                await inbox.work.take()
        await self._settle()
        await self._maintenance.run(everything=True)

    async def _decide_batch(self) -> None:
        """Decide the calls up to the next exclusive one, and commit them here if that is fast."""
        queue = self._inbox.queue
        if len(queue) < self._last_size:
            # Callers that were answered together often call again together. Let the loop collect their calls for one
            # commit.
            await asyncio.sleep(0)
        self._last_size = len(queue)
        exclusive = is_exclusive(queue[0])
        if exclusive:
            await self._drain()
            self._inbox.yield_to_others()
            exclusive = is_exclusive(queue[0])
        items = self._deciding = [queue.popleft()]
        if queue and not exclusive:
            self._inbox.take_more(items, self._batch_calls - len(self._forming.items))
        unprepared = self._transactor.prepare(items)
        if unprepared:
            await self._transactor.load(unprepared)
        forming = self._forming
        for index, item in enumerate(items):
            if not self._admit(item, forming, exclusive):
                queue.extendleft(reversed(items[index:]))
                break
            if type(item) is Read and self._transactor.answer(item, forming) and item.outcome is not None:
                item.answer(item.outcome)
                item.caller.flush()
                continue
            steps = self._transactor.decide(item, forming)
            if exclusive:
                await in_slices(steps)  # no other call is decided or committed during the pauses
            else:
                for _ in steps:
                    pass
            forming.items.append(item)
        self._deciding = []
        if forming.items:
            if not self._committing and self._is_quick(forming):
                self._committing = True
                batch, self._forming = forming, Transaction(forming.head)
                self._publish(await self._commit(batch))
                self._committing = False
            else:
                self._formed.give()
        if exclusive:
            await self._drain()

    def _admit(self, item: Item, forming: Transaction, exclusive: bool) -> bool:
        """Return True if a call fits into the transaction, and count its parts.

        Set `is_long` on a call with too many parts for any shared transaction.
        """
        if forming.parts >= MAX_PARTS:
            return False
        if type(item) is Barrier or (loaded := item.loaded) is None:
            return True
        if loaded.is_dropped:
            return False  # an append failed after the conversation was prepared
        if type(item) is Arrival:
            parts = sum(len(step.events) for step in item.steps)
        elif type(item) is Write and loaded.lane is None and (count := PARTS.get(type(item.params))) is not None:
            parts = count(item.params, loaded.state)
        else:
            return True
        if parts > MAX_PARTS and not exclusive:
            item.is_long = True
            return False
        forming.parts += parts
        return True

    async def _settle(self) -> None:
        """Wake the tasks that wait until no state is ahead of the log."""
        await self._drain()
        waiters, self._inbox.settle_waiters = self._inbox.settle_waiters, []
        for done in waiters:
            if not done.done():
                done.set_result(None)
        await asyncio.sleep(0)

    async def _drain(self) -> None:
        """Wait until all decided calls are published."""
        while self._forming.items or self._committing:
            await self._progress.take()

    # Second step: committing

    async def _commit_formed(self) -> None:
        while True:
            await self._formed.take()
            if not self._forming.items:
                continue
            self._committing, durable = True, None
            while self._forming.items:
                if self._is_quick(self._forming):
                    self._publish(durable)
                    durable = None
                batch, self._forming = self._forming, Transaction(self._forming.head)
                self._progress.give()
                # A commit can't be cancelled halfway: its outcome would be unknown.
                with anyio.CancelScope(shield=True):
                    durable = await self._commit(batch, durable)
            self._publish(durable)
            self._committing = False
            self._progress.give()

    def _is_quick(self, batch: Transaction) -> bool:
        """Return True if the commit would not block the event loop noticeably."""
        return not batch.entries or (self._log.quick and not batch.deleted)

    async def _commit(self, batch: Transaction, before: Transaction | None = None) -> Transaction | None:
        """Make a transaction durable, and publish the previous one while the disk works.

        Returns:
            The transaction, for publication. None if nothing was written and everything decided has been rolled back.
        """
        try:
            if batch.entries:
                started = perf_counter_ns()
                if before is not None or batch.deleted or not self._log.append_now(batch.entries):
                    appending = asyncio.ensure_future(self._log.append(batch.entries))
                    await asyncio.sleep(0)  # start the append before publishing
                    self._publish(before)
                    await appending
                self._metrics.record_commit(perf_counter_ns() - started, len(batch.entries))
                for name in batch.deleted:
                    await self._maintenance.erase(name)
        except (StorageFull, Damaged) as error:
            self._roll_back(batch, error)
            return None
        except StorageFailed:
            self._refuse(batch.items, OUTCOME_UNKNOWN)
            raise
        return batch

    def _roll_back(self, batch: Transaction, error: StorageFull | Damaged) -> None:
        """Drop a transaction that was not written, and everything decided after it."""
        is_full = isinstance(error, StorageFull)
        self._metrics.error("storage_full" if is_full else f"nothing is written: {error}")
        later, self._forming = self._forming, Transaction(self._log.head)
        for name in (*batch.touched, *later.touched):
            self._conversations.drop(name)
        items = [*batch.items, *later.items]
        changes = [item for item in items if type(item) in (Write, Arrival)]
        self._refuse(changes, STORAGE_FULL if is_full else damage_of(error))
        self._inbox.queue.extendleft(reversed([item for item in items if type(item) in (Read, Barrier)]))
        self._inbox.work.give()
        self._subscriptions.catch_up_stale()

    # After the commit

    def _publish(self, batch: Transaction | None) -> None:
        """Make a durable transaction visible: send responses first, then pushes."""
        if batch is None:
            return
        for loaded in batch.touched.values():
            loaded.dirty -= 1
        for name in batch.deleted:
            self._history.forget(name)
        self._access.follow(batch.deleted, batch.sessions, batch.touched.values())
        claimed = self._answer(batch.items)
        if len(self._claims.waiting):
            # New tasks may satisfy waiting claims, and a cancelled claim makes room for the next one.
            self._claims.wake([*[loaded.state for loaded in batch.touched.values()], *claimed])
        if batch.published:
            self._maintenance.follow(batch.touched.values())
            self._subscriptions.publish(batch.published, batch.head, batch.deleted)

    def _answer(self, items: Iterable[Item]) -> list[State]:
        """Answer decided calls, and dispatch the others. Return the states in which tasks were claimed."""
        callers: dict[Caller, None] = {}
        claimed: list[State] = []
        for item in items:
            if type(item.params) is TaskClaim and type(item) is Write:
                self._claims.on_published(item)
                if item.loaded is not None:
                    claimed.append(item.loaded.state)
            if type(item) is Barrier:
                item.reached()
            elif type(item) is Arrival:
                claimed += self._answer_arrival(item, callers)
            elif (outcome := item.outcome) is not None:
                item.answer(outcome)
                callers[item.caller] = None
            else:
                self._dispatch(item)
        for caller in callers:
            caller.flush()
        return claimed

    def _dispatch(self, item: Write | Read) -> None:
        """Pass on a call that the writer doesn't answer itself. The call's stage determines where."""
        if type(item) is Read:
            if item.lane is None:
                item.later()
            else:
                item.lane.take(item)
        elif item.stage is Stage.POSTING and item.loaded is not None and item.loaded.lane is not None:
            item.loaded.lane.take(item)
        elif item.stage is Stage.REPLAYING:
            self._spawn(self._replay(item))
        elif item.stage is Stage.READING_PAST:
            self._spawn(self._read_past(item))

    def _answer_arrival(self, arrival: Arrival, callers: dict[Caller, None]) -> list[State]:
        """Answer the calls in a post, and return the states in which they claimed tasks."""
        claimed: list[State] = []
        for step in () if arrival.refusal is not None else arrival.steps:
            write = step.write
            if write is None:
                continue
            if type(write.params) is TaskClaim:
                self._claims.on_published(write)
                if arrival.loaded is not None:
                    claimed.append(arrival.loaded.state)
            if write.outcome is not None and write.stage is Stage.DECIDED:
                write.answer(write.outcome)
                callers[write.caller] = None
        arrival.arrived(arrival.refusal)
        return claimed

    # Background tasks

    async def _read_past(self, item: Write) -> None:
        """Compute an undo, then queue it. If its list has changed by its turn, the undo is computed again."""
        try:
            await self._undos.read_past(item)
        except StorageFailed:  # a write failed, and the daemon is stopping
            self._refuse((item,), OUTCOME_UNKNOWN)
        else:
            item.to(Stage.QUEUED)
            self._inbox.submit(item)

    async def _replay(self, item: Write) -> None:
        """Resend the original response for an idempotency key, rebuilt from the log."""
        try:
            async with item.caller.turn():
                outcome = await self._replays.rebuild(item)
        except StorageFailed:  # a write failed, and the daemon is stopping
            outcome = OUTCOME_UNKNOWN
        if outcome is None:
            item.key_is_new = True
            item.to(Stage.QUEUED)
            self._inbox.submit(item)
            return
        if type(item.params) is TaskClaim and type(outcome) is bytes and item.loaded is not None:
            loaded = await self._conversations.load(item.loaded.state.conversation)
            self._claims.observe_repeat(item, loaded.state, outcome)
        item.answer(outcome)
        item.caller.flush()

    def _refuse(self, items: Iterable[Item], rejection: Rejection) -> None:
        for item in items:
            if type(item) is Write:
                self._claims.forget(item)
            item.refuse(rejection)
