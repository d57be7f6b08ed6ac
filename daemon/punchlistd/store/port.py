"""The port of the event log: what the engine asks of a store, in the words of the log alone.

A store keeps lines (see `punchlistd.store.record`) in one order for ever, and beside them an index that follows behind
and could be built again from the lines at any time. It knows nothing of tasks, sockets or clients. `SqliteLog` and the
log in memory that tests run on are held to it by one suite of tests.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec


class Side(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is kept beside an event without going over the wire.

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
    """A line as it stands in the log. Only its position is known for sure; the rest is cut out of it when asked for."""

    seq: int
    line: bytes

    @property
    def wire(self) -> bytes:
        """The JSON of the event, exactly as it goes over the wire."""
        return self.line[: self.line.index(b"\t")]

    @property
    def side(self) -> bytes:
        """The JSON of the `Side`, or nothing."""
        return self.line[self.line.index(b"\t") + 1 : self.line.rindex(b"\t")]

    @property
    def check(self) -> str:
        """Head of the conversation's chain after this event."""
        return str(self.line[self.line.rindex(b"\t") + 1 :], "ascii", "replace")

    @property
    def conversation(self) -> str:
        """The conversation's id. Raises ValueError where the line is no record."""
        return str(self._header()[2], "ascii")

    @property
    def version(self) -> int:
        """The event's number within its conversation. Raises ValueError where the line is no record."""
        return int(self._header()[3])

    @property
    def left(self) -> int:
        """How many events of the same group follow."""
        return side_of(self).left if b'"left":' in self.side else 0

    def _header(self) -> re.Match[bytes]:
        if found := _HEADER.match(self.line):
            return found
        raise ValueError(f"the line at {self.seq} is no record")


def side_of(stored: Stored) -> Side:
    """What was kept beside a stored event."""
    side = stored.side
    return _decode_side(side) if side else _NO_SIDE


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """A conversation as of `version`, at position `seq`, saved so that opening it costs its size and not its history.

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


class StorageFull(Exception):
    """There is no space left: nothing was written, reads go on, and the same call may be tried again later."""


class StorageFailed(Exception):
    """Writing failed below us and its outcome is unknown. The log refuses everything afterwards."""


class Damaged(Exception):
    """Stored bytes are not what was once written. The others are served; nothing is repaired silently.

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
    """Events that follow a position can't be had any more.

    Attributes:
        after: The position.
        first: Position of the next event that can be had; one behind the log's end where there is none.
    """

    def __init__(self, after: int, first: int) -> None:
        super().__init__(f"the events behind {after} and before {first} can't be had any more")
        self.after = after
        self.first = first


class LogUnusable(Exception):
    """The log can't be opened and was not touched. The message names the file and the way out."""


class BadCursor(ValueError):
    """A cursor that no `list` of ours has given out."""


class EventLog(Protocol):
    """An append-only log of all conversations, and the index that follows behind it.

    Every operation but the plain attributes may raise StorageFailed once the log has failed. One that needs the index
    may raise Damaged for no conversation ("") where that can't be read: `rebuild` makes it anew.
    """

    @property
    def epoch(self) -> str:
        """Random id of the log itself: positions of another epoch mean nothing."""
        ...

    @property
    def head(self) -> int:
        """Position of the last durable event, 0 while there is none."""
        ...

    @property
    def regressed(self) -> tuple[int, int] | None:
        """`(had, has)` where the log was found shorter than it had been, or another past under the same epoch."""
        ...

    @property
    def unindexed(self) -> int:
        """How many events the index lags behind; `maintain` brings it to 0."""
        ...

    def unindexed_conversations(self) -> Collection[str]:
        """Conversations with events that the index does not hold, as of now: their saved summaries are out of date."""
        ...

    @property
    def spoiled(self) -> Mapping[str, Damaged]:
        """Of each conversation the spoiled event that was come upon first since the log was opened."""
        ...

    @property
    def quick(self) -> bool:
        """Whether `append_now` would commit now."""
        ...

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        """As `append`, but without a wait; False, and nothing done, if that would hold up the caller for long.

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
        """Events after a position, at least one group if there is any; more than asked for only to finish a group.

        They end before the first event that can't be had any more.

        Raises:
            Damaged: That is the very next one, and of the conversation asked for.
            Gap: It is the very next one, and no conversation was asked for.
        """
        ...

    async def load(self, conversation: str) -> Loaded:
        """The conversation's newest snapshot and everything after it.

        Raises:
            Damaged: An event does not follow from the one before it.
        """
        ...

    async def keys(self, conversation: str) -> list[int]:
        """`key_hash` of each idempotency key the conversation has seen, in no order."""
        ...

    async def find_key(self, conversation: str, key: str) -> list[Stored]:
        """The group of events that used the key, or nothing."""
        ...

    async def resolve(self, session: str) -> list[str]:
        """The conversations an outside session is attached to, one of each owner at most, as of the last `maintain`."""
        ...

    async def owner(self, conversation: str) -> str | None:
        """The user of a conversation ("" for nobody), None if there is none, as of the last `maintain`."""
        ...

    async def names(self, user: str) -> list[str]:
        """Conversations of a user in the order of their ids, as of the last `maintain`."""
        ...

    async def totals(self) -> tuple[int, int]:
        """Tasks that are open (pending or paused) and in progress, as of the last `maintain`.

        Only the conversations that belong to no user count.
        """
        ...

    async def timed(self) -> list[str]:
        """Conversations that wait for a time, as of the last `maintain`.

        They clear themselves when idle and have finished tasks alone, or have deferred tasks.
        """
        ...

    async def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        """Index what is not indexed yet and save snapshots, in one transaction.

        Raises:
            StorageFull: Nothing was written; the log itself is complete without it.
        """
        ...

    async def rebuild(self) -> None:
        """Make the index anew where it can't be read: empty, so that every conversation is unindexed.

        Raises:
            Damaged: The log can't be read as a whole either; nothing was changed.
            StorageFull: There is no room for it.
        """
        ...

    async def erase(self, conversation: str) -> None:
        """Take every line before the newest tombstone off the disk for good. Repeating it is harmless.

        Raises:
            StorageFull: It has to be repeated once there is space.
        """
        ...

    async def unerased(self) -> list[str]:
        """Conversations with a tombstone whose events before it are still to be erased."""
        ...

    async def sizes(self) -> tuple[int, int]:
        """Bytes of the log and of what was written ahead of it."""
        ...

    async def close(self) -> None:
        """Let go of everything. Repeating it is harmless."""
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
        """Summaries, newest changed first, and the cursor of the next page, as of the last `maintain`.

        `query` is a part of the id or title, in any case; `active` asks for those with (or without) unfinished tasks;
        `kind` for those of one kind.

        Raises:
            BadCursor: The cursor is none of ours.
        """
        ...
