"""What is done with an open log, as plain functions of the one thread and the one connection that touch it.

Opening, guarding, appending and indexing are here; `reading` reads, `erase` destroys. After a write of
unknown outcome everything refuses, because what a failed flush left behind can't be told from inside (it may come back
after a restart).
"""

import secrets
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar, TypeVarTuple

from punchlistd.store.file.damage import Damage
from punchlistd.store.file.files import (
    FULL,
    Inodes,
    Reserve,
    beside,
    fill,
    probe,
    probe_end,
    size_of,
    sync_directory,
    write_ahead,
)
from punchlistd.store.file.high_water_mark import ANY_SUM, HighWaterMark, twin_of
from punchlistd.store.file.index import Index
from punchlistd.store.file.lines import checksum, join
from punchlistd.store.file.schema import read_epoch
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.port import Damaged, Sealed, Snapshot, StorageFailed, StorageFull

CHECKPOINT_PAGES = 1000
"""Pages written ahead after which they are moved into the database, as SQLite would by itself; the index's turn comes
about as often, so that writers wait once for both."""

LATE = 2
"""Commits move them themselves when there are so many times as many."""

PAGE = 4096

FRAME = 24 + PAGE
"""What a page takes where it is written ahead (https://sqlite.org/fileformat2.html#the_write_ahead_log)."""

