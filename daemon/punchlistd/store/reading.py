"""Reading an open log: rows, the lines in them that can be trusted, and what is found by conversation or by key.

Rows that the index holds are found through it, later ones through the tail in memory.
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress

from punchlistd.store.lines import ROW, Row, Salvage, checksum, may_be_of, of_conversation, salvage, split
from punchlistd.store.operations import Operations
from punchlistd.store.port import Damaged, Gap, Loaded, Stored, side_of
from punchlistd.store.record import key_hash, take_groups, verify_tail
from punchlistd.store.tail import Tail

RowsBehind = Callable[[Operations, int], Generator[Row]]


@contextmanager
def reading(conversation: str, seq: int) -> Generator[None]:
    """Turn what SQLite can't read into damage with its place."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise Damaged(conversation, seq, f"it can't be read: {error}") from error


def scan(log: Operations, after: int) -> None:
    """Index in memory what comes after a position."""
    log.tail = Tail()
    damaged: list[tuple[Row, Salvage]] = []
    for row in rows(log, after):
        lines = split(row)
        if lines is None:
            rest = _salvage(log, row)
            damaged.append((row, rest))
            lines = rest.good
        log.tail.add_stored(lines, row[0])
    if damaged:
        known = {name for (name,) in log.connection.execute("SELECT name FROM conversations")} | log.tail.rows.keys()
        for row, rest in damaged:
            for damage in _note_damage(log, rest, known, frozenset()):
                if damage.conversation:
                    log.tail.note(damage.conversation, row[0])


