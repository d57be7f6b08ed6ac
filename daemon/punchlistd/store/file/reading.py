"""Reading an open log: rows, the lines in them that can be trusted, and what is found by conversation or by key.

Rows that the index holds are found through it, later ones through `unindexed`. A hole in a conversation that no damage
to the log explains makes the index be doubted.
"""

import logging
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from heapq import merge
from itertools import chain, groupby, pairwise
from typing import Protocol, TypeVar, TypeVarTuple

from punchlistd.store.file.index import IndexDoubted
from punchlistd.store.file.lines import (
    ROW,
    SPOILED,
    Row,
    Salvage,
    is_lost,
    is_sparse,
    lost,
    may_be_of,
    of_conversation,
    salvage,
    split,
)
from punchlistd.store.file.operations import Operations
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.port import Damaged, Gap, Loaded, Stored, side_of
from punchlistd.store.record import is_tombstone, key_hash, take_groups, verify_chain

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ANYONE = ""
"""Among the conversations that may have lost an event: any that has no later one."""


class Readable(Protocol):
    """A log to read rows from: its connection, and its last position."""

    connection: sqlite3.Connection
    head: int


def scan(log: Operations, after: int) -> None:
    """Index in memory the rows after a position."""
    log.unindexed = Unindexed()
    damaged: list[tuple[Row, Salvage]] = []
    for row in rows(log, after):
        lines = split(row)
        if lines is None:
            rest = _salvage(log, row)
            damaged.append((row, rest))
            lines = rest.good
        log.unindexed.add_stored(lines, row[0], is_first=after == 0)
    if not damaged:
        return
    known = {*log.unindexed.rows}
    with suppress(IndexDoubted):
        known |= log.index.all_names()
    for row, rest in damaged:
        with suppress(IndexDoubted):
            for name, seq in log.index.parts_between(row[1], row[0]):
                log.unindexed.note(name, seq)
        for damage in _note_damage(log, rest, known, _members(log, row) | {ANYONE}):
            if damage.conversation:
                log.unindexed.note(damage.conversation, row[0])


def rebuild_index(log: Operations, reason: str) -> None:
    """Build the index again from the log; all is unindexed then."""
    logger.error("%s: the index is built again from the log (%s)", log.path, reason)
    log.index_lost = reason
    try:
        scan(log, 0)  # the old index may still tell whose the damaged rows are
        log.index.begin_again(log.epoch)
    except IndexDoubted:
        log.index.begin_again(log.epoch)
        scan(log, 0)
    log.indexed = 0


def through_index(log: Operations, operation: Callable[[Operations, *Ts], T], *args: *Ts) -> T:
    """Run an operation that finds events with the index; if it doubts the index, again after that was built anew."""
    try:
        return operation(log, *args)
    except IndexDoubted as doubt:
        rebuild_index(log, str(doubt))
    try:
        return operation(log, *args)
    except IndexDoubted as doubt:
        raise Damaged("", 0, f"the index can't be read: {doubt}") from doubt


def ask_index(log: Operations, operation: Callable[[Operations], T]) -> T:
    """Run an operation that relies on what was saved in the index.

    Raises:
        Damaged: The index was built again, and holds nothing. `index_lost` says why until it is cleared.
    """
    if not log.index_lost:
        try:
            return operation(log)
        except IndexDoubted as doubt:
            rebuild_index(log, str(doubt))
    raise Damaged("", 0, f"the index can't be read: {log.index_lost}")


def rows(log: Readable, after: int) -> Generator[Row]:
    """Yield the rows that end after a position, without a gap: a lost row stands for what is missing or unreadable."""
    due = after + 1
    for row, following in pairwise(chain(_as_they_stand(log, due), [lost(log.head + 1, log.head + 1)])):
        if following[1] <= row[0]:  # only one of them is in its place, and has its own position
            if following[1] > row[1]:
                row = (following[1] - 1, *row[1:]) if is_sparse(row) else row  # noqa: PLW2901
            elif row[1] != due:
                row = lost(due, following[1] - 1)  # noqa: PLW2901
        if row[0] < due:
            continue  # it is out of its place, and was missed there
        if is_lost(row):
            row = lost(due, row[0])  # noqa: PLW2901 - nor can be told where it began
        elif row[1] > due:
            yield lost(due, row[1] - 1)
        yield row
        due = row[0] + 1
    if due <= log.head:
        yield lost(due, log.head)


