"""A list as its rows, kept by folding the pushes of view `rows`: each costs what changed, not the list."""

from bisect import bisect_left

from punchlist_schemas.results import RowsPush
from punchlist_schemas.things import Counts, Damage, Row, Shared


class Rows:
    """The newest rows of one list.

    Attributes:
        by_id: The rows by the id of their task.
        order: The same in the order of the list.
        counts: How many tasks of the list are in each state.
        version: The conversation's version that this is the list of.
        seq: The position in the log behind which the next push is asked for.
        damaged: Where the list ends because its log is damaged, None for a whole list.
        shared: Why the newest changes of a list of a space may be missing here, None if they are not.
        departures: How often the owner of a task has left or come back.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, Row] = {}
        self.order: list[Row] = []
        self.counts = Counts()
        self.version = 0
        self.seq = 0
        self.damaged: Damage | None = None
        self.shared: Shared | None = None
        self.departures = 0
        self._incoming: dict[str, Row] | None = None
        self._changed: set[str] = set()
        self._rearranged = True

    def fold(self, push: RowsPush) -> bool:
        """Take a push; returns whether this is the whole list, False while more pieces follow."""
        if push.reset:
            self._incoming = {}
        if self._incoming is not None:
            for name in push.gone:
                self._incoming.pop(name, None)
            self._incoming.update((row.id, row) for row in push.rows)
        else:
            for name in push.gone:
                self._remove(name)
            for row in push.rows:
                known = self.by_id.get(row.id)
                self.departures += known is not None and known.left_at != row.left_at
                self._put(row)
        if push.more:
            return False
        if self._incoming is not None:
            self.by_id, self._incoming = self._incoming, None
            self.order = sorted(self.by_id.values(), key=_place)
            self._rearranged = True
        self.counts, self.version, self.seq = push.counts, push.version, push.seq
        self.damaged, self.shared = push.damaged, push.shared
        return True

    def begin(self) -> None:
        """A new connection: what came of a whole list that was cut is forgotten."""
        self._incoming = None

    def take_changes(self) -> set[str] | None:
        """The ids of the rows that look different since the last question; None: rows came, went or moved."""
        changed, rearranged = self._changed, self._rearranged
        self._changed, self._rearranged = set(), False
        return None if rearranged else changed

    def _put(self, row: Row) -> None:
        known = self.by_id.get(row.id)
        if known is not None and _place(known) == _place(row):
            self.order[self._index(known)] = row
            self._changed.add(row.id)
            self._rearranged = self._rearranged or known.parent != row.parent
        else:
            self._remove(row.id)
            self.order.insert(self._index(row), row)
            self._rearranged = True
        self.by_id[row.id] = row

    def _remove(self, name: str) -> None:
        row = self.by_id.pop(name, None)
        if row is not None:
            del self.order[self._index(row)]
            self._rearranged = True

    def _index(self, row: Row) -> int:
        return bisect_left(self.order, _place(row), key=_place)


def _place(row: Row) -> tuple[str, str]:
    return row.rank, row.id
