"""The database file: identification, tables, settings and upgrades.

A file is identified by its first bytes before SQLite opens it, because opening can change it. A new log is created
under a temporary name and renamed when complete, so a file with the final name is never incomplete.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import sqlite3
import stat
from collections.abc import Sequence
from typing import BinaryIO
from urllib.parse import quote

from punchlistd.store.file.files import MAX_WAL_BYTES, discard, publish, size_of, wal_path
from punchlistd.store.port import LogUnusable

APPLICATION_ID = 0x504C4F47
"""SQLite's application id of a log: "PLOG"."""

TABLES = (
    # One row per commit: the lines of the events first … seq, joined by newlines.
    """CREATE TABLE log(
        seq INTEGER PRIMARY KEY, first INTEGER NOT NULL, sum INTEGER NOT NULL, body BLOB NOT NULL) STRICT""",
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID",
)

DERIVED = ("sessions", "keys", "parts", "snapshots", "conversations")
"""Tables of version 1 with data derived from the log. Later versions keep it in a separate file (see `index`)."""

UPGRADES: tuple[tuple[str, ...], ...] = (
    (*(f"DROP TABLE {name}" for name in DERIVED), "DELETE FROM meta WHERE name = 'indexed'"),
)
"""Statements that upgrade from version 1 to 2, from 2 to 3, and so on. A new entry defines a new version."""

SETTINGS: tuple[tuple[str, str, str | int], ...] = (
    ("locking_mode", "EXCLUSIVE", "exclusive"),  # before the first access, so that no other reader delays checkpoints
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "FULL", 2),  # with NORMAL a power cut loses acknowledged commits
    ("fullfsync", "ON", 1),  # required for a real flush on macOS
    ("checkpoint_fullfsync", "ON", 1),
    ("wal_autocheckpoint", "0", 0),  # automatic checkpoints hide their errors, so `Operations` runs them
    ("journal_size_limit", str(MAX_WAL_BYTES), MAX_WAL_BYTES),
    ("mmap_size", "0", 0),
    ("cell_size_check", "ON", 1),
    ("trusted_schema", "OFF", 0),
    ("secure_delete", "ON", 1),  # erased text must be overwritten
    ("temp_store", "MEMORY", 2),
)
"""Name, value to set, and value expected when read back."""

BUSY_S = 5.0
"""Maximum time to wait for another program that has the file open, in seconds."""

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_HEADER = 100
_MAGIC = b"SQLite format 3\0"


def apply_settings(connection: sqlite3.Connection, settings: Sequence[tuple[str, str, str | int]] = SETTINGS) -> None:
    """Apply all settings and read each back.

    Raises:
        LogUnusable: One of them did not take effect.
    """
    for name, value, expected in settings:
        connection.execute(f"PRAGMA {name} = {value}").close()
        row = connection.execute(f"PRAGMA {name}").fetchone()
        if row is None or row[0] != expected:
            actual = row[0] if row else None
            raise LogUnusable(
                f"SQLite {sqlite3.sqlite_version} sets {name} to {actual!r}, but {expected!r} is required"
            )


def connect(path: str, mode: str) -> sqlite3.Connection:
    """Open a connection in autocommit mode, for one thread at a time.

    Args:
        path: The file.
        mode: SQLite's mode: `ro`, `rw`, `rwc` or `memory`.
    """
    # Two slashes after `file:` start a host name: `file://tmp/log.db` is /log.db on the host tmp.
    local = f"/{path.lstrip('/')}" if path.startswith("//") else path
    uri = f"file:{quote(local)}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_S, check_same_thread=False)


