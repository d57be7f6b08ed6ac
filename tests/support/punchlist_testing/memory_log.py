"""An in-memory log for simulations and tests. It keeps the port's whole contract except durability."""

import heapq
import secrets
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from punchlistd.store.file.listing import fold, format_cursor, is_timed, parse_cursor, search_text
from punchlistd.store.port import Damaged, Loaded, Sealed, Snapshot, Stored, Survey
from punchlistd.store.record import is_tombstone, key_hash, take_groups, verify_chain


def _kind(summary: bytes) -> str:
    return msgspec.json.decode(summary).get("kind", "list") if summary else "list"


class MemoryLog:
    """An in-memory `EventLog`. No operation waits.

    Args:
        at_once: Whether `append_now` commits, as on a fast disk. If not, it never commits, as on a slow disk. May be
            changed.
    """

    def __init__(self, at_once: bool = False) -> None:
        self.at_once = at_once
        self.epoch = secrets.token_hex(8)
        self.regressed: tuple[int, int] | None = None
        self.damaged: dict[str, Damaged] = {}
        self._lines: list[bytes] = []  # b"" for an erased line
        self._seqs: dict[str, list[int]] = {}
        self._keys: dict[str, dict[str, int]] = {}
        self._tombstones: dict[str, int] = {}
        self._indexed = 0
        self._states: dict[str, Snapshot] = {}
        self._summaries: dict[str, Snapshot] = {}
        self._sessions: dict[tuple[str, str], str] = {}

    @property
    def head(self) -> int:
        return len(self._lines)

    @property
    def unindexed(self) -> int:
        return self.head - self._indexed

    def unindexed_conversations(self) -> list[str]:
        """Return the conversations with events since the last `maintain`."""
        return [name for name, seqs in self._seqs.items() if seqs and seqs[-1] > self._indexed]

    @property
    def quick(self) -> bool:
        return self.at_once

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        if self.at_once:
            self._append(entries)
        return self.at_once

    async def append(self, entries: Sequence[Sealed]) -> None:
        self._append(entries)

    def _append(self, entries: Sequence[Sealed]) -> None:
        for entry in entries:
            self._lines.append(entry.line)
            self._seqs.setdefault(entry.conversation, []).append(self.head)
            if entry.key:
                self._keys.setdefault(entry.conversation, {})[entry.key] = self.head
            if entry.tombstone:
                self._tombstones[entry.conversation] = self.head

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        return take_groups(self._after(after, conversation), limit, max_bytes)

    async def load(self, conversation: str) -> Loaded:
        saved = self._states.get(conversation)
        state, version, seq, check = (saved.state, saved.version, saved.seq, saved.check) if saved else (None, 0, 0, "")
        tail = list(self._after(seq, conversation))
        verify_chain(conversation, version, check, tail)
        return Loaded(state, version, seq, check, tail)

    async def keys(self, conversation: str) -> list[int]:
        return [key_hash(key) for key in self._keys.get(conversation, ())]

    async def find_key(self, conversation: str, key: str) -> list[Stored]:
        seq = self._keys.get(conversation, {}).get(key)
        return take_groups(self._after(seq - 1, conversation), 1, 1) if seq else []

    async def resolve(self, session: str) -> list[str]:
        return [name for (key, _), name in self._sessions.items() if key == session]

    async def owner(self, conversation: str) -> str | None:
        saved = self._summaries.get(conversation)
        return None if saved is None or saved.deleted else saved.user

    async def names(self, user: str) -> list[str]:
        return sorted(name for name, saved in self._summaries.items() if saved.user == user and not saved.deleted)

    async def totals(self) -> tuple[int, int]:
        """Return the numbers of open and in-progress tasks over all conversations without a user."""
        alive = [saved for saved in self._summaries.values() if not (saved.deleted or saved.user)]
        return sum(saved.open for saved in alive), sum(saved.in_progress for saved in alive)

    async def survey(self) -> Survey:
        timed = sorted(
            name
            for name, saved in self._summaries.items()
            if not saved.deleted and is_timed(saved.summary, saved.open + saved.in_progress)
        )
        return Survey(timed, list(self._tombstones))

    async def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        """Save snapshots; this log has no other index."""
        self._indexed = self.head
        for snapshot in snapshots:
            name = snapshot.conversation
            self._detach(name)
            if not snapshot.deleted:
                self._sessions.update({(session, snapshot.user): name for session in snapshot.sessions})
            if snapshot.state is not None:
                self._states[name] = snapshot
            self._summaries[name] = snapshot

    async def rebuild(self) -> None:
        self._indexed = 0
        self._states.clear()
        self._summaries.clear()
        self._sessions.clear()

    async def erase(self, conversation: str) -> None:
        """Erase every line before the newest tombstone."""
        tombstone = self._tombstones.pop(conversation, 0)
        seqs = self._seqs.get(conversation, [])
        for seq in seqs:
            if seq < tombstone:
                self._lines[seq - 1] = b""
        self._seqs[conversation] = [seq for seq in seqs if seq >= tombstone]
        keys = self._keys.get(conversation, {})
        self._keys[conversation] = {key: seq for key, seq in keys.items() if seq >= tombstone}
        for saved in (self._states, self._summaries):
            if conversation in saved and saved[conversation].seq < tombstone:
                del saved[conversation]
                self._detach(conversation)

    async def forget(self, conversation: str) -> None:
        """Erase a deleted conversation and its tombstone."""
        seqs = self._seqs.get(conversation, [])
        if seqs and is_tombstone(Stored(seqs[-1], self._lines[seqs[-1] - 1]).wire):
            self._tombstones[conversation] = seqs[-1] + 1
            await MemoryLog.erase(self, conversation)

    async def unerased(self) -> list[str]:
        return list(self._tombstones)

    async def sizes(self) -> tuple[int, int]:
        """Return the bytes of all lines, and 0 for the write-ahead log."""
        return sum(map(len, self._lines)), 0

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def _after(self, after: int, conversation: str | None) -> Iterator[Stored]:
        if conversation is None:
            return (Stored(seq, line) for seq, line in enumerate(self._lines[after:], after + 1) if line)
        seqs = self._seqs.get(conversation, [])
        return (Stored(seq, self._lines[seq - 1]) for seq in seqs[bisect_right(seqs, after) :])

    def _detach(self, conversation: str) -> None:
        for key in [key for key, name in self._sessions.items() if name == conversation]:
            del self._sessions[key]

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
        after = None
        if cursor is not None:
            seq, name = parse_cursor(cursor)
            after = (-seq, name)
        folded_query = fold(query)
        matching = [
            (-saved.seq, name)
            for name, saved in self._summaries.items()
            if not saved.deleted
            and (user is None or saved.user == user)
            and (active is None or (saved.open + saved.in_progress > 0) == active)
            and kind in (None, _kind(saved.summary))
            and folded_query in search_text(name, saved.summary)
        ]
        page = heapq.nsmallest(limit + 1, (place for place in matching if after is None or place > after))
        summaries = [self._summaries[name].summary for _, name in page[:limit]]
        return summaries, format_cursor(-page[limit - 1][0], page[limit - 1][1]) if len(page) > limit else None
