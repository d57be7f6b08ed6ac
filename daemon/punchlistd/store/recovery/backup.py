"""A copy of a log that is in use, and putting one in the place of a lost log.

The copy is made in small steps on the log's own connection, so that commits go on in between. The log only grows, so
what was copied stays right; only an erase makes it begin again, because a copy must not keep what was to vanish. The
index is no part of it: the daemon that starts on a restored log makes its own.
"""

import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Generator
from typing import Literal

from punchlistd.store.file import schema
from punchlistd.store.file.files import FULL, discard, publish, size_of, write_ahead
from punchlistd.store.file.operations import Operations
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.aside import replacing
from punchlistd.store.recovery.opening import try_log
from punchlistd.store.recovery.verify import Problem, Report, verify_file

LOG_NAME = "log.db"
"""Name of the log in a data directory."""

STEP_ROWS = 200
"""Rows copied at a time."""


class BackupFailed(Exception):
    """There is no sound copy, or nowhere to put it. The message says why; nothing was left behind.

    Attributes:
        kind: The name is `taken`, the disk is `full`, the `place` can't be written, or what is copied is `damaged`.
        problem: The first thing that is wrong with what is copied, if that is known.
    """

    def __init__(
        self, message: str, kind: Literal["taken", "full", "place", "damaged"], problem: Problem | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.problem = problem


class Copy:
    """A copy on its way, under a name of its own until it is finished. Its steps belong to the database thread."""

    def __init__(self, log: Operations, path: str) -> None:
        self._log = log
        self.path = path
        self.unfinished = f"{path}.{secrets.token_hex(4)}.new"
        self._target: sqlite3.Connection | None = None
        self._after = self._erased = 0

    def step(self) -> bool:
        """Copy some rows. Whether there is more to do."""
        with _failing(self.path):
            if self._target is not None and self._log.erased != self._erased:
                self.close()
            target = self._target or self._begin()
            if self._copy(target):
                return True
            target.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (self._log.epoch,))
            return False

    def _begin(self) -> sqlite3.Connection:
        if os.path.lexists(self.path):
            raise _taken(self.path)
        os.close(os.open(self.unfinished, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
        self._target = schema.connect(self.unfinished, "rw")
        self._target.execute("PRAGMA synchronous = OFF")  # it is flushed once, when it is published
        schema.build(self._target)
        self._after, self._erased = 0, self._log.erased
        return self._target

    def _copy(self, target: sqlite3.Connection) -> bool:
        """Copy the rows that follow. Whether there may be more of them."""
        query = "SELECT * FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
        try:
            rows = self._log.connection.execute(query, (self._after, STEP_ROWS)).fetchall()
        except sqlite3.DatabaseError as error:
            raise BackupFailed(f"{self._log.path} can't be read: {error}", "damaged") from error
        if rows:
            target.execute("BEGIN")
            target.executemany("INSERT INTO log VALUES(?, ?, ?, ?)", rows)
            target.execute("COMMIT")
            self._after = rows[-1][0]
        return len(rows) == STEP_ROWS

    def close(self, *, whole: bool = False) -> None:
        """Let go of the copy, and of its file unless it is whole."""
        if self._target is not None:
            self._target.close()
            self._target = None
        if not whole:
            discard(self.unfinished)


@contextlib.contextmanager
def _failing(path: str) -> Generator[None]:
    try:
        yield
    except FileExistsError:
        raise _taken(path) from None
    except (sqlite3.Error, OSError) as error:
        full = getattr(error, "errno", 0) in FULL or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
        refused = isinstance(error, sqlite3.IntegrityError)  # a row that no table of ours takes
        kind = "full" if full else "damaged" if refused else "place"
        why = error.strerror if isinstance(error, OSError) else error
        raise BackupFailed(f"{path} could not be written: {why}", kind) from error


def _taken(path: str) -> BackupFailed:
    return BackupFailed(f"{path} is there already; choose another name", "taken")


def finish(unfinished: str, path: str, *, check: bool = True) -> Report:
    """Look through a finished copy, unless that is not wanted, and give it its name.

    Raises:
        BackupFailed: The copy is not sound, or the name is taken.
    """
    try:
        with _failing(path):
            report = _sound(unfinished, path) if check else _unchecked(unfinished)
            publish(unfinished, path)
    finally:
        discard(unfinished)
    report.path = path
    return report


def _unchecked(path: str) -> Report:
    with contextlib.closing(schema.connect(path, "ro")) as copy:
        epoch = copy.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()[0]
        rows, head = copy.execute("SELECT count(*), coalesce(max(seq), 0) FROM log").fetchone()
    return Report(path, epoch, head, rows)


def _sound(path: str, name: str) -> Report:
    try:
        report = verify_file(path)
    except LogUnusable as error:
        raise BackupFailed(str(error), "damaged") from error
    if report.problems:
        first = report.problems[0]
        raise BackupFailed(
            f"{name} is not sound: {len(report.problems)} problems, the first with "
            f"{first.conversation or 'the log'} at {first.seq}: {first.reason}",
            "damaged",
            first,
        )
    return report


def restore(backup: str, data_dir: str, aside: str | None = None) -> Report:
    """Put a sound backup where a data directory has no log. The log goes on under a new epoch.

    The log from before is back in its place if the backup can't be opened as a start of the daemon opens it.

    Args:
        backup: The backup.
        data_dir: The data directory.
        aside: A directory to be made for the log that is there, with all that belongs to it; None: there is none.

    Raises:
        BackupFailed: The backup is not sound, or is the log itself, or there is a log already.
        LogUnusable: A start would reject the backup.
    """
    path = os.path.join(data_dir, LOG_NAME)
    if aside is None and (os.path.lexists(path) or size_of(write_ahead(path))):
        raise BackupFailed(f"{path} is there already; move it and what belongs to it away first", "taken")
    if os.path.exists(path) and os.path.samefile(backup, path):
        raise BackupFailed(f"{backup} is the log itself; name a backup", "taken")
    head = _sound(backup, backup).head
    unfinished = f"{path}.{secrets.token_hex(4)}.new"
    try:
        with _failing(path):
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
            shutil.copyfile(backup, unfinished)
            if size_of(write_ahead(backup)):  # a log as a crash left it, not a backup of ours: SQLite puts it together
                shutil.copyfile(write_ahead(backup), write_ahead(unfinished))
            with contextlib.closing(schema.connect(unfinished, "rw")) as copy:
                copy.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (secrets.token_hex(8),))
                if copy.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0] != head:
                    text = f"{backup} changed while it was copied; end the daemon that has it open"
                    raise BackupFailed(text, "damaged")
            report = _sound(unfinished, path)
            with replacing(data_dir, aside, backup):
                publish(unfinished, path)
                try_log(path)
        report.path = path
        return report
    finally:
        discard(unfinished)
