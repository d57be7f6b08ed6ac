"""Backups of a log that is in use, and restores.

The log is copied in small steps through its own connection, so that commits can run in between. The log only grows, so
copied rows stay valid. After an erasure the copy starts over, because it must not contain erased text. The index isn't
copied; the daemon rebuilds it from the restored log.
"""

import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Generator
from typing import Literal

from punchlistd.store.file import schema
from punchlistd.store.file.files import FULL, discard, publish, size_of, wal_path
from punchlistd.store.file.operations import Operations
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.aside import replacing
from punchlistd.store.recovery.opening import try_log
from punchlistd.store.recovery.verify import Problem, Report, verify_file

LOG_NAME = "log.db"
"""Name of the log in a data directory."""

STEP_ROWS = 200
"""Number of rows copied per step."""


class BackupFailed(Exception):
    """A backup or restore failed and left no files behind. The message contains the reason.

    Attributes:
        kind: `taken` if the name exists, `full` if the disk is full, `place` if the directory isn't writable, or
            `damaged` if the source is damaged.
        problem: First defect of the source, if known.
    """

    def __init__(
        self, message: str, kind: Literal["taken", "full", "place", "damaged"], problem: Problem | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.problem = problem


class Copy:
    """A copy in progress, under a temporary name. Its methods run in the database thread."""

    def __init__(self, log: Operations, path: str) -> None:
        self._log = log
        self.path = path
        self.unfinished = f"{path}.{secrets.token_hex(4)}.new"
        self._target: sqlite3.Connection | None = None
        self._after = self._erase_count = 0

    def step(self) -> bool:
        """Copy the next rows, and return whether any remain."""
        with _translate_errors(self.path):
            if self._target is not None and self._log.erase_count != self._erase_count:
                self.close()  # start over: the copy may contain erased text
            target = self._target or self._begin()
            if self._copy(target):
                return True
            target.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (self._log.epoch,))
            return False

    def _begin(self) -> sqlite3.Connection:
        if os.path.lexists(self.path):
            raise _name_taken(self.path)
        os.close(os.open(self.unfinished, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
        self._target = schema.connect(self.unfinished, "rw")
        self._target.execute("PRAGMA synchronous = OFF")  # `publish` flushes the file
        schema.build(self._target)
        self._after, self._erase_count = 0, self._log.erase_count
        return self._target

    def _copy(self, target: sqlite3.Connection) -> bool:
        """Copy the next rows, and return whether there may be more."""
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

    def close(self, *, keep: bool = False) -> None:
        """Close the copy, and delete its file unless `keep` is set."""
        if self._target is not None:
            self._target.close()
            self._target = None
        if not keep:
            discard(self.unfinished)


@contextlib.contextmanager
def _translate_errors(path: str) -> Generator[None]:
    try:
        yield
    except FileExistsError:
        raise _name_taken(path) from None
    except (sqlite3.Error, OSError) as error:
        is_full = getattr(error, "errno", 0) in FULL or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
        is_damaged = isinstance(error, sqlite3.IntegrityError)  # a row that violates the table's constraints
        kind = "full" if is_full else "damaged" if is_damaged else "place"
        reason = error.strerror if isinstance(error, OSError) else error
        raise BackupFailed(f"{path} could not be written: {reason}", kind) from error


def _name_taken(path: str) -> BackupFailed:
    return BackupFailed(f"{path} already exists; choose another name", "taken")


def publish_copy(unfinished: str, path: str, *, check: bool = True) -> Report:
    """Verify a complete copy if `check` is set, and rename it to its final name.

    Raises:
        BackupFailed: The copy is damaged, or the name is taken.
    """
    try:
        with _translate_errors(path):
            report = _verify_sound(unfinished, path) if check else _summarize(unfinished)
            publish(unfinished, path)
    finally:
        discard(unfinished)
    report.path = path
    return report


def _summarize(path: str) -> Report:
    with contextlib.closing(schema.connect(path, "ro")) as copy:
        epoch = copy.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()[0]
        rows, head = copy.execute("SELECT count(*), coalesce(max(seq), 0) FROM log").fetchone()
    return Report(path, epoch, head, rows)


def _verify_sound(path: str, name: str) -> Report:
    try:
        report = verify_file(path)
    except LogUnusable as error:
        raise BackupFailed(str(error), "damaged") from error
    if report.problems:
        first = report.problems[0]
        raise BackupFailed(
            f"{name} is damaged: {len(report.problems)} problems, the first with "
            f"{first.conversation or 'the log'} at {first.seq}: {first.reason}",
            "damaged",
            first,
        )
    return report


def restore(backup: str, data_dir: str, aside: str | None = None) -> Report:
    """Verify a backup and make it the log of a data directory, with a new epoch.

    If the daemon can't start with the backup, the previous log is moved back.

    Args:
        backup: The backup.
        data_dir: The data directory.
        aside: Directory to create for the existing log and its related files. If None, no log may exist.

    Raises:
        BackupFailed: The backup is damaged, is the log itself, or a log exists and `aside` is None.
        LogUnusable: The daemon would reject the backup.
    """
    path = os.path.join(data_dir, LOG_NAME)
    if aside is None and (os.path.lexists(path) or size_of(wal_path(path))):
        raise BackupFailed(f"{path} already exists; move it and its companion files away first", "taken")
    if os.path.exists(path) and os.path.samefile(backup, path):
        raise BackupFailed(f"{backup} is the log itself; name a backup", "taken")
    head = _verify_sound(backup, backup).head
    unfinished = f"{path}.{secrets.token_hex(4)}.new"
    try:
        with _translate_errors(path):
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
            shutil.copyfile(backup, unfinished)
            if size_of(wal_path(backup)):  # this is a log after a crash, not a backup; SQLite recovers it
                shutil.copyfile(wal_path(backup), wal_path(unfinished))
            with contextlib.closing(schema.connect(unfinished, "rw")) as copy:
                copy.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (secrets.token_hex(8),))
                if copy.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0] != head:
                    text = f"{backup} changed while it was copied; stop the daemon that has it open"
                    raise BackupFailed(text, "damaged")
            report = _verify_sound(unfinished, path)
            with replacing(data_dir, aside, backup):
                publish(unfinished, path)
                try_log(path)
        report.path = path
        return report
    finally:
        discard(unfinished)
