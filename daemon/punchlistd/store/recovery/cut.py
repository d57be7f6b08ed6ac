"""Cutting what is spoiled out of a log: which lines stay, and what stands where a conversation lost one.

Every line that can be trusted stays at its position. Where a conversation's versions have a hole, the lost ones are
replaced by events that say so, at positions whose lines are gone, and what follows them is sealed anew; its content
stays. A position that nobody needs is left as an erased one is. The log is read twice, so that it need not fit memory.
"""

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable

import msgspec

from punchlistd.store.file.lines import ROW, Row, checksum, is_lost, join, lost, salvage, split
from punchlistd.store.file.reading import rows
from punchlistd.store.port import Side, Stored
from punchlistd.store.record import is_tombstone, parse, reseal, seal, verify
from punchlistd.store.recovery.verify import Problem

EVENT_LOST = {"type": "EventLost"}
"""What stands in the place of a lost event: without effect."""

ACTOR = "punch daemon verify --repair"


class Source(msgspec.Struct):
    """A log to read from, its last position as far as that is known, and an index of it (or an empty database)."""

    connection: sqlite3.Connection
    head: int
    index: sqlite3.Connection


class _Filler(msgspec.Struct, frozen=True):
    """What takes the place of a lost event."""

    conversation: str
    version: int
    at: int
    event: dict[str, str]


class _Head(msgspec.Struct, frozen=True):
    """How far a conversation has come."""

    seq: int
    version: int
    check: str
    at: int


class Cut(msgspec.Struct):
    """What is done about the damage of a log.

    `lost` are the events that are gone, `bridged` tells of each conversation with a hole the version of the last event
    that was replaced, and `versions` how far each conversation comes.
    """

    lost: list[Problem] = []
    versions: dict[str, int] = {}
    bridged: dict[str, int] = {}
    fillers: dict[int, _Filler] = {}
    dropped: set[int] = set()
    rests: dict[int, tuple[Row, list[Stored]]] = {}


class _At(msgspec.Struct):
    at: int


_decode_at = msgspec.json.Decoder(_At).decode


def _lines(row: Row) -> list[Stored] | None:
    try:
        return split(row)
    except (ValueError, IndexError):
        return None


def _spans(source: Source) -> Generator[Row]:
    """Rows without a hole; a damaged one begins where the last one that can be trusted ends."""
    gap: Row | None = None
    for row in rows(source, 0):
        if is_lost(row):
            gap = lost(gap[1] if gap else row[1], row[0])
            continue
        if gap is not None and _lines(row) is None:
            row = (row[0], gap[1], *row[2:])  # noqa: PLW2901 - where it begins can't be told
        elif gap is not None:
            yield gap
        gap = None
        yield row
    if gap is not None:
        yield gap


