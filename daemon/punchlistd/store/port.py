"""The port of the event log: what the engine asks of a store, in the words of the log alone.

A store keeps lines (see `punchlistd.store.record`) in one order for ever, and beside them an index that follows behind
and could be built again from the lines at any time. It knows nothing of tasks, sockets or clients. `SqliteLog` and the
log in memory that tests run on are held to it by one suite of tests.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec


class Side(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the log stores beside an event and never sends to clients.

    `key` is the idempotency key and `call` the fingerprint of the call that used it (both on the first event of a
    group), `left` the events of the group that still follow, `undoes` the versions of the first events of the groups
    that this group takes back (negative: of the undos that it takes back). `owner` is the user whose conversation a
    tombstone erased. On the last event of a post of a shared list `position` is the post's in the shared log, and
    `chain` the head of the posts' chain behind it.
    """

    key: str = ""
    call: str = ""
    left: int = 0
    undoes: tuple[int, ...] = ()
    owner: str = ""
    position: int = 0
    chain: str = ""


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A line ready to be appended. `key` repeats the side's key and `tombstone` says that it is one: nothing has to be
    parsed."""

    conversation: str
    version: int
    line: bytes
    key: str = ""
    tombstone: bool = False


_HEADER = re.compile(rb'\{"seq":(\d+),"conversation":"([A-Za-z0-9_.:-]+)","version":(\d+),')
_decode_side = msgspec.json.Decoder(Side).decode
_NO_SIDE = Side()


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A line as it stands in the log. Only its position is certain; the properties parse the rest on demand."""

    seq: int
    line: bytes

    @property
    def wire(self) -> bytes:
        """The JSON of the event, exactly as it goes over the wire."""
        return self.line[: self.line.index(b"\t")]

    @property
    def side(self) -> bytes:
        """The JSON of the `Side`; empty if there is none."""
        return self.line[self.line.index(b"\t") + 1 : self.line.rindex(b"\t")]

    @property
    def check(self) -> str:
        """The check of the conversation's chain after this event."""
        return str(self.line[self.line.rindex(b"\t") + 1 :], "ascii", "replace")

    @property
    def conversation(self) -> str:
        """The conversation's id. Raises ValueError if the line is no record."""
        return str(self._header()[2], "ascii")

    @property
    def version(self) -> int:
        """The event's version in its conversation. Raises ValueError if the line is no record."""
        return int(self._header()[3])

    @property
    def left(self) -> int:
        """How many more events its group has."""
        return side_of(self).left if b'"left":' in self.side else 0

    def _header(self) -> re.Match[bytes]:
        if found := _HEADER.match(self.line):
            return found
        raise ValueError(f"the line at {self.seq} is no record")


def side_of(stored: Stored) -> Side:
    """Return the `Side` of a stored event."""
    side = stored.side
    return _decode_side(side) if side else _NO_SIDE


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """The saved state of a conversation at `version` and position `seq`: loading it costs its size, not its history.

    `check` is the head of its chain there, `state` the dumped state (None: only the summary is renewed), `summary` the
    JSON of a `Conversation`, `open` its tasks that are pending or paused, `in_progress` those under way.
    """

    conversation: str
    version: int
    seq: int
    check: str
    state: bytes | None
    summary: bytes
    user: str = ""
    sessions: tuple[str, ...] = ()
    open: int = 0
    in_progress: int = 0
    deleted: bool = False


class Loaded(msgspec.Struct, frozen=True, gc=False):
    """A conversation's newest snapshot and the events after it, checked against its chain.

    Of an unknown conversation everything is empty. After an erase without a newer snapshot the newer begins with the
    tombstone, whose version goes on from the erased ones.
    """

    state: bytes | None = None
    version: int = 0
    seq: int = 0
    check: str = ""
    newer: list[Stored] = []


class Survey(NamedTuple):
    """What a look at all lists has found: those that wait for a time, and the deleted ones that are not erased yet.

    The first clear themselves when idle and have finished tasks alone, or have deferred tasks.
    """

    timed: list[str]
    unerased: list[str]


class StorageFull(Exception):
    """The disk is full. Nothing was written, reads still work, and the caller may repeat the call later."""


class StorageFailed(Exception):
    """A write failed and its outcome is unknown. The log refuses every later operation."""


class Damaged(Exception):
    """Stored bytes differ from what was written. Other conversations are still served; nothing is repaired silently.

    Attributes:
        conversation: Whose event it is, "" where that can't be told any more.
        seq: Position of the first event that can't be trusted.
        reason: What is wrong with it.
    """

    def __init__(self, conversation: str, seq: int, reason: str) -> None:
        super().__init__(f"conversation {conversation or '(unknown)'}, event {seq}: {reason}")
        self.conversation = conversation
        self.seq = seq
        self.reason = reason


class Gap(Exception):
    """Events after a position can't be read any more.

    Attributes:
        after: The position.
        first: Position of the next event that can be had; one behind the log's end where there is none.
    """

    def __init__(self, after: int, first: int) -> None:
        super().__init__(f"the events behind {after} and before {first} can't be had any more")
        self.after = after
        self.first = first


