"""Reading an open log: rows, the lines in them that can be trusted, and what is found by conversation or by key.

Rows that the index holds are found through it, later ones through `unindexed`.
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Generator
from contextlib import closing, suppress
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from punchlistd.store.file.lines import (
    ROW,
    SPOILED,
    Row,
    Salvage,
    checksum,
    columns,
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

ANYONE = ""
"""Among the conversations that may have lost an event: any that has no later one."""


class Readable(Protocol):
    """A log to read rows from: its connection, and its last position."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The database."""
        ...

    @property
    def head(self) -> int:
        """The last position."""
        ...


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
        log.unindexed.add_stored(lines, row[0])
    if damaged:
        known = {*log.unindexed.rows}
        with suppress(sqlite3.DatabaseError):
            known |= {name for (name,) in log.connection.execute("SELECT name FROM conversations")}
        for row, rest in damaged:
            for damage in _note_damage(log, rest, known, _members(log, row) | {ANYONE}):
                if damage.conversation:
                    log.unindexed.note(damage.conversation, row[0])


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
    if not log.index_bypassed:
        where = "WHERE name = ? AND parts.seq > ? ORDER BY parts.seq"
        known = "FROM conversations JOIN parts ON parts.conversation = conversations.id"
        try:
            joined = f"SELECT {columns('parts.seq')} {known} LEFT JOIN log ON log.seq = parts.seq {where}"
            for row in _select(log, joined, (conversation, after)):
                _check_position(row[0])
                yield _in_place(log, row)
                after = row[0]
        except sqlite3.DatabaseError:
            indexed = log.connection.execute(f"SELECT parts.seq {known} {where}", (conversation, after)).fetchall()
            for (seq,) in indexed:
                _check_position(seq)
                yield row_at(log, seq)
                after = seq
    for seq in log.unindexed.rows.get(conversation, ()):
        if seq > after:
            yield row_at(log, seq)


def _check_position(seq: object) -> None:
    """Refuse what a damaged record of the index makes of a position, as pages that can't be read are."""
    if not isinstance(seq, int):
        raise sqlite3.DatabaseError("the index leads to no position")


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
        damage = log.damage[seq] = Damaged(alike[0] if len(alike) == 1 else "", seq, "its checksum does not match")
        if damage.conversation:
            log.spoiled.setdefault(damage.conversation, damage)
        else:
            log.ownerless[seq] = frozenset(alike or losers)
        noted.append(damage)
    return noted


class Found(NamedTuple):
    """The readable events in order, the damage that ends them early if any, and the last version."""

    events: list[Stored]
    damage: Damaged | None
    last_version: int | None = None


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
    """The position behind a spoiled event and those that follow it."""
    while seq in log.damage:
        seq += 1
    return seq


def read_of(log: Operations, conversation: str, after: int, limit: int, max_bytes: int) -> Found:
    """Read whole groups of events of one conversation after a position, up to the first unreadable one."""
    taken: list[Stored] = []
    size, missing = 0, None
    version = _version_at(log, conversation, after)
    with closing(rows_of(log, conversation, after)) as found:
        for row in found:
            if is_lost(row):  # later events may prove that nothing of it is
                missing = missing or _missing(conversation, row)
                continue
            lines, damage = lines_of(log, row, conversation, after)
            if not lines and damage is None and row[1] > after:
                missing = missing or _missing(conversation, row)
            lines, hole = _dense(lines, version)
            length = sum(len(stored.line) for stored in lines)
            if len(taken) + len(lines) > limit or size + length > max_bytes:
                # A row that was cut ends the answer, or the rest of it would be skipped.
                return Found(taken + take_groups(lines, limit - len(taken), max_bytes - size), None)
            taken += lines
            size += length
            if (damage := hole or damage) is not None:
                return Found(taken, damage)
            if lines:
                version, missing = lines[-1].version, None
            if len(taken) >= limit or size >= max_bytes:
                return Found(taken, None)
    missing = missing or _missed(log, conversation, taken[-1].seq if taken else after)
    return Found(taken, missing, None if missing else version)


def _missing(conversation: str, row: Row) -> Damaged:
    return Damaged(conversation, row[1], "the index leads to it, and it is not there")


def _version_at(log: Operations, conversation: str, after: int) -> int | None:
    """Version of a conversation's last event up to a position: 0 where there is none, None where that can't be told."""
    if after == 0:
        return 0
    with closing(rows_of(log, conversation, after)) as found:
        begun = next(found, None)
    for row in (begun, previous_row(log, conversation, after + 1)):
        if row is not None and row[1] <= after:
            lines, spoiled = split(row), 0
            if is_lost(row) and not log.scanned:
                return 0  # that may be the index's fault: versions that seem to be missing make the log be scanned
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


def _missed(log: Operations, conversation: str, last: int) -> Damaged | None:
    """A spoiled event that may be the conversation's, which has no later one to prove that nothing is missing."""
    for seq, losers in sorted(log.ownerless.items()):
        if seq > last and (conversation in losers or (last and ANYONE in losers)):
            return Damaged(conversation, seq, "it is spoiled and may be of this conversation")
    return None


