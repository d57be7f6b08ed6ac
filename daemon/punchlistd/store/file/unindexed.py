"""The end of the log that the index does not hold yet, indexed in memory."""

from bisect import insort
from collections.abc import Iterable, Sequence

from punchlistd.store.port import Sealed, Stored, side_of
from punchlistd.store.record import holds_tombstone, is_plain


class Unindexed:
    """Where the events after the indexed position are: rows, keys and tombstones of each conversation."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}  # none of the lists is empty
        self.keys: dict[str, dict[str, int]] = {}
        self.tombstones: dict[str, int] = {}

    def add(self, entries: Sequence[Sealed], first: int, row: int) -> None:
        rows = self.rows
        for seq, entry in enumerate(entries, first):
            known = rows.get(entry.conversation)
            if known is None:
                rows[entry.conversation] = [row]
            elif known[-1] != row:
                known.append(row)
            if entry.key:
                self._note_key(entry.conversation, entry.key, seq)
            if entry.tombstone:
                self.tombstones[entry.conversation] = seq

    def add_stored(self, lines: Iterable[Stored], row: int, *, is_first: bool = False) -> None:
        """Take in a row that was read back; `is_first` if no index knows what was before these rows."""
        for stored in lines:
            conversation = stored.conversation
            # A tombstone with nothing before it has done its work: its conversation was erased.
            is_erased = is_first and conversation not in self.rows
            self.note(conversation, row)
            if not is_plain(stored.line) and (key := side_of(stored).key):
                self._note_key(conversation, key, stored.seq)
            if holds_tombstone(stored.line) and not is_erased:
                self.tombstones[conversation] = stored.seq

    def note(self, conversation: str, row: int) -> None:
        """Remember that a row holds, or seems to hold, lines of a conversation."""
        rows = self.rows.get(conversation)
        if rows is None:
            self.rows[conversation] = [row]
        elif rows[-1] < row:
            rows.append(row)
        elif rows[-1] > row and row not in rows:  # found again by what is left of a damaged row
            insort(rows, row)

    def _note_key(self, conversation: str, key: str, seq: int) -> None:
        self.keys.setdefault(conversation, {})[key] = seq
