"""A conversation in use: its state, and what is kept beside it so that answers cost little."""

import time
from collections.abc import Callable, Set
from typing import Any, NamedTuple, Protocol

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import Conversation, Damage, Running, Shared, Task
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State
from punchlistd.domain.state.snapshot import dump_state
from punchlistd.engine.lists.history import fact_of
from punchlistd.engine.lists.short_names import ShortNames
from punchlistd.engine.replies import LONG_BYTES, Pieces, Reply
from punchlistd.store.port import Snapshot, Stored

REPLIES_KEPT = 128
"""How many answers of keyed calls a loaded conversation remembers, so that a retry costs nothing."""

LISTED_S = 5.0
"""While tasks are claimed, an encoded list is used again for so long: signs of life move the leases' ends unseen."""

LISTED_BYTES = 4 << 20
"""So much is kept of all conversations together; of a single list that is larger, all."""

_NOT_LISTED = (-1, 0, b"")


Present = Callable[[State], Set[str]]
"""Returns the names of the agents that are present for a list."""


def nobody(_state: State) -> Set[str]:
    """Return no names, for a list without known agents."""
    return frozenset()


Shown = Callable[[State, list[Task]], list[Task]]
"""Adds to the tasks of a state what answers show beside it."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """A place in the log that machines share: a post's position, and the head of the posts' chain there."""

    position: int = 0
    check: str = ""


class Audience(NamedTuple):
    """Who loses a list of a space if it is deleted here.

    Attributes:
        space: The space.
        machines: The other machines that were seen with the list recently.
        here: Whether the deletion stays on this machine, since it has left the list.
    """

    space: str
    machines: tuple[str, ...] = ()
    here: bool = False


class Lane(Protocol):
    """The way of the changes of one shared list; see `punchlistd.replication.lanes.lane`."""

    @property
    def base(self) -> Place: ...

    def placed(self, place: Place) -> Place:
        """Where a place of the list is now: it moves if posts are lost and put back."""
        ...

    @property
    def shared(self) -> Shared | None: ...

    @property
    def audience(self) -> Audience: ...

    def take(self, item: Any) -> None:
        """Take a write, or a read or a barrier that comes behind writes: each goes on when its turn has come."""
        ...

    async def barrier(self) -> Rejection | None:
        """Wait until everything that was taken before is answered or waits for a task; why that never is, or None."""
        ...


class LoadedConversation:
    """A conversation in use: its state, the head of its hash chain, and what follows from them.

    `dirty` counts the batches that touched the state and are not published yet: while there are any it may run ahead
    of the log, and reads wait. `dropped` says that it is not the conversation's state any more;
    `unnamed`, of one that does not exist, that no session of its id is attached to another one either. With `damage` it
    takes no changes, and with `cut` the state is not whole either: it ends before the damage. A shared one has a
    `lane`, and `place` says up to where of the shared log the state goes.
    """

    __slots__ = (
        "check",
        "counted",
        "cut",
        "damage",
        "dirty",
        "dropped",
        "keys",
        "lane",
        "listed",
        "listings",
        "place",
        "replies",
        "saved_version",
        "with_claims",
        "seq",
        "short_names",
        "present",
        "state",
        "summarised",
        "unnamed",
        "in_use",
        "used",
    )

    def __init__(self, state: State, check: str, seq: int, saved_version: int) -> None:
        self.state = state
        state.seq = state.floor = seq
        self.check = check
        self.seq = seq
        self.dirty = 0
        self.dropped = False
        self.unnamed = False
        self.lane: Lane | None = None
        self.place = Place()
        self.damage: Rejection | None = None
        self.cut: Damage | None = None
        self.keys: set[int] | None = None
        self.replies: dict[str, tuple[str, bytes]] = {}
        self.saved_version = saved_version
        self.summarised = saved_version
        self.listed = _NOT_LISTED
        self.listings: Listings | None = None
        self.short_names: ShortNames | None = None
        self.with_claims: Shown | None = None
        self.present: Present = nobody
        self.in_use = True
        self.used = 0.0
        self.counted: tuple[int, int] = (0, 0)

    def follow(self, stored: Stored) -> bool:
        fact = fact_of(stored)
        evolve(self.state, fact.event, fact.seq, fact.version, fact.at)
        self.check = stored.check
        self.seq = fact.seq
        return True

    def remember(self, key: str, call: str, reply: bytes) -> None:
        """Keep the answer of a keyed call; the oldest goes."""
        self.replies[key] = (call, reply)
        if len(self.replies) > REPLIES_KEPT:
            del self.replies[next(iter(self.replies))]

    @property
    def tells_keys(self) -> bool:
        """Whether it knows all keys that were used in it, and no session came to it from another list."""
        return self.keys is not None and not self.state.origins

    def forget_replies(self) -> None:
        """The conversation is erased: no key of it was ever used, and no answer of it is kept."""
        self.replies.clear()
        self.keys = set()

    def listing(self) -> bytes:
        """All tasks in order, their counts and the damage where they end, as members of a JSON object.

        They are encoded once per version, or while claims last every few seconds.
        """
        state = self.state
        moment = int(time.monotonic() / LISTED_S) if state.running or state.reserved else 0
        version, at, listing = self.listed
        if version != state.version or at != moment:
            tasks, counts = _encode(self.shown(state.ordered())), _encode(state.counts())
            listing = b'"tasks":%b,"counts":%b%b' % (tasks, counts, self.damaged_member)
            self.listed = (state.version, moment, listing)
            if self.listings is not None:
                self.listings.add(self, len(listing))
        return listing

    def missing(self, rejection: Rejection) -> Rejection:
        """Return the rejection of what is not there; of a list that is cut at damage, it may be behind that."""
        return rejection if self.cut is None or self.damage is None else self.damage

    @property
    def damaged_member(self) -> bytes:
        """What every answer about a list says that is not whole, as a further member of a JSON object."""
        return b"" if self.cut is None else b',"damaged":' + _encode(self.cut)

    @property
    def short_name(self) -> str:
        """The name by which people call it; "" where that is its id."""
        return self.short_names.of(self.state.conversation) if self.short_names is not None else ""

    @property
    def name_member(self) -> bytes:
        """The short name as a further member of a JSON object."""
        name = self.short_name
        return b',"name":' + _encode(name) if name else b""

    @property
    def shared_member(self) -> bytes:
        """What answers about a shared list say whose newest changes may be missing, as a further member."""
        shared = None if self.lane is None else self.lane.shared
        return b"" if shared is None else b',"shared":' + _encode(shared)

    @property
    def shared(self) -> Shared | None:
        return None if self.lane is None else self.lane.shared

    def view(self) -> Conversation:
        seen = self.state.conversation_view()
        running = self.with_departures(seen.running)
        return msgspec.structs.replace(seen, damaged=self.cut, shared=self.shared, running=running)

    def with_departures(self, running: tuple[Running, ...]) -> tuple[Running, ...]:
        """Add departures of owners to tasks in progress, and when the tasks become free."""
        tasks = [task for one in running if (task := self.state.tasks.get(one.id)) is not None]
        gone = {task.id: departure_of(task) for task in self.shown(tasks)}
        return tuple(msgspec.structs.replace(one, **gone.get(one.id, {})) for one in running)

    def list_reply(self, head: bytes, newer: bytes) -> Reply:
        """A JSON object with the whole list between other members; a long list is not copied."""
        listing, newer = self.listing(), self.shared_member + self.name_member + newer
        return Pieces((head, listing, newer)) if len(listing) > LONG_BYTES else b"%b%b%b" % (head, listing, newer)

    def forget_listing(self) -> None:
        """Encode the list anew when it is asked for."""
        self.listed = _NOT_LISTED

    def shown(self, tasks: list[Task]) -> list[Task]:
        """Tasks as answers show them: with what is known of their claims."""
        if self.with_claims is None or not (self.state.running or self.state.reserved):
            return tasks
        return self.with_claims(self.state, tasks)

    def snapshot(self, full: bool) -> Snapshot:
        """What the store keeps so that the next opening costs the live size; not full: only what listing needs."""
        state = self.state
        counts = state.counts()
        return Snapshot(
            conversation=state.conversation,
            version=state.version,
            seq=self.seq,
            check=self.check,
            state=dump_state(state) if full else None,
            summary=_encode(msgspec.structs.replace(state.conversation_view(), damaged=self.cut)),
            user=state.user,
            sessions=state.sessions,
            open=counts.pending + counts.paused,
            in_progress=counts.in_progress,
            deleted=not state.exists,
        )


def departure_of(task: Task) -> dict[str, Any]:
    """Return the members of a task that describe its owner's departure."""
    if task.left_at is None and task.silent_at is None:
        return {}
    return {name: getattr(task, name) for name in ("left_at", "silent_at", "machine", "lease_expires_at")}


class Listed(Protocol):
    """What has an encoded list."""

    def forget_listing(self) -> None: ...


class Listings:
    """Which encoded lists are kept.

    Args:
        limit: how many bytes they may have together.
    """

    def __init__(self, limit: int = LISTED_BYTES) -> None:
        self._limit = limit
        self._sizes: dict[Listed, int] = {}
        self._size = 0

    def add(self, listed: Listed, size: int) -> None:
        """A list was encoded anew; the oldest others go."""
        self.drop(listed)
        self._sizes[listed] = size
        self._size += size
        while self._size > self._limit and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.drop(oldest)
            oldest.forget_listing()

    def drop(self, listed: Listed) -> None:
        self._size -= self._sizes.pop(listed, 0)


_encode = msgspec.json.Encoder().encode