class _Plan:
    """One pass over a log: what each conversation's next event must be, and what takes the place of lost ones."""

    def __init__(self, source: Source, owners: dict[str, str]) -> None:
        self._source = source
        self._owners = owners
        self._heads: dict[str, _Head] = {}
        self._free: list[int] = []
        self._names: dict[int, str] = {}
        self._ended: set[str] = set()
        self.cut = Cut()

    def run(self) -> Cut:
        for row in _spans(self._source):
            lines = _lines(row)
            if lines is None:
                rest = salvage(row, lambda name, _: self._heads[name].check if name in self._heads else "")
                self._names.update((seq, name) for seq, name, _ in rest.bad)
                lines = rest.good
                self.cut.rests[row[0]] = row, lines
                kept = {stored.seq for stored in lines}
                self._free += [seq for seq in range(row[1], row[0] + 1) if seq not in kept]
            before: Stored | None = None
            for stored in lines:
                self._end_call(before, stored)
                self._follow(stored)
                before = stored
            self._end_call(before, None)
        self.cut.versions = {name: head.version for name, head in self._heads.items()}
        self._note_rest()
        return self.cut

    def _follow(self, stored: Stored) -> None:
        try:
            parse(stored.line, stored.seq)
        except ValueError as error:
            self._drop(stored.seq, "", str(error))
            return
        name, version = stored.conversation, stored.version
        head = self._heads.get(name)
        due = head.version + 1 if head else 1
        at = _decode_at(stored.wire).at
        begins = head is None and is_tombstone(stored.wire)
        if name in self._ended or (version < due and not begins):
            self._drop(stored.seq, name, f"version {due} is due where it has version {version}")
            return
        before = head or _Head(0, 0, "", at)
        if version > due and not begins and not self._bridge(name, due, version, before, stored.seq):
            self._ended.add(name)
            self._drop(stored.seq, name, "what is before it is lost, and nothing tells how much")
            return
        self._heads[name] = _Head(stored.seq, version, stored.check, at)

    def _end_call(self, last: Stored | None, following: Stored | None) -> None:
        """The rest of a call stood right behind its last line that is left: nobody else lost those positions."""
        if last is None or not last.left or last.conversation in self._ended:
            return
        name, left = last.conversation, last.left
        if following is not None and following.conversation == name and following.seq <= last.seq + left:
            return
        head = self._heads.get(name)
        if head and self._bridge(name, head.version + 1, head.version + left + 1, head, head.seq + left + 1):
            self._heads[name] = _Head(head.seq + left, head.version + left, "", head.at)

    def _drop(self, seq: int, name: str, reason: str) -> None:
        self.cut.dropped.add(seq)
        self.cut.lost.append(Problem(name, seq, reason))

    def _bridge(self, name: str, due: int, version: int, head: _Head, before: int) -> bool:
        """Choose positions for the versions from `due` up to `version`. Whether there are enough of them."""
        there = self._free[bisect_right(self._free, head.seq) : bisect_left(self._free, before)]
        missing = version - due
        first = head.version == 0
        if len(there) < missing and not (first and len(there) > 1):
            return False
        count = min(missing, len(there))
        chosen = there[:count]  # by their ends, as they are asked for: then the first ones are no better for others
        events: list[dict[str, str]] = [EVENT_LOST] * count
        if first:
            opened = {"type": "ConversationOpened"} | ({"user": self._owners[name]} if self._owners.get(name) else {})
            events[0] = opened
            if count < missing:  # what was before had been erased, and with it how many they were
                events[:2] = [{"type": "ConversationDeleted"}, opened]
        for number, (seq, event) in enumerate(zip(chosen, events, strict=True), version - count):
            self.cut.fillers[seq] = _Filler(name, number, head.at, event)
            self.cut.lost.append(Problem(name, seq, "it is lost"))
            self._free.remove(seq)
        self.cut.bridged[name] = version - 1
        return True

    def _note_rest(self) -> None:
        """Lost positions that no conversation misses: their events were erased, or the last ones of a conversation."""
        begun = 0
        for at, seq in enumerate(self._free):
            begun = begun or seq
            following = self._free[at + 1] if at + 1 < len(self._free) else 0
            if following != seq + 1 or self._names.get(seq) != self._names.get(following):
                reason = "it is lost" if begun == seq else f"it and those up to {seq} are lost"
                self.cut.lost.append(Problem(self._names.get(begun, ""), begun, reason))
                begun = 0
        self.cut.lost.sort(key=lambda problem: problem.seq)


def plan(source: Source, owners: dict[str, str]) -> Cut:
    """Look what is lost, and decide what takes its place.

    Args:
        source: The log.
        owners: Users of conversations, for those whose first event is lost.
    """
    return _Plan(source, owners).run()


def rows_left(source: Source, cut: Cut) -> Generator[tuple[Row, list[Stored]]]:
    """The rows of the log without what is spoiled, from the first position to the last, and the lines in them."""
    heads: dict[str, tuple[str, int]] = {}
    due = 1
    for row in _spans(source):
        last, first = row[0], max(row[1], due)
        lines = cut.rests[last][1] if last in cut.rests else _lines(row) or []
        stay = {stored.seq: stored for stored in lines if stored.seq >= due and stored.seq not in cut.dropped}
        changed = last in cut.rests or len(stay) != len(lines) or first != row[1]
        written: list[Stored] = []
        for seq in sorted({*stay, *(seq for seq in cut.fillers if first <= seq <= last)} if changed else stay):
            name = stay[seq].conversation if seq in stay else cut.fillers[seq].conversation
            check, left = heads.get(name, ("", 0))
            if seq not in stay:
                stored = _filled(seq, cut.fillers[seq], check, max(0, left - 1))
            elif not verify(check, stay[seq]):
                stored = Stored(seq, reseal(check, stay[seq].line))
                changed = True
            else:
                stored = stay[seq]
            heads[name] = stored.check, stored.left
            written.append(stored)
        body = join([stored.line for stored in written]) if changed else row[3]
        yield (last, first, checksum(body), body), written
        due = last + 1


def _filled(seq: int, filler: _Filler, check: str, left: int) -> Stored:
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
    return Stored(seq, seal(check, wire, Side(left=left))[0])


def appended(entries: Iterable[bytes], head: int) -> Row:
    lines = list(entries)
    body = join(lines)
    return head + len(lines), head + 1, checksum(body), body


def last_position(connection: sqlite3.Connection, index: sqlite3.Connection, noted: int) -> int:
    found = noted
    for database, query in (
        (connection, f"SELECT {ROW} FROM log ORDER BY seq DESC LIMIT 1"),
        (index, "SELECT max(seq) FROM parts"),
    ):
        try:
            row = database.execute(query).fetchone()
        except sqlite3.DatabaseError:
            continue
        found = max(found, row[0] or 0 if row else 0)
    return found
