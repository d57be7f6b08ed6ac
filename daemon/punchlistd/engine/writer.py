"""The single writer: takes what waits, decides it, appends it once, and only then publishes, answers and pushes.

It owns the order of everything. While a batch is being committed its conversations run ahead of the log and are marked
dirty; reads of them wait in `after_commit`. A refused append drops them, so what was decided on them is gone too, and
every call of the batch gets the error, also the rejected ones, since their refusal may rest on what never came to be.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from time import perf_counter_ns
from typing import Any

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AnyEvent, ConversationConfigured
from punchlist_schemas.params import ConversationAttach, ConversationDelete, ConversationDetach, ListUndo
from punchlistd.domain.commands import Decision
from punchlistd.domain.decide import decide
from punchlistd.domain.evolve import evolve
from punchlistd.domain.outcome import outcome
from punchlistd.engine.calls import Caller, Item, Quiet, Read, Write, key_conflict
from punchlistd.engine.confirm import Confirmer
from punchlistd.engine.facts import groups_of
from punchlistd.engine.fanout import Fanout, Line
from punchlistd.engine.meters import Meters
from punchlistd.engine.reads import read_state
from punchlistd.engine.registry import Open, Registry, due_snapshots, saved
from punchlistd.engine.repeats import rebuild
from punchlistd.engine.scope import out_of_scope
from punchlistd.engine.totals import Totals
from punchlistd.settings import Settings
from punchlistd.store.port import EventLog, Sealed, Side, StorageFailed, StorageFull
from punchlistd.store.record import key_hash, seal

logger = logging.getLogger(__name__)

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


class _Wire(msgspec.Struct, frozen=True, gc=False):
    """An event in its place, as it is stored and pushed."""

    seq: int
    conversation: str
    version: int
    at: int
    actor: str
    event: AnyEvent


class _Batch:
    """What one group commit is made of."""

    __slots__ = ("changes", "entries", "items", "lines", "touched")

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.entries: list[Sealed] = []
        self.lines: list[Line] = []
        self.touched: dict[str, Open] = {}
        self.changes: list[tuple[str, ConversationConfigured]] = []


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
        self._confirmer = Confirmer(settings.confirm_s)
        self._queue: deque[Item] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._after: list[Callable[[], object]] = []
        self._maintained: list[asyncio.Future[None]] = []
        self._recovered = False
        self._maintenance: asyncio.TimerHandle | None = None
        self._maintenance_due = False
        self._closing = False
        self.meters = Meters()

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
                elif not self._maintenance_due:
                    self._wake = asyncio.get_running_loop().create_future()
                    await self._wake
                if self._maintenance_due or self._log.unindexed >= self._settings.index_events:
                    await self.maintain()
            await self.maintain(everything=True)
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
            items = await self._prepare(items)
            batch = _Batch(items)
            for item in items:
                self._decide(item, batch)
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

    async def _prepare(self, items: list[Item]) -> list[Item]:
        """Load what the batch needs, so that deciding never waits."""
        registry, ready = self._registry, list[Item]()
        for item in items:
            params = item.params
            if isinstance(item, Read) and item.run is not None:
                ready.append(item)
                continue
            opened = registry.find(params.conversation) or await registry.load(params.conversation)
            if isinstance(item, Write):
                if item.params.key is not None and opened.keys is None:
                    opened.keys = set(await self._log.keys(opened.state.conversation))
                if type(params) is ListUndo:
                    history = await self._log.read(
                        0, 1 << 60, conversation=opened.state.conversation, max_bytes=1 << 60
                    )
                    item.command = msgspec.structs.replace(item.command, history=groups_of(history))
                elif type(params) is ConversationAttach:
                    ready.extend(await self._detach_first(item, params, opened))
            ready.append(item)
        return ready

    async def _detach_first(self, item: Write, params: ConversationAttach, target: Open) -> list[Item]:
        """A session attached elsewhere moves: its old conversation says so in its own log."""
        holder = await self._registry.load(params.session)
        name = holder.state.conversation
        if holder is target or params.session not in holder.state.sessions:
            return []
        detach = ConversationDetach(conversation=name, session=params.session)
        command = msgspec.structs.replace(item.command, params=detach)
        return [Write(Quiet(item.caller), None, item.method, detach, command)]

    # deciding

    def _decide(self, item: Item, batch: _Batch) -> None:
        if isinstance(item, Read) and item.run is not None:
            return
        opened = self._registry.find(item.params.conversation)
        assert opened is not None, "prepared"
        if isinstance(item, Read):
            head = self._log.head + len(batch.entries)
            item.outcome = read_state(item.method, item.params, opened, head, item.caller)
        elif not self._known(item, opened):
            refused = self._refusal(item, opened)
            decision = refused or decide(opened.state, item.command)
            if isinstance(decision, Rejection):
                item.outcome = decision
            else:
                self._record(item, decision, opened, batch)

    def _known(self, item: Write, opened: Open) -> bool:
        """Whether the item's key was used before; its outcome is set, or to be rebuilt from the log."""
        key = item.params.key
        if key is None:
            return False
        if (kept := opened.replies.get(key)) is not None:
            item.outcome = kept[1] if kept[0] == item.call else key_conflict(key)
            return True
        item.repeat = not item.fresh and opened.keys is not None and key_hash(key) in opened.keys
        return item.repeat

    def _refusal(self, item: Write, opened: Open) -> Rejection | None:
        if opened.damage is not None:
            return opened.damage
        if (refused := out_of_scope(item.caller, opened.state)) is not None:
            return refused
        if isinstance(item.params, ConversationAttach) and self._is_conversation(item.params.session):
            return Rejection(
                "invalid_params",
                f"{item.params.session} is a conversation itself: a session needs an id of its own.",
                {"field": "session"},
            )
        return self._confirmer.check(item.params, opened.state, item.caller.confirm, item.command.at)

    def _is_conversation(self, name: str) -> bool:
        found = self._registry.open.get(name)
        return found is not None and found.state.exists

    def _record(self, item: Write, decision: Decision, opened: Open, batch: _Batch) -> None:
        state, command, events = opened.state, item.command, decision.events
        seq, version = self._log.head + len(batch.entries), state.version
        side = Side(item.params.key or "", item.call, len(events) - 1, decision.undoes)
        for index, event in enumerate(events):
            seq += 1
            version += 1
            wire = _encode(_Wire(seq, state.conversation, version, command.at, command.actor, event))
            if index:
                side = Side(left=len(events) - 1 - index)
            line, opened.check = seal(opened.check, wire, side)
            batch.entries.append(Sealed(state.conversation, version, line, side.key))
            batch.lines.append(Line(state.conversation, wire, side.left))
            evolve(state, event, seq, version, command.at)
            if type(event) is ConversationConfigured:
                batch.changes.append((state.conversation, event))
        if events:
            opened.seq = seq
            opened.dirty = True
            batch.touched[state.conversation] = opened
        item.outcome = _encode(outcome(item.params, state, events, seq, decision.lines))
        if (key := item.params.key) is not None:
            opened.remember(key, item.call, item.outcome)
            if events and opened.keys is not None:
                opened.keys.add(key_hash(key))

    # after the commit

    def _publish(self, batch: _Batch) -> None:
        for opened in batch.touched.values():
            opened.dirty = False
        self._note_sessions(batch.changes)
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
            self._plan_maintenance()

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

    # work that follows behind the log

    def _plan_maintenance(self) -> None:
        if self._maintenance is None:
            loop = asyncio.get_running_loop()
            self._maintenance = loop.call_later(self._settings.index_delay_s, self._maintenance_time)

    def _maintenance_time(self) -> None:
        self._maintenance = None
        self._maintenance_due = True
        self._nudge()

    async def recover(self) -> None:
        """Index what a killed daemon left unindexed; then the totals of all conversations are known."""
        for name in self._log.unindexed_conversations():
            await self._registry.load(name)
        self._recovered = True
        self._maintenance_due = True
        self._nudge()

    async def settled(self) -> None:
        """Wait for the commit that runs now to be published or refused."""
        done = asyncio.get_running_loop().create_future()
        self._after.append(lambda: done.done() or done.set_result(None))
        await done

    async def refresh(self) -> None:
        """Bring the store's list of conversations up to date with everything acknowledged."""
        if self._registry.changed() or self._log.unindexed:
            done = asyncio.get_running_loop().create_future()
            self._maintained.append(done)
            self._maintenance_due = True
            self._nudge()
            await done

    async def maintain(self, everything: bool = False) -> None:
        """Index the log, save summaries and due snapshots (all of them if `everything`), let idle conversations go."""
        self._maintenance_due = False
        changed = self._registry.changed()
        snapshots = due_snapshots(changed, everything)
        try:
            await self._log.maintain(snapshots)
        except StorageFull:
            self.meters.error("storage_full while indexing")
        else:
            saved(changed, snapshots)
            if self._recovered and not self._totals.known:
                self._totals.start(await self._log.totals(), self._registry.open.values())
            self._registry.let_go(self._settings.keep_loaded_s)
        waiting, self._maintained = self._maintained, []
        for done in waiting:
            if not done.done():
                done.set_result(None)


_encode = msgspec.json.Encoder().encode