def load(log: Operations, conversation: str) -> Loaded:
    """Load the newest snapshot that matches the log, and all events after it."""
    saved = None
    with suppress(sqlite3.DatabaseError):
        saved = log.connection.execute(
            """SELECT state, version, snapshots.seq, chain, sum FROM conversations AS named
            JOIN conversations AS one NOT INDEXED ON one.id = named.id AND +one.name = named.name
            JOIN snapshots ON snapshots.conversation = one.id WHERE named.name = ?""",  # index and table agree on it
            (conversation,),
        ).fetchone()
    if saved and isinstance(saved[0], bytes) and checksum(saved[0]) == saved[4]:
        with suppress(Damaged):  # a snapshot is only a short cut: the log decides
            return _load_after(log, conversation, Loaded(*saved[:4]))
    return _load_after(log, conversation, Loaded())


def _load_after(log: Operations, conversation: str, saved: Loaded) -> Loaded:
    newer: list[Stored] = []
    missing = None
    with closing(rows_of(log, conversation, saved.seq)) as found:
        for row in found:
            if is_lost(row):
                missing = missing or _missing(conversation, row)
                continue
            lines, damage = lines_of(log, row, conversation, saved.seq)
            if damage is not None:
                raise damage
            newer += lines
            if lines:
                missing = None
            elif row[1] > saved.seq:
                missing = missing or _missing(conversation, row)
    verify_chain(conversation, saved.version, saved.check, newer)
    if missing := missing or _missed(log, conversation, newer[-1].seq if newer else saved.seq):
        raise missing
    return Loaded(saved.state, saved.version, saved.seq, saved.check, newer)


def keys(log: Operations, conversation: str) -> list[int]:
    """Return the hashes of all keys of a conversation."""
    indexed: list[tuple[int]] = []
    if not log.index_bypassed:
        indexed = log.connection.execute(
            "SELECT hash FROM keys JOIN conversations ON id = keys.conversation WHERE name = ?", (conversation,)
        ).fetchall()
    return [row[0] for row in indexed] + [key_hash(key) for key in log.unindexed.keys.get(conversation, ())]


def find_key(log: Operations, conversation: str, key: str) -> list[Stored]:
    """Return the newest group of events that used a key."""
    candidates: list[tuple[int]] = []
    if not log.index_bypassed:
        candidates = log.connection.execute(
            """SELECT seq FROM keys JOIN conversations ON id = keys.conversation WHERE name = ? AND hash = ?
            ORDER BY seq DESC""",
            (conversation, key_hash(key)),
        ).fetchall()
    recent = log.unindexed.keys.get(conversation, {}).get(key)
    for seq in ([recent] if recent else []) + [row[0] for row in candidates]:
        group = _group_at(log, conversation, seq)
        if side_of(group[0]).key == key:
            return group
    return []


def _group_at(log: Operations, conversation: str, seq: int) -> list[Stored]:
    with closing(rows(log, seq - 1)) as found:
        for row in found:
            lines, damage = lines_of(log, row, conversation, seq - 1)
            if lines:
                return take_groups(lines, 1, 1)
            if damage is not None:
                raise damage
    raise Damaged(conversation, seq, "the event is missing")


def _members(log: Operations, row: Row) -> set[str]:
    """Conversations that have lines in a row, as far as the index knows."""
    names = {name for name, known in log.unindexed.rows.items() if any(row[1] <= seq <= row[0] for seq in known)}
    with suppress(sqlite3.DatabaseError):
        names |= {
            name
            for (name,) in log.connection.execute(
                """SELECT DISTINCT name FROM parts JOIN conversations ON id = parts.conversation
                WHERE parts.seq BETWEEN ? AND ?""",
                (row[1], row[0]),
            )
        }
    return names


def previous_row(log: Operations, conversation: str, seq: int) -> Row | None:
    """Return the conversation's last row before a position, or None."""
    indexed = 0
    if not log.index_bypassed:
        indexed = log.connection.execute(
            """SELECT coalesce(max(parts.seq), 0) FROM parts JOIN conversations ON id = parts.conversation
            WHERE name = ? AND parts.seq < ?""",
            (conversation, seq),
        ).fetchone()[0]
        _check_position(indexed)
    known = max([indexed, *(row for row in log.unindexed.rows.get(conversation, ()) if row < seq)])
    return row_at(log, known) if known else None


def _check_before(log: Operations, conversation: str, seq: int) -> str:
    """Check of a conversation's last event before a row, as it stands there."""
    row = previous_row(log, conversation, seq)
    marker = b',"conversation":"%s","' % conversation.encode()
    lines = [line for line in row[3].split(b"\n") if marker in line[:200]] if row else []
    return lines[-1].rpartition(b"\t")[2].decode("ascii", "replace") if lines else ""
