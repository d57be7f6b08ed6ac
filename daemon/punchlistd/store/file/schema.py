"""The database file: its identity, tables, settings and upgrades, and who may open it.

A file is identified from its first bytes before SQLite sees it, because opening one already changes it. A new log is
made under another name and published when it is complete, so a file of that name is never half made.
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

from punchlistd.store.file.files import KEPT_AHEAD, discard, publish, size_of, write_ahead
from punchlistd.store.port import LogUnusable

APPLICATION_ID = 0x504C4F47
"""What marks a SQLite file as ours: "PLOG"."""

TABLES = (
    # One row for each commit: the lines of the events first … seq, joined by newlines.
    """CREATE TABLE log(
        seq INTEGER PRIMARY KEY, first INTEGER NOT NULL, sum INTEGER NOT NULL, body BLOB NOT NULL) STRICT""",
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID",
)

DERIVED = ("sessions", "keys", "parts", "snapshots", "conversations")
"""Tables of version 1: what follows from the log is kept in another file since (see `index`)."""

UPGRADES: tuple[tuple[str, ...], ...] = (
    (*(f"DROP TABLE {name}" for name in DERIVED), "DELETE FROM meta WHERE name = 'indexed'"),
)
"""Statements that lead from version 1 to 2, from 2 to 3 and so on; a new entry here is a new version."""

SETTINGS: tuple[tuple[str, str, str | int], ...] = (
    ("locking_mode", "EXCLUSIVE", "exclusive"),  # before the first access: then nobody else's reader holds back the WAL
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "FULL", 2),  # NORMAL loses what was acknowledged in a power cut
    ("fullfsync", "ON", 1),  # what a flush is called on macOS
    ("checkpoint_fullfsync", "ON", 1),
    ("wal_autocheckpoint", "0", 0),  # we checkpoint ourselves: the automatic one hides its errors
    ("journal_size_limit", str(KEPT_AHEAD), KEPT_AHEAD),
    ("mmap_size", "0", 0),
    ("cell_size_check", "ON", 1),
    ("trusted_schema", "OFF", 0),
    ("secure_delete", "ON", 1),  # erased means overwritten
    ("temp_store", "MEMORY", 2),
)
"""Each setting, the value it is given, and what must be read back."""

BUSY_S = 5.0
"""How long to wait for another program that has the file open."""

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_HEADER = 100
_MAGIC = b"SQLite format 3\0"


def apply_settings(connection: sqlite3.Connection, settings: Sequence[tuple[str, str, str | int]] = SETTINGS) -> None:
    """Make every setting and read it back.

    Raises:
        LogUnusable: One of them did not take effect.
    """
    for name, value, expected in settings:
        connection.execute(f"PRAGMA {name} = {value}").close()
        row = connection.execute(f"PRAGMA {name}").fetchone()
        if row is None or row[0] != expected:
            found = row[0] if row else None
            raise LogUnusable(f"SQLite {sqlite3.sqlite_version} keeps {name} at {found!r} where {expected!r} is needed")


def connect(path: str, mode: str) -> sqlite3.Connection:
    """A connection in autocommit mode, for one thread at a time. `mode` is what it may do: `ro`, `rw` or `rwc`."""
    # After `file:`, two slashes begin a host: `file://tmp/log.db` is /log.db of the host tmp.
    local = f"/{path.lstrip('/')}" if path.startswith("//") else path
    uri = f"file:{quote(local)}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_S, check_same_thread=False)


def identify(path: str, newest: int) -> bool:
    """Whether a log of ours is there; False where there is nothing.

    Raises:
        LogUnusable: Something else is there, or a log that only a newer program understands. It was only read.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise LogUnusable(f"{path} is not a file; move it away or choose another data directory")
        with open(path, "rb") as file:
            header = file.read(_HEADER)
            _check_locks(file, path)
    except FileNotFoundError:
        if size_of(write_ahead(path)):
            raise LogUnusable(
                f"{path} is missing but its {os.path.basename(write_ahead(path))} is there; "
                "put the log back, or move that file away to begin anew"
            ) from None
        return False
    except OSError as error:
        raise LogUnusable(
            f"{path} can't be read ({error.strerror}); allow it or choose another data directory"
        ) from error
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise LogUnusable(
            f"{path} is not a punchlist log; move it away, or put a backup in its place: punch daemon restore"
        )
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise LogUnusable(f"{path} is another program's database; move it away or choose another data directory")
    _refuse_newer(path, int.from_bytes(header[60:64], "big"), newest)
    return True


def _check_locks(file: BinaryIO, path: str) -> None:
    """SQLite takes a file system without locks for a file that is in use, and waits for it."""
    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            return  # in use: SQLite waits for it, and says so
        raise LogUnusable(
            f"{path} can't be locked ({error.strerror}): its file system has no locks; choose another data directory"
        ) from error


def _refuse_newer(path: str, version: int, newest: int) -> None:
    if not 0 < version <= newest:
        raise LogUnusable(
            f"{path} has version {version} and this program knows versions up to {newest}; run a newer punchlistd"
        )


def create(path: str) -> None:
    """Make an empty log under its name, complete or not at all."""
    unfinished = path + ".new"
    discard(unfinished)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
    with open(unfinished, "rb") as file:
        _check_locks(file, path)
    with contextlib.closing(connect(unfinished, "rw")) as connection:
        apply_settings(connection)
        build(connection)
        # Closing would do this too, but not say that it failed: an empty file would be published.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    publish(unfinished, path)


def build(connection: sqlite3.Connection) -> None:
    """Fill an empty database with the tables of the newest version and an epoch of its own."""
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
        LogUnusable: The log does not have it.
    """
    row = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
    if row is None or not isinstance(row[0], str):
        raise LogUnusable(f"{path} does not say its epoch; repair it: punch daemon verify --repair")
    return row[0]


def upgrade(connection: sqlite3.Connection, path: str, upgrades: Sequence[Sequence[str]]) -> None:
    """Bring a log to the newest version, all or nothing, after a verified backup beside it.

    Raises:
        LogUnusable: The file turned out newer, or the backup is not sound.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    _refuse_newer(path, version, 1 + len(upgrades))
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
        raise LogUnusable(
            f"{path} was not upgraded because its backup is not sound ({verdict}); run punch daemon verify"
        )
    number = 1
    while True:
        try:
            publish(unfinished, name if number == 1 else f"{name}-{number}")
            return
        except FileExistsError:
            number += 1
