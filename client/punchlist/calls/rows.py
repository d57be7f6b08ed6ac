"""The rows of a list, kept current by the pushes of view `rows`.

The cost of a push depends on its changes, not on the length of the list.
"""

from bisect import bisect_left

from punchlist_schemas.results import RowsPush
from punchlist_schemas.things import Counts, Damage, Row, Shared


class Rows:
    """The current rows of one list.

    Attributes:
        by_id: Rows by task id.
        order: The same rows in list order.
        counts: Number of tasks in each state.
        version: Version of the conversation that the rows show.
        seq: Position in the log to continue from.
        damaged: Damage to the log, at which the list ends; None if the list is complete.
        shared: Why a shared list may lack its latest changes on this machine; None if it is up to date.
        departures: Number of times that the owner of a task has left or come back.
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
        """Apply a push. Return whether the list is complete; False if more parts follow."""
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
                old = self.by_id.get(row.id)
                self.departures += old is not None and old.left_at != row.left_at
                self._put(row)
        if push.more:
            return False
        if self._incoming is not None:
            self.by_id, self._incoming = self._incoming, None
            self.order = sorted(self.by_id.values(), key=_sort_key)
            self._rearranged = True
        self.counts, self.version, self.seq = push.counts, push.version, push.seq
        self.damaged, self.shared = push.damaged, push.shared
        return True

    def begin(self) -> None:
        """Drop the parts of an incomplete list, for a new connection."""
        self._incoming = None

    def take_changes(self) -> set[str] | None:
        """Return the ids of the rows changed since the previous call; None if rows were added, removed or moved."""
        changed, rearranged = self._changed, self._rearranged
        self._changed, self._rearranged = set(), False
        return None if rearranged else changed

    def _put(self, row: Row) -> None:
        old = self.by_id.get(row.id)
        if old is not None and _sort_key(old) == _sort_key(row):
            self.order[self._index(old)] = row
            self._changed.add(row.id)
            self._rearranged = self._rearranged or old.parent != row.parent
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
        return bisect_left(self.order, _sort_key(row), key=_sort_key)


def _sort_key(row: Row) -> tuple[str, str]:
    return row.rank, row.id
