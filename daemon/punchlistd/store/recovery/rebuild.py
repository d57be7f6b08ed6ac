"""Writing a log anew into another file, for an index that can't be read: row by row, and everything else from scratch.

Broken pages can't be emptied one by one, so the whole file is replaced. The rows stay byte for byte what they were.
"""

import contextlib
import os
import secrets
import sqlite3

from punchlist_schemas.system import os_calls
from punchlistd.store.file import schema
from punchlistd.store.file.files import FULL, discard, sync_directory, write_ahead
from punchlistd.store.file.lines import split
from punchlistd.store.file.operations import Operations
from punchlistd.store.file.reading import rows, scan
from punchlistd.store.port import Damaged, StorageFull


def rebuild(log: Operations) -> None:
    """Replace the file of an open log by one with the same rows and an empty index: all is unindexed then.

    Raises:
        Damaged: Not every row is sound; nothing was changed, and `punch daemon verify --repair` is for that.
        StorageFull: There is no room for it.
    """
    log.checkpoint()
    unfinished = f"{log.path}.{secrets.token_hex(4)}.new"
    try:
        write_rows(log, unfinished, only_sound=True)
        with log.writing():
            log.connection.close()
            discard_ahead(log.path)
            os.replace(unfinished, log.path)
            sync_directory(log.path)
            log.reopen(schema.connect(log.path, "rw"))
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_FULL:
            raise
        raise StorageFull(f"no space left for {unfinished}") from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise StorageFull(f"no space left for {unfinished}") from error
    finally:
        discard(unfinished)
    scan(log, 0)


def write_rows(log: Operations, path: str, *, only_sound: bool) -> int:
    """Write every row of a log into a new database, durably. How many of them are not what was written.

    Raises:
        Damaged: One is not, and only sound ones were wanted.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
    spoiled = 0
    with contextlib.closing(schema.connect(path, "rw")) as target:
        target.execute("PRAGMA synchronous = OFF")  # it is flushed once, at the end
        schema.build(target)
        target.execute("BEGIN")
        with contextlib.closing(rows(log, 0)) as found:
            for row in found:
                if split(row) is None:
                    spoiled += 1
                    if only_sound:
                        raise Damaged("", row[1], "the index can't be read, and not every event either")
                target.execute("INSERT INTO log VALUES(?, ?, ?, ?)", row)
        target.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (log.epoch,))
        target.execute("COMMIT")
    with open(path, "rb") as file:
        os_calls.flush(file.fileno())
    return spoiled


def discard_ahead(path: str) -> None:
    """Remove what was written ahead of a database that is closed and has all of it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(write_ahead(path))
