"""Checks that SQLite omits: whether a database file has all its pages and exactly the expected tables.

SQLite reads the missing end of a truncated file as zeros, so conversations would disappear without an error.
"""

import os
import sqlite3
from contextlib import closing, suppress

from punchlistd.store.file.files import size_of, wal_path
from punchlistd.store.file.schema import DERIVED, build
from punchlistd.store.port import LogUnusable

_HEADER = 32
_FRAME = 24

_STATISTICS = ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)")
"""Table added by ANALYZE. It contains row counts that SQLite uses to choose between indexes.

`sqlite_stat4`, which some builds also add, is rejected because it contains list names that an erasure would miss.
"""


def check_pages(path: str) -> None:
    """Check that every page is in the file or in its write-ahead log. Both are only read.

    Raises:
        LogUnusable: The file was truncated.
    """
    with open(path, "rb") as file:
        header = file.read(100)
        length = os.fstat(file.fileno()).st_size
    page = int.from_bytes(header[16:18], "big")
    page = 1 << 16 if page == 1 else page
    has_size = header[24:28] == header[92:96]  # otherwise the size in the header is not valid
    pages = int.from_bytes(header[28:32], "big") if has_size else 0
    if page < 512 or length >= pages * page:  # noqa: PLR2004 - SQLite's smallest page size
        return
    present = length // page
    # Don't build a set of all pages: a single flipped bit in the header can turn their number into a billion.
    missing = pages - present - sum(present < number <= pages for number in _wal_pages(wal_path(path), page))
    if missing:
        lost = f"{missing:,} of {pages:,} pages are missing"
        raise LogUnusable(f"{path} is truncated: {lost}; restore a backup: punch daemon restore")


def _wal_pages(path: str, page: int) -> set[int]:
    """Return the numbers of all pages in a write-ahead log, including uncommitted ones."""
    numbers = set[int]()
    with suppress(FileNotFoundError), open(path, "rb") as file:
        for offset in range(_HEADER, size_of(path) - _FRAME, _FRAME + page):
            numbers.add(int.from_bytes(os.pread(file.fileno(), 4, offset), "big"))
    return numbers


def check_schema(connection: sqlite3.Connection, path: str) -> None:
    """Compare the definitions of the file's tables and indexes with those of a new log.

    Raises:
        LogUnusable: A definition differs, or something was added.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        build(fresh)
        query = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        expected, actual = {*fresh.execute(query)}, {*connection.execute(query)} - {_STATISTICS}
    if connection.execute("PRAGMA user_version").fetchone() == (1,):
        actual = {row for row in actual if row[2] not in DERIVED}  # the upgrade drops these without reading them
    if actual > expected:
        kind, name, *_ = min(actual - expected, key=lambda row: (row[3] is None, str(row)))
        raise LogUnusable(
            f"{path} holds the {kind} {name}, which punchlist did not make (DROP {str(kind).upper()} removes it); "
            "write the log without it: punch daemon verify --repair"
        )
    if actual != expected:
        name = min(str(row[1]) for row in actual ^ expected)
        raise LogUnusable(f"the definition of {name} in {path} is damaged; restore a backup: punch daemon restore")
