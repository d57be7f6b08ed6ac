"""Which conversations are in use: loaded on first use, let go when idle, so that memory follows what is in use.

Here they have their ids alone; who may call them what is decided in `access`.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import anyio
import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import Damage
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.state.snapshot import load_state
from punchlistd.engine.lists.history import History
from punchlistd.engine.lists.loaded import Lane, Listings, LoadedConversation, Place, Present, Shown, nobody
from punchlistd.engine.lists.sessions import Sessions
from punchlistd.engine.lists.short_names import ShortNames
from punchlistd.store.port import Damaged, EventLog, Gap, side_of

T = TypeVar("T")

SNAPSHOT_EVENTS = 64
"""A snapshot is taken when at least this many events, and as many as there are tasks, came since the last."""

NEVER = -1
"""What was saved of a conversation of which nothing was."""


class Conversations:
    """The conversations in use, by id.

    Args:
        log: where they are kept.
        history: folds what is loaded, in slices.
        settled: waits until no state runs ahead of the log.
        loaded: those who follow the states in use are called with each one that was loaded.
        with_claims: adds to tasks what is known of their claims.
        present: returns the agents that are there.
    """

    def __init__(
        self,
        log: EventLog,
        history: History,
        settled: Callable[[], Awaitable[None]],
        *,
        loaded: Iterable[Callable[[State], None]] = (),
        with_claims: Shown | None = None,
        present: Present = nobody,
    ) -> None:
        self.loaded: dict[str, LoadedConversation] = {}
        self.lanes: dict[str, Lane] = {}
        """Of each list that machines share the way of its changes."""
        self.sessions = Sessions()
        self._log = log
        self._history = history
        self.settled = settled
        self._followers = tuple(loaded)
        self._with_claims = with_claims
        self._present = present
        self._listings = Listings()
        self.short_names = ShortNames()
        self._loading: dict[str, anyio.Event] = {}
        self._indexing = anyio.Lock()
        """Of one that changes what the index holds. Whoever has it waits for the log alone."""
        self._recovered = False

    def find(self, id: str) -> LoadedConversation | None:
        found = self.loaded.get(id)
        if found is not None:
            found.in_use = True
        return found

    async def load(self, id: str) -> LoadedConversation:
        """Find a conversation or load it. One that was never opened loads as an empty one."""
        while (found := self.find(id)) is None:
            running = self._loading.get(id)
            if running is not None:
                await running.wait()
                continue
            done = self._loading[id] = anyio.Event()
            try:
                self._add(id, await self._read(id))
            finally:
                del self._loading[id]
                done.set()
        return found

    async def durable(self, id: str) -> LoadedConversation:
        """A conversation whose state is in the log; there is no wait between this and what the caller does next."""
        while (loaded := await self.load(id)).dirty:
            await self.settled()
        return loaded

    async def recover(self) -> None:
        """Load, once, the conversations that a killed daemon left unindexed.

        Before that the index leaves out lists and shows deleted ones, and of what it does not hold only the events tell
        whose it is and which sessions are attached: whoever asks it waits for this.
        """
        if self._recovered:
            return
        async with self._indexing:
            if not self._recovered:
                await self._load_unindexed()
                self._recovered = True

    async def save(self, everything: bool) -> None:
        """Index the log, with a summary of each conversation that changed, or a full snapshot if that is due."""
        async with self._indexing:
            await self._load_unindexed()
            changed = self.changed()
            snapshots = [loaded.snapshot(is_snapshot_due(loaded, everything=everything)) for loaded in changed]
            await self._log.maintain(snapshots)
            for loaded, snapshot in zip(changed, snapshots, strict=True):
                loaded.summarised = snapshot.version
                if snapshot.state is not None:
                    loaded.saved_version = snapshot.version

    async def rebuilt(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Query the index; rebuild it from the log first if it can't be read.

        Raises:
            Damaged: It can't be read or built again, since the log can't be read either.
        """
        try:
            return await ask()
        except Damaged:
            async with self._indexing:
                self._recovered = False
                await self._log.rebuild()
                for loaded in self.loaded.values():
                    loaded.saved_version = loaded.summarised = NEVER
            await self.recover()
            return await ask()

    async def _load_unindexed(self) -> None:
        """Load what the index does not hold, so that nothing is indexed without its summary."""
        for name in list(self._log.unindexed_conversations()):
            if name not in self.loaded:
                self._add(name, await self._read(name))

    def follow(self, loaded: LoadedConversation) -> None:
        """Let those look at a conversation again who follow the states in use: what they asked for was not done."""
        for follow in self._followers:
            follow(loaded.state)

    def _add(self, name: str, loaded: LoadedConversation) -> None:
        if name not in self.loaded:
            self.loaded[name] = loaded
            loaded.with_claims = self._with_claims
            loaded.present = self._present
            loaded.listings = self._listings
            loaded.short_names = self.short_names
            self.follow(loaded)
        loaded = self.loaded[name]
        for session in loaded.state.sessions:
            self.sessions.note(session, loaded.state.user, name)

    async def _read(self, name: str) -> LoadedConversation:
        try:
            stored = await self._log.load(name)
        except Damaged as damaged:
            return await self._salvage(name, damaged)
        state = load_state(name, stored.state) if stored.state is not None else initial_state(name)
        loaded = LoadedConversation(state, stored.check, stored.seq, stored.version)
        await self._history.each(stored.newer, loaded.follow)
        if (lane := self.lanes.get(name)) is not None:
            loaded.lane = lane
            try:
                loaded.place = lane.placed(await self.place(loaded, lane.base))
            except Damaged as damaged:
                return await self._salvage(name, damaged)
        if not loaded.state.user:
            loaded.counted = (loaded.state.remaining, loaded.state.counts().in_progress)
        return loaded

    async def place(self, loaded: LoadedConversation, base: Place) -> Place:
        """Up to where of the shared log a conversation goes: the last event of each post has it beside it.

        Raises:
            Damaged: The last event can't be had.
        """
        newest = await self._log.read(loaded.seq - 1, 1, conversation=loaded.state.conversation) if loaded.seq else []
        side = side_of(newest[-1]) if newest else None
        return base if side is None or not side.position else Place(side.position, side.chain)

    async def _salvage(self, name: str, damaged: Damaged) -> LoadedConversation:
        """A damaged conversation is readable as far as it is whole, and refuses to be written."""
        loaded = LoadedConversation(initial_state(name), "", 0, 0)
        loaded.damage = damage_of(damaged)
        loaded.cut = Damage(damaged.seq, damaged.reason)
        with suppress(Damaged):
            while found := await self._log.read(loaded.seq, 1 << 60, conversation=name):
                sound = [stored for stored in found if stored.seq < damaged.seq]
                for stored in sound:
                    loaded.follow(stored)
                if len(sound) < len(found):
                    break
        return loaded

    def refusal(self, damaged: Damaged) -> Rejection:
        """The refusal of what met damage. From now on the conversation takes no changes, however it was found."""
        rejection = damage_of(damaged)
        if (loaded := self.loaded.get(damaged.conversation)) is not None and loaded.damage is None:
            loaded.damage = rejection
        return rejection

    def drop(self, name: str) -> None:
        """Unload a conversation whose state can't be trusted; its next use reads the log."""
        self._history.forget(name)
        if (loaded := self.loaded.pop(name, None)) is not None:
            loaded.dropped = True
            loaded.listings = None
            self._listings.drop(loaded)

    def drop_empty(self, id: str) -> None:
        if (loaded := self.loaded.get(id)) is not None and not loaded.state.exists:
            self.drop(id)

    def changed(self) -> list[LoadedConversation]:
        """The conversations whose summary the store does not have yet."""
        return [
            loaded
            for loaded in self.loaded.values()
            if loaded.summarised != loaded.state.version
            and not loaded.dirty
            and (loaded.damage is None or loaded.summarised == NEVER)  # of the whole one rather than of what is left
        ]

    def let_go(self, idle_s: float) -> None:
        """Unload what nobody used for `idle_s` seconds, if the store has it."""
        now = time.monotonic()
        for name, loaded in list(self.loaded.items()):
            if loaded.in_use or loaded.dirty or loaded.state.claims:
                loaded.in_use, loaded.used = False, now
            if loaded.used < now - idle_s and loaded.summarised == loaded.state.version:
                self.drop(name)


