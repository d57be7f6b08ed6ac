"""The index: rows, keys, snapshot, summary and sessions of each conversation, in a file next to the log.

It is derived from the log and written when the daemon is idle, so it may lag behind. It has a separate connection,
because SQLite has no atomic transactions across two files in WAL mode. Each transaction records the log's epoch, the
indexed position, and the checksum of the row that ends there. On startup, a file is accepted if it matches the log at
that position and passes an integrity check of its names; later events are indexed from the log. Any other file is
deleted and rebuilt. A file is also rebuilt if a statement on it fails, or if it maps a conversation to a row that
contains none of its lines. A crash loses at most the last transactions (`synchronous = NORMAL`). If the disk is full,
the index is kept in memory.
"""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import msgspec

from punchlistd.store.file.files import discard
from punchlistd.store.file.lines import checksum
from punchlistd.store.file.listing import fold, format_cursor, is_timed, parse_cursor, search_text
from punchlistd.store.file.schema import connect
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.port import Loaded, Snapshot, StorageFull, Survey
from punchlistd.store.record import key_hash

logger = logging.getLogger(__name__)

FORMAT = 2
"""Value of `user_version`. A file with any other value is rebuilt. Raise it when stored summaries get new members."""

_TABLES = (
    # Position and checksum of the last indexed row of the log with this epoch.
    "CREATE TABLE meta(epoch TEXT NOT NULL, seq INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT",
    """CREATE TABLE conversations(
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, user TEXT NOT NULL DEFAULT '',
        open INTEGER NOT NULL DEFAULT 0, in_progress INTEGER NOT NULL DEFAULT 0,
        updated_at INTEGER NOT NULL DEFAULT 0 /* position of the newest event */,
        deleted INTEGER NOT NULL DEFAULT 0, tombstone INTEGER NOT NULL DEFAULT 0 /* of events still to be erased */,
        search TEXT NOT NULL DEFAULT '', summary BLOB NOT NULL DEFAULT x'' /* empty: not to be listed */,
        last INTEGER NOT NULL DEFAULT 0 /* the last of its parts */,
        key_sum INTEGER NOT NULL DEFAULT 0 /* of its keys' hashes */) STRICT""",
    "CREATE INDEX newest ON conversations(updated_at DESC, name) WHERE deleted = 0 AND summary <> x''",
    "CREATE INDEX users ON conversations(user, name)",
    """CREATE TABLE snapshots(
        conversation INTEGER PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL, chain TEXT NOT NULL,
        sum INTEGER NOT NULL, state BLOB NOT NULL) STRICT""",
    "CREATE TABLE sessions(session TEXT PRIMARY KEY, conversation INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX attached ON sessions(conversation)",
    # Rows of the log that contain lines of a conversation.
    """CREATE TABLE parts(conversation INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(conversation, seq))
        STRICT, WITHOUT ROWID""",
    # seq: the first event of the group that used the key. Hashes may collide, so compare the key in the line.
    """CREATE TABLE keys(conversation INTEGER NOT NULL, hash INTEGER NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY(conversation, hash, seq)) STRICT, WITHOUT ROWID""",
)

_SETTINGS = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "secure_delete = ON",  # erased text must be overwritten
    "temp_store = MEMORY",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "mmap_size = 0",
)

ROWS_AT_ONCE = 500
"""Maximum number of positions read by one query."""

_SEPARATOR, _AFTER_SEPARATOR = "\n", "\v"
"""Separator between a session and its list's user, and the character after the separator, for range queries. A session
can't contain the separator."""

_IN_LIST = "IN (SELECT value FROM json_each(?))"

_encode = msgspec.json.Encoder().encode


class IndexDoubted(Exception):
    """The index is unreadable or contradicts the log, and has to be rebuilt."""


