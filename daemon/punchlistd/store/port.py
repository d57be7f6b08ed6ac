"""The port of the event log: the interface between the engine and a store.

A store is an append-only sequence of lines (see `punchlistd.store.record`), plus an index that lags behind and can be
rebuilt from the lines at any time. It does not depend on tasks, sockets or clients. One test suite covers both
implementations: `SqliteLog`, and the in-memory log used in tests.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec


class Side(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, rename={"remaining": "left"}):
    """Metadata stored with an event and never sent to clients.

    Attributes:
        key: Idempotency key of the call. Set on the first event of its group.
        call: Fingerprint of the call that used the key. Set on the first event of its group.
        remaining: Number of later events of the group; stored as `left`.
        undoes: Version of the first event of each group that this group undoes. Negative if that group is an undo,
            which this group redoes.
        owner: User of the conversation that a tombstone erased.
        position: Position of a shared list's post in the shared log. Set on the last event of the post.
        chain: Head of the hash chain of posts after that post.
    """

    key: str = ""
    call: str = ""
    remaining: int = 0
    undoes: tuple[int, ...] = ()
    owner: str = ""
    position: int = 0
    chain: str = ""


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A line ready to be appended.

    `key` repeats the idempotency key from the line's `Side`, and `tombstone` whether the line is a tombstone, so that
    no store has to parse the line.
    """

    conversation: str
    version: int
    line: bytes
    key: str = ""
    tombstone: bool = False


_HEADER = re.compile(rb'\{"seq":(\d+),"conversation":"([A-Za-z0-9_.:-]+)","version":(\d+),')
_decode_side = msgspec.json.Decoder(Side).decode
_NO_SIDE = Side()


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A line read from the log. Only its position is certain; the properties parse the rest on demand."""

    seq: int
    line: bytes

    @property
    def wire(self) -> bytes:
        """The JSON of the event, byte for byte as sent to clients."""
        return self.line[: self.line.index(b"\t")]

    @property
    def side(self) -> bytes:
        """The JSON of the `Side`, or empty bytes."""
        return self.line[self.line.index(b"\t") + 1 : self.line.rindex(b"\t")]

    @property
    def check(self) -> str:
        """Head of the conversation's hash chain after this event."""
        return str(self.line[self.line.rindex(b"\t") + 1 :], "ascii", "replace")

    @property
    def conversation(self) -> str:
        """The conversation's id. Raises ValueError if the line is not a record."""
        return str(self._header()[2], "ascii")

    @property
    def version(self) -> int:
        """The event's version in its conversation. Raises ValueError if the line is not a record."""
        return int(self._header()[3])

    @property
    def remaining(self) -> int:
        """Number of later events of the group."""
        return side_of(self).remaining if b'"left":' in self.side else 0

    def _header(self) -> re.Match[bytes]:
        if header := _HEADER.match(self.line):
            return header
        raise ValueError(f"the line at {self.seq} is not a record")


def side_of(stored: Stored) -> Side:
    side = stored.side
    return _decode_side(side) if side else _NO_SIDE


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """The saved state of a conversation. It makes the cost of loading independent of the length of the history.

    Attributes:
        version: Version of the last event in the state.
        seq: Position of that event.
        check: Head of the conversation's hash chain after that event.
        state: The serialized state; None to update only the summary.
        summary: JSON of a `Conversation`.
        open: Number of tasks that are pending or paused.
        in_progress: Number of tasks in progress.
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
    """A conversation's newest snapshot and the events after it, verified against its hash chain.

    All fields are empty for an unknown conversation. After an erasure without a newer snapshot, `newer` starts with the
    tombstone, whose version is the next one after the erased events.
    """

    state: bytes | None = None
    version: int = 0
    seq: int = 0
    check: str = ""
    newer: list[Stored] = []


class Survey(NamedTuple):
    """Lists that need work after the daemon starts.

    Attributes:
        timed: Lists that need a timer: lists with deferred tasks, and lists that have only finished tasks and clear
            themselves when idle.
        unerased: Deleted lists whose events have not been erased yet.
    """

    timed: list[str]
    unerased: list[str]


class StorageFull(Exception):
    """The disk is full. Nothing was written, reads still work, and the caller may retry later."""


class StorageFailed(Exception):
    """A write failed and its outcome is unknown. The log rejects all later operations."""


class Damaged(Exception):
    """Stored bytes differ from those written. Other conversations are still served; nothing is repaired silently.

    Attributes:
        conversation: The event's conversation, or "" if unknown.
        seq: Position of the first event that can't be trusted.
        reason: Human-readable description of the defect.
    """

    def __init__(self, conversation: str, seq: int, reason: str) -> None:
        super().__init__(f"conversation {conversation or '(unknown)'}, event {seq}: {reason}")
        self.conversation = conversation
        self.seq = seq
        self.reason = reason


class Gap(Exception):
    """Events after a position can no longer be read.

    Attributes:
        after: The position.
        first: Position of the next readable event, or the position after the log's end.
    """

    def __init__(self, after: int, first: int) -> None:
        super().__init__(f"the events between {after} and {first} are lost")
        self.after = after
        self.first = first


class LogUnusable(Exception):
    """The log can't be opened and was left untouched. The message names the file and the next step."""