def _as_they_stand(log: Readable, due: int) -> Generator[Row]:
    """The rows behind a position as they follow each other in the file, whatever positions they give themselves."""
    limit = -1
    while due <= log.head:
        begun = due
        try:
            found = _select(log, f"SELECT {ROW} FROM log WHERE seq >= ? ORDER BY seq LIMIT ?", (due, limit))
            with closing(found):
                for row in found:
                    if limit > 0 and is_lost(row):
                        raise sqlite3.DatabaseError("nothing is left of it, nor of its position")
                    yield row
                    due = max(due, row[0] + 1)
            if limit < 0 or due == begun:
                break
        except sqlite3.DatabaseError:
            if limit < 0:
                limit = 1  # the module steps ahead, and may have lost the row before one that can't be read
            else:
                first = _readable(log, due)
                yield lost(due, first - 1)
                due, limit = first, -1


def _readable(log: Readable, due: int) -> int:
    """The first position of the next row that can be read, where the one with the event `due` can't."""

    def readable(after: int) -> bool:
        try:
            row = log.connection.execute(
                f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq LIMIT 1", (after,)
            ).fetchone()
        except sqlite3.DatabaseError:
            return False
        return row is None or not is_lost(row)

    return bisect_left(range(log.head), True, lo=due, key=readable) + 1


def rows_of(log: Operations, conversation: str, after: int) -> Generator[Row]:
    """Yield the rows after a position that hold lines of a conversation; a lost row stands for each unreadable one."""
    later = [seq for seq in log.unindexed.rows.get(conversation, ()) if seq > after]
    for seq, _ in groupby(merge(log.index.rows_of(conversation, after), later)):
        row = row_at(log, seq)
        if is_lost(row) and _has_other_row(log, seq):
            raise IndexDoubted(f"no row ends at {seq}, where {conversation} should have one")
        yield row


def _has_other_row(log: Operations, seq: int) -> bool:
    """Whether the log has a sound row for a position that does not end there."""
    if not 0 < seq <= log.head:
        return True
    with suppress(sqlite3.DatabaseError):
        query = f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq LIMIT 1"
        row = log.connection.execute(query, (seq,)).fetchone()
        return row is not None and row[1] <= seq and split(row) is not None
    return False


def row_at(log: Operations, seq: int) -> Row:
    """Return the row that ends with an event; a lost row if it can't be read."""
    with suppress(sqlite3.DatabaseError):
        found = log.connection.execute(f"SELECT {ROW} FROM log WHERE seq = ?", (seq,)).fetchone()
        if found is not None:
            return _in_place(log, found)
    return lost(seq, seq)


def _in_place(log: Operations, row: Row) -> Row:
    """A row found by its position; a lost one where the next does not begin behind it: then it is another's position.

    No row has a checksum over its position. One with as many lines as positions could not be taken for another.
    """
    if is_sparse(row):
        query = f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq LIMIT 1"
        following = log.connection.execute(query, (row[0],)).fetchone()
        if following is not None and following[1] != row[0] + 1 and (following[0] <= row[0] or following[2] != SPOILED):
            return lost(row[0], row[0])
    return row


def _select(log: Readable, query: str, parameters: tuple[object, ...]) -> Generator[Row]:
    cursor = log.connection.execute(query, parameters)
    try:
        yield from cursor
    finally:
        cursor.close()  # a statement left open would hold back every checkpoint


def lines_of(log: Operations, row: Row, conversation: str | None, after: int) -> tuple[list[Stored], Damaged | None]:
    """The lines of a row (of a conversation) after a position, up to the first that can't be trusted, and that one."""
    found, damage = split(row), None
    if found is None:
        rest = _salvage(log, row)
        members = _members(log, row)
        spoiled = _note_damage(log, rest, members, members if members and row[0] <= log.indexed else {ANYONE})
        mine = [each for each in spoiled if conversation in (None, each.conversation) and each.seq > after]
        found, damage = rest.good, mine[0] if mine else None
    if conversation is not None:
        found = of_conversation(found, conversation)
    if after >= row[1]:
        found = [stored for stored in found if stored.seq > after]
    if damage is not None:
        found = [stored for stored in found if stored.seq < damage.seq]
    return found, damage


def _salvage(log: Operations, row: Row) -> Salvage:
    return salvage(row, lambda name, seq: _check_before(log, name, seq))