_encode = msgspec.json.Encoder().encode


def damage_of(damaged: Damaged) -> Rejection:
    """Return the rejection of what a damaged conversation or, without a name, a damaged log forbids."""
    name, seq = damaged.conversation, damaged.seq
    if not name:
        return Rejection(
            "damaged",
            f"The log is damaged: {damaged.reason}. Nothing was changed. "
            "End the daemon, run `punch daemon verify --repair`.",
            {"conversation": "", "seq": seq},
        )
    return Rejection(
        "damaged",
        f"The log of {name} is damaged at position {seq} ({damaged.reason}); it can be read up to there "
        "but not written. End the daemon and run `punch daemon verify --repair`, or restore a backup.",
        {"conversation": name, "seq": seq},
    )


def gap_of(gap: Gap) -> Rejection:
    """The refusal to a reader of the whole log for whom the next events can't be had."""
    return Rejection(
        "gap",
        f"The events behind {gap.after} and before {gap.first} are damaged or missing. Go on behind {gap.first - 1}; "
        "`punch daemon verify` says whose they were.",
        {"after": gap.after, "first": gap.first},
    )


def is_snapshot_due(loaded: LoadedConversation, *, everything: bool) -> bool:
    behind = loaded.state.version - loaded.saved_version
    enough = 1 if everything else max(SNAPSHOT_EVENTS, len(loaded.state.tasks))
    return loaded.damage is None and behind >= enough