class LogUnusable(Exception):
    """The log can't be opened and was left untouched. The message names the file and says what to do."""


class BadCursor(ValueError):
    """A cursor that `list` never returned."""


class EventLog(Protocol):
    """An append-only log of all conversations, and the index that follows behind it.

    Every operation but the plain attributes may raise StorageFailed once the log has failed. One that needs the index
    raises Damaged for no conversation ("") where that can't be read, until `rebuild` was called.
    """

    @property
    def epoch(self) -> str:
        """The random id of this log. Positions from another epoch are invalid here."""
        ...

    @property
    def head(self) -> int:
        """The position of the last durable event; 0 in an empty log."""
        ...

    @property
    def regressed(self) -> tuple[int, int] | None:
        """`(had, has)`, two positions, if the log lost events or holds another history of its epoch; else None."""
        ...

    @property
    def unindexed(self) -> int:
        """How many events are not indexed yet; `maintain` indexes them all."""
        ...

    def unindexed_conversations(self) -> Collection[str]:
        """Conversations with events that are not indexed yet: their stored summaries are stale."""
        ...

    @property
    def spoiled(self) -> Mapping[str, Damaged]:
        """The first damaged event found in each conversation since the log was opened."""
        ...

    @property
    def quick(self) -> bool:
        """True if `append_now` would commit now."""
        ...

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        """Append without waiting. Return False, and do nothing, if that could block the caller for long.

        Raises:
            StorageFull: Nothing was written.
            StorageFailed: The outcome is unknown.
        """
        ...

    async def append(self, entries: Sequence[Sealed]) -> None:
        """Append lines at head + 1, head + 2, …: all or none, and durable on return.

        Raises:
            Damaged: Nothing was written, since the log's own pages can't be read.
            StorageFull: Nothing was written.
            StorageFailed: The outcome is unknown.
        """
        ...

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        """Read whole groups of events after a position, until a limit is reached; at least one if there is any.

        They end before the first event that can't be had any more.

        Raises:
            Damaged: That is the very next one, and of the conversation asked for.
            Gap: It is the very next one, and no conversation was asked for.
        """
        ...

    async def load(self, conversation: str) -> Loaded:
        """Load the newest snapshot of a conversation and all events after it.

        Raises:
            Damaged: An event does not follow from the one before it.
        """
        ...

    async def keys(self, conversation: str) -> list[int]:
        """Return the `key_hash` of each idempotency key of the conversation, unordered."""
        ...

    async def find_key(self, conversation: str, key: str) -> list[Stored]:
        """Return the group of events that used the key; empty if there is none."""
        ...

    async def resolve(self, session: str) -> list[str]:
        """Return the conversations that a session is attached to, one per owner at most, as of the last `maintain`."""
        ...

    async def owner(self, conversation: str) -> str | None:
        """Return the user of a conversation ("" for nobody), or None if there is none, as of the last `maintain`."""
        ...

    async def names(self, user: str) -> list[str]:
        """Return the conversations of a user, ordered by id, as of the last `maintain`."""
        ...

    async def totals(self) -> tuple[int, int]:
        """Count the tasks that are open (pending or paused) and in progress, as of the last `maintain`.

        Only the conversations that belong to no user count.
        """
        ...

    async def survey(self) -> Survey:
        """Look at all conversations, as of the last `maintain`."""
        ...

    async def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        """Index all events that are not indexed yet and save snapshots, in one transaction.

        Raises:
            StorageFull: Nothing was written; the log itself is complete without it.
        """
        ...

    async def rebuild(self) -> None:
        """Go on with an empty index where one can't be read: every conversation is unindexed then."""
        ...

    async def erase(self, conversation: str) -> None:
        """Erase from the disk every line before the newest tombstone. May be repeated.

        Raises:
            StorageFull: It has to be repeated once there is space.
        """
        ...

    async def forget(self, conversation: str) -> None:
        """Erase a deleted conversation with its tombstone, so that one of this name begins anew. May be repeated.

        One that was opened again since is left as it is. Nobody may write to it meanwhile.

        Raises:
            StorageFull: Nothing was done.
        """
        ...

    async def unerased(self) -> list[str]:
        """Return the deleted conversations whose events are not erased yet."""
        ...

    async def sizes(self) -> tuple[int, int]:
        """Return the size in bytes of the log and of its write-ahead log."""
        ...

    async def close(self) -> None:
        """Close the log. May be repeated."""
        ...

    async def list(
        self,
        *,
        query: str = "",
        user: str | None = None,
        active: bool | None = None,
        kind: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> tuple[list[bytes], str | None]:
        """Return a page of summaries, newest change first, and the cursor of the next page, as of the last `maintain`.

        `query` is a part of the id or title, in any case; `active` asks for those with (or without) unfinished tasks;
        `kind` for those of one kind.

        Raises:
            BadCursor: The cursor is none of ours.
        """
        ...