def _note_damage(log: Operations, rest: Salvage, known: set[str], losers: set[str]) -> list[Damaged]:
    """Record a damaged event under each conversation that it may belong to."""
    noted: list[Damaged] = []
    for seq, named, line in rest.bad:
        begins = named and b'","version":1,' in line[:200]  # then nobody could know it yet
        alike = [named] if named in known or begins else [name for name in known if may_be_of(name, seq, line)]
        owner = alike[0] if len(alike) == 1 else ""
        if not owner:
            log.damage.ownerless[seq] = frozenset(alike or losers)
        noted.append(log.damage.note(Damaged(owner, seq, "its checksum does not match")))
    return noted


def read(log: Operations, after: int, limit: int, max_bytes: int) -> list[Stored]:
    """Read whole groups of events of all conversations after a position, up to the first unreadable one.

    Raises:
        Gap: That is the very next one.
    """
    taken: list[Stored] = []
    size = first = 0
    with closing(rows(log, after)) as found:
        for row in found:
            lines, damage = lines_of(log, row, None, after)
            if damage is not None:
                first = row[0] + 1 if is_lost(row) else _behind(log, damage.seq)
            length = len(row[3]) if lines else 0
            if len(taken) + len(lines) > limit or size + length > max_bytes:
                taken += take_groups(lines, limit - len(taken), max_bytes - size)
                break
            taken += lines
            size += length
            if first or len(taken) >= limit or size >= max_bytes:
                break
    if first and not taken:
        raise Gap(after, first)
    return taken


def _behind(log: Operations, seq: int) -> int:
    while seq in log.damage.events:
        seq += 1
    return seq


def read_of(log: Operations, conversation: str, after: int, limit: int, max_bytes: int) -> list[Stored]:
    """Read whole groups of events of one conversation after a position, up to the first unreadable one.

    Raises:
        Damaged: That is the very next one.
    """
    taken: list[Stored] = []
    size, missing, is_torn = 0, None, False
    version = _version_at(log, conversation, after)
    with closing(rows_of(log, conversation, after)) as found:
        for row in found:
            if is_lost(row):  # later events may prove that nothing of it is missing
                missing, is_torn = missing or row, True
                continue
            lines, damage = _lines_of_one(log, row, conversation, after)
            lines, hole = _dense(lines, version)
            if hole and is_torn:
                log.damage.note(hole)
            length = sum(len(stored.line) for stored in lines)
            if len(taken) + len(lines) > limit or size + length > max_bytes:
                # A row that was cut ends the answer, or the rest of it would be skipped.
                return taken + take_groups(lines, limit - len(taken), max_bytes - size)
            taken += lines
            size += length
            if damage := hole or damage:
                damage = _hole(log, damage)
                if taken:
                    return taken
                raise damage
            if lines:
                version, missing = lines[-1].version, None
            elif row[1] > after:
                missing = missing or row
            if len(taken) >= limit or size >= max_bytes:
                return taken
    if damage := _missed(log, conversation, missing, taken[-1].seq if taken else after):
        if taken:
            return taken
        raise damage
    return taken


def _lines_of_one(log: Operations, row: Row, conversation: str, after: int) -> tuple[list[Stored], Damaged | None]:
    """The lines of a row that the conversation should have, as `lines_of`."""
    lines, damage = lines_of(log, row, conversation, after)
    if not lines and damage is None and row[1] > after and split(row) is not None:
        raise IndexDoubted(f"the row at {row[0]} holds nothing of {conversation}")
    return lines, damage


def _hole(log: Operations, damage: Damaged) -> Damaged:
    """Return what is wrong with a conversation, as far as it is not the index's fault."""
    if damage.seq not in log.damage.events and not log.index.is_new:
        raise IndexDoubted(str(damage))
    return damage


def _version_at(log: Operations, conversation: str, after: int) -> int | None:
    """Version of a conversation's last event up to a position: 0 where there is none, None where that can't be told."""
    if after == 0:
        return 0
    with closing(rows_of(log, conversation, after)) as found:
        begun = next(found, None)
    for row in (begun, previous_row(log, conversation, after + 1)):
        if row is not None and row[1] <= after:
            lines, spoiled = split(row), 0
            if lines is None:
                rest = _salvage(log, row)
                lines, spoiled = rest.good, max((seq for seq, _, _ in rest.bad if seq <= after), default=0)
            before = [each for each in of_conversation(lines, conversation) if each.seq <= after]
            if spoiled > (before[-1].seq if before else 0):
                return None
            if before:
                return before[-1].version
    return 0


