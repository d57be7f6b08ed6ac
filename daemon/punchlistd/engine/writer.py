"""The single writer: takes what waits, decides it, appends it once, and only then publishes, answers and pushes.

It owns the order of everything. While a batch is being committed its conversations run ahead of the log and are marked
dirty; reads of them wait for the next batch. A refused append drops them, so what was decided on them is gone too, and
every call of the batch gets the error, also the rejected ones, since their refusal may rest on what never came to be.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from time import perf_counter_ns
from typing import Any

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured
from punchlist_schemas.params import ConversationDelete, ListUndo
from punchlistd.engine.calls import Caller, Item, Read, Write
from punchlistd.engine.decider import Batch, Decider
from punchlistd.engine.fanout import Fanout
from punchlistd.engine.meters import Meters
from punchlistd.engine.registry import Registry
from punchlistd.engine.repeats import rebuild
from punchlistd.engine.totals import Totals
from punchlistd.engine.upkeep import Upkeep
from punchlistd.settings import Settings
from punchlistd.store.port import EventLog, StorageFailed, StorageFull

SHUTTING_DOWN = Rejection("shutting_down", "The daemon is stopping. Reconnect and retry with the same key.")
STORAGE_FULL = Rejection(
    "storage_full", "The disk is full: nothing was written, reads go on. Free some space, then retry with the same key."
)
OUTCOME_UNKNOWN = Rejection(
    "outcome_unknown",
    "The disk failed during the write, and the daemon stops. Retry with the same key once it is back: it is done once.",
)
ALONE = (ListUndo, ConversationDelete)
"""Calls that begin a batch, because they look at the log and not only at the state."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Writer:
    """Decides and commits mutations, one batch at a time.

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
        self._fanout = fanout
        self._totals = totals
        self._settings = settings
        self._spawn = spawn
        self._decider = Decider(log, registry, settings.confirm_s)
        self.meters = Meters()
        self.upkeep = Upkeep(log, registry, totals, meters=self.meters, settings=settings, nudge=self._nudge)
        self._queue: deque[Item] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._after: list[Callable[[], object]] = []
        self._closing = False

    # the door in

    def submit(self, item: Item) -> None:
        """Queue a call; its caller is answered after the commit, or at once if the daemon is stopping."""
        if self._closing:
            self._refuse((item,), SHUTTING_DOWN)
            return
        self._queue.append(item)
        self._nudge()

    def close(self) -> None:
        """Take no more calls; `run` returns when those taken are answered."""
        self._closing = True
        self._nudge()

    def _nudge(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # the loop

    async def run(self) -> None:
        """Work until closed.

        Raises:
            StorageFailed: a write's outcome is unknown; every waiting call was told so, and the daemon must stop.
        """
        try:
            while True:
                if self._queue:
                    await self._commit(self._take())
                elif self._closing:
                    break
                elif not self.upkeep.due:
                    self._wake = asyncio.get_running_loop().create_future()
                    await self._wake
                if self.upkeep.due:
                    await self.upkeep.run()
            await self.upkeep.run(everything=True)
        except StorageFailed:
            self._closing = True
            self._refuse(self._queue, OUTCOME_UNKNOWN)
            raise

    def _take(self) -> list[Item]:
        queue, items = self._queue, list[Item]()
        while queue and len(items) < self._settings.batch_calls:
            if items and type(queue[0].params) in ALONE:
                break
            items.append(queue.popleft())
        return items

    async def _commit(self, items: list[Item]) -> None:
        try:
            items = await self._decider.prepare(items)
            batch = Batch(items)
            for item in items:
                self._decider.decide(item, batch)
                if not batch.entries and isinstance(item, Read) and item.outcome is not None:
                    # Nothing undurable is before it, so it need not wait for the commit.
                    item.answer(item.outcome)
                    item.caller.flush()
                    item.outcome = None
            if batch.entries:
                started = perf_counter_ns()
                await self._log.append(batch.entries)
                self.meters.commit(perf_counter_ns() - started, len(batch.entries))
                for name, opened in batch.touched.items():
                    if type(items[0].params) is ConversationDelete and not opened.state.exists:
                        await self._log.erase(name)
        except StorageFull:
            self.meters.error("storage_full")
            self._drop(items)
            self._refuse([item for item in items if isinstance(item, Write)], STORAGE_FULL)
            self._queue.extendleft(reversed([item for item in items if isinstance(item, Read)]))
            self._settled()
        except StorageFailed as failure:
            self.meters.error(f"outcome_unknown: {failure}")
            self._refuse(items, OUTCOME_UNKNOWN)
            raise
        else:
            self._publish(batch)

    # after the commit

    def _publish(self, batch: Batch) -> None:
        for opened in batch.touched.values():
            opened.dirty = False
        self._note_sessions(batch.sessions)
        callers: dict[int, Caller] = {}
        for item in batch.items:
            if item.outcome is not None:
                item.answer(item.outcome)
                callers[id(item.caller)] = item.caller
            elif isinstance(item, Write):
                self._spawn(self._answer_repeat(item))
            elif item.run is not None:
                item.run()
        for caller in callers.values():
            caller.flush()
        self._settled()
        if batch.lines:
            self._totals.follow(batch.touched.values())
            self._fanout.publish(batch.lines, self._log.head)
            self.upkeep.plan()

    def _settled(self) -> None:
        waiting, self._after = self._after, []
        for callback in waiting:
            callback()

    def _note_sessions(self, changes: Iterable[tuple[str, ConversationConfigured]]) -> None:
        aliases = self._registry.aliases
        for name, event in changes:
            if isinstance(event.attached, str):
                aliases[event.attached] = name
                self._registry.drop(event.attached)
            if isinstance(event.detached, str) and aliases.get(event.detached) == name:
                del aliases[event.detached]

    async def _answer_repeat(self, item: Write) -> None:
        """Give a key's first answer again, rebuilt from the log."""
        found = await rebuild(self._log, self._registry, item)
        if found is None:
            item.repeat, item.fresh = False, True
            self.submit(item)
        else:
            item.answer(found)
            item.caller.flush()

    def _drop(self, items: list[Item]) -> None:
        for item in items:
            name: Any = item.params.conversation
            opened = self._registry.find(name)
            if opened is not None:
                self._registry.drop(opened.state.conversation)

    def _refuse(self, items: Iterable[Item], rejection: Rejection) -> None:
        for item in items:
            item.answer(rejection)
            item.caller.flush()

    async def settled(self) -> None:
        """Wait for the commit that runs now to be published or refused."""
        done = asyncio.get_running_loop().create_future()
        self._after.append(lambda: done.done() or done.set_result(None))
        await done