class BadCursor(ValueError):
    """A cursor that was not returned by `list`."""


class EventLog(Protocol):
    """An append-only log of all conversations, and an index that lags behind it.

    Every operation except the plain attributes may raise StorageFailed once the log has failed. While the index is
    unreadable, operations that need it raise Damaged with an empty conversation, until `rebuild` is called.
    """

    @property
    def epoch(self) -> str:
        """The random id of this log. Positions from another epoch are not valid in this log."""
        ...

    @property
    def head(self) -> int:
        """The position of the last durable event; 0 in an empty log."""
        ...

    @property
    def regressed(self) -> tuple[int, int] | None:
        """Positions `(before, now)` if the log lost events or its history in this epoch has changed; else None."""
        ...

    @property
    def unindexed(self) -> int:
        """Number of events that are not indexed yet. `maintain` indexes all of them."""
        ...

    def unindexed_conversations(self) -> Collection[str]:
        """Conversations with events that are not indexed yet, so that their stored summaries are stale."""
        ...

    @property
    def damaged(self) -> Mapping[str, Damaged]:
        """The first damaged event found in each conversation since the log was opened."""
        ...

    @property
    def quick(self) -> bool:
        """Whether `append_now` would commit if it were called now."""
        ...

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        """Append in the caller's thread. If that could block the thread for long, return False and do nothing.

        Raises:
            StorageFull: Nothing was written.
            StorageFailed: The outcome is unknown.
        """
        ...

    async def append(self, entries: Sequence[Sealed]) -> None:
        """Append lines at head + 1, head + 2, …. Either all or none are appended, and they are durable on return.

        Raises:
            Damaged: The log's own pages can't be read; nothing was written.
            StorageFull: Nothing was written.
            StorageFailed: The outcome is unknown.
        """
        ...

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        """Read whole groups of events after a position, until a limit is reached; at least one group if any exists.

        The result ends before the first unreadable event.

        Raises:
            Damaged: The next event of `conversation` is unreadable.
            Gap: The next event of the log is unreadable, and `conversation` is None.
        """
        ...

    async def load(self, conversation: str) -> Loaded:
        """Load the newest snapshot of a conversation and all events after it.

        Raises:
            Damaged: An event does not follow from the one before it.
        """
        ...

    async def keys(self, conversation: str) -> list[int]:
        """Return the `key_hash` of each of the conversation's idempotency keys, unordered."""
        ...

    async def find_key(self, conversation: str, key: str) -> list[Stored]:
        """Return the group of events that used the key, or an empty list."""
        ...

    async def resolve(self, session: str) -> list[str]:
        """Return the conversations that a session is attached to, at most one per owner, as of the last `maintain`."""
        ...

    async def owner(self, conversation: str) -> str | None:
        """Return the user of a conversation ("" if unowned), or None if unknown, as of the last `maintain`."""
        ...

    async def names(self, user: str) -> list[str]:
        """Return the conversations of a user, ordered by id, as of the last `maintain`."""
        ...

    async def totals(self) -> tuple[int, int]:
        """Count the open tasks (pending or paused) and those in progress, as of the last `maintain`.

        Includes only conversations without a user.
        """
        ...

    async def survey(self) -> Survey:
        """Find the conversations that need work after the daemon starts, as of the last `maintain`."""
        ...

    async def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        """Index all events that are not indexed yet and save snapshots, in one transaction.

        Raises:
            StorageFull: Nothing was written. The log is complete without the index.
        """
        ...

    async def rebuild(self) -> None:
        """Replace an unreadable index with an empty one. All conversations are unindexed afterwards."""
        ...

    async def erase(self, conversation: str) -> None:
        """Erase every line before the conversation's newest tombstone from the disk. Idempotent.

        Raises:
            StorageFull: Retry the call once there is space.
        """
        ...

    async def forget(self, conversation: str) -> None:
        """Erase a deleted conversation and its tombstone, so that its name can start a new history. Idempotent.

        Does nothing if the conversation was recreated. The caller must block writes to it during the call.

        Raises:
            StorageFull: Nothing was done.
        """
        ...

    async def unerased(self) -> list[str]:
        """Return the deleted conversations whose events have not been erased yet."""
        ...

    async def sizes(self) -> tuple[int, int]:
        """Return the sizes of the log and its write-ahead log, in bytes."""
        ...

    async def close(self) -> None:
        """Close the log. Idempotent."""
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
        """Return a page of summaries, most recently changed first, and the cursor of the next page, as of the last
        `maintain`.

        Args:
            query: Part of the id or title, ignoring case.
            user: Only this user's conversations.
            active: True to return only conversations with unfinished tasks, False to return only those without.
            kind: "chat" for chats, another value for everything else.
            limit: Maximum number of summaries.
            cursor: Start after this cursor.

        Raises:
            BadCursor: The cursor was not returned by this log.
        """
        ...
