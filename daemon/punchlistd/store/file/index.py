"""The index: where a conversation's lines are, its keys, snapshot, summary and sessions, in a file beside the log.

All of it follows from the log, and it is written when there is time, so it may be behind. It has a connection of its
own, since SQLite commits no transaction across two files in WAL mode: each transaction notes the log's epoch, the
position it has come to, and the checksum of the row that ends there. A start believes a file that fits the log there
and in which every name is found; events after that position are indexed from the log. Any other file, and one in which
a statement fails or that leads to a row without the conversation, is deleted and built again from the log. A crash
loses the last transactions at most (`synchronous = NORMAL`), and without room on the disk the index is kept in memory.
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
from punchlistd.store.file.listing import cursor_of, fold, is_timed, place_of, search_text
from punchlistd.store.file.schema import connect
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.port import Loaded, Snapshot, StorageFull, Survey
from punchlistd.store.record import key_hash

logger = logging.getLogger(__name__)

FORMAT = 1
"""Another number in the file (`user_version`): it is built again."""

_TABLES = (
    # How far it has come: position and checksum of the last indexed row of the log with this epoch.
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
    # Rows of the log that hold lines of a conversation.
    """CREATE TABLE parts(conversation INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(conversation, seq))
        STRICT, WITHOUT ROWID""",
    # seq: the first event of the group that used the key. Hashes may collide; the line decides.
    """CREATE TABLE keys(conversation INTEGER NOT NULL, hash INTEGER NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY(conversation, hash, seq)) STRICT, WITHOUT ROWID""",
)

_SETTINGS = (
    "locking_mode = EXCLUSIVE",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "secure_delete = ON",  # erased means overwritten
    "temp_store = MEMORY",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "mmap_size = 0",
)

ROWS_AT_ONCE = 500
"""How many positions are read ahead of those that are asked for."""

_OF, _BEHIND = "\n", "\v"
"""What stands between a session and the user of its list: no session holds it. And the character that follows it."""

_IN_LIST = "IN (SELECT value FROM json_each(?))"

_encode = msgspec.json.Encoder().encode


class IndexDoubted(Exception):
    """The index can't be read, or what it says does not fit the log: it is to be built again."""


