"""The index that follows behind the log: where a conversation's lines are, its keys, snapshots, summaries and sessions.

All of it could be built again from the log at any time, so it is written when there is time for it.
"""

from collections.abc import Sequence
from operator import itemgetter

import msgspec

from punchlistd.store.file.lines import checksum
from punchlistd.store.file.operations import PAGE, Operations
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.index.listing import cursor_of, fold, place_of, search_text
from punchlistd.store.port import Snapshot
from punchlistd.store.record import key_hash

MANY_ROWS = 4
"""From so many rows of one conversation on, one statement for all of them costs less than one for each."""

_OF, _BEHIND = "\n", "\v"
"""What stands between a session and the user of its list: no session holds it. And the character that follows it."""

_BY_POSITION = """UPDATE conversations
    SET updated_at = (SELECT coalesce(max(seq), 0) FROM parts WHERE conversation = id)
    WHERE deleted = 0 AND summary <> x'' AND updated_at > ?"""
"""Earlier versions noted times in milliseconds, which no position reaches; the index `newest` finds them at once."""

_encode = msgspec.json.Encoder().encode


def maintain(log: Operations, snapshots: Sequence[Snapshot]) -> None:
    """Index everything and save snapshots, in one transaction."""
    unindexed = log.unindexed
    with log.transaction():
        if log.index_bypassed and not log.ownerless:  # what it leads to by mistake must not stay
            log.connection.execute("DELETE FROM parts")
            log.connection.execute("DELETE FROM keys")
        ids = _ids(log, {*unindexed.rows, *(snapshot.conversation for snapshot in snapshots)})
        _save_parts(log, ids)
        write = log.connection.executemany
        write(
            "INSERT OR IGNORE INTO keys VALUES(?, ?, ?)",
            [(ids[name], key_hash(key), seq) for name, keys in unindexed.keys.items() for key, seq in keys.items()],
        )
        write(
            "UPDATE conversations SET tombstone = ? WHERE name = ?",
            [(s, name) for name, s in unindexed.tombstones.items()],
        )
        log.connection.execute("UPDATE meta SET value = ? WHERE name = 'indexed'", (log.head,))
        _save(log, ids, snapshots)
        log.connection.execute(_BY_POSITION, (log.head,))
    log.unindexed = Unindexed()
    log.indexed = log.head
    log.index_bypassed = False
    log.indexed_pages(3 * len(ids) + sum(len(snapshot.state or b"") for snapshot in snapshots) // PAGE)


def _save_parts(log: Operations, ids: dict[str, int]) -> None:
    """Note the rows of each conversation: many of one in a statement that does not come back to us for each."""
    few: list[tuple[int, int]] = []
    for name, rows in log.unindexed.rows.items():
        if len(rows) < MANY_ROWS:
            few.extend((ids[name], row) for row in rows)
        else:
            log.connection.execute(
                "INSERT OR IGNORE INTO parts SELECT ?, value FROM json_each(?)", (ids[name], _encode(rows))
            )
    log.connection.executemany("INSERT OR IGNORE INTO parts VALUES(?, ?)", few)


def _ids(log: Operations, names: set[str]) -> dict[str, int]:
    """The number of each conversation; those that have none get one."""
    ids: dict[str, int] = {}
    unknown = names
    while unknown:
        given = (_encode(sorted(unknown)),)
        ids |= log.connection.execute(
            "SELECT name, id FROM conversations WHERE name IN (SELECT value FROM json_each(?))", given
        ).fetchall()
        if unknown := names - ids.keys():
            given = (_encode(sorted(unknown)),)
            log.connection.execute("INSERT INTO conversations(name) SELECT value FROM json_each(?)", given)
    return ids


def _save(log: Operations, ids: dict[str, int], snapshots: Sequence[Snapshot]) -> None:
    """Save snapshots, in the order of the rows that they change, with one statement for all: they may be thousands."""
    write, saved = (
        log.connection.executemany,
        sorted([(ids[each.conversation], each) for each in snapshots], key=itemgetter(0)),
    )
    # Whose it is stands in an index of its own, and hardly ever changes.
    write("UPDATE conversations SET user = ? WHERE id = ? AND user <> ?", [(s.user, n, s.user) for n, s in saved])
    write(
        """UPDATE conversations SET open = ?, in_progress = ?, updated_at = ?, deleted = ?, search = ?, summary = ?
        WHERE id = ?""",
        [
            (s.open, s.in_progress, s.seq, int(s.deleted), search_text(s.conversation, s.summary), s.summary, number)
            for number, s in saved
        ],
    )
    log.connection.execute(
        "DELETE FROM sessions WHERE conversation IN (SELECT value FROM json_each(?))",
        (_encode([number for number, _ in saved]),),
    )
    write(
        "INSERT OR REPLACE INTO sessions VALUES(?, ?)",
        [
            (session + (s.user and _OF + s.user), number)
            for number, s in saved
            for session in (() if s.deleted else s.sessions)
        ],
    )
    write(
        "INSERT OR REPLACE INTO snapshots VALUES(?, ?, ?, ?, ?, ?)",
        [(n, s.version, s.seq, s.check, checksum(s.state), s.state) for n, s in saved if s.state is not None],
    )


def resolve(log: Operations, session: str) -> list[str]:
    """The conversations that a session is attached to, one of each owner at most."""
    rows = log.connection.execute(
        """SELECT name FROM sessions JOIN conversations ON id = sessions.conversation
        WHERE session = ? OR (session > ? AND session < ?)""",
        (session, session + _OF, session + _BEHIND),
    )
    return [name for (name,) in rows]


def owner(log: Operations, conversation: str) -> str | None:
    """The user of a conversation, None if there is none."""
    row = log.connection.execute(
        "SELECT user FROM conversations WHERE name = ? AND deleted = 0 AND summary <> x''", (conversation,)
    ).fetchone()
    return row[0] if row else None


def names(log: Operations, user: str) -> list[str]:
    """Conversations of a user."""
    rows = log.connection.execute(
        "SELECT name FROM conversations WHERE user = ? AND deleted = 0 AND summary <> x'' ORDER BY name", (user,)
    )
    return [name for (name,) in rows]


def totals(log: Operations) -> tuple[int, int]:
    """Tasks that are open and in progress, over all conversations that belong to no user."""
    return log.connection.execute(
        """SELECT coalesce(sum(open), 0), coalesce(sum(in_progress), 0) FROM conversations NOT INDEXED
        WHERE deleted = 0 AND user = ''"""
    ).fetchone()


def page(  # noqa: PLR0913, PLR0917 - the filters of the wire
    log: Operations, query: str, user: str | None, active: bool | None, kind: str | None, limit: int, cursor: str | None
) -> tuple[list[bytes], str | None]:
    """Summaries, newest changed first, and the cursor of the next page."""
    conditions: list[tuple[str, Sequence[object]]] = [("deleted = 0 AND summary <> x''", ())]
    if cursor is not None:
        seq, name = place_of(cursor)
        conditions.append(("(updated_at < ? OR (updated_at = ? AND name > ?))", (seq, seq, name)))
    if user is not None:
        conditions.append(("user = ?", (user,)))
    if active is not None:
        conditions.append(("(open + in_progress > 0) = ?", (int(active),)))
    if kind is not None:
        # A word of the summary rules most of them out at once; it may also stand in a list's own metadata.
        chat = """(instr(summary, CAST('"kind":"chat"' AS BLOB)) > 0
            AND json_extract(CAST(summary AS TEXT), '$.kind') IS 'chat')"""
        conditions.append((f"{chat} = ?", (int(kind == "chat"),)))
    if query:
        conditions.append(("instr(search, ?) > 0", (fold(query),)))
    found = log.connection.execute(
        f"""SELECT summary, updated_at, name FROM conversations WHERE {" AND ".join(text for text, _ in conditions)}
        ORDER BY updated_at DESC, name LIMIT ?""",
        (*(value for _, values in conditions for value in values), limit + 1),
    ).fetchall()
    following = cursor_of(found[limit - 1][1], found[limit - 1][2]) if len(found) > limit else None
    return [summary for summary, _, _ in found[:limit]], following


def unerased(log: Operations) -> list[str]:
    """Conversations with a tombstone whose events before it are still to be erased."""
    rows = log.connection.execute("SELECT name FROM conversations WHERE tombstone > 0").fetchall()
    return sorted({name for (name,) in rows} | set(log.unindexed.tombstones))
