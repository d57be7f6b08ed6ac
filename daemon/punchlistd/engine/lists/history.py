"""Past states of a conversation, read and replayed in slices so that other calls run in between.

All work on histories shares one lock, so an iteration of the event loop runs at most one slice. Reading a page also
takes the lock, because commits wait for the same database thread.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Recorded, decode_event
from punchlist_schemas.params import ListUndo
from punchlist_schemas.things import MAX_INTEGER
from punchlistd.domain.commands import Decision, Fact
from punchlistd.domain.decide.undo import call_limit, undo_calls
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.state.snapshot import dump_state, load_state
from punchlistd.domain.undo.lookback import Lookback, build_aim
from punchlistd.slices import SLICE_EVENTS, T, in_slices
from punchlistd.store.port import Damaged, EventLog, Stored, side_of

SLICE_BYTES = 32 << 10
"""Size limit for a slice, in bytes. The event that exceeds it is the last of its slice."""

PAGE_EVENTS = 512
PAGE_BYTES = 128 << 10
"""Limits for one read of the log. A larger group of events is still read as a whole."""

EXTRA_CALLS = 4_096
"""Number of calls that an undo reads in addition to the requested ones, because calls without effect are skipped."""

DEPTH_FACTOR = 16
"""Factor by which an undo increases its lookback if it was too short."""

SNAPSHOT_BYTES = 1 << 20
"""Maximum size of a snapshot to start from, in bytes. It is decoded in one slice. Above it, all events are replayed."""

BASE_EVENTS = 1_024
"""An undo that reads more events than this caches the state before the last `BASE_EVENTS` of them for the next undo."""

BASE_TASKS = 2_000
"""Maximum number of tasks in a state that an undo caches."""

MAX_PASTS = 4
"""Maximum number of past states computed at the same time. Each is as large as its list."""

PASTS_KEPT = 2
"""Maximum number of conversations with a cached past state."""


_recorded = msgspec.json.Decoder(Recorded)


def fact_of(stored: Stored) -> Fact:
    recorded = _recorded.decode(stored.wire)
    return Fact(recorded.seq, recorded.version, recorded.at, recorded.actor, decode_event(recorded.event))


class Past:
    """A conversation as of an earlier version; `seq` is the position of its last event."""

    __slots__ = ("seq", "state")

    def __init__(self, state: State, seq: int) -> None:
        self.state = state
        self.seq = seq


class History:
    """Reads the history of conversations."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._turn = asyncio.Lock()
        self._pasts: dict[str, Past] = {}
        self._bases: dict[str, tuple[bytes, int]] = {}
        self._erasures = 0
        self._room = asyncio.Semaphore(MAX_PASTS)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def room(self, name: str) -> AsyncGenerator[None]:
        """Wait until fewer than `MAX_PASTS` past states are being computed, and none of this conversation.

        A second request for the same state can thus find it in the cache.
        """
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        async with lock, self._room:
            yield

    # slices

    async def each(self, events: Iterable[Stored], take: Callable[[Stored], bool]) -> bool:
        """Pass each event to `take`, in slices, until `take` returns False. Return True if it never does.

        Events that fit into one slice are passed without a pause.
        """
        source = iter(events)
        part, following = _slice(source), _slice(source)
        if not following:
            return all(map(take, part))
        while part:
            async with self._turn:
                if not all(map(take, part)):
                    return False
                # Keep the lock, so that each iteration of the event loop runs one slice.
                await asyncio.sleep(0)
            part, following = following, _slice(source)
        return True

    async def steps(self, steps: Iterable[T]) -> T | None:
        """Run all steps in slices under the shared lock, and return the last one."""
        return await in_slices(steps, self._turn)

    async def follow(
        self, name: str, take: Callable[[Stored], bool], after: int, upto: int, *, whole: bool = True
    ) -> None:
        """Call `take` with each of a conversation's events after `after`, up to `upto`, until it returns False.

        Args:
            upto: The position of one of the conversation's events.
            whole: Whether the event at `upto` must already be in the log.

        Raises:
            Damaged: An event can't be read.
        """
        while after < upto:
            async with self._turn:
                page = await self._log.read(after, PAGE_EVENTS, conversation=name, max_bytes=PAGE_BYTES)
            page = [stored for stored in page if stored.seq <= upto]
            if not page and whole:
                raise Damaged(name, upto, f"the events after {after} are missing")
            if not page or not await self.each(page, take):
                return
            after = page[-1].seq
            await asyncio.sleep(0)

    # past states

    async def at(self, name: str, version: int, upto: int, show: Callable[[State, int], T]) -> T:
        """Return the result of `show` for the state at a version.

        Replay starts from the nearest earlier state, which is the cached one or the stored snapshot.

        Args:
            name: The conversation's own id.
            version: The version of the requested state.
            upto: The position of the conversation's last event.
            show: Called once with the state and the position of its last event. It must not keep the state.
        """
        async with self.room(name):
            erasures = self._erasures
            past = self._pasts.pop(name, None)
            if past is None or past.state.version > version:
                past = await self._nearest(name, version)
            state, reached = past.state, past

            def take(stored: Stored) -> bool:
                fact = fact_of(stored)
                if fact.version <= version:
                    evolve(state, fact.event, fact.seq, fact.version, fact.at)
                    reached.seq = fact.seq
                return fact.version < version

            if state.version < version:
                await self.follow(name, take, past.seq, upto)
            result = show(state, past.seq)
            if erasures == self._erasures:
                self._pasts[name] = past
                if len(self._pasts) > PASTS_KEPT:
                    del self._pasts[next(iter(self._pasts))]
            return result

    async def _nearest(self, name: str, version: int) -> Past:
        try:
            saved = await self._log.load(name)
        except Damaged:
            # The requested version may be older than the damage.
            return Past(initial_state(name), 0)
        if saved.state is None or saved.version > version or len(saved.state) > SNAPSHOT_BYTES:
            return Past(initial_state(name), 0)
        return Past(load_state(name, saved.state), saved.seq)

    @property
    def kept(self) -> list[str]:
        """Return the conversations with a cached past state."""
        return list(self._pasts)

    def forget(self, name: str) -> None:
        """Drop the cached past states of a conversation that was erased or is no longer in use."""
        self._erasures += 1
        self._pasts.pop(name, None)
        self._bases.pop(name, None)

    # lookbacks of undos

    async def begin_lookback(self, name: str, params: ListUndo, depth: int | None) -> Lookback:
        """Return the lookback of an undo, with no events read yet.

        With depth 0 it starts at a cached or stored state.
        """
        target = build_aim(params)
        latest = MAX_INTEGER if target.latest_start is None else target.latest_start
        if depth == 0:
            if (base := self._bases.get(name)) is not None:
                state = load_state(name, base[0])
                if state.version <= latest:
                    return Lookback(name, target, depth_of(params), state, base[1])
            past = await self._nearest(name, latest)
            if past.seq:
                return Lookback(name, target, depth_of(params), past.state, past.seq)
        return Lookback(name, target, depth or depth_of(params))

    async def read_past(self, past: Lookback, upto: int, *, before: int = MAX_INTEGER, whole: bool = True) -> None:
        """Extend a lookback by the events up to position `upto` (see `follow`) and before position `before`.

        Raises:
            Damaged: An event can't be read.
        """
        begins, name, erasures = True, past.state.conversation, self._erasures
        remember = upto > past.seq + BASE_EVENTS

        def take(stored: Stored) -> bool:
            nonlocal begins, remember
            if stored.seq >= before:
                return False
            side = side_of(stored)
            if remember and begins and past.seq + BASE_EVENTS >= upto:
                remember = False
                if len(past.state.tasks) <= BASE_TASKS and erasures == self._erasures:
                    self._bases[name] = dump_state(past.state), past.seq
                    if len(self._bases) > PASTS_KEPT:
                        del self._bases[next(iter(self._bases))]
            past.follow(fact_of(stored), begins=begins, undoes=side.undoes)
            begins = side.remaining == 0
            return True

        await self.follow(name, take, past.seq, upto, whole=whole)

    async def rebuild_undo(self, name: str, params: ListUndo, at: int, group: Sequence[Stored]) -> Decision:
        """Return the decision of the undo that produced these events."""
        depth = depth_of(params)  # not 0, because the snapshot may be newer than the undo
        while True:
            past = await self.begin_lookback(name, params, depth)
            await self.read_past(past, group[-1].seq, before=group[0].seq)
            decision = await self.steps(undo_calls(past, params, at))
            if isinstance(decision, Decision):
                return decision
            if isinstance(decision, Rejection):
                # Undo is deterministic, and this one was accepted on this history. So the history must have changed.
                raise Damaged(name, group[0].seq, "what it undid is no longer known")
            depth = deepen(params, depth)


def depth_of(params: ListUndo) -> int | None:
    """Return how many calls an undo reads first; None means all."""
    count = call_limit(params)
    return None if count is None else count + EXTRA_CALLS


def deepen(params: ListUndo, depth: int | None) -> int | None:
    """Return how many calls an undo reads if `depth` calls were not enough."""
    return depth * DEPTH_FACTOR if depth else depth_of(params)


def _slice(events: Iterator[Stored]) -> list[Stored]:
    part: list[Stored] = []
    size = 0
    for stored in events:
        part.append(stored)
        size += len(stored.line)
        if len(part) >= SLICE_EVENTS or size >= SLICE_BYTES:
            break
    return part
