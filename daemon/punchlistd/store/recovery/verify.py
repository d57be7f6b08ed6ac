"""Looking through a whole log file that nobody has open, changing nothing.

Rows follow each other without a hole, each matches its checksum, each conversation is a chain with dense versions, and
groups are whole. A log that was not closed is looked at in a copy, because SQLite would change it.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterator

import msgspec

from punchlistd.store.file.files import beside, size_of, write_ahead
from punchlistd.store.file.high_water_mark import read_position
from punchlistd.store.file.lines import ROW, Row, Salvage, salvage, split
from punchlistd.store.file.schema import UPGRADES, connect, identify, read_epoch
from punchlistd.store.port import LogUnusable, Stored
from punchlistd.store.record import is_tombstone, parse, verify
from punchlistd.store.recovery.integrity import check_pages, check_schema


class Problem(msgspec.Struct, frozen=True):
    """Something that is not as it was written. `conversation` is "" and `seq` 0 where there is no telling."""

    conversation: str
    seq: int
    reason: str


class Report(msgspec.Struct):
    """What a log file holds, and everything that is wrong with it."""

    path: str
    epoch: str = ""
    head: int = 0
    rows: int = 0
    events: int = 0
    conversations: int = 0
    problems: list[Problem] = []


def verify_file(path: str, progress: Callable[[int], None] = lambda _: None) -> Report:
    """Check all that a start checks, and every row, line, chain and group, of a log that no daemon has open.

    Args:
        path: The log.
        progress: Called with each position that was come to.

    Raises:
        LogUnusable: It is no log of ours, or can't be read at all.
    """
    if not identify(path, 1 + len(UPGRADES)):
        raise LogUnusable(f"{path} is not there; name the log or the backup to look at")
    try:
        check_pages(path)
        with opened(path) as connection:
            check_schema(connection, path)
            report = _Check(path, connection, progress).run()
            noted = read_position(beside(path, ".mark"))
            if noted and noted.epoch == report.epoch and noted.seq > report.head:
                report.problems.append(
                    Problem("", report.head + 1, f"the log ends at {report.head} and had come to {noted.seq}")
                )
            return report
    except sqlite3.Error as error:
        raise LogUnusable(f"{path} can't be read ({error}); put a backup in its place: punch daemon restore") from error


@contextlib.contextmanager
def opened(path: str) -> Generator[sqlite3.Connection]:
    """A log, or a copy of one that was not closed, to be read and nothing else."""
    with contextlib.ExitStack() as stack:
        mode = "ro&immutable=1"
        if size_of(write_ahead(path)):
            directory = stack.enter_context(tempfile.TemporaryDirectory(dir=os.path.dirname(path) or "."))
            copy = os.path.join(directory, "log.db")
            shutil.copyfile(write_ahead(path), write_ahead(copy))
            path, mode = shutil.copyfile(path, copy), "rw"
        yield stack.enter_context(contextlib.closing(connect(path, mode)))


def readable_rows(connection: sqlite3.Connection, spoiled: Callable[[int, str], None]) -> Iterator[Row]:
    """All rows that can be read; after one that can't, of which `spoiled` is told, the next that can."""
    after = 0
    while True:
        try:
            following = connection.execute("SELECT min(seq) FROM log WHERE seq > ?", (after,)).fetchone()[0]
        except sqlite3.DatabaseError as error:
            spoiled(after + 1, f"nothing after it can be read: {error}")
            return
        if following is None:
            return
        try:
            row = connection.execute(f"SELECT {ROW} FROM log WHERE seq = ?", (following,)).fetchone()
            if row is None:  # it is listed, and not found
                spoiled(following, "it is out of its place")
            else:
                yield row
        except sqlite3.DatabaseError as error:
            spoiled(following, f"it can't be read: {error}")
        after = following


class _Check:
    """One pass over a log: what each conversation's next event must be, and what was found instead."""

    def __init__(self, path: str, connection: sqlite3.Connection, progress: Callable[[int], None]) -> None:
        self._connection = connection
        self._progress = progress
        self._report = Report(path)
        self._heads: dict[str, tuple[int, str]] = {}
        self._holes: set[str] = set()

    def run(self) -> Report:
        report = self._report
        report.epoch = read_epoch(self._connection, report.path)
        try:
            structure = self._connection.execute("PRAGMA quick_check").fetchone()[0]
        except sqlite3.DatabaseError as error:
            structure = str(error)
        if structure != "ok":
            self._problem("", 0, f"the file's structure is broken: {structure}")
        for row in readable_rows(self._connection, lambda seq, reason: self._problem("", seq, reason)):
            last, first = row[0], row[1]
            if first != report.head + 1 or last < first:
                self._problem("", report.head + 1, f"events {report.head + 1} to {first - 1} are missing")
            report.head = last
            report.rows += 1
            self._progress(last)
            self._row(row)
        report.conversations = len(self._heads)
        return report

    def _row(self, row: Row) -> None:
        lines = split(row)
        if lines is not None:
            self._lines(lines)
            return
        rest = salvage(row, lambda name, _: self._heads.get(name, (0, ""))[1])
        for seq, name, _ in rest.bad or [(row[1], "", b"")]:
            self._problem(name, seq, "its checksum does not match")
        self._skip(rest)
        self._lines(rest.good, whole=False)
        self._skip(rest)

    def _skip(self, rest: Salvage) -> None:
        """Versions that a damaged row took with it were reported once and are not missed again."""
        for _, name, _ in rest.bad:
            self._holes.update([name] if name else [*self._heads, *rest.names])

    def _lines(self, lines: list[Stored], *, whole: bool = True) -> None:
        left, group = 0, ""
        for stored in lines:
            try:
                parse(stored.line, stored.seq)
            except ValueError as error:
                self._problem("", stored.seq, str(error))
                continue
            name = stored.conversation
            self._follow(stored, name)
            if whole and left and (stored.left != left - 1 or name != group):
                self._problem(group, stored.seq, f"{left} events of a group are missing before it")
            left, group = stored.left, name
            self._report.events += 1
        if whole and left:
            self._problem(group, lines[-1].seq, f"{left} events of its group are missing")

    def _follow(self, stored: Stored, name: str) -> None:
        version, check = self._heads.get(name, (0, ""))
        fresh = is_tombstone(stored.wire)
        if name in self._holes:
            self._holes.discard(name)
        elif stored.version != version + 1 and not (fresh and stored.version > version):
            self._problem(name, stored.seq, f"it has version {stored.version} where {version + 1} is due")
        elif not verify(check, stored):
            self._problem(name, stored.seq, "it does not follow from the event before it")
        self._heads[name] = stored.version, stored.check

    def _problem(self, conversation: str, seq: int, reason: str) -> None:
        self._report.problems.append(Problem(conversation, seq, reason))
