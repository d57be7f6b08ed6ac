"""Removal of damaged lines from a log: selects the lines to keep and the replacements for the lost ones.

Intact lines keep their positions. Missing versions of a conversation are replaced by filler events at positions whose
lines are lost. The lines after a filler get new checks, but their content stays unchanged. Unused positions are left
empty, as after an erasure. The log is read twice, so that it doesn't have to fit in memory.
"""

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable

import msgspec

from punchlistd.store.file.lines import ROW, Row, checksum, is_lost, join, lost_row, salvage, split
from punchlistd.store.file.reading import rows
from punchlistd.store.port import Side, Stored
from punchlistd.store.record import is_tombstone, parse, reseal, seal, verify
from punchlistd.store.recovery.verify import Problem

EVENT_LOST = {"type": "EventLost"}
"""Replacement for a lost event. It has no effect."""

ACTOR = "punch daemon verify --repair"


class Source(msgspec.Struct):
    """A damaged log, its last known position, and its index (or an empty database in place of the index)."""

    connection: sqlite3.Connection
    head: int
    index: sqlite3.Connection


class _Filler(msgspec.Struct, frozen=True):
    """An event that replaces a lost one."""

    conversation: str
    version: int
    at: int
    event: dict[str, str]


class _Head(msgspec.Struct, frozen=True):
    """The last kept event of a conversation."""

    seq: int
    version: int
    check: str
    at: int


class RepairPlan(msgspec.Struct):
    """The plan for removing damage from a log.

    Attributes:
        lost: The lost events.
        versions: Last version of each conversation.
        bridged: Version of the last replaced event, by conversation.
        fillers: Replacements for lost events, by position.
        dropped: Positions of readable lines that can't be kept.
        salvaged: Damaged rows with their intact lines, by last position.
    """

    lost: list[Problem] = []
    versions: dict[str, int] = {}
    bridged: dict[str, int] = {}
    fillers: dict[int, _Filler] = {}
    dropped: set[int] = set()
    salvaged: dict[int, tuple[Row, list[Stored]]] = {}


class _Timestamp(msgspec.Struct):
    at: int


_decode_timestamp = msgspec.json.Decoder(_Timestamp).decode


def _split_or_none(row: Row) -> list[Stored] | None:
    try:
        return split(row)
    except (ValueError, IndexError):
        return None


def _contiguous_rows(source: Source) -> Generator[Row]:
    """Yield rows without gaps between them. Damaged and lost rows are extended back to the previous row."""
    gap: Row | None = None
    for row in rows(source, 0):
        if is_lost(row):
            gap = lost_row(gap[1] if gap else row[1], row[0])
            continue
        if gap is not None and _split_or_none(row) is None:
            row = (row[0], gap[1], *row[2:])  # noqa: PLW2901 - its first position can't be trusted
        elif gap is not None:
            yield gap
        gap = None
        yield row
    if gap is not None:
        yield gap