def rows(log: Operations, after: int) -> Generator[Row]:
    """Rows that end after a position."""
    yield from _select(log, f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq", (after,))


def _single_rows(log: Operations, after: int) -> Generator[Row]:
    """As `rows`, which may lose the row before one that can't be read, because the module steps ahead."""
    while True:
        with closing(_select(log, f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq LIMIT 1", (after,))) as found:
            row = next(found, None)
        if row is None:
            return
        yield row
        after = row[0]


def rows_of(log: Operations, conversation: str, after: int) -> Generator[Row]:
    """Rows with lines of a conversation that end after a position."""
    if not log.distrusted:
        yield from _select(
            log,
            f"""SELECT {ROW} FROM conversations JOIN parts ON parts.conversation = conversations.id
            JOIN log ON log.seq = parts.seq WHERE name = ? AND parts.seq > ? ORDER BY parts.seq""",
            (conversation, after),
        )
    for seq in log.tail.rows.get(conversation, ()):
        if seq > after:
            yield from _select(log, f"SELECT {ROW} FROM log WHERE seq = ?", (seq,))


def _select(log: Operations, query: str, parameters: tuple[object, ...]) -> Generator[Row]:
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
        members = _members(log, row[0])
        spoiled = _note_damage(log, rest, members, frozenset(members) if row[0] <= log.indexed else frozenset())
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


def _note_damage(log: Operations, rest: Salvage, known: set[str], losers: frozenset[str]) -> list[Damaged]:
    """Remember what was found spoiled, and whose it was as far as the conversations that may be there tell."""
    noted: list[Damaged] = []
    for seq, said, line in rest.bad:
        begins = said and b'","version":1,' in line[:200]  # then nobody could know it yet
        alike = [said] if said in known or begins else [name for name in known if may_be_of(name, seq, line)]
        damage = log.damage[seq] = Damaged(alike[0] if len(alike) == 1 else "", seq, "its checksum does not match")
        if not damage.conversation:
            log.ownerless[seq] = frozenset(alike) or losers
        noted.append(damage)
    return noted


def read(log: Operations, after: int, limit: int, conversation: str | None, max_bytes: int) -> list[Stored]:
    """Events after a position, whole groups of them, up to the first that can't be trusted."""
    if conversation is None:
        return _read_all(log, after, limit, max_bytes)
    taken: list[Stored] = []
    size = 0
    found = rows_of(log, conversation, after)
    with reading(conversation, after + 1), closing(found):
        for row in found:
            lines, damage = lines_of(log, row, conversation, after)
            length = sum(len(stored.line) for stored in lines)
            if len(taken) + len(lines) > limit or size + length > max_bytes:
                taken += take_groups(lines, limit - len(taken), max_bytes - size)
                break  # a row that was cut ends the answer, or the rest of it would be skipped
            taken += lines
            size += length
            if damage is not None:
                if not taken:
                    raise damage
                break
            if len(taken) >= limit or size >= max_bytes:
                break
    return taken


def _read_all(log: Operations, after: int, limit: int, max_bytes: int, rows_behind: RowsBehind = rows) -> list[Stored]:
    taken: list[Stored] = []
    size, due, first = 0, after + 1, 0
    try:
        with closing(rows_behind(log, after)) as found:
            for row in found:
                lines, damage = lines_of(log, row, None, after)
                if row[1] > due and not (lines and lines[0].seq == due):
                    first = row[1]  # rows are missing before it
                    break
                if damage is not None:
                    first = _behind(log, damage.seq)
                length = len(row[3]) if lines else 0
                if len(taken) + len(lines) > limit or size + length > max_bytes:
                    taken += take_groups(lines, limit - len(taken), max_bytes - size)
                    break
                taken += lines
                size += length
                if first or len(taken) >= limit or size >= max_bytes:
                    break
                due = row[0] + 1
    except sqlite3.DatabaseError:
        if rows_behind is rows:
            return _read_all(log, after, limit, max_bytes, _single_rows)
        first = _readable(log, due) if due <= log.head else 0
    if first and not taken:
        raise Gap(after, first)
    return taken


def _behind(log: Operations, seq: int) -> int:
    """The position behind a spoiled event and those that follow it."""
    while seq in log.damage:
        seq += 1
    return seq


def _readable(log: Operations, due: int) -> int:
    """The first position of the next row that can be read, where the one with the event `due` can't."""

    def readable(after: int) -> bool:
        try:
            with closing(_single_rows(log, after)) as found:
                next(found, None)
        except sqlite3.DatabaseError:
            return False
        return True

    return bisect_left(range(log.head), True, lo=due, key=readable) + 1


def load(log: Operations, conversation: str) -> Loaded:
    """The newest snapshot that fits the log, and everything after it."""
    with reading(conversation, 1):
        saved = log.connection.execute(
            """SELECT state, version, seq, chain, sum FROM snapshots
            JOIN conversations ON id = snapshots.conversation WHERE name = ?""",
            (conversation,),
        ).fetchone()
    if saved and checksum(saved[0]) == saved[4]:
        with suppress(Damaged):  # a snapshot is only a short cut: the log decides
            return _load_after(log, conversation, Loaded(*saved[:4]))
    return _load_after(log, conversation, Loaded())


def _load_after(log: Operations, conversation: str, saved: Loaded) -> Loaded:
    tail: list[Stored] = []
    with reading(conversation, saved.seq + 1), closing(rows_of(log, conversation, saved.seq)) as found:
        for row in found:
            lines, damage = lines_of(log, row, conversation, saved.seq)
            if damage is not None:
                raise damage
            tail += lines
    verify_tail(conversation, saved.version, saved.check, tail)
    last = tail[-1].seq if tail else saved.seq
    for seq, losers in log.ownerless.items():
        # A later event would have proved that nothing is missing.
        if 0 < last < seq and (not losers or conversation in losers):
            raise Damaged(conversation, seq, "it is spoiled and may be of this conversation")
    return Loaded(saved.state, saved.version, saved.seq, saved.check, tail)


def keys(log: Operations, conversation: str) -> list[int]:
    """Hashes of all keys of a conversation."""
    with reading(conversation, 1):
        indexed = log.connection.execute(
            "SELECT hash FROM keys JOIN conversations ON id = keys.conversation WHERE name = ?", (conversation,)
        ).fetchall()
    return [row[0] for row in indexed] + [key_hash(key) for key in log.tail.keys.get(conversation, ())]


def find_key(log: Operations, conversation: str, key: str) -> list[Stored]:
    """The newest group of events that used a key."""
    with reading(conversation, 1):
        candidates = log.connection.execute(
            """SELECT seq FROM keys JOIN conversations ON id = keys.conversation WHERE name = ? AND hash = ?
            ORDER BY seq DESC""",
            (conversation, key_hash(key)),
        ).fetchall()
        recent = log.tail.keys.get(conversation, {}).get(key)
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


def _members(log: Operations, row: int) -> set[str]:
    """Conversations that have lines in a row, as far as the index knows."""
    indexed = log.connection.execute(
        "SELECT name FROM parts JOIN conversations ON id = parts.conversation WHERE parts.seq = ?", (row,)
    )
    return {name for (name,) in indexed} | {name for name, known in log.tail.rows.items() if row in known}


def _check_before(log: Operations, conversation: str, seq: int) -> str:
    """Check of a conversation's last event before a row, as it stands there."""
    indexed = log.connection.execute(
        """SELECT coalesce(max(parts.seq), 0) FROM parts JOIN conversations ON id = parts.conversation
        WHERE name = ? AND parts.seq < ?""",
        (conversation, seq),
    ).fetchone()[0]
    known = max([indexed, *(row for row in log.tail.rows.get(conversation, ()) if row < seq)])
    row = log.connection.execute(f"SELECT {ROW} FROM log WHERE seq = ?", (known,)).fetchone()
    marker = b',"conversation":"%s","' % conversation.encode()
    lines = [line for line in row[3].split(b"\n") if marker in line[:200]] if row else []
    return lines[-1].rpartition(b"\t")[2].decode("ascii", "replace") if lines else ""
