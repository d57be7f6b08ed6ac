"""Operations on an open log: appending, indexing, checkpoints and guards, run in the database thread.

Reads are in `reading`; erasure is in `erase`. After a write with an unknown outcome, every operation fails: the process
can't determine what a failed flush left on disk, and the data may reappear after a restart.
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
    preallocate,
    probe_append,
    probe_space,
    sibling,
    size_of,
    sync_directory,
    wal_path,
)
from punchlistd.store.file.high_water_mark import ANY_SUM, HighWaterMark, open_twin
from punchlistd.store.file.index import Index
from punchlistd.store.file.lines import checksum, join
from punchlistd.store.file.schema import read_epoch
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.port import Damaged, Sealed, Snapshot, StorageFailed, StorageFull

CHECKPOINT_PAGES = 1000
"""Pages in the write-ahead log after which `maintain` checkpoints it; also SQLite's own default.

The index is updated about as often, so that writers wait only once for both.
"""

OVERDUE_FACTOR = 2
"""Multiple of `CHECKPOINT_PAGES` at which a commit runs the checkpoint itself, without waiting for `maintain`."""

PAGE = 4096

FRAME = 24 + PAGE
"""Size of a page in the write-ahead log, in bytes (https://sqlite.org/fileformat2.html#the_write_ahead_log)."""

PREALLOCATED_BYTES = 1 << 20
"""Zeros kept after the used part of the write-ahead log, in bytes: enough for a few hundred commits."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


_UNREADABLE = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}
)
"""SQLite's error codes for unreadable pages and definitions."""

_UNWRITTEN = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE})
"""SQLite's error codes for a failed write. A failed flush has a different code."""