class Index:
    """An open index, for one thread at a time.

    Args:
        path: Where it is kept.
        epoch: That of the log.
        sum_at: Gives the checksum of the log's row that ends at a position, None where no row does.
    """

    def __init__(self, path: str, epoch: str, sum_at: Callable[[int], int | None]) -> None:
        self._path = path
        self.is_new = False
        """Whether it was empty since the log was opened: then no hole in a conversation is its fault."""
        self.seq = 0
        """The position that the file has come to: a start indexes what follows it from the log."""
        self._connection = self._open_existing(epoch, sum_at) or self._create(epoch)

    def _open_existing(self, epoch: str, sum_at: Callable[[int], int | None]) -> sqlite3.Connection | None:
        if not os.path.exists(self._path):
            return None
        reason = "it is of another log or format, or not of this state of the log"
        connection = None
        try:
            connection = _connect(self._path)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == FORMAT:
                of, seq, total = connection.execute("SELECT epoch, seq, sum FROM meta").fetchone()
                if of == epoch and (seq == 0 or sum_at(seq) == total):
                    reason = _problem(connection)
                    # A daemon that was killed while it erased may have left the bytes there.
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
                    self.seq = seq
        except (sqlite3.Error, TypeError) as error:
            reason = str(error)
        if not reason:
            return connection
        logger.warning("%s is built again from the log: %s", self._path, reason)
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
            logger.warning("%s can't be made (%s): the index is kept in memory", self._path, error)
            with contextlib.suppress(OSError):
                discard(self._path)
            connection = connect(":memory:", "memory")
            _build(connection, epoch)
        return connection

    def begin_again(self, epoch: str) -> None:
        self._connection.close()
        self._connection = self._create(epoch)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def checkpoint(self) -> None:
        """Move what was written ahead into the file, and cut it off.

        Raises:
            StorageFull: There is no room for it.
        """
        with self._failing():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()

    # Writing

    def maintain(self, unindexed: Unindexed, snapshots: Sequence[Snapshot], seq: int, total: int) -> None:
        """Take in what is not indexed yet, and save snapshots, in one transaction.

        Args:
            unindexed: Where it is.
            snapshots: The snapshots.
            seq: The position after which the next start has to look at the log.
            total: The checksum of the row that ends there.
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
        query = f"SELECT name, id FROM conversations WHERE name {_IN_LIST}"
        given = (_encode(sorted(names)),)
        ids = dict(self.query(query, given))
        if names - ids.keys():
            self.query("INSERT OR IGNORE INTO conversations(name) SELECT value FROM json_each(?)", given)
            ids = dict(self.query(query, given))
        return ids

    def forget(self, conversation: str, tombstone: int, emptied: Sequence[int], total: int) -> None:
        """Delete what follows from the erased lines of a conversation, which is no longer to be erased then.

        Args:
            conversation: The conversation.
            tombstone: Everything before this position was erased; 0: nothing was.
            emptied: Rows that hold no line of it any more.
            total: The checksum of the row at the position that the index has come to.
        """
        with self._transaction() as connection:
            execute = connection.execute
            execute("UPDATE conversations SET tombstone = 0 WHERE name = ?", (conversation,))
            execute("UPDATE meta SET sum = ?", (total,))
            found = execute("SELECT id FROM conversations WHERE name = ?", (conversation,)).fetchone()
            if found is None or not tombstone:
                return
            (number,) = found
            connection.executemany(
                "DELETE FROM parts WHERE conversation = ? AND seq = ?", [(number, row) for row in emptied]
            )
            execute("DELETE FROM keys WHERE conversation = ? AND seq < ?", (number, tombstone))
            left = execute("SELECT hash, seq FROM keys WHERE conversation = ?", (number,)).fetchall()
            execute(
                """UPDATE conversations SET key_sum = ?, last = (SELECT coalesce(max(seq), 0) FROM parts
                WHERE conversation = id) WHERE id = ?""",
                (_key_sum(left), number),
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
        with self._failing():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        connection = self._connection
        with self._failing():
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
    def _failing(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            # SQLite says FULL of ENOSPC alone, and not of a quota or a limit.
            if code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE:
                raise StorageFull(f"no space left for {self._path}") from error
            raise IndexDoubted(str(error)) from error

    def rows_of(self, conversation: str, after: int) -> Generator[int]:
        """Yield the last positions of the rows behind a position that hold lines of a conversation.

        Raises:
            IndexDoubted: The last of them is missing, or one is no position.
        """
        query = "SELECT id, last FROM conversations WHERE name = ?"
        for number, last in self.query(query, (conversation,)):
            part = "SELECT seq FROM parts WHERE conversation = ? AND seq > ? ORDER BY seq LIMIT ?"
            while rows := self.query(part, (number, after, ROWS_AT_ONCE)):
                for (seq,) in rows:
                    if type(seq) is not int:
                        raise IndexDoubted("it leads to no position")
                    yield seq
                    after = seq
            if after < last:  # a spoiled entry may hide those behind it
                raise IndexDoubted(f"its rows of {conversation} do not end with {last}")

    def last_row(self, conversation: str, before: int) -> int:
        """Return the last position of the conversation's last row before a position, 0 if it has none."""
        query = "SELECT max(parts.seq) FROM parts JOIN conversations ON id = conversation WHERE name = ? AND seq < ?"
        found = self.query(query, (conversation, before))[0][0]
        if found is not None and type(found) is not int:
            raise IndexDoubted("it leads to no position")
        return found or 0

    def parts_between(self, first: int, last: int) -> list[tuple[str, int]]:
        """Return the conversations with rows that end in a range, and where each of these rows ends."""
        query = "SELECT name, seq FROM parts JOIN conversations ON id = conversation WHERE seq BETWEEN ? AND ?"
        return self.query(query, (first, last))

    def all_names(self) -> set[str]:
        return {name for (name,) in self.query("SELECT name FROM conversations")}

    def keys(self, conversation: str) -> list[int]:
        """Return the hashes of all keys of a conversation.

        Raises:
            IndexDoubted: They are not those that were saved.
        """
        query = "SELECT hash, seq FROM keys JOIN conversations ON id = keys.conversation WHERE name = ?"
        found = self.query(query, (conversation,))
        saved = self.query("SELECT key_sum FROM conversations WHERE name = ?", (conversation,))
        if saved and saved[0][0] != _key_sum(found):
            raise IndexDoubted(f"its keys of {conversation} are not those that were saved")
        return [each for each, _ in found]

    def find_key(self, conversation: str, key: str) -> list[int]:
        """Return the first positions of the groups that used a key, the newest first."""
        query = """SELECT seq FROM keys JOIN conversations ON id = keys.conversation WHERE name = ? AND hash = ?
            ORDER BY seq DESC"""
        return [seq for (seq,) in self.query(query, (conversation, key_hash(key)))]

    def snapshot(self, conversation: str) -> Loaded | None:
        """Return the newest snapshot of a conversation, None if it has none or a spoiled one."""
        query = """SELECT state, version, snapshots.seq, chain, sum FROM conversations
            JOIN snapshots ON snapshots.conversation = id WHERE name = ?"""
        for state, version, seq, check, total in self.query(query, (conversation,)):
            if isinstance(state, bytes) and checksum(state) == total:
                return Loaded(state, version, seq, check)
        return None

    def resolve(self, session: str) -> list[str]:
        """Return the conversations that a session is attached to, one of each owner at most."""
        query = """SELECT name FROM sessions JOIN conversations ON id = sessions.conversation
            WHERE session = ? OR (session > ? AND session < ?)"""
        return [name for (name,) in self.query(query, (session, session + _OF, session + _BEHIND))]

    def owner(self, conversation: str) -> str | None:
        query = "SELECT user FROM conversations WHERE name = ? AND deleted = 0 AND summary <> x''"
        found = self.query(query, (conversation,))
        return found[0][0] if found else None

    def names(self, user: str) -> list[str]:
        query = "SELECT name FROM conversations WHERE user = ? AND deleted = 0 AND summary <> x'' ORDER BY name"
        return [name for (name,) in self.query(query, (user,))]

    def totals(self) -> tuple[int, int]:
        """Return the tasks that are open and in progress, over all conversations that belong to no user."""
        return self.query(
            """SELECT coalesce(sum(open), 0), coalesce(sum(in_progress), 0) FROM conversations NOT INDEXED
            WHERE deleted = 0 AND user = ''"""
        )[0]

    def survey(self) -> Survey:
        """Return the conversations that wait for a time, and those that are still to be erased."""
        timed = self.query(
            """SELECT name, summary, open + in_progress FROM conversations NOT INDEXED
            WHERE deleted = 0 AND (instr(summary, CAST('"wakes_at":' AS BLOB))
            OR (open = 0 AND in_progress = 0 AND instr(summary, CAST('"auto_clear":"idle"' AS BLOB))))"""
        )
        return Survey([name for name, *shown in timed if is_timed(*shown)], self.unerased())

    def unerased(self) -> list[str]:
        return [name for (name,) in self.query("SELECT name FROM conversations NOT INDEXED WHERE tombstone > 0")]

    def page(  # noqa: PLR0913, PLR0917 - the filters of the wire
        self, query: str, user: str | None, active: bool | None, kind: str | None, limit: int, cursor: str | None
    ) -> tuple[list[bytes], str | None]:
        """Return summaries, newest changed first, and the cursor of the next page."""
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
        found = self.query(
            f"""SELECT summary, updated_at, name FROM conversations WHERE {" AND ".join(text for text, _ in conditions)}
            ORDER BY updated_at DESC, name LIMIT ?""",
            (*(value for _, values in conditions for value in values), limit + 1),
        )
        following = cursor_of(found[limit - 1][1], found[limit - 1][2]) if len(found) > limit else None
        return [summary for summary, _, _ in found[:limit]], following


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


