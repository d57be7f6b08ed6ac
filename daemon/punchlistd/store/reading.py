"""Reading an open log: rows, the lines in them that can be trusted, and what is found by conversation or by key.

Rows that the index holds are found through it, later ones through the tail in memory.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress

from punchlistd.store.lines import ROW, Row, Salvage, checksum, of_conversation, salvage, split
from punchlistd.store.operations import Operations
from punchlistd.store.port import Damaged, Loaded, Stored, side_of
from punchlistd.store.record import key_hash, take_groups, verify_tail
from punchlistd.store.tail import Tail


@contextmanager
def reading(conversation: str, seq: int) -> Generator[None]:
    """Turn what SQLite can't read into damage with its place."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise Damaged(conversation, seq, f"it can't be read: {error}") from error


def scan(log: Operations) -> None:
    """Index in memory what the index does not hold."""
    log.tail = Tail()
    for row in rows(log, log.indexed):
        lines = split(row)
        if lines is None:
            rest = salvage(row, lambda name, seq: _check_before(log, name, seq))
            for name in rest.names:
                log.tail.note(name, row[0])
            lines = rest.good
        log.tail.add_stored(lines, row[0])


def rows(log: Operations, after: int) -> Generator[Row]:
    """Rows that end after a position."""
    yield from _select(log, f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq", (after,))


def rows_of(log: Operations, conversation: str, after: int) -> Generator[Row]:
    """Rows with lines of a conversation that end after a position."""
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
    """The lines of a row after a position that can be trusted, and the first there that can't.

    Of a conversation they end before the first that is, or may be, its own and can't be trusted.
    """
    found, damage = split(row), None
    if found is None:
        rest = salvage(row, lambda name, seq: _check_before(log, name, seq))
        found, damage = rest.good, _note_damage(log, row, rest, conversation, after)
    if conversation is not None:
        found = of_conversation(found, conversation)
    if after >= row[1]:
        found = [stored for stored in found if stored.seq > after]
    if damage is not None and conversation is not None:
        found = [stored for stored in found if stored.seq < damage.seq]
    return found, damage


def _note_damage(log: Operations, row: Row, rest: Salvage, conversation: str | None, after: int) -> Damaged | None:
    members = _members(log, row[0])
    first = None
    for seq, name in rest.bad:
        damage = Damaged(name if name in members else "", seq, "its checksum does not match")
        log.damage[seq] = damage
        if first is None and seq > after and (conversation in (None, name) or not damage.conversation):
            first = damage if conversation is None else Damaged(conversation, seq, damage.reason)
    return first


def read(log: Operations, after: int, limit: int, conversation: str | None, max_bytes: int) -> list[Stored]:
    """Events after a position, whole groups of them; of a conversation up to the first that can't be trusted."""
    taken: list[Stored] = []
    size = 0
    found = rows(log, after) if conversation is None else rows_of(log, conversation, after)
    with reading(conversation or "", after + 1), closing(found):
        for row in found:
            lines, damage = lines_of(log, row, conversation, after)
            length = len(row[3]) if conversation is None else sum(len(stored.line) for stored in lines)
            if len(taken) + len(lines) < limit and size + length < max_bytes:
                taken += lines
                size += length
            elif lines:
                taken += take_groups(lines, limit - len(taken), max_bytes - size)
                size = sum(len(stored.line) for stored in taken)
            if damage is not None and conversation is not None:
                if not taken:
                    raise damage
                break
            if len(taken) >= limit or size >= max_bytes:
                break
    return taken


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
    row = log.connection.execute("SELECT body FROM log WHERE seq = ?", (known,)).fetchone()
    marker = b',"conversation":"%s","' % conversation.encode()
    lines = [line for line in row[0].split(b"\n") if marker in line[:200]] if row else []
    return lines[-1].rpartition(b"\t")[2].decode("ascii", "replace") if lines else ""
