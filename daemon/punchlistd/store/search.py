"""Full-text index of all tasks (SQLite FTS5), in a file next to the log and derived from it.

The first search creates the file and later ones update it. A file that belongs to another log, was not closed, or can't
be read is rebuilt. On a full disk the index is kept in memory. The file is never flushed. To overwrite deleted text,
the index is merged and freed pages are zeroed.
"""

import contextlib
import logging
import os
import re
import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

logger = logging.getLogger(__name__)

MAX_MATCHES = 10_000
"""Maximum number of tasks returned by a search, best match first."""

_VERSION = 1
_CLOSED, _OPEN = 2 * _VERSION, 2 * _VERSION + 1
"""Values of `user_version`. A file still marked as open may be only partly written."""

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
_NUMBER = re.compile(r"\s*#?([0-9]+)\s*")


class Words(msgspec.Struct, frozen=True):
    """The indexed text of one task."""

    task: str
    title: str
    labels: str
    description: str
    notes: str
    result: str


class Match(msgspec.Struct, frozen=True):
    """A matching task: its list, its id, and its row in the index."""

    conversation: str
    task: str
    row: int


class SearchIndex:
    """The full-text index, for one thread at a time.

    Args:
        path: The file, or ":memory:".
        log: Identifier of the log that is indexed.
    """

    def __init__(self, path: str, log: str) -> None:
        self._log = log
        self._connection = self._open(path)

    def _open(self, path: str) -> sqlite3.Connection:
        try:
            with contextlib.closing(_connect(path)) as existing:
                usable = existing.execute("PRAGMA user_version").fetchone()[0] == _CLOSED
                usable = usable and existing.execute("SELECT log FROM meta").fetchone() == (self._log,)
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
        """Close after a failed read or write, without marking the file as closed. The next opening rebuilds it."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connection):
            self._connection.execute(f"PRAGMA user_version = {_CLOSED}").close()

    def indexed_versions(self) -> dict[str, tuple[int, int]]:
        """Return, for each list, the version and position up to which it is indexed."""
        rows = self._connection.execute("SELECT name, version, seq FROM lists")
        return {name: (version, seq) for name, version, seq in rows}

    def update(self, name: str, version: int, seq: int, changed: Iterable[Words], gone: Iterable[str] | None) -> None:
        """Update the tasks of a list in one transaction.

        Args:
            name: The list.
            version: The list's version after the update.
            seq: The position of that version.
            changed: Tasks to add or replace.
            gone: Tasks to remove; None removes all tasks that are not in `changed`.
        """
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
                (task_row,) = added.fetchone()
                texts = (words.title, words.labels, words.description, words.notes, words.result)
                execute(_ADD, (task_row, *texts))
            execute("UPDATE lists SET version = ?, seq = ? WHERE id = ?", (version, seq, number))
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                execute("ROLLBACK")
            raise

    def forget(self, names: Sequence[str]) -> None:
        """Erase lists, so that none of their text remains in the file."""
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

    def find(self, query: str, conversation: str | None) -> list[Match]:
        """Return the tasks whose id a query is, those of the latest changed list first, then those with all its words.

        A word matches as a prefix; words in double quotes match as a phrase.
        """
        expression, id = match_expression(query), find_id(query)
        if not expression:
            return []
        where, lists = ("", ()) if conversation is None else (" AND lists.name = ?", (conversation,))
        rows = self._connection.execute(
            f"""SELECT lists.name, tasks.task, words.rowid FROM words JOIN tasks ON tasks.id = words.rowid
            JOIN lists ON lists.id = tasks.list WHERE words MATCH ?{where}
            ORDER BY bm25(words, {_WEIGHTS}), words.rowid LIMIT {MAX_MATCHES}""",
            (expression, *lists),
        ).fetchall()
        if id:
            # A cross join starts from the lists, because tasks have no index by id alone.
            of_id = self._connection.execute(
                f"""SELECT lists.name, tasks.task, tasks.id FROM lists CROSS JOIN tasks
                ON tasks.list = lists.id AND tasks.task = ?{where} ORDER BY lists.seq DESC""",
                (id, *lists),
            ).fetchall()
            rows = list(dict.fromkeys(of_id + rows))
        return [Match(*row) for row in rows]

    def excerpts(self, query: str, rows: Sequence[int]) -> dict[int, str]:
        """Return the text around the matching words, by row."""
        marks = ",".join("?" * len(rows))
        excerpts = self._connection.execute(
            f"""SELECT rowid, snippet(words, -1, '', '', '…', {_EXCERPT_WORDS}) FROM words
            WHERE words MATCH ? AND rowid IN ({marks})""",
            (match_expression(query), *rows),
        )
        return dict(excerpts.fetchall())


def find_id(query: str) -> str:
    """Return the task id that a query consists of, without `#`; "" for other queries."""
    match = _NUMBER.fullmatch(query)
    return match[1] if match else ""


def match_expression(query: str) -> str:
    """Convert a query to an FTS5 expression. Every word is quoted, so that none is treated as an operator."""
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
