"""Whether a database file has all its pages and the tables that we made, which SQLite does not look at by itself.

A file that was cut short reads as zeroes behind the cut: conversations would be missing without a word.
"""

import os
import sqlite3
from contextlib import closing, suppress

from punchlistd.store.file.files import size_of, write_ahead
from punchlistd.store.file.schema import DERIVED, build
from punchlistd.store.port import LogUnusable

_HEADER = 32
_FRAME = 24

_STATISTICS = ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)")
"""What ANALYZE adds: counts of rows for each of our tables. SQLite alone reads it, and only to choose between indexes.

`sqlite_stat4`, which some builds add to it, is rejected: it holds names of lists, which erasing would leave there.
"""


def check_pages(path: str) -> None:
    """Look whether every page is in the file or was written ahead of it. Nothing is changed.

    Raises:
        LogUnusable: The file was cut short.
    """
    with open(path, "rb") as file:
        header = file.read(100)
        length = os.fstat(file.fileno()).st_size
    page = int.from_bytes(header[16:18], "big")
    page = 1 << 16 if page == 1 else page
    counted = header[24:28] == header[92:96]  # otherwise no size was noted
    pages = int.from_bytes(header[28:32], "big") if counted else 0
    if page < 512 or length >= pages * page:  # noqa: PLR2004 - the smallest there is
        return
    there = length // page
    # Counted, not listed: one flipped bit of the header makes the pages a thousand million.
    missing = pages - there - sum(there < each <= pages for each in _written_ahead(write_ahead(path), page))
    if missing:
        lost = f"{missing:,} of {pages:,} pages are missing"
        raise LogUnusable(f"{path} was cut short: {lost}; put a backup in its place: punch daemon restore")


def _written_ahead(path: str, page: int) -> set[int]:
    """The pages in a write-ahead file, whether they count or not."""
    found = set[int]()
    with suppress(FileNotFoundError), open(path, "rb") as file:
        for place in range(_HEADER, size_of(path) - _FRAME, _FRAME + page):
            found.add(int.from_bytes(os.pread(file.fileno(), 4, place), "big"))
    return found


def check_schema(connection: sqlite3.Connection, path: str) -> None:
    """Compare what the file says of its tables and indexes with what they are.

    Raises:
        LogUnusable: A name or a type is not the one that was written, or something was added.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        build(fresh)
        listed = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        expected, found = {*fresh.execute(listed)}, {*connection.execute(listed)} - {_STATISTICS}
    if connection.execute("PRAGMA user_version").fetchone() == (1,):
        found = {row for row in found if row[2] not in DERIVED}  # an upgrade drops them unread
    if found > expected:
        kind, name, *_ = min(found - expected, key=lambda row: (row[3] is None, str(row)))
        raise LogUnusable(
            f"{path} holds the {kind} {name}, which punchlist did not make (DROP {str(kind).upper()} removes it); "
            "write the log without it: punch daemon verify --repair"
        )
    if found != expected:
        name = min(str(row[1]) for row in found ^ expected)
        raise LogUnusable(
            f"the definition of {name} in {path} is damaged; put a backup in its place: punch daemon restore"
        )