class _Planner:
    """The first pass over a log, which checks each conversation's versions and chooses replacements for lost events."""

    def __init__(self, source: Source, owners: dict[str, str]) -> None:
        self._source = source
        self._owners = owners
        self._heads: dict[str, _Head] = {}
        self._free: list[int] = []
        self._names: dict[int, str] = {}
        self._ended: set[str] = set()
        self.plan = RepairPlan()

    def run(self) -> RepairPlan:
        for row in _contiguous_rows(self._source):
            lines = _split_or_none(row)
            if lines is None:
                result = salvage(row, lambda name, _: self._heads[name].check if name in self._heads else "")
                self._names.update((seq, name) for seq, name, _ in result.bad)
                lines = result.good
                self.plan.salvaged[row[0]] = row, lines
                kept = {stored.seq for stored in lines}
                self._free += [seq for seq in range(row[1], row[0] + 1) if seq not in kept]
            previous: Stored | None = None
            for stored in lines:
                self._complete_group(previous, stored)
                self._follow(stored)
                previous = stored
            self._complete_group(previous, None)
        self.plan.versions = {name: head.version for name, head in self._heads.items()}
        self._report_unassigned()
        return self.plan

    def _follow(self, stored: Stored) -> None:
        try:
            parse(stored.line, stored.seq)
        except ValueError as error:
            self._drop(stored.seq, "", str(error))
            return
        name, version = stored.conversation, stored.version
        head = self._heads.get(name)
        due = head.version + 1 if head else 1
        at = _decode_timestamp(stored.wire).at
        is_start = head is None and is_tombstone(stored.wire)
        if name in self._ended or (version < due and not is_start):
            self._drop(stored.seq, name, f"expected version {due}, found version {version}")
            return
        previous = head or _Head(0, 0, "", at)
        if version > due and not is_start and not self._bridge(name, due, version, previous, stored.seq):
            self._ended.add(name)
            self._drop(stored.seq, name, "the events before it are lost; how many is unknown")
            return
        self._heads[name] = _Head(stored.seq, version, stored.check, at)

    def _complete_group(self, last: Stored | None, following: Stored | None) -> None:
        """Replace the lost end of a group. Its events were at the positions directly after the last intact line."""
        if last is None or not last.remaining or last.conversation in self._ended:
            return
        name, remaining = last.conversation, last.remaining
        if following is not None and following.conversation == name and following.seq <= last.seq + remaining:
            return
        head = self._heads.get(name)
        if head and self._bridge(name, head.version + 1, head.version + remaining + 1, head, head.seq + remaining + 1):
            self._heads[name] = _Head(head.seq + remaining, head.version + remaining, "", head.at)

    def _drop(self, seq: int, name: str, reason: str) -> None:
        self.plan.dropped.add(seq)
        self.plan.lost.append(Problem(name, seq, reason))

    def _bridge(self, name: str, due: int, version: int, head: _Head, before: int) -> bool:
        """Replace the versions from `due` up to, but not including, `version`.

        Args:
            name: The conversation.
            due: First missing version.
            version: Version of the next intact event.
            head: The conversation's last kept event.
            before: Position of the next intact event.

        Returns:
            Whether there are enough free positions between the two events.
        """
        free = self._free[bisect_right(self._free, head.seq) : bisect_left(self._free, before)]
        missing = version - due
        is_start = head.version == 0
        if len(free) < missing and not (is_start and len(free) > 1):
            return False
        count = min(missing, len(free))
        # Gaps are filled in the order of their ends, so the first free positions are the least useful for later gaps.
        chosen = free[:count]
        events: list[dict[str, str]] = [EVENT_LOST] * count
        if is_start:
            opened = {"type": "ConversationOpened"} | ({"user": self._owners[name]} if self._owners.get(name) else {})
            events[0] = opened
            # There are fewer positions than versions because the earlier history was erased. Insert a tombstone, which
            # may skip versions.
            if count < missing:
                events[:2] = [{"type": "ConversationDeleted"}, opened]
        for filler_version, (seq, event) in enumerate(zip(chosen, events, strict=True), version - count):
            self.plan.fillers[seq] = _Filler(name, filler_version, head.at, event)
            self.plan.lost.append(Problem(name, seq, "it is lost"))
            self._free.remove(seq)
        self.plan.bridged[name] = version - 1
        return True

    def _report_unassigned(self) -> None:
        """Report the remaining free positions. Their events had been erased or were the last of a conversation."""
        start = 0
        for index, seq in enumerate(self._free):
            start = start or seq
            following = self._free[index + 1] if index + 1 < len(self._free) else 0
            if following != seq + 1 or self._names.get(seq) != self._names.get(following):
                reason = "it is lost" if start == seq else f"it and those up to {seq} are lost"
                self.plan.lost.append(Problem(self._names.get(start, ""), start, reason))
                start = 0
        self.plan.lost.sort(key=lambda problem: problem.seq)


def plan_repair(source: Source, owners: dict[str, str]) -> RepairPlan:
    """Find the lost events and choose their replacements.

    Args:
        source: The log.
        owners: Users by conversation, for conversations whose first event is lost.
    """
    return _Planner(source, owners).run()


def remaining_rows(source: Source, plan: RepairPlan) -> Generator[tuple[Row, list[Stored]]]:
    """Yield the rows of the repaired log and their lines, from the first position to the last."""
    heads: dict[str, tuple[str, int]] = {}
    due = 1
    for row in _contiguous_rows(source):
        last, first = row[0], max(row[1], due)
        lines = plan.salvaged[last][1] if last in plan.salvaged else _split_or_none(row) or []
        kept = {stored.seq: stored for stored in lines if stored.seq >= due and stored.seq not in plan.dropped}
        changed = last in plan.salvaged or len(kept) != len(lines) or first != row[1]
        written: list[Stored] = []
        for seq in sorted({*kept, *(seq for seq in plan.fillers if first <= seq <= last)} if changed else kept):
            name = kept[seq].conversation if seq in kept else plan.fillers[seq].conversation
            check, remaining = heads.get(name, ("", 0))
            if seq not in kept:
                stored = _build_filler(seq, plan.fillers[seq], check, max(0, remaining - 1))
            elif not verify(check, kept[seq]):
                stored = Stored(seq, reseal(check, kept[seq].line))
                changed = True
            else:
                stored = kept[seq]
            heads[name] = stored.check, stored.remaining
            written.append(stored)
        body = join([stored.line for stored in written]) if changed else row[3]
        yield (last, first, checksum(body), body), written
        due = last + 1


def _build_filler(seq: int, filler: _Filler, check: str, remaining: int) -> Stored:
    wire = msgspec.json.encode(
        {
            "seq": seq,
            "conversation": filler.conversation,
            "version": filler.version,
            "at": filler.at,
            "actor": ACTOR,
            "event": filler.event,
        }
    )
    return Stored(seq, seal(check, wire, Side(remaining=remaining))[0])


def build_row(entries: Iterable[bytes], head: int) -> Row:
    """Build the row that appends lines to a log whose last position is `head`."""
    lines = list(entries)
    body = join(lines)
    return head + len(lines), head + 1, checksum(body), body


def last_position(connection: sqlite3.Connection, index: sqlite3.Connection, marked: int) -> int:
    """Return the highest position in the log, in its index, or in its high-water mark (`marked`)."""
    last = marked
    for database, query in (
        (connection, f"SELECT {ROW} FROM log ORDER BY seq DESC LIMIT 1"),
        (index, "SELECT max(seq) FROM parts"),
    ):
        try:
            row = database.execute(query).fetchone()
        except sqlite3.DatabaseError:
            continue
        last = max(last, row[0] or 0 if row else 0)
    return last