AHEAD_BYTES = 1 << 20
"""So much is laid out ahead of what was written, for the next few hundred commits."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


_UNREADABLE = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}
)
"""What SQLite says of pages and definitions that make no sense."""

_UNWRITTEN = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE})
"""What it says of a write that failed; of a flush it says something else."""


class Operations:
    """An open log. Attributes may be read from any thread, everything else belongs to the database thread."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: str,
        reserve_bytes: int,
        watch: Sequence[str],
        twin: str | None = None,
    ) -> None:
        self.connection = connection
        self.path = path
        self.failed = ""
        self.damage = Damage()
        self.unindexed = Unindexed()
        self.index_lost = ""
        """Why the index was built again while others rely on it, until they know."""
        self.epoch = read_epoch(connection, path)
        self.head: int = connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0]
        self.high_water_mark = HighWaterMark(beside(path, ".mark"))
        self.twin = twin_of(twin)
        self.regressed = self._compare_with_high_water_mark()
        self.index = Index(beside(path, ".index"), self.epoch, self.sum_at)
        self.indexed = self.index.seq
        sync_directory(path)  # SQLite goes on where that fails for the file it writes ahead to
        self.inodes = Inodes((path,), flushed=write_ahead(path))
        self.inodes.watch(watch)
        self.reserve = Reserve(beside(path, ".reserve"), reserve_bytes)
        self.reserve.ensure()
        self.erased = 0
        """How many times something was erased: a copy made meanwhile may hold it."""
        self.append_s = 0.0
        self._pages = 0
        self._laid_out = 0
        """Bytes of what is written ahead that were laid out as zeros, if it did not grow so far by itself."""

    # Beginning and end

    def _compare_with_high_water_mark(self) -> tuple[int, int] | None:
        """Look whether something that was committed once is gone; then the log goes on under a new epoch.

        A directory that was put back as a whole brings its old mark along; the twin outside it tells.
        """
        noted = self.high_water_mark.read()
        regressed = None
        if noted and noted.epoch != self.epoch and self.head == 0:
            regressed = (noted.seq, 0) if noted.seq else None
        for each in (noted, self.twin.read() if self.twin else None):
            if each and each.epoch == self.epoch and each.seq:
                total = self.sum_at(each.seq)
                if total is None or each.sum not in (total, ANY_SUM):
                    regressed = each.seq, self.head
        if regressed:
            self.epoch = secrets.token_hex(8)
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (self.epoch,))
        self.note_position()
        return regressed

    def note_position(self, total: int | None = None) -> None:
        """Set the mark and its twin to where the log is; `total` is ANY_SUM while rows are being rewritten."""
        if total is None:
            total = self.sum_at(self.head)
            total = total if isinstance(total, int) and 0 <= total < 1 << 32 else ANY_SUM
        self.high_water_mark.write(self.epoch, self.head, total)
        if self.twin is not None:
            with suppress(OSError):  # it is a help, and beside the socket there may be no room
                self.twin.write(self.epoch, self.head, total)

    def sum_at(self, seq: int) -> int | None:
        """Return the checksum of the row that ends at a position, None if no row does."""
        row = self.connection.execute("SELECT sum FROM log WHERE seq = ?", (seq,)).fetchone()
        return row[0] if row else None

    def finish(self) -> None:
        """Leave the log in one file and let go of what is beside it. The connection is closed by its owner."""
        self.index.close()
        try:
            if not self.failed:
                self.inodes.watch(())  # what else was watched may go before us
                with suppress(StorageFull):
                    self.checkpoint()
                self.note_position()
        finally:
            self.inodes.close()
            self.high_water_mark.close()
            if self.twin is not None:
                self.twin.close()

    # Guards

    @contextmanager
    def writing(self) -> Generator[None]:
        """Turn what may go wrong while writing into the errors of the port, and fail for good where it must."""
        try:
            self.inodes.check()
            yield
            if (last_commit := self.inodes.last_commit) is not None:
                last_commit.follow()
        except StorageFailed as error:
            self.fail(str(error))
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            if code & 0xFF in _UNREADABLE:  # what should have been changed: nothing was written
                self.roll_back()
                raise Damaged("", 0, f"its pages can't be read: {error}") from error
            if code & 0xFF != sqlite3.SQLITE_FULL and not (code in _UNWRITTEN and self._is_full()):
                self.fail(str(error), error)
            self.roll_back()
            raise StorageFull(f"no space left for {self.path}") from error
        except (OSError, MemoryError) as error:
            self.fail(str(error) or "out of memory", error)

    @contextmanager
    def transaction(self) -> Generator[None]:
        with self.writing():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.roll_back()
                raise
            self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        """End a transaction that is still open, and of which something may have been written."""
        if (last_commit := self.inodes.last_commit) is not None:
            last_commit.lose()
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    def fail(self, reason: str, cause: BaseException | None = None) -> None:
        self.failed = f"{self.path}: {reason}"
        raise StorageFailed(self.failed) from cause

    def guarded(self, operation: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run an operation unless the log has failed."""
        if self.failed:
            raise StorageFailed(self.failed)
        try:
            return operation(*args)
        except sqlite3.Error as error:  # writing has errors of its own
            raise Damaged("", 0, f"its pages can't be read: {error}") from error

    def _is_full(self) -> bool:
        """Whether a write failed for want of room: SQLite tells it of ENOSPC alone, and not of a quota or a limit.

        What was written in part counts for nothing: the frame that says that a commit is whole comes last.
        """
        try:
            probe_end(write_ahead(self.path))
            probe(self.path)
        except OSError as error:
            return error.errno in FULL
        return False

    # Writing

    def append(self, entries: Sequence[Sealed]) -> None:
        """Commit lines as one row, and note how far the log has come."""
        if not entries:
            return
        started = time.perf_counter()
        first, last = self.head + 1, self.head + len(entries)
        body = join([entry.line for entry in entries])
        total = checksum(body)
        try:
            with self.writing():
                self.connection.execute("INSERT INTO log VALUES(?, ?, ?, ?)", (last, first, total, body))
                self.unindexed.add(entries, first, last)
                self.head = last
                self.high_water_mark.write(self.epoch, last, total)
        except StorageFull:
            self._make_room()
            raise
        self._pages += 2 + len(body) // PAGE
        self.append_s = time.perf_counter() - started

    def append_and_checkpoint(self, entries: Sequence[Sealed]) -> None:
        self.append(entries)
        self.checkpoint_if(self.checkpoint_due)

    @property
    def checkpoint_due(self) -> bool:
        """Whether so much was written ahead that it should be moved before more is."""
        return self._pages >= LATE * CHECKPOINT_PAGES

    def _make_room(self) -> None:
        """Give back the reserve, once, and use it first to free what was written ahead for being written over."""
        if self.reserve.held:
            self.reserve.release()
            self.checkpoint_if(True)

    def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        """Index everything, save snapshots, and move what was written ahead into the database if it is much."""
        seq = self.head
        if self.damage.ownerless:
            # Only a scan tells which conversations may have lost such an event: each start has to meet it.
            query = "SELECT coalesce(max(seq), 0) FROM log WHERE seq < ?"
            (seq,) = self.connection.execute(query, (min(self.damage.ownerless),)).fetchone()
        self.index.maintain(self.unindexed, snapshots, seq, self.sum_at(seq) or 0)
        self.unindexed = Unindexed()
        self.indexed = self.head
        self.note_position()
        self.checkpoint_if(self._pages >= CHECKPOINT_PAGES)
        self.reserve.ensure()
        used = self._pages * FRAME
        if used + AHEAD_BYTES // 2 > self._laid_out:
            self._laid_out = used + AHEAD_BYTES
            with self.writing():
                fill(write_ahead(self.path), self._laid_out)

    def checkpoint_if(self, due: bool, mode: str = "PASSIVE") -> None:
        """Move what was written ahead into the database; without space that can wait."""
        if due:
            with suppress(StorageFull):
                self.checkpoint(mode)

    def checkpoint(self, mode: str = "TRUNCATE") -> None:
        with self.writing():
            try:
                self.connection.execute(f"PRAGMA wal_checkpoint({mode})").close()
            finally:  # also one that found no room has written
                self.inodes.settle()
            self._pages = 0
        if mode == "TRUNCATE":
            self._laid_out = 0
            self.reserve.ensure()

    def watch(self, paths: Sequence[str]) -> None:
        """Refuse to commit once one of these files is not what it is now."""
        self.inodes.watch(paths)

    def sizes(self) -> tuple[int, int]:
        return size_of(self.path), size_of(write_ahead(self.path))
