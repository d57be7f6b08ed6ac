"""Conversations in memory: loaded on first use and unloaded when idle.

They are addressed by id here. `access` resolves the names that callers use.
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
from punchlistd.domain.state.snapshot import load_snapshot
from punchlistd.domain.state.tally import Tally
from punchlistd.engine.lists.history import History
from punchlistd.engine.lists.loaded import (
    AddClaimDetails,
    Lane,
    Listings,
    LoadedConversation,
    Place,
    Present,
    no_agents,
)
from punchlistd.engine.lists.sessions import Sessions
from punchlistd.engine.lists.short_names import ShortNames
from punchlistd.store.port import Damaged, EventLog, Gap, side_of

T = TypeVar("T")

SNAPSHOT_EVENTS = 64
"""Minimum number of events between two snapshots. For a list with more tasks, the minimum is its number of tasks."""

NEVER = -1
"""Saved version of a conversation that has never been saved."""


class Conversations:
    """The conversations in use, by id.

    Args:
        history: Replays loaded events, in slices.
        wait_until_settled: Waits until no state is ahead of the log.
        loaded: Called with the state of each conversation that is loaded.
        add_claim_details: Adds fences, expiry times and departures to tasks.
        present: Returns the names of the agents that are present.
    """

    def __init__(
        self,
        log: EventLog,
        history: History,
        wait_until_settled: Callable[[], Awaitable[None]],
        *,
        loaded: Iterable[Callable[[State], None]] = (),
        add_claim_details: AddClaimDetails | None = None,
        present: Present = no_agents,
    ) -> None:
        self.loaded: dict[str, LoadedConversation] = {}
        self.lanes: dict[str, Lane] = {}
        """The write path of each shared list."""
        self.sessions = Sessions()
        self._log = log
        self._history = history
        self.wait_until_settled = wait_until_settled
        self._followers = tuple(loaded)
        self._add_claim_details = add_claim_details
        self._present = present
        self._listings = Listings()
        self.short_names = ShortNames()
        self._loading: dict[str, anyio.Event] = {}
        self._indexing = anyio.Lock()
        """Held while the index changes. The holder must not wait for anything but the log."""
        self._recovered = False

    def find(self, id: str) -> LoadedConversation | None:
        loaded = self.loaded.get(id)
        if loaded is not None:
            loaded.in_use = True
        return loaded

    async def load(self, id: str) -> LoadedConversation:
        """Return a conversation, loading it if necessary. A conversation that was never opened is empty."""
        while (loaded := self.find(id)) is None:
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
        return loaded

    async def durable(self, id: str) -> LoadedConversation:
        """Return a conversation after waiting until its state is in the log.

        This remains true until the caller awaits.
        """
        while (loaded := await self.load(id)).dirty:
            await self.wait_until_settled()
        return loaded

    async def recover(self) -> None:
        """Load the conversations that a killed daemon left unindexed. Later calls do nothing.

        Call it before any query of the index. Until then, lists, owners and sessions are missing from the index, and
        deleted lists are still in it.
        """
        if self._recovered:
            return
        async with self._indexing:
            if not self._recovered:
                await self._load_unindexed()
                self._recovered = True

    async def save(self, everything: bool) -> None:
        """Index the log, with a summary of each changed conversation, or a full snapshot if one is due."""
        async with self._indexing:
            await self._load_unindexed()
            unsaved = self.find_unsaved()
            snapshots = [loaded.build_snapshot(is_snapshot_due(loaded, everything=everything)) for loaded in unsaved]
            await self._log.maintain(snapshots)
            for loaded, snapshot in zip(unsaved, snapshots, strict=True):
                loaded.summarized_version = snapshot.version
                if snapshot.state is not None:
                    loaded.saved_version = snapshot.version

    async def use_index(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation on the index. If the index can't be read, rebuild it from the log and try again.

        Raises:
            Damaged: The index can't be rebuilt, because the log can't be read either.
        """
        try:
            return await operation()
        except Damaged:
            async with self._indexing:
                self._recovered = False
                await self._log.rebuild()
                for loaded in self.loaded.values():
                    loaded.saved_version = loaded.summarized_version = NEVER
            await self.recover()
            return await operation()

    async def _load_unindexed(self) -> None:
        """Load the unindexed conversations, so that none of them is indexed without its summary."""
        for name in list(self._log.unindexed_conversations()):
            if name not in self.loaded:
                self._add(name, await self._read(name))

    def follow(self, loaded: LoadedConversation) -> None:
        """Call the `loaded` callbacks: when a conversation is loaded, or when a change that they requested failed."""
        for follow in self._followers:
            follow(loaded.state)

    def _add(self, name: str, loaded: LoadedConversation) -> None:
        if name not in self.loaded:
            self.loaded[name] = loaded
            loaded.epoch = self._log.epoch
            loaded.claim_details = self._add_claim_details
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
        state, tally = load_snapshot(name, stored.state) if stored.state is not None else (initial_state(name), Tally())
        loaded = LoadedConversation(state, stored.check, stored.seq, stored.version)
        loaded.tally = tally
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
        """Return a conversation's place in the shared log, which is stored with the last event of each post.

        Raises:
            Damaged: The last event can't be read.
        """
        newest = await self._log.read(loaded.seq - 1, 1, conversation=loaded.state.conversation) if loaded.seq else []
        side = side_of(newest[-1]) if newest else None
        return base if side is None or not side.position else Place(side.position, side.chain)

    async def _salvage(self, name: str, damaged: Damaged) -> LoadedConversation:
        """Load a damaged conversation up to the damage, read-only."""
        loaded = LoadedConversation(initial_state(name), "", 0, 0)
        loaded.damage = damage_of(damaged)
        loaded.cut = Damage(damaged.seq, damaged.reason)
        with suppress(Damaged):
            while events := await self._log.read(loaded.seq, 1 << 60, conversation=name):
                intact = [stored for stored in events if stored.seq < damaged.seq]
                for stored in intact:
                    loaded.follow(stored)
                if len(intact) < len(events):
                    break
        return loaded

    def record_damage(self, damaged: Damaged) -> Rejection:
        """Make the damaged conversation read-only if it is loaded, and return the rejection for the call."""
        rejection = damage_of(damaged)
        if (loaded := self.loaded.get(damaged.conversation)) is not None and loaded.damage is None:
            loaded.damage = rejection
        return rejection

    def drop(self, name: str) -> None:
        """Unload a conversation whose state can't be trusted. Its next use reloads it from the log."""
        self._history.forget(name)
        if (loaded := self.loaded.pop(name, None)) is not None:
            loaded.is_dropped = True
            loaded.listings = None
            self._listings.drop(loaded)

    def drop_empty(self, id: str) -> None:
        if (loaded := self.loaded.get(id)) is not None and not loaded.state.exists:
            self.drop(id)

    def find_unsaved(self) -> list[LoadedConversation]:
        """Return the conversations whose current summary is not stored yet."""
        return [
            loaded
            for loaded in self.loaded.values()
            if loaded.summarized_version != loaded.state.version
            and not loaded.dirty
            # Keep the summary of the whole list rather than replace it with one of the readable part.
            and (loaded.damage is None or loaded.summarized_version == NEVER)
        ]

    def unload_idle(self, idle_s: float) -> None:
        """Unload saved conversations that have not been used for `idle_s` seconds."""
        now = time.monotonic()
        for name, loaded in list(self.loaded.items()):
            if loaded.in_use or loaded.dirty or loaded.state.claims:
                loaded.in_use, loaded.used = False, now
            if loaded.used < now - idle_s and loaded.summarized_version == loaded.state.version:
                self.drop(name)


