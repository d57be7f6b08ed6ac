"""The single writer: decides what waits, appends it in batches, and only then publishes, answers and pushes.

It is a line of two steps. Deciding takes calls as they come and adds their events to the transaction that is forming,
while the one before it is being committed; as soon as that is durable the next one is sent on its way, and while the
disk has it the first is published. So processor and disk work at the same time, and everything that came during a
commit shares the next one. Where the log can commit at once, because the disk is quick, there is nothing to overlap,
and both steps are one.

States run ahead of the log: a conversation is dirty as long as a transaction that touches it is not published, and
nobody reads a dirty one except in turn. A refused append drops all that was decided since, and every call in it gets
the error, also the rejected ones, since their refusal may rest on what never came to be.
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
from punchlistd.engine.writing.inbox import Inbox, Signal, is_alone
from punchlistd.engine.writing.maintenance import Maintenance
from punchlistd.engine.writing.transaction import MOST_PARTS, PARTS, Transaction, Transactor
from punchlistd.engine.writing.undos import Undos
from punchlistd.metrics import Metrics
from punchlistd.slices import in_slices
from punchlistd.store.port import Damaged, EventLog, StorageFailed, StorageFull

LAST_WORDS_S = 0.1
"""How long a writer whose log failed still answers calls that were on their way, in seconds."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Writer:
    """Decides and commits mutations.

    Args:
        log: where events are kept.
        inbox: the calls that wait.
        transactor: decides them.
        conversations: the conversations in use.
        access: follows where names lead.
        claims: who has tasks, and who waits for them.
        undos: reads the history that undos take back.
        replays: rebuilds the first answers of keys.
        subscriptions: who is told.
        maintenance: the work behind the log.
        metrics: counts commits.
        history: keeps states of the past, which a deletion ends.
        batch_calls: at most so many calls share one group commit.
        spawn: runs a coroutine beside the writer for as long as the daemon lives.
    """

    def __init__(  # noqa: PLR0913 - what a commit concerns
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
        self._formed = Signal()  # something to commit
        self._moved = Signal()  # the forming transaction was taken, or everything decided is published
        self._deciding: list[Item] = []
        self._committing = False
        self._last_size = 0  # how many calls were taken together the last time

    def submit(self, item: Write) -> None:
        """Queue a call, an undo once its history was read; its caller is answered after the commit."""
        if type(item.params) is ListUndo and not self._inbox.closing:
            item.to(Stage.READING_PAST)
            self._spawn(self._read_past(item))
        else:
            self._inbox.submit(item)

    async def run(self) -> None:
        """Work until the inbox is closed and everything in it is answered.

        Raises:
            StorageFailed: in a group; a write's outcome is unknown. Every waiting call was told so, and the daemon must
                stop.
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
                await anyio.sleep(LAST_WORDS_S)  # what was sent meanwhile is read and told to come again
            raise

    # the first step: deciding

    async def _decide_calls(self) -> None:
        inbox = self._inbox
        while True:
            if self._maintenance.due:
                await self._drained()
                await self._maintenance.run()
            elif inbox.pausing:
                await self._pause()
            elif inbox.queue and (self._forming.parts >= MOST_PARTS or len(self._forming.items) >= self._batch_calls):
                await self._moved.take()
            elif inbox.queue:
                await self._decide_some()
            elif inbox.closing:
                break
            else:
                await inbox.work.take()
        await self._pause()
        await self._maintenance.run(everything=True)

    async def _decide_some(self) -> None:
        """Decide what waits, up to the next call that must be alone, and commit it if that is quick."""
        queue = self._inbox.queue
        if len(queue) < self._last_size:
            # Those who were answered together ask again together: one turn of the loop lets them share a flush.
            await asyncio.sleep(0)
        self._last_size = len(queue)
        alone = is_alone(queue[0])
        if alone:
            await self._drained()
            self._inbox.let_others_first()
            alone = is_alone(queue[0])
        items = self._deciding = [queue.popleft()]
        if queue and not alone:
            self._inbox.take_more(items, self._batch_calls - len(self._forming.items))
        late = self._transactor.prepare(items)
        if late:
            await self._transactor.load(late)
        forming = self._forming
        for index, item in enumerate(items):
            if not self._is_its_turn(item, forming, alone):
                queue.extendleft(reversed(items[index:]))
                break
            if type(item) is Read and self._transactor.answer(item, forming) and item.outcome is not None:
                item.answer(item.outcome)
                item.caller.flush()
                continue
            steps = self._transactor.decide(item, forming)
            if alone:
                await in_slices(steps)  # nothing else is decided or committed meanwhile
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
        if alone:
            await self._drained()

    def _is_its_turn(self, item: Item, forming: Transaction, alone: bool) -> bool:
        """Whether a call is decided now. Otherwise it and those behind it go back to the head of the queue."""
        if forming.parts >= MOST_PARTS:
            return False  # they have their turn behind all others
        if type(item) is Barrier or (loaded := item.loaded) is None:
            return True
        if loaded.dropped:
            return False  # an append was refused meanwhile
        if type(item) is Arrival:
            parts = sum(len(step.events) for step in item.steps)
        elif type(item) is Write and loaded.lane is None and (count := PARTS.get(type(item.params))) is not None:
            parts = count(item.params, loaded.state)
        else:
            return True
        if parts > MOST_PARTS and not alone:
            item.alone = True
            return False
        forming.parts += parts
        return True

    async def _pause(self) -> None:
        """Let those read who wait for a settled state."""
        await self._drained()
        pausing, self._inbox.pausing = self._inbox.pausing, []
        for done in pausing:
            if not done.done():
                done.set_result(None)
        await asyncio.sleep(0)

    async def _drained(self) -> None:
        """Wait until everything that was decided is published."""
        while self._forming.items or self._committing:
            await self._moved.take()

    # the second step: committing

    async def _commit_formed(self) -> None:
        while True:
            await self._formed.take()
            if not self._forming.items:
                continue
            self._committing, done = True, None
            while self._forming.items:
                if self._is_quick(self._forming):
                    self._publish(done)
                    done = None
                batch, self._forming = self._forming, Transaction(self._forming.head)
                self._moved.give()
                with anyio.CancelScope(shield=True):  # a commit that has begun is seen to its end, whoever stops this
                    done = await self._commit(batch, done)
            self._publish(done)
            self._committing = False
            self._moved.give()

    def _is_quick(self, batch: Transaction) -> bool:
        """Whether a commit would take next to no time, and hold up nobody."""
        return not batch.entries or (self._log.quick and not batch.deleted)

    async def _commit(self, batch: Transaction, before: Transaction | None = None) -> Transaction | None:
        """Make a transaction durable, and publish the one before it while the disk has it.

        Returns:
            The transaction, for publication; None if there was no room for it, and all that was decided is taken back.
        """
        try:
            if batch.entries:
                started = perf_counter_ns()
                if before is not None or batch.deleted or not self._log.append_now(batch.entries):
                    appending = asyncio.ensure_future(self._log.append(batch.entries))
                    await asyncio.sleep(0)  # it is on its way to the disk before the other one is published
                    self._publish(before)
                    await appending
                self._metrics.commit(perf_counter_ns() - started, len(batch.entries))
                for name in batch.deleted:
                    await self._maintenance.erase(name)
        except (StorageFull, Damaged) as refused:
            self._take_back(batch, refused)
            return None
        except StorageFailed:
            self._refuse(batch.items, OUTCOME_UNKNOWN)
            raise
        return batch

    def _take_back(self, batch: Transaction, refused: StorageFull | Damaged) -> None:
        """Nothing was written: forget the transaction and all that was decided on top of it."""
        full = isinstance(refused, StorageFull)
        self._metrics.error("storage_full" if full else f"nothing is written: {refused}")
        later, self._forming = self._forming, Transaction(self._log.head)
        for name in (*batch.touched, *later.touched):
            self._conversations.drop(name)
        items = [*batch.items, *later.items]
        taken = [item for item in items if type(item) in (Write, Arrival)]
        self._refuse(taken, STORAGE_FULL if full else damage_of(refused))
        self._inbox.queue.extendleft(reversed([item for item in items if type(item) in (Read, Barrier)]))
        self._inbox.work.give()
        self._subscriptions.catch_up_stale()

    # after the commit

    def _publish(self, batch: Transaction | None) -> None:
        """Make a durable transaction visible: answers first, then pushes."""
        if batch is None:
            return
        for loaded in batch.touched.values():
            loaded.dirty -= 1
        for name in batch.deleted:
            self._history.forget(name)
        self._access.follow(batch.deleted, batch.sessions, batch.touched.values())
        claimed = self._answer(batch.items)
        if len(self._claims.waiting):
            # What was published may be what somebody waits for; who gave up makes room for those behind.
            self._claims.ready([*[loaded.state for loaded in batch.touched.values()], *claimed])
        if batch.lines:
            self._maintenance.follow(batch.touched.values())
            self._subscriptions.publish(batch.lines, batch.head, batch.deleted)

    def _answer(self, items: Iterable[Item]) -> list[State]:
        """Answer what is decided, and let everything else go on; the states in which tasks were claimed."""
        callers: dict[Caller, None] = {}
        claimed: list[State] = []
        for item in items:
            if type(item.params) is TaskClaim and type(item) is Write:
                self._claims.published(item)
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
                self._go_on(item)
        for caller in callers:
            caller.flush()
        return claimed

    def _go_on(self, item: Write | Read) -> None:
        """Bring to where it is answered what the writer did not answer."""
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
        """Answer the calls that a post holds; the states in which they claimed tasks."""
        claimed: list[State] = []
        for step in () if arrival.refusal is not None else arrival.steps:
            write = step.write
            if write is None:
                continue
            if type(write.params) is TaskClaim:
                self._claims.published(write)
                if arrival.loaded is not None:
                    claimed.append(arrival.loaded.state)
            if write.outcome is not None and write.stage is Stage.DECIDED:
                write.answer(write.outcome)
                callers[write.caller] = None
        arrival.arrived(arrival.refusal)
        return claimed

    # beside the writer

    async def _read_past(self, item: Write) -> None:
        """Work out what an undo takes back, then queue it; in its turn it holds, or it comes here again."""
        try:
            await self._undos.read_past(item)
        except StorageFailed:  # by a write, which ends the daemon
            self._refuse((item,), OUTCOME_UNKNOWN)
        else:
            item.to(Stage.QUEUED)
            self._inbox.submit(item)

    async def _replay(self, item: Write) -> None:
        """Give a key's first answer again, rebuilt from the log."""
        try:
            async with item.caller.turn():
                found = await self._replays.rebuild(item)
        except StorageFailed:  # by a write, which ends the daemon
            found = OUTCOME_UNKNOWN
        if found is None:
            item.fresh = True
            item.to(Stage.QUEUED)
            self._inbox.submit(item)
            return
        if type(item.params) is TaskClaim and type(found) is bytes and item.loaded is not None:
            loaded = await self._conversations.load(item.loaded.state.conversation)
            self._claims.observe_repeat(item, loaded.state, found)
        item.answer(found)
        item.caller.flush()

    def _refuse(self, items: Iterable[Item], rejection: Rejection) -> None:
        for item in items:
            if type(item) is Write:
                self._claims.forget(item)
            item.refuse(rejection)