def _problem(connection: sqlite3.Connection) -> str:
    """Why a name or a session may not be found, "" if each is: else a list would begin a second time."""
    for table in ("conversations", "sessions"):
        (found,) = connection.execute(f"PRAGMA integrity_check({table})").fetchone()
        if found != "ok":
            return str(found)
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
    else:  # Events behind damage are indexed again at each start, and their keys are there then.
        rows = connection.execute("SELECT hash, seq FROM keys WHERE conversation = ?", (number,)).fetchall()
    connection.execute("UPDATE conversations SET key_sum = ? WHERE id = ?", (_key_sum(rows), number))


def _key_sum(keys: Sequence[tuple[int, int]]) -> int:
    """Combine hashes and positions by exclusive or, in any order."""
    total = 0
    for each, seq in keys:
        total ^= each ^ seq
    return total


def _save_snapshots(connection: sqlite3.Connection, ids: dict[str, int], snapshots: Sequence[Snapshot]) -> None:
    """Save snapshots in the order of the rows that they change, with one statement for all: they may be thousands."""
    write = connection.executemany
    saved = sorted([(ids[each.conversation], each) for each in snapshots], key=itemgetter(0))
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
    connection.execute(
        f"DELETE FROM sessions WHERE conversation {_IN_LIST}", (_encode([number for number, _ in saved]),)
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