class Index:
    """An open index. Only one thread may use it at a time.

    Args:
        path: The file.
        epoch: The log's epoch.
        sum_at: Returns the checksum of the log's row that ends at a position, or None.
    """

    def __init__(self, path: str, epoch: str, sum_at: Callable[[int], int | None]) -> None:
        self._path = path
        self.is_new = False
        """Whether the index was created after the log was opened. Missing events then mean that the log is damaged."""
        self.seq = 0
        """The indexed position. Later events are indexed from the log on startup."""
        self._connection = self._open_existing(epoch, sum_at) or self._create(epoch)

    def _open_existing(self, epoch: str, sum_at: Callable[[int], int | None]) -> sqlite3.Connection | None:
        if not os.path.exists(self._path):
            return None
        reason = "it belongs to another log or format, or to another state of the log"
        connection = None
        try:
            connection = _connect(self._path)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == FORMAT:
                log_epoch, seq, total = connection.execute("SELECT epoch, seq, sum FROM meta").fetchone()
                if log_epoch == epoch and (seq == 0 or sum_at(seq) == total):
                    reason = _find_corruption(connection)
                    # A daemon killed during an erasure may have left erased bytes in the write-ahead log.
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
                    self.seq = seq
        except (sqlite3.Error, TypeError) as error:
            reason = str(error)
        if not reason:
            return connection
        logger.warning("%s is rebuilt from the log: %s", self._path, reason)
        if connection is not None:
            connection.close()
        return None

    def _create(self, epoch: str) -> sqlite3.Connection:
        self.is_new, self.seq = True, 0
        try:
            discard(self._path)
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
            connection = _connect(self._path)
            try:
                _build(connection, epoch)
            except BaseException:
                connection.close()
                raise
        except (OSError, sqlite3.Error) as error:
            logger.warning("%s can't be created (%s): the index is kept in memory", self._path, error)
            with contextlib.suppress(OSError):
                discard(self._path)
            connection = connect(":memory:", "memory")
            _build(connection, epoch)
        return connection

    def reset(self, epoch: str) -> None:
        self._connection.close()
        self._connection = self._create(epoch)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def checkpoint(self) -> None:
        """Checkpoint and truncate the index's write-ahead log.

        Raises:
            StorageFull: The disk is full.
        """
        with self._translate_errors():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()

    # Writing

    def maintain(self, unindexed: Unindexed, snapshots: Sequence[Snapshot], seq: int, total: int) -> None:
        """Index the unindexed events and save snapshots, in one transaction.

        Args:
            unindexed: The unindexed events.
            snapshots: The snapshots.
            seq: Position after which the next start has to scan the log.
            total: Checksum of the row that ends at that position.
        """
        with self._transaction() as connection:
            ids = self._ids({*unindexed.rows, *(snapshot.conversation for snapshot in snapshots)})
            _save_parts(connection, unindexed, ids)
            for name, keys in unindexed.keys.items():
                _save_keys(connection, ids[name], keys)
            connection.executemany(
                "UPDATE conversations SET tombstone = ? WHERE name = ?",
                [(position, name) for name, position in unindexed.tombstones.items()],
            )
            _save_snapshots(connection, ids, snapshots)
            connection.execute("UPDATE meta SET seq = ?, sum = ?", (seq, total))
        self.seq = seq

    def _ids(self, names: set[str]) -> dict[str, int]:
        """Return the ids of conversations, adding rows for new ones."""
        query = f"SELECT name, id FROM conversations WHERE name {_IN_LIST}"
        values = (_encode(sorted(names)),)
        ids = dict(self.query(query, values))
        if names - ids.keys():
            self.query("INSERT OR IGNORE INTO conversations(name) SELECT value FROM json_each(?)", values)
            ids = dict(self.query(query, values))
        return ids

    def forget(self, conversation: str, tombstone: int, emptied: Sequence[int], total: int) -> None:
        """Delete everything derived from a conversation's erased lines, and record that its erasure is complete.

        Args:
            conversation: The conversation.
            tombstone: Position before which all lines were erased; 0 if none were.
            emptied: Rows that no longer contain lines of the conversation.
            total: Checksum of the row at the indexed position, which the erasure may have rewritten.
        """
        with self._transaction() as connection:
            execute = connection.execute
            execute("UPDATE conversations SET tombstone = 0 WHERE name = ?", (conversation,))
            execute("UPDATE meta SET sum = ?", (total,))
            row = execute("SELECT id FROM conversations WHERE name = ?", (conversation,)).fetchone()
            if row is None or not tombstone:
                return
            (number,) = row
            connection.executemany(
                "DELETE FROM parts WHERE conversation = ? AND seq = ?", [(number, seq) for seq in emptied]
            )
            execute("DELETE FROM keys WHERE conversation = ? AND seq < ?", (number, tombstone))
            remaining = execute("SELECT hash, seq FROM keys WHERE conversation = ?", (number,)).fetchall()
            execute(
                """UPDATE conversations SET key_sum = ?, last = (SELECT coalesce(max(seq), 0) FROM parts
                WHERE conversation = id) WHERE id = ?""",
                (_key_sum(remaining), number),
            )
            execute("DELETE FROM snapshots WHERE conversation = ? AND seq < ?", (number, tombstone))
            if execute("SELECT 1 FROM snapshots WHERE conversation = ?", (number,)).fetchone() is None:
                execute("DELETE FROM sessions WHERE conversation = ?", (number,))
                execute(
                    """UPDATE conversations SET user = '', open = 0, in_progress = 0, updated_at = 0, search = '',
                    summary = x'' WHERE id = ?""",
                    (number,),
                )

    # Reading

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        with self._translate_errors():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        connection = self._connection
        with self._translate_errors():
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            # SQLite reports FULL only for ENOSPC. An exhausted quota or a file size limit appears as a failed write.
            if code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE:
                raise StorageFull(f"no space left for {self._path}") from error
            raise IndexDoubted(str(error)) from error

    def rows_of(self, conversation: str, after: int) -> Generator[int]:
        """Yield the last position of each row after a position that contains lines of a conversation.

        Raises:
            IndexDoubted: The conversation's last row is missing, or the positions are not ascending.
        """
        query = "SELECT id, last FROM conversations WHERE name = ?"
        for number, last in self.query(query, (conversation,)):
            part = "SELECT seq FROM parts WHERE conversation = ? AND seq > ? ORDER BY seq LIMIT ?"
            while rows := self.query(part, (number, after, ROWS_AT_ONCE)):
                for (seq,) in rows:
                    # A damaged page may break the order, which could make this loop endless.
                    if type(seq) is not int or seq <= after:
                        raise IndexDoubted(f"its rows of {conversation} are not in order")
                    yield seq
                    after = seq
            if after < last:  # a damaged entry may hide the entries after it
                raise IndexDoubted(f"its rows of {conversation} do not end with {last}")

    def last_row(self, conversation: str, before: int) -> int:
        """Return the last position of the conversation's newest row that ends before a position, or 0."""
        query = "SELECT max(parts.seq) FROM parts JOIN conversations ON id = conversation WHERE name = ? AND seq < ?"
        seq = self.query(query, (conversation, before))[0][0]
        if seq is not None and type(seq) is not int:
            raise IndexDoubted("it leads to no position")
        return seq or 0

    def parts_between(self, first: int, last: int) -> list[tuple[str, int]]:
        """Return the conversation and last position of each row that ends within a range."""
        query = "SELECT name, seq FROM parts JOIN conversations ON id = conversation WHERE seq BETWEEN ? AND ?"
        return self.query(query, (first, last))

    def all_names(self) -> set[str]:
        return {name for (name,) in self.query("SELECT name FROM conversations")}

    def keys(self, conversation: str) -> list[int]:
        """Return the hashes of all keys of a conversation.

        Raises:
            IndexDoubted: The checksum of the hashes does not match.
        """
        query = "SELECT hash, seq FROM keys JOIN conversations ON id = keys.conversation WHERE name = ?"
        rows = self.query(query, (conversation,))
        saved = self.query("SELECT key_sum FROM conversations WHERE name = ?", (conversation,))
        if saved and saved[0][0] != _key_sum(rows):
            raise IndexDoubted(f"its keys of {conversation} differ from those that were saved")
        return [key for key, _ in rows]

    def find_key(self, conversation: str, key: str) -> list[int]:
        """Return the first position of each group that used a key, newest first."""
        query = """SELECT seq FROM keys JOIN conversations ON id = keys.conversation WHERE name = ? AND hash = ?
            ORDER BY seq DESC"""
        return [seq for (seq,) in self.query(query, (conversation, key_hash(key)))]

    def snapshot(self, conversation: str) -> Loaded | None:
        """Return the snapshot of a conversation, or None if it is missing or damaged."""
        query = """SELECT state, version, snapshots.seq, chain, sum FROM conversations
            JOIN snapshots ON snapshots.conversation = id WHERE name = ?"""
        for state, version, seq, check, total in self.query(query, (conversation,)):
            if isinstance(state, bytes) and checksum(state) == total:
                return Loaded(state, version, seq, check)
        return None

    def resolve(self, session: str) -> list[str]:
        """Return the conversations that a session is attached to, at most one per owner."""
        query = """SELECT name FROM sessions JOIN conversations ON id = sessions.conversation
            WHERE session = ? OR (session > ? AND session < ?)"""
        return [name for (name,) in self.query(query, (session, session + _SEPARATOR, session + _AFTER_SEPARATOR))]

    def owner(self, conversation: str) -> str | None:
        query = "SELECT user FROM conversations WHERE name = ? AND deleted = 0 AND summary <> x''"
        rows = self.query(query, (conversation,))
        return rows[0][0] if rows else None

    def names(self, user: str) -> list[str]:
        query = "SELECT name FROM conversations WHERE user = ? AND deleted = 0 AND summary <> x'' ORDER BY name"
        return [name for (name,) in self.query(query, (user,))]

    def totals(self) -> tuple[int, int]:
        """Count the open tasks and those in progress in all conversations without a user."""
        return self.query(
            """SELECT coalesce(sum(open), 0), coalesce(sum(in_progress), 0) FROM conversations NOT INDEXED
            WHERE deleted = 0 AND user = ''"""
        )[0]

    def survey(self) -> Survey:
        """Return the conversations that need a timer, and the deleted ones that have not been erased yet."""
        timed = self.query(
            """SELECT name, summary, open + in_progress FROM conversations NOT INDEXED
            WHERE deleted = 0 AND (instr(summary, CAST('"wakes_at":' AS BLOB))
            OR (open = 0 AND in_progress = 0 AND instr(summary, CAST('"auto_clear":"idle"' AS BLOB))))"""
        )
        return Survey([name for name, *values in timed if is_timed(*values)], self.unerased())

    def unerased(self) -> list[str]:
        return [name for (name,) in self.query("SELECT name FROM conversations NOT INDEXED WHERE tombstone > 0")]

    def page(  # noqa: PLR0913, PLR0917 - the filters of the protocol
        self, query: str, user: str | None, active: bool | None, kind: str | None, limit: int, cursor: str | None
    ) -> tuple[list[bytes], str | None]:
        """Return summaries, most recently changed first, and the cursor of the next page."""
        conditions: list[tuple[str, Sequence[object]]] = [("deleted = 0 AND summary <> x''", ())]
        if cursor is not None:
            seq, name = parse_cursor(cursor)
            conditions.append(("(updated_at < ? OR (updated_at = ? AND name > ?))", (seq, seq, name)))
        if user is not None:
            conditions.append(("user = ?", (user,)))
        if active is not None:
            conditions.append(("(open + in_progress > 0) = ?", (int(active),)))
        if kind is not None:
            # The text search excludes most rows cheaply. A list's metadata may contain the same text, so the summary is
            # also parsed.
            chat = """(instr(summary, CAST('"kind":"chat"' AS BLOB)) > 0
                AND json_extract(CAST(summary AS TEXT), '$.kind') IS 'chat')"""
            conditions.append((f"{chat} = ?", (int(kind == "chat"),)))
        if query:
            conditions.append(("instr(search, ?) > 0", (fold(query),)))
        rows = self.query(
            f"""SELECT summary, updated_at, name FROM conversations WHERE {" AND ".join(text for text, _ in conditions)}
            ORDER BY updated_at DESC, name LIMIT ?""",
            (*(value for _, values in conditions for value in values), limit + 1),
        )
        next_cursor = format_cursor(rows[limit - 1][1], rows[limit - 1][2]) if len(rows) > limit else None
        return [summary for summary, _, _ in rows[:limit]], next_cursor