def _dense(lines: list[Stored], version: int | None) -> tuple[list[Stored], Damaged | None]:
    """The lines up to the first before which a version is missing, and that one."""
    for at, stored in enumerate(lines):
        follows = version is None or stored.version == version + 1
        if not follows and not (is_tombstone(stored.wire) and stored.version > (version or 0)):
            return lines[:at], Damaged(stored.conversation, stored.seq, f"version {(version or 0) + 1} is missing")
        version = stored.version
    return lines, None


def _missed(log: Operations, conversation: str, lost_row: Row | None, last: int) -> Damaged | None:
    """A spoiled event that is or may be the conversation's, which has no later one to prove that nothing is missing."""
    if lost_row is not None:
        reason = "the index leads to it, and it is not there"
        return log.damage.note(Damaged(conversation, lost_row[1], reason))
    for seq, losers in sorted(log.damage.ownerless.items()):
        if seq > last and (conversation in losers or (last and ANYONE in losers)):
            return Damaged(conversation, seq, "it is spoiled and may be of this conversation")
    return None


def load(log: Operations, conversation: str) -> Loaded:
    """Load the newest snapshot that matches the log, and all events after it."""
    if saved := log.index.snapshot(conversation):
        with suppress(Damaged):  # a snapshot is only a short cut: the log decides
            return _load_after(log, conversation, saved)
    try:
        return _load_after(log, conversation, Loaded())
    except Damaged as damage:
        raise _hole(log, damage) from None


def _load_after(log: Operations, conversation: str, saved: Loaded) -> Loaded:
    newer: list[Stored] = []
    missing, is_torn = None, False
    with closing(rows_of(log, conversation, saved.seq)) as found:
        for row in found:
            if is_lost(row):
                missing, is_torn = missing or row, True
                continue
            lines, damage = _lines_of_one(log, row, conversation, saved.seq)
            if damage is not None:
                raise damage
            newer += lines
            if lines:
                missing = None
            elif row[1] > saved.seq:
                missing = missing or row
    try:
        verify_chain(conversation, saved.version, saved.check, newer)
    except Damaged as hole:
        raise log.damage.note(hole) if is_torn else hole from None
    if damage := _missed(log, conversation, missing, newer[-1].seq if newer else saved.seq):
        raise damage
    return Loaded(saved.state, saved.version, saved.seq, saved.check, newer)


def keys(log: Operations, conversation: str) -> list[int]:
    return log.index.keys(conversation) + [key_hash(key) for key in log.unindexed.keys.get(conversation, ())]


def find_key(log: Operations, conversation: str, key: str) -> list[Stored]:
    """Return the newest group of events that used a key."""
    indexed = log.index.find_key(conversation, key)
    recent = log.unindexed.keys.get(conversation, {}).get(key)
    for seq in ([recent] if recent else []) + indexed:
        group = _group_at(log, conversation, seq)
        if side_of(group[0]).key == key:
            return group
    if indexed and not log.index.is_new:
        raise IndexDoubted(f"the events of a key of {conversation} do not have it")
    return []


def _group_at(log: Operations, conversation: str, seq: int) -> list[Stored]:
    with closing(rows(log, seq - 1)) as found:
        for row in found:
            lines, damage = lines_of(log, row, conversation, seq - 1)
            if lines:
                return take_groups(lines, 1, 1)
            if damage is not None:
                raise damage
    raise _hole(log, Damaged(conversation, seq, "the event is missing"))


def _members(log: Operations, row: Row) -> set[str]:
    names = {name for name, known in log.unindexed.rows.items() if any(row[1] <= seq <= row[0] for seq in known)}
    with suppress(IndexDoubted):
        names |= {name for name, _ in log.index.parts_between(row[1], row[0])}
    return names


def previous_row(log: Operations, conversation: str, seq: int) -> Row | None:
    later = [row for row in log.unindexed.rows.get(conversation, ()) if row < seq]
    known = max([log.index.last_row(conversation, seq), *later])
    return row_at(log, known) if known else None


def _check_before(log: Operations, conversation: str, seq: int) -> str:
    """Check of a conversation's last event before a row, as it stands there."""
    row = previous_row(log, conversation, seq)
    marker = b',"conversation":"%s","' % conversation.encode()
    lines = [line for line in row[3].split(b"\n") if marker in line[:200]] if row else []
    return lines[-1].rpartition(b"\t")[2].decode("ascii", "replace") if lines else ""
