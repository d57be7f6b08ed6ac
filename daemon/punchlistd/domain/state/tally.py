"""Counts a list's events by actor and time, in bounded memory.

Time is divided into at most `MAX_CELLS` cells of equal length, a power of two of milliseconds. When the events span
more, the length is doubled and cells are joined. The size thus doesn't depend on the length of the history.
"""

from collections.abc import Iterable

import msgspec

MAX_CELLS = 200
"""Maximum number of cells between the first and the last event, both included."""

SHORTEST = 10
"""Length of the shortest cell, as a power of two of milliseconds: about a second, so that a busy hour joins cells only
a few times."""

MAX_ACTORS = 16
"""Maximum number of actors counted in one cell. The rest count as ""."""

SHOWN_ACTORS = 8
"""Maximum number of actors in a bucket. The rest count as ""."""

Bar = tuple[int, int, tuple[tuple[str, int], ...]]
"""A bucket: when it begins, the version at its end, and the events of each actor, most first."""


class Cell(msgspec.Struct, array_like=True, gc=False):
    """The events of one cell: the last one's version and position, the number by actor, and the earliest time.

    `earliest` is before the cell if the clock was set back.
    """

    index: int
    version: int = 0
    seq: int = 0
    counts: dict[str, int] = {}
    earliest: int = 0


class Tally(msgspec.Struct, array_like=True):
    """The events of a list since it was created, or since it was last erased.

    An event counts at the time of the event before it if the clock was set back in between, so that later cells have
    later versions.
    """

    shift: int = SHORTEST
    cells: list[Cell] = []

    def add(self, at: int, version: int, seq: int, actor: str) -> None:
        """Count the list's next event."""
        cells = self.cells
        index = at >> self.shift
        if not cells or index > cells[-1].index:
            if cells and index - cells[0].index >= MAX_CELLS:
                index = self._widen(at)
            if not cells or index > cells[-1].index:
                cells.append(Cell(index, version, seq, {actor: 1}, at))
                return
        cell = cells[-1]
        cell.version, cell.seq = version, seq
        cell.earliest = min(cell.earliest, at)
        counts = cell.counts
        if actor in counts:
            counts[actor] += 1
        else:
            actor = actor if len(counts) < MAX_ACTORS else ""
            counts[actor] = counts.get(actor, 0) + 1

    def _widen(self, at: int) -> int:
        """Join cells until there is room for an event at this time, and return the index of its cell."""
        begin, steps = self.cells[0].index << self.shift, 0
        while (at >> self.shift + steps) - (begin >> self.shift + steps) >= MAX_CELLS:
            steps += 1
        cells: list[Cell] = []
        for cell in self.cells:
            index = cell.index >> steps
            if not cells or cells[-1].index != index:
                cells.append(Cell(index, earliest=cell.earliest))
            joined = cells[-1]
            joined.version, joined.seq = cell.version, cell.seq
            joined.earliest = min(joined.earliest, cell.earliest)
            joined.counts = _sum(MAX_ACTORS, (joined.counts, cell.counts))
        self.shift += steps
        self.cells[:] = cells
        return at >> self.shift

    def find_before(self, at: int = 0, version: int = 0) -> tuple[int, int]:
        """Return version and position of an event not far before the first one at or after a time or version.

        These are 0 if the first cell may contain that event.
        """
        index = at >> self.shift
        before = [cell for cell in self.cells if (cell.version < version if version else cell.index < index)]
        return (before[-1].version, before[-1].seq) if before else (0, 0)

    def find_last(self, at: int) -> int:
        """Return the version of an event not far after the last one at or before a time; 0 if there is none."""
        return max((cell.version for cell in self.cells if cell.earliest <= at), default=0)

    def build_bars(self, most: int) -> list[Bar]:
        """Divide the time between the first and the last event into at most this many equal parts."""
        if not self.cells:
            return []
        first = self.cells[0].index
        span = self.cells[-1].index - first + 1
        width = -(-span // most)
        parts: list[list[Cell]] = [[] for _ in range(-(-span // width))]
        for cell in self.cells:
            parts[(cell.index - first) // width].append(cell)
        bars: list[Bar] = []
        version = 0
        for number, part in enumerate(parts):
            version = part[-1].version if part else version
            by = _sum(SHOWN_ACTORS, (cell.counts for cell in part))
            bars.append(((first + number * width) << self.shift, version, tuple(by.items())))
        return bars


def _sum(most: int, parts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Add up counts by actor. Keep the actors with the most events, and add the rest as ""."""
    sums: dict[str, int] = {}
    for part in parts:
        for actor, count in part.items():
            sums[actor] = sums.get(actor, 0) + count
    rest = sums.pop("", 0)
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    rest += sum(count for _, count in ordered[most:])
    kept = dict(ordered[:most])
    return {**kept, "": rest} if rest else kept