def _connect(path: str) -> sqlite3.Connection:
    connection = connect(path, "rw")
    try:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}").close()
    except BaseException:
        connection.close()
        raise
    return connection


def _build(connection: sqlite3.Connection, epoch: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in _TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO meta VALUES(?, 0, 0)", (epoch,))
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _find_corruption(connection: sqlite3.Connection) -> str:
    """Return SQLite's description of damage to the names or sessions, or "".

    If a lookup missed a name, its list would start a second history.
    """
    for table in ("conversations", "sessions"):
        (verdict,) = connection.execute(f"PRAGMA integrity_check({table})").fetchone()
        if verdict != "ok":
            return str(verdict)
    return ""


def _save_parts(connection: sqlite3.Connection, unindexed: Unindexed, ids: dict[str, int]) -> None:
    parts = [(ids[name], row) for name, rows in unindexed.rows.items() for row in rows]
    connection.executemany("INSERT OR IGNORE INTO parts VALUES(?, ?)", parts)
    connection.executemany(
        "UPDATE conversations SET last = max(last, ?) WHERE id = ?",
        [(rows[-1], ids[name]) for name, rows in unindexed.rows.items()],
    )


def _save_keys(connection: sqlite3.Connection, number: int, keys: dict[str, int]) -> None:
    rows = [(key_hash(key), seq) for key, seq in keys.items()]
    insert = f"INSERT OR IGNORE INTO keys VALUES({number}, ?, ?)"
    total = "SELECT key_sum FROM conversations WHERE id = ?"
    if connection.executemany(insert, rows).rowcount == len(rows):
        rows.append((connection.execute(total, (number,)).fetchone()[0], 0))
    else:  # some keys were already saved: each start indexes the events after damage again
        rows = connection.execute("SELECT hash, seq FROM keys WHERE conversation = ?", (number,)).fetchall()
    connection.execute("UPDATE conversations SET key_sum = ? WHERE id = ?", (_key_sum(rows), number))


def _key_sum(keys: Sequence[tuple[int, int]]) -> int:
    """Compute an order-independent checksum of hashes and positions (exclusive or)."""
    total = 0
    for key, seq in keys:
        total ^= key ^ seq
    return total


def _save_snapshots(connection: sqlite3.Connection, ids: dict[str, int], snapshots: Sequence[Snapshot]) -> None:
    """Save snapshots with one statement per table, in row order, because there may be thousands."""
    write = connection.executemany
    saved = sorted([(ids[snapshot.conversation], snapshot) for snapshot in snapshots], key=itemgetter(0))
    # Skip the user, which rarely changes: writing it would update the index `users`.
    write("UPDATE conversations SET user = ? WHERE id = ? AND user <> ?", [(s.user, n, s.user) for n, s in saved])
    write(
        """UPDATE conversations SET open = ?, in_progress = ?, updated_at = ?, deleted = ?, search = ?, summary = ?
        WHERE id = ?""",
        [
            (s.open, s.in_progress, s.seq, int(s.deleted), search_text(s.conversation, s.summary), s.summary, number)
            for number, s in saved
        ],
    )
    connection.execute(
        f"DELETE FROM sessions WHERE conversation {_IN_LIST}", (_encode([number for number, _ in saved]),)
    )
    write(
        "INSERT OR REPLACE INTO sessions VALUES(?, ?)",
        [
            (session + (s.user and _SEPARATOR + s.user), number)
            for number, s in saved
            for session in (() if s.deleted else s.sessions)
        ],
    )
    write(
        "INSERT OR REPLACE INTO snapshots VALUES(?, ?, ?, ?, ?, ?)",
        [(n, s.version, s.seq, s.check, checksum(s.state), s.state) for n, s in saved if s.state is not None],
    )
