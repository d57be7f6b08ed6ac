"""The past of a conversation, read and folded in slices, so that no history holds up the calls of others.

All who work on histories take turns: in one turn of the event loop there is at most one slice, whoever's it is. A page
is read in such a turn as well, because commits wait for the database's thread.
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
"""A slice ends with the event that makes it larger than this."""

PAGE_EVENTS = 512
PAGE_BYTES = 128 << 10
"""What is read from the log at once, unless one call made more."""

DEPTH = 4_096
"""An undo looks at so many calls more than are asked for, since those that left nothing to undo are passed over."""

DEEPER = 16
"""How many times as far it looks back when that was not enough."""

SNAPSHOT_BYTES = 1 << 20
"""A snapshot up to this size is decoded in one slice; a larger one is passed over for the events."""

BASE_EVENTS = 1_024
"""An undo that has to look back over more events than these keeps the state before the last of them for the next."""

BASE_TASKS = 2_000
"""Of a longer list no such state is kept."""

AT_ONCE = 4
"""So many states of the past are worked out beside each other, however many ask: each is as large as its list."""

PASTS_KEPT = 2
"""Of so many conversations the historical state that was shown last is kept."""


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
    """Queries what happened in a conversation.

    Args:
        log: where it is kept.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._turn = asyncio.Lock()
        self._pasts: dict[str, Past] = {}
        self._bases: dict[str, tuple[bytes, int]] = {}
        self._erasures = 0
        self._room = asyncio.Semaphore(AT_ONCE)
        self._asked: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def room(self, name: str) -> AsyncGenerator[None]:
        """Wait for room for another past state, and until no other of this conversation is being computed.

        Whoever asks for the same past again then finds it worked out.
        """
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = asyncio.Lock()
        async with asked, self._room:
            yield

    # slices

    async def each(self, events: Iterable[Stored], take: Callable[[Stored], bool]) -> bool:
        """Pass each event to `take`, in slices, until it returns False. Return True if it never did.

        What fits into one slice is taken at once.
        """
        source = iter(events)
        part, following = _slice(source), _slice(source)
        if not following:
            return all(map(take, part))
        while part:
            async with self._turn:
                if not all(map(take, part)):
                    return False
                await asyncio.sleep(0)  # before the next one has its turn
            part, following = following, _slice(source)
        return True

    async def steps(self, steps: Iterable[T]) -> T | None:
        """Go through the steps of some work, in slices that have their turn as those of all readers."""
        return await in_slices(steps, self._turn)

    async def follow(
        self, name: str, take: Callable[[Stored], bool], after: int, upto: int, *, whole: bool = True
    ) -> None:
        """Give the events of a conversation behind one position and up to another to `take`, until that returns False.

        `upto` is the position of an event of it; not `whole`: that may not be in the log yet.

        Raises:
            Damaged: One of them can't be had.
        """
        while after < upto:
            async with self._turn:
                page = await self._log.read(after, PAGE_EVENTS, conversation=name, max_bytes=PAGE_BYTES)
            page = [stored for stored in page if stored.seq <= upto]
            if not page and whole:
                raise Damaged(name, upto, f"the events behind {after} are missing")
            if not page or not await self.each(page, take):
                return
            after = page[-1].seq
            await asyncio.sleep(0)

    # the state as it was

    async def at(self, name: str, version: int, upto: int, show: Callable[[State, int], T]) -> T:
        """What `show` makes of the state as of a version and of the position of its last event.

        It starts from the nearest earlier state that is at hand: the one that was shown last, or the stored snapshot.

        Args:
            name: the conversation's own id.
            version: the version.
            upto: the position of the conversation's last event.
            show: called once, with a state that is not its to keep.
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
            shown = show(state, past.seq)
            if erasures == self._erasures:
                self._pasts[name] = past
                if len(self._pasts) > PASTS_KEPT:
                    del self._pasts[next(iter(self._pasts))]
            return shown

    async def _nearest(self, name: str, version: int) -> Past:
        try:
            saved = await self._log.load(name)
        except Damaged:  # what is wanted may lie before the damage
            return Past(initial_state(name), 0)
        if saved.state is None or saved.version > version or len(saved.state) > SNAPSHOT_BYTES:
            return Past(initial_state(name), 0)
        return Past(load_state(name, saved.state), saved.seq)

    @property
    def kept(self) -> list[str]:
        """Return the conversations of which a past state is cached."""
        return list(self._pasts)

    def forget(self, name: str) -> None:
        """Drop the cached past of a conversation that was erased or is no longer in use."""
        self._erasures += 1
        self._pasts.pop(name, None)
        self._bases.pop(name, None)

    # what an undo takes back

    async def begin(self, name: str, params: ListUndo, depth: int | None) -> Lookback:
        """What an undo looks back on; with depth 0 only at what came behind a state that is at hand."""
        meant = build_aim(params)
        latest = MAX_INTEGER if meant.latest_start is None else meant.latest_start
        if depth == 0:
            if (base := self._bases.get(name)) is not None:
                state = load_state(name, base[0])
                if state.version <= latest:
                    return Lookback(name, meant, depth_of(params), state, base[1])
            past = await self._nearest(name, latest)
            if past.seq:
                return Lookback(name, meant, depth_of(params), past.state, past.seq)
        return Lookback(name, meant, depth or depth_of(params))

    async def read_past(self, past: Lookback, upto: int, *, before: int = MAX_INTEGER, whole: bool = True) -> None:
        """Take in what happened up to a position (see `follow`) and before another.

        Raises:
            Damaged: An event can't be had.
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
            begins = side.left == 0
            return True

        await self.follow(name, take, past.seq, upto, whole=whole)

    async def taken_back(self, name: str, params: ListUndo, at: int, group: Sequence[Stored]) -> Decision:
        """What the undo took back that made these events."""
        depth = depth_of(params)  # the snapshot may have come behind that
        while True:
            past = await self.begin(name, params, depth)
            await self.read_past(past, group[-1].seq, before=group[0].seq)
            decision = await self.steps(undo_calls(past, params, at))
            if isinstance(decision, Decision):
                return decision
            if isinstance(decision, Rejection):  # it was granted once, and the same history says the same again
                raise Damaged(name, group[0].seq, "what it took back can't be worked out any more")
            depth = deeper(params, depth)


def depth_of(params: ListUndo) -> int | None:
    """Return how many calls an undo reads first; None means all."""
    count = call_limit(params)
    return None if count is None else count + DEPTH


def deeper(params: ListUndo, depth: int | None) -> int | None:
    """Return how many calls it reads if those were not enough."""
    return depth * DEEPER if depth else depth_of(params)


def _slice(events: Iterator[Stored]) -> list[Stored]:
    part: list[Stored] = []
    size = 0
    for stored in events:
        part.append(stored)
        size += len(stored.line)
        if len(part) >= SLICE_EVENTS or size >= SLICE_BYTES:
            break
    return part