def identify(path: str, newest: int) -> bool:
    """Return whether the file exists. Reject it if it is not a log of a supported version. The file is only read.

    Raises:
        LogUnusable: The file is not a log, can't be read, or is a log of a newer version.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise LogUnusable(f"{path} is not a file; move it away or choose another data directory")
        with open(path, "rb") as file:
            header = file.read(_HEADER)
            _check_locks(file, path)
    except FileNotFoundError:
        if size_of(wal_path(path)):
            raise LogUnusable(
                f"{path} is missing but its {os.path.basename(wal_path(path))} is there; "
                "restore the log, or move that file away to start over"
            ) from None
        return False
    except OSError as error:
        raise LogUnusable(
            f"{path} can't be read ({error.strerror}); grant access or choose another data directory"
        ) from error
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise LogUnusable(f"{path} is not a punchlist log; move it away, or restore a backup: punch daemon restore")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise LogUnusable(f"{path} is another program's database; move it away or choose another data directory")
    _reject_newer(path, int.from_bytes(header[60:64], "big"), newest)
    return True


def _check_locks(file: BinaryIO, path: str) -> None:
    """Reject a file system without locks. SQLite would treat the error as a locked file and wait.

    Raises:
        LogUnusable: The file system doesn't support locks.
    """
    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            return  # the file is in use; SQLite will wait, and report an error if necessary
        raise LogUnusable(
            f"{path} can't be locked ({error.strerror}): its file system does not support locks; choose another "
            "data directory"
        ) from error


def _reject_newer(path: str, version: int, newest: int) -> None:
    if not 0 < version <= newest:
        raise LogUnusable(
            f"{path} has version {version} and this program supports versions up to {newest}; run a newer punchlistd"
        )


def create(path: str) -> None:
    """Create an empty log atomically."""
    unfinished = path + ".new"
    discard(unfinished)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
    with open(unfinished, "rb") as file:
        _check_locks(file, path)
    with contextlib.closing(connect(unfinished, "rw")) as connection:
        apply_settings(connection)
        build(connection)
        # Checkpoint explicitly: `close` also does so but hides a failure, and an empty file would be published.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    publish(unfinished, path)


def build(connection: sqlite3.Connection) -> None:
    """Create the tables of the newest version in an empty database, with a new epoch."""
    connection.execute("BEGIN IMMEDIATE")
    for table in TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO meta VALUES('epoch', ?)", (secrets.token_hex(8),))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {1 + len(UPGRADES)}")
    connection.execute("COMMIT")


def read_epoch(connection: sqlite3.Connection, path: str) -> str:
    """Return the random id of a log.

    Raises:
        LogUnusable: The id is missing.
    """
    row = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
    if row is None or not isinstance(row[0], str):
        raise LogUnusable(f"{path} has no epoch; repair it: punch daemon verify --repair")
    return row[0]


def upgrade(connection: sqlite3.Connection, path: str, upgrades: Sequence[Sequence[str]]) -> None:
    """Upgrade a log to the newest version in one transaction, after writing a verified backup next to it.

    Raises:
        LogUnusable: The log has a newer version, or the backup is damaged.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    _reject_newer(path, version, 1 + len(upgrades))
    if version == 1 + len(upgrades):
        return
    _back_up(connection, path, version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statements in upgrades[version - 1 :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {1 + len(upgrades)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()  # an older program reads the version from the file


def _back_up(connection: sqlite3.Connection, path: str, version: int) -> None:
    name = f"{path}.v{version}.backup"
    unfinished = name + ".new"
    discard(unfinished)
    with contextlib.closing(connect(unfinished, "rwc")) as copy:
        os.chmod(unfinished, 0o600)
        connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE").close()
        verdict = copy.execute("PRAGMA quick_check").fetchone()[0]
        counts = [database.execute("SELECT count(*), max(seq) FROM log").fetchone() for database in (connection, copy)]
    if verdict != "ok" or counts[0] != counts[1]:
        discard(unfinished)
        raise LogUnusable(f"{path} was not upgraded because its backup is damaged ({verdict}); run punch daemon verify")
    number = 1
    while True:
        try:
            publish(unfinished, name if number == 1 else f"{name}-{number}")
            return
        except FileExistsError:
            number += 1
