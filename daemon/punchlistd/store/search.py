"""Words of all tasks in a full-text index of SQLite (FTS5), in a file beside the log that follows from it alone.

The file is made with the first search and brought up to date by those after it. It is thrown away and made again where
it belongs to another log, was not closed, or can't be read; on a full disk it is kept in memory. It is never flushed.
Deleted text is overwritten: the index is merged and freed pages are zeroed.
"""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

logger = logging.getLogger(__name__)

MOST_FOUND = 10_000
"""So many tasks are found at most, the best first."""

_VERSION = 1
_CLOSED, _OPEN = 2 * _VERSION, 2 * _VERSION + 1
"""Values of `user_version`: an index that is open may be half written."""

_TABLES = (
    "CREATE TABLE meta(log TEXT NOT NULL) STRICT",
    """CREATE TABLE lists(
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT""",
    "CREATE TABLE tasks(id INTEGER PRIMARY KEY, list INTEGER NOT NULL, task TEXT NOT NULL, UNIQUE(list, task)) STRICT",
    """CREATE VIRTUAL TABLE words USING fts5(
        title, labels, description, notes, result, tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3')""",
)
_ADD = "INSERT INTO words(rowid, title, labels, description, notes, result) VALUES(?, ?, ?, ?, ?, ?)"
_WEIGHTS = "8.0, 4.0, 1.0, 1.0, 1.0"
_EXCERPT_WORDS = 12


class Words(msgspec.Struct, frozen=True):
    """The words of one task."""

    task: str
    title: str
    labels: str
    description: str
    notes: str
    result: str


class Found(msgspec.Struct, frozen=True):
    """A task that was found: its list, its id, and its row in the index."""

    conversation: str
    task: str
    row: int


class SearchIndex:
    """The index, for one thread at a time.

    Args:
        path: Where it is kept.
        log: What tells the log from all others.
    """

    def __init__(self, path: str, log: str) -> None:
        self._log = log
        self._connection = self._opened(path)

    def _opened(self, path: str) -> sqlite3.Connection:
        try:
            with contextlib.closing(_connect(path)) as known:
                usable = known.execute("PRAGMA user_version").fetchone()[0] == _CLOSED
                usable = usable and known.execute("SELECT log FROM meta").fetchone() == (self._log,)
        except sqlite3.Error:
            usable = False
        if not usable:
            discard(path)
        connection = _connect(path)
        try:
            connection.execute("PRAGMA secure_delete = ON").close()
            if not usable:
                for table in _TABLES:
                    connection.execute(table)
                connection.execute("INSERT INTO meta VALUES(?)", (self._log,))
            connection.execute(f"PRAGMA user_version = {_OPEN}").close()
            if path != ":memory:":
                os.chmod(path, 0o600)
        except BaseException:
            connection.close()
            raise
        return connection

    def abandon(self) -> None:
        """Let go of a file that can't be read or written."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connection):
            self._connection.execute(f"PRAGMA user_version = {_CLOSED}").close()

    def known(self) -> dict[str, tuple[int, int]]:
        """Version and position up to which each list is indexed."""
        rows = self._connection.execute("SELECT name, version, seq FROM lists")
        return {name: (version, seq) for name, version, seq in rows}

    def update(self, name: str, version: int, seq: int, changed: Iterable[Words], gone: Iterable[str] | None) -> None:
        """Bring a list up to date: `changed` tasks, and those that are `gone` (None: all that are not among these)."""
        execute = self._connection.execute
        execute("BEGIN")
        try:
            row = execute("SELECT id FROM lists WHERE name = ?", (name,)).fetchone()
            if row is None:
                row = execute("INSERT INTO lists(name, version, seq) VALUES(?, 0, 0) RETURNING id", (name,)).fetchone()
            number: int = row[0]
            if gone is None:
                self._remove("list = ?", (number,))
            else:
                for task in gone:
                    self._remove("list = ? AND task = ?", (number, task))
            for words in changed:
                self._remove("list = ? AND task = ?", (number, words.task))
                added = execute("INSERT INTO tasks(list, task) VALUES(?, ?) RETURNING id", (number, words.task))
                (at,) = added.fetchone()
                texts = (words.title, words.labels, words.description, words.notes, words.result)
                execute(_ADD, (at, *texts))
            execute("UPDATE lists SET version = ?, seq = ? WHERE id = ?", (version, seq, number))
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                execute("ROLLBACK")
            raise

    def forget(self, names: Sequence[str]) -> None:
        """Erase what is known of lists, so that none of their words is left in the file."""
        execute = self._connection.execute
        rows = [execute("SELECT id FROM lists WHERE name = ?", (name,)).fetchone() for name in names]
        if not any(rows):
            return
        execute("BEGIN")
        for (number,) in filter(None, rows):
            self._remove("list = ?", (number,))
            execute("DELETE FROM lists WHERE id = ?", (number,))
        execute("INSERT INTO words(words) VALUES('optimize')")
        execute("COMMIT")

    def _remove(self, where: str, values: tuple[object, ...]) -> None:
        execute = self._connection.execute
        execute(f"DELETE FROM words WHERE rowid IN (SELECT id FROM tasks WHERE {where})", values)
        execute(f"DELETE FROM tasks WHERE {where}", values)

    def find(self, query: str, conversation: str | None) -> list[Found]:
        """Tasks that have all these words, or words that begin so, the best first; `"two words"` are looked for as they
        stand."""
        match = expression(query)
        if not match:
            return []
        where, values = ("", (match,)) if conversation is None else (" AND lists.name = ?", (match, conversation))
        rows = self._connection.execute(
            f"""SELECT lists.name, tasks.task, words.rowid FROM words JOIN tasks ON tasks.id = words.rowid
            JOIN lists ON lists.id = tasks.list WHERE words MATCH ?{where}
            ORDER BY bm25(words, {_WEIGHTS}), words.rowid LIMIT {MOST_FOUND}""",
            values,
        )
        return [Found(*row) for row in rows]

    def excerpts(self, query: str, rows: Sequence[int]) -> dict[int, str]:
        """Where the words stand, by row."""
        marks = ",".join("?" * len(rows))
        found = self._connection.execute(
            f"""SELECT rowid, snippet(words, -1, '', '', '…', {_EXCERPT_WORDS}) FROM words
            WHERE words MATCH ? AND rowid IN ({marks})""",
            (expression(query), *rows),
        )
        return dict(found.fetchall())


def expression(query: str) -> str:
    """What is asked of FTS5: every word quoted, so that none of its operators is among them."""
    phrases: list[str] = []
    for index, part in enumerate(query.replace("\0", " ").split('"')):
        phrases.extend([part] if index % 2 else part.split())
    return " ".join(f'"{phrase}"*' for phrase in phrases if any(char.isalnum() for char in phrase))


def discard(path: str) -> None:
    if path != ":memory:":
        for name in (path, f"{path}-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _connect(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for setting in ("journal_mode = MEMORY", "synchronous = OFF", "temp_store = MEMORY", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {setting}").close()
    except BaseException:
        connection.close()
        raise
    return connection
