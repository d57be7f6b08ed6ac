"""A conversation in memory: its state, and caches that make replies cheap to build."""

import time
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple, Protocol

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import Conversation, Damage, Reason, Running, Shared, Task
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State
from punchlistd.domain.state.snapshot import dump_state
from punchlistd.engine.lists.history import fact_of
from punchlistd.engine.lists.short_names import ShortNames
from punchlistd.engine.lists.trail import Trail
from punchlistd.engine.replies import LONG_BYTES, Pieces, Reply
from punchlistd.store.port import Snapshot, Stored

REPLIES_KEPT = 128
"""Maximum number of cached replies to keyed calls in each conversation."""

LISTED_S = 5.0
"""How long an encoded list is reused while tasks are claimed, in seconds.

The time is limited because leases are renewed without an event.
"""

LISTED_BYTES = 4 << 20
"""Limit for the encoded lists of all conversations together, in bytes. A single larger list is kept anyway."""

_NO_LISTING = (-1, 0, b"")
_LEASE_MEMBERS = ("left_at", "silent_at", "machine", "lease_expires_at")

Present = Callable[[State], Set[str]]
"""Returns the names of the agents present for a list."""


def no_agents(_state: State) -> Set[str]:
    """Return no names."""
    return frozenset()


AddClaimDetails = Callable[[State, list[Task]], list[Task]]
"""Adds fences, expiry times and departures, which the state doesn't contain, to tasks."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """A place in the shared log: a post's position, and the head of the posts' hash chain there."""

    position: int = 0
    check: str = ""


class Audience(NamedTuple):
    """The machines that lose a shared list if it is deleted on this one.

    Attributes:
        space: The space.
        machines: Other machines that recently had the list.
        here: Whether only this machine deletes its copy, because it has left the list.
    """

    space: str
    machines: tuple[str, ...] = ()
    here: bool = False


class Lane(Protocol):
    """The write path of one shared list; see `punchlistd.replication.lanes.lane`."""

    @property
    def base(self) -> Place: ...

    def placed(self, place: Place) -> Place:
        """Return the current equivalent of a stored place. The two differ if lost posts have been put back since."""
        ...

    @property
    def shared(self) -> Shared | None: ...

    @property
    def audience(self) -> Audience: ...

    def take(self, item: Any) -> None:
        """Queue a write, or a read or barrier that must follow earlier writes."""
        ...

    async def barrier(self) -> Rejection | None:
        """Wait until every earlier call is answered, except claims that wait for a task.

        Return the reason if that fails, else None.
        """
        ...


class LoadedConversation:
    """A conversation in memory.

    Attributes:
        check: Head of the conversation's hash chain.
        seq: Log position of its last event.
        epoch: The epoch of the log; "" in a draft.
        dirty: Number of unpublished transactions that changed it. Unless this is 0, the state may be ahead of the log,
            and reads wait.
        is_dropped: Whether it has been unloaded, which makes this object outdated.
        is_unused_name: Whether the conversation doesn't exist and no session has its id.
        damage: If set, the conversation is read-only, and changes get this rejection.
        cut: If set, the state ends before this damage.
        keys: Hashes of the idempotency keys used in the conversation; None until they are loaded.
        replies: Fingerprints of recent keyed calls and the replies to them, by key.
        saved_version: Version of the stored snapshot.
        summarized_version: Version of the stored summary.
        trail: Its newest events, if agents have requested turns.
        counted: This conversation's part of the totals: its numbers of unfinished tasks and of tasks in progress.
        lane: Its write path, if it is shared.
        place: Its place in the shared log.
    """

    __slots__ = (
        "check",
        "counted",
        "cut",
        "damage",
        "dirty",
        "epoch",
        "is_dropped",
        "keys",
        "lane",
        "_listing",
        "listings",
        "place",
        "replies",
        "saved_version",
        "claim_details",
        "seq",
        "short_names",
        "present",
        "state",
        "summarized_version",
        "trail",
        "is_unused_name",
        "in_use",
        "used",
    )

    def __init__(self, state: State, check: str, seq: int, saved_version: int) -> None:
        self.state = state
        state.seq = state.floor = seq
        self.check = check
        self.seq = seq
        self.epoch = ""
        self.dirty = 0
        self.is_dropped = False
        self.is_unused_name = False
        self.lane: Lane | None = None
        self.place = Place()
        self.damage: Rejection | None = None
        self.cut: Damage | None = None
        self.keys: set[int] | None = None
        self.replies: dict[str, tuple[str, bytes]] = {}
        self.saved_version = saved_version
        self.summarized_version = saved_version
        self._listing = _NO_LISTING
        self.listings: Listings | None = None
        self.trail: Trail | None = None
        self.short_names: ShortNames | None = None
        self.claim_details: AddClaimDetails | None = None
        self.present: Present = no_agents
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
        """Cache the reply to a keyed call, and drop the oldest reply if there are too many."""
        self.replies[key] = (call, reply)
        if len(self.replies) > REPLIES_KEPT:
            del self.replies[next(iter(self.replies))]

    @property
    def has_all_keys(self) -> bool:
        """Whether `keys` is complete.

        `keys` is incomplete if a session came from another list, because it may have used the same key there.
        """
        return self.keys is not None and not self.state.origins

    def forget_replies(self) -> None:
        """Forget all keys and replies of an erased conversation."""
        self.replies.clear()
        self.keys = set()

    def encode_listing(self) -> bytes:
        """Encode all tasks in order, their counts and any damage as members of a JSON object.

        The result is cached for the version or, while tasks are claimed, for at most `LISTED_S`.
        """
        state = self.state
        moment = int(time.monotonic() / LISTED_S) if state.running or state.reserved else 0
        version, at, listing = self._listing
        if version != state.version or at != moment:
            tasks, counts = _encode(self.add_claim_details(state.ordered())), _encode(state.counts())
            listing = b'"tasks":%b,"counts":%b%b' % (tasks, counts, self.damaged_member)
            self._listing = (state.version, moment, listing)
            if self.listings is not None:
                self.listings.add(self, len(listing))
        return listing

    def reject_missing(self, rejection: Rejection) -> Rejection:
        """Return `rejection` or, if the list is cut, its damage, because the missing item may be after the cut."""
        return rejection if self.cut is None or self.damage is None else self.damage

    @property
    def damaged_member(self) -> bytes:
        """Damage of an incomplete list as an additional member of a JSON object, for every response about the list."""
        return b"" if self.cut is None else b',"damaged":' + _encode(self.cut)

    @property
    def short_name(self) -> str:
        """The list's short name; "" if it has none."""
        return self.short_names.of(self.state.conversation) if self.short_names is not None else ""

    @property
    def shown_name(self) -> str:
        return self.state.title or self.short_name or self.state.conversation

    @property
    def name_member(self) -> bytes:
        """The short name as an additional member of a JSON object."""
        name = self.short_name
        return b',"name":' + _encode(name) if name else b""

    @property
    def shared_member(self) -> bytes:
        """Replication state as an additional member of a JSON object, if the newest changes may be missing."""
        shared = None if self.lane is None else self.lane.shared
        return b"" if shared is None else b',"shared":' + _encode(shared)

    @property
    def shared(self) -> Shared | None:
        return None if self.lane is None else self.lane.shared

    def view(self) -> Conversation:
        conversation = self.state.conversation_view()
        running = self.add_departures(conversation.running)
        return msgspec.structs.replace(conversation, damaged=self.cut, shared=self.shared, running=running)

    def add_departures(self, running: tuple[Running, ...]) -> tuple[Running, ...]:
        """Add the owners' departures to tasks in progress, and the times when the tasks become free."""
        tasks = [task for entry in running if (task := self.state.tasks.get(entry.id)) is not None]
        departures = {task.id: departure_of(task) for task in self.add_claim_details(tasks)}
        return tuple(msgspec.structs.replace(entry, **departures.get(entry.id, {})) for entry in running)

    def add_lease_times(self, reasons: Sequence[Reason]) -> tuple[Reason, ...]:
        """Add expiry times and departures of the owners to reasons."""
        causes = self.add_claim_details([self.state.tasks[task] for task in {reason.by for reason in reasons}])
        members = {cause.id: {name: getattr(cause, name) for name in _LEASE_MEMBERS} for cause in causes}
        return tuple(msgspec.structs.replace(reason, **members[reason.by]) for reason in reasons)

    def build_list_reply(self, head: bytes, newer: bytes) -> Reply:
        """Return a JSON object with the whole list between other members, without copying a long list."""
        listing, newer = self.encode_listing(), self.shared_member + self.name_member + newer
        return Pieces((head, listing, newer)) if len(listing) > LONG_BYTES else b"%b%b%b" % (head, listing, newer)

    def forget_listing(self) -> None:
        """Drop the cached encoding."""
        self._listing = _NO_LISTING

    def add_claim_details(self, tasks: list[Task]) -> list[Task]:
        """Add fences, expiry times and departures to tasks for a response."""
        if self.claim_details is None or not (self.state.running or self.state.reserved):
            return tasks
        return self.claim_details(self.state, tasks)

    def build_snapshot(self, full: bool) -> Snapshot:
        """Return a snapshot for the store: with the state if `full`, otherwise only with the summary."""
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
    return {name: getattr(task, name) for name in _LEASE_MEMBERS}


class HasListing(Protocol):
    """A conversation with an encoded list."""

    def forget_listing(self) -> None: ...


class Listings:
    """Limits the memory that encoded lists use.

    Args:
        limit: Upper limit for all encoded lists together, in bytes.
    """

    def __init__(self, limit: int = LISTED_BYTES) -> None:
        self._limit = limit
        self._sizes: dict[HasListing, int] = {}
        self._size = 0

    def add(self, owner: HasListing, size: int) -> None:
        """Add a new encoding, and drop the oldest other ones while the total exceeds the limit."""
        self.drop(owner)
        self._sizes[owner] = size
        self._size += size
        while self._size > self._limit and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.drop(oldest)
            oldest.forget_listing()

    def drop(self, owner: HasListing) -> None:
        self._size -= self._sizes.pop(owner, 0)


_encode = msgspec.json.Encoder().encode