class Operations:
    """An open log. Attributes may be read from any thread; everything else belongs to the database thread."""

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
        """Why the index was rebuilt; non-empty until the engine has called `rebuild`."""
        self.epoch = read_epoch(connection, path)
        self.head: int = connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0]
        self.high_water_mark = HighWaterMark(sibling(path, ".mark"))
        self.twin = open_twin(twin)
        self.regressed = self._compare_with_high_water_mark()
        self.index = Index(sibling(path, ".index"), self.epoch, self.sum_at)
        self.indexed = self.index.seq
        sync_directory(path)  # SQLite ignores errors from this call after it creates the write-ahead log
        self.inodes = Inodes((path,), flushed=wal_path(path))
        self.inodes.watch(watch)
        self.reserve = Reserve(sibling(path, ".reserve"), reserve_bytes)
        self.reserve.ensure()
        self.erase_count = 0
        """Number of erasures so far. A copy started before the latest erasure may contain erased text."""
        self.append_s = 0.0
        self._pages = 0
        self._preallocated = 0
        """Length in bytes up to which the write-ahead log was preallocated."""

    # Opening and closing

    def _compare_with_high_water_mark(self) -> tuple[int, int] | None:
        """Detect the loss of committed events. If any were lost, start a new epoch.

        Returns:
            The positions of the high-water mark and the log's head, or None if nothing was lost.
        """
        mark = self.high_water_mark.read()
        regressed = None
        if mark and mark.epoch != self.epoch and self.head == 0:
            regressed = (mark.seq, 0) if mark.seq else None
        # If the whole data directory was restored, its mark is as old as its log. The twin is outside that directory.
        for position in (mark, self.twin.read() if self.twin else None):
            if position and position.epoch == self.epoch and position.seq:
                total = self.sum_at(position.seq)
                if total is None or position.sum not in (total, ANY_SUM):
                    regressed = position.seq, self.head
        if regressed:
            self.epoch = secrets.token_hex(8)
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (self.epoch,))
        self.note_position()
        return regressed

    def note_position(self, total: int | None = None) -> None:
        """Set the high-water mark and its twin to the log's head. Pass ANY_SUM as `total` while rows are rewritten."""
        if total is None:
            total = self.sum_at(self.head)
            total = total if isinstance(total, int) and 0 <= total < 1 << 32 else ANY_SUM
        self.high_water_mark.write(self.epoch, self.head, total)
        if self.twin is not None:
            # The twin is optional, and the socket's file system may be full.
            with suppress(OSError):
                self.twin.write(self.epoch, self.head, total)

    def sum_at(self, seq: int) -> int | None:
        """Return the checksum of the row that ends at a position, or None."""
        row = self.connection.execute("SELECT sum FROM log WHERE seq = ?", (seq,)).fetchone()
        return row[0] if row else None

    def finish(self) -> None:
        """Checkpoint the log into one file and close everything except the connection, which its owner closes."""
        self.index.close()
        try:
            if not self.failed:
                self.inodes.watch(())  # the other watched files may already have been removed
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
    def translate_write_errors(self) -> Generator[None]:
        """Check the files before a write, and translate the write's errors into those of the port.

        Raises:
            Damaged: The pages to change can't be read; nothing was written.
            StorageFull: The disk is full; nothing was written.
            StorageFailed: The outcome is unknown; the log fails permanently.
        """
        try:
            self.inodes.check()
            yield
            if (last_commit := self.inodes.last_commit) is not None:
                last_commit.follow()
        except StorageFailed as error:
            self.fail(str(error))
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            if code & 0xFF in _UNREADABLE:  # SQLite failed to read the pages to change, so it wrote nothing
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
        with self.translate_write_errors():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.roll_back()
                raise
            self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Roll back an open transaction, parts of which may already be in the write-ahead log."""
        if (last_commit := self.inodes.last_commit) is not None:
            last_commit.lose()
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    def fail(self, reason: str, cause: BaseException | None = None) -> None:
        self.failed = f"{self.path}: {reason}"
        raise StorageFailed(self.failed) from cause

    def run_guarded(self, operation: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run an operation, unless the log has failed.

        Raises:
            StorageFailed: The log has failed.
            Damaged: The log's pages can't be read.
        """
        if self.failed:
            raise StorageFailed(self.failed)
        try:
            return operation(*args)
        except sqlite3.Error as error:  # a read failed: `translate_write_errors` handles failed writes
            raise Damaged("", 0, f"its pages can't be read: {error}") from error

    def _is_full(self) -> bool:
        """Whether the disk is full. SQLite only recognizes ENOSPC, not an exhausted quota or a file size limit."""
        # Zeros after the last commit are harmless: only the last frame of a commit makes it valid.
        try:
            probe_append(wal_path(self.path))
            probe_space(self.path)
        except OSError as error:
            return error.errno in FULL
        return False

    # Writing

    def append(self, entries: Sequence[Sealed]) -> None:
        """Commit lines as one row and update the high-water mark."""
        if not entries:
            return
        started = time.perf_counter()
        first, last = self.head + 1, self.head + len(entries)
        body = join([entry.line for entry in entries])
        total = checksum(body)
        try:
            with self.translate_write_errors():
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
        """Whether the write-ahead log is so long that it should be checkpointed before the next commit."""
        return self._pages >= OVERDUE_FACTOR * CHECKPOINT_PAGES

    def _make_room(self) -> None:
        """Release the reserve and use its space for a checkpoint, which lets SQLite reuse the write-ahead log."""
        if self.reserve.held:
            self.reserve.release()
            self.checkpoint_if(True)

    def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        """Index all events, save snapshots, and checkpoint the write-ahead log if it is long."""
        seq = self.head
        if self.damage.ownerless:
            # Only a scan can find the conversations that may have lost such an event. The index therefore stops before
            # it, so that every start scans it again.
            query = "SELECT coalesce(max(seq), 0) FROM log WHERE seq < ?"
            (seq,) = self.connection.execute(query, (min(self.damage.ownerless),)).fetchone()
        self.index.maintain(self.unindexed, snapshots, seq, self.sum_at(seq) or 0)
        self.unindexed = Unindexed()
        self.indexed = self.head
        self.note_position()
        self.checkpoint_if(self._pages >= CHECKPOINT_PAGES)
        self.reserve.ensure()
        used = self._pages * FRAME
        if used + PREALLOCATED_BYTES // 2 > self._preallocated:
            self._preallocated = used + PREALLOCATED_BYTES
            with self.translate_write_errors():
                preallocate(wal_path(self.path), self._preallocated)

    def checkpoint_if(self, due: bool, mode: str = "PASSIVE") -> None:
        """Run a checkpoint if `due`. A full disk is not an error, because the checkpoint can wait."""
        if due:
            with suppress(StorageFull):
                self.checkpoint(mode)

    def checkpoint(self, mode: str = "TRUNCATE") -> None:
        with self.translate_write_errors():
            try:
                self.connection.execute(f"PRAGMA wal_checkpoint({mode})").close()
            finally:  # even a checkpoint that failed on a full disk may have written pages
                self.inodes.settle()
            self._pages = 0
        if mode == "TRUNCATE":
            self._preallocated = 0
            self.reserve.ensure()

    def watch(self, paths: Sequence[str]) -> None:
        """Fail the next commit if one of these files was replaced."""
        self.inodes.watch(paths)

    def sizes(self) -> tuple[int, int]:
        return size_of(self.path), size_of(wal_path(self.path))