_encode = msgspec.json.Encoder().encode


def damage_of(damaged: Damaged) -> Rejection:
    """Return the rejection for a damaged conversation or, if the damage isn't in a specific one, for a damaged log."""
    name, seq = damaged.conversation, damaged.seq
    if not name:
        return Rejection(
            "damaged",
            f"The log is damaged: {damaged.reason}. Nothing was changed. "
            "Stop the daemon and run `punch daemon verify --repair`.",
            {"conversation": "", "seq": seq},
        )
    return Rejection(
        "damaged",
        f"The log of {name} is damaged at position {seq} ({damaged.reason}); it can be read up to there "
        "but not written. Stop the daemon and run `punch daemon verify --repair`, or restore a backup.",
        {"conversation": name, "seq": seq},
    )


def gap_of(gap: Gap) -> Rejection:
    """Return the rejection for a reader of the whole log whose next events can't be read."""
    return Rejection(
        "gap",
        f"The events between {gap.after} and {gap.first} are damaged or missing. Continue after "
        f"{gap.first - 1}; `punch daemon "
        "verify` names their lists.",
        {"after": gap.after, "first": gap.first},
    )


def is_snapshot_due(loaded: LoadedConversation, *, everything: bool) -> bool:
    unsaved_events = loaded.state.version - loaded.saved_version
    minimum = 1 if everything else max(SNAPSHOT_EVENTS, len(loaded.state.tasks))
    return loaded.damage is None and unsaved_events >= minimum
