"""Verification of a whole log file that no process has open. The file isn't changed.

Checks that rows have no gaps between them and match their checksums, that each conversation has a valid hash chain
without missing versions, and that groups of events are complete. A log that was not closed is copied first, because
SQLite would change it.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterator

import msgspec

from punchlistd.store.file.files import sibling, size_of, wal_path
from punchlistd.store.file.high_water_mark import read_position
from punchlistd.store.file.lines import ROW, Row, Salvage, salvage, split
from punchlistd.store.file.schema import UPGRADES, connect, identify, read_epoch
from punchlistd.store.port import LogUnusable, Stored
from punchlistd.store.record import is_tombstone, parse, verify
from punchlistd.store.recovery.integrity import check_pages, check_schema


class Problem(msgspec.Struct, frozen=True):
    """A defect in a log. `conversation` is "" and `seq` is 0 if unknown."""

    conversation: str
    seq: int
    reason: str


class Report(msgspec.Struct):
    """The contents of a log file and all its defects."""

    path: str
    epoch: str = ""
    head: int = 0
    rows: int = 0
    events: int = 0
    conversations: int = 0
    problems: list[Problem] = []


def verify_file(path: str, progress: Callable[[int], None] = lambda _: None) -> Report:
    """Verify a log that no daemon has open: run the startup checks, and check every row, line, hash chain and group.

    Args:
        path: The log.
        progress: Called with the last position of each row.

    Raises:
        LogUnusable: The file is missing, is not a punchlist log, or can't be read at all.
    """
    if not identify(path, 1 + len(UPGRADES)):
        raise LogUnusable(f"{path} is not there; name the log or the backup to look at")
    try:
        check_pages(path)
        with open_for_reading(path) as connection:
            check_schema(connection, path)
            report = _Check(path, connection, progress).run()
            mark = read_position(sibling(path, ".mark"))
            if mark and mark.epoch == report.epoch and mark.seq > report.head:
                report.problems.append(
                    Problem("", report.head + 1, f"the log ends at {report.head} and had come to {mark.seq}")
                )
            return report
    except sqlite3.Error as error:
        raise LogUnusable(f"{path} can't be read ({error}); restore a backup: punch daemon restore") from error


@contextlib.contextmanager
def open_for_reading(path: str) -> Generator[sqlite3.Connection]:
    """Open a log for reading only, or a temporary copy if it was not closed."""
    with contextlib.ExitStack() as stack:
        mode = "ro&immutable=1"
        if size_of(wal_path(path)):
            directory = stack.enter_context(tempfile.TemporaryDirectory(dir=os.path.dirname(path) or "."))
            copy = os.path.join(directory, "log.db")
            shutil.copyfile(wal_path(path), wal_path(copy))
            path, mode = shutil.copyfile(path, copy), "rw"
        yield stack.enter_context(contextlib.closing(connect(path, mode)))


def readable_rows(connection: sqlite3.Connection, on_damage: Callable[[int, str], None]) -> Iterator[Row]:
    """Yield all readable rows, and call `on_damage` with the position and reason for each unreadable one."""
    after = 0
    while True:
        try:
            following = connection.execute("SELECT min(seq) FROM log WHERE seq > ?", (after,)).fetchone()[0]
        except sqlite3.DatabaseError as error:
            on_damage(after + 1, f"nothing after it can be read: {error}")
            return
        if following is None:
            return
        try:
            row = connection.execute(f"SELECT {ROW} FROM log WHERE seq = ?", (following,)).fetchone()
            if row is None:  # the ordered scan found it, but the lookup by key didn't
                on_damage(following, "it is out of its place")
            else:
                yield row
        except sqlite3.DatabaseError as error:
            on_damage(following, f"it can't be read: {error}")
        after = following


class _Check:
    """One pass over a log, comparing each event with the one expected next in its conversation."""

    def __init__(self, path: str, connection: sqlite3.Connection, progress: Callable[[int], None]) -> None:
        self._connection = connection
        self._progress = progress
        self._report = Report(path)
        self._heads: dict[str, tuple[int, str]] = {}
        self._reported: set[str] = set()

    def run(self) -> Report:
        report = self._report
        report.epoch = read_epoch(self._connection, report.path)
        try:
            structure = self._connection.execute("PRAGMA quick_check").fetchone()[0]
        except sqlite3.DatabaseError as error:
            structure = str(error)
        if structure != "ok":
            self._report_problem("", 0, f"the file's structure is broken: {structure}")
        for row in readable_rows(self._connection, lambda seq, reason: self._report_problem("", seq, reason)):
            last, first = row[0], row[1]
            if first != report.head + 1 or last < first:
                self._report_problem("", report.head + 1, f"events {report.head + 1} to {first - 1} are missing")
            report.head = last
            report.rows += 1
            self._progress(last)
            self._check_row(row)
        report.conversations = len(self._heads)
        return report

    def _check_row(self, row: Row) -> None:
        lines = split(row)
        if lines is not None:
            self._check_lines(lines)
            return
        salvaged = salvage(row, lambda name, _: self._heads.get(name, (0, ""))[1])
        for seq, name, _ in salvaged.bad or [(row[1], "", b"")]:
            self._report_problem(name, seq, "its checksum does not match")
        self._mark_reported(salvaged)
        self._check_lines(salvaged.good, whole=False)
        self._mark_reported(salvaged)

    def _mark_reported(self, salvaged: Salvage) -> None:
        """Prevent versions lost in a damaged row from being reported again at the conversation's next event."""
        for _, name, _ in salvaged.bad:
            self._reported.update([name] if name else [*self._heads, *salvaged.names])

    def _check_lines(self, lines: list[Stored], *, whole: bool = True) -> None:
        remaining, group = 0, ""
        for stored in lines:
            try:
                parse(stored.line, stored.seq)
            except ValueError as error:
                self._report_problem("", stored.seq, str(error))
                continue
            name = stored.conversation
            self._check_line(stored, name)
            if whole and remaining and (stored.remaining != remaining - 1 or name != group):
                self._report_problem(group, stored.seq, f"{remaining} events of a group are missing before it")
            remaining, group = stored.remaining, name
            self._report.events += 1
        if whole and remaining:
            self._report_problem(group, lines[-1].seq, f"{remaining} events of its group are missing")

    def _check_line(self, stored: Stored, name: str) -> None:
        version, check = self._heads.get(name, (0, ""))
        starts_chain = is_tombstone(stored.wire)
        if name in self._reported:
            self._reported.discard(name)
        elif stored.version != version + 1 and not (starts_chain and stored.version > version):
            self._report_problem(name, stored.seq, f"it has version {stored.version} where {version + 1} is due")
        elif not verify(check, stored):
            self._report_problem(name, stored.seq, "it does not follow from the event before it")
        self._heads[name] = stored.version, stored.check

    def _report_problem(self, conversation: str, seq: int, reason: str) -> None:
        self._report.problems.append(Problem(conversation, seq, reason))
