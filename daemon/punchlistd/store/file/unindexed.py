"""In-memory index of the log's tail, for events that are not in the index file yet."""

from bisect import insort
from collections.abc import Iterable, Sequence

from punchlistd.store.port import Sealed, Stored, side_of
from punchlistd.store.record import holds_tombstone, is_plain


class Unindexed:
    """Each conversation's rows, keys and tombstones after the indexed position."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}  # the lists are never empty
        self.keys: dict[str, dict[str, int]] = {}
        self.tombstones: dict[str, int] = {}

    def add(self, entries: Sequence[Sealed], first: int, row: int) -> None:
        rows = self.rows
        for seq, entry in enumerate(entries, first):
            conversation_rows = rows.get(entry.conversation)
            if conversation_rows is None:
                rows[entry.conversation] = [row]
            elif conversation_rows[-1] != row:
                conversation_rows.append(row)
            if entry.key:
                self._add_key(entry.conversation, entry.key, seq)
            if entry.tombstone:
                self.tombstones[entry.conversation] = seq

    def add_stored(self, lines: Iterable[Stored], row: int, *, is_first: bool = False) -> None:
        """Add the lines of a row read from the log. `is_first` means that the scan started at the log's beginning."""
        for stored in lines:
            conversation = stored.conversation
            # A tombstone without earlier events needs no erasure, because its conversation has already been erased.
            is_erased = is_first and conversation not in self.rows
            self.add_row(conversation, row)
            if not is_plain(stored.line) and (key := side_of(stored).key):
                self._add_key(conversation, key, stored.seq)
            if holds_tombstone(stored.line) and not is_erased:
                self.tombstones[conversation] = stored.seq

    def add_row(self, conversation: str, row: int) -> None:
        """Record that a row contains, or may contain, lines of a conversation."""
        rows = self.rows.get(conversation)
        if rows is None:
            self.rows[conversation] = [row]
        elif rows[-1] < row:
            rows.append(row)
        elif rows[-1] > row and row not in rows:  # damaged rows are added after the scan, out of order
            insort(rows, row)

    def _add_key(self, conversation: str, key: str, seq: int) -> None:
        self.keys.setdefault(conversation, {})[key] = seq
