"""Short names of lists: `website` for `website-8f909d367e2b`, while it is unambiguous.

Only lists that belong to no user have one.
"""

from collections.abc import Iterable

from punchlist_schemas.repository import stem_of


class ShortNames:
    """The short names of all repositories' lists. Empty until `fill` is called with the names of all lists."""

    def __init__(self) -> None:
        self.is_filled = False
        self._names: set[str] = set()
        self._by_stem: dict[str, set[str]] = {}

    def fill(self, names: Iterable[str]) -> None:
        """Set the names of all existing lists."""
        self.is_filled = True
        for name in names:
            self.note(name, exists=True)

    def note(self, name: str, *, exists: bool) -> None:
        """Record that a list was opened or deleted."""
        if not self.is_filled or exists == (name in self._names):
            return
        stem = stem_of(name)
        if exists:
            self._names.add(name)
            if stem:
                self._by_stem.setdefault(stem, set()).add(name)
        else:
            self._names.discard(name)
            if stem:
                self._by_stem[stem].discard(name)

    def id_of(self, name: str) -> str | None:
        """Return the only list that has this short name."""
        ids = self._by_stem.get(name, ())
        return next(iter(ids)) if len(ids) == 1 and name not in self._names else None

    def sharing(self, name: str) -> list[str]:
        """Return the lists that share a short name, sorted; empty if the name is unique or is itself a list's id."""
        ids = self._by_stem.get(name, ())
        return sorted(ids) if len(ids) > 1 and name not in self._names else []

    def of(self, id: str) -> str:
        """Return the short name of a list, or "" if it has none. The list need not exist yet."""
        stem = stem_of(id)
        is_only = self.is_filled and stem not in self._names and self._by_stem.get(stem, set()) <= {id}
        return stem if is_only else ""
