import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import CLEARED, Scribe, said
from punchlistd.store.file.operations import Operations
from punchlistd.store.port import StorageFailed, StorageFull
from punchlistd.store.recovery.opening import open_log


@pytest.fixture
def operations(path: str) -> Iterator[Operations]:
    opened = open_log(path, reserve_bytes=0)
    yield opened
    opened.finish()
    opened.connection.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("locking_mode", "exclusive"),
        ("secure_delete", 1),
        ("wal_autocheckpoint", 0),
        ("trusted_schema", 0),
        ("mmap_size", 0),
        ("journal_size_limit", 64 << 20),
    ],
)
def test_open_log_has_durable_settings(operations: Operations, name: str, value: str | int) -> None:
    assert operations.connection.execute(f"PRAGMA {name}").fetchone() == (value,)


def fails(error: BaseException) -> object:
    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def test_mark_lags_on_a_full_disk(operations: Operations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", fails(OSError(28, "No space left on device")))
    operations.append(Scribe(MemoryLog()).group("a", CLEARED))
    assert operations.head == 1 and not operations.failed


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError()])
def test_error_after_the_commit_is_an_unknown_outcome(
    operations: Operations, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    entries = Scribe(MemoryLog()).group("a", CLEARED)
    monkeypatch.setattr(operations.high_water_mark, "write", fails(error))
    with pytest.raises(StorageFailed):
        operations.append(entries)
    with pytest.raises(StorageFailed):
        operations.run_guarded(operations.sizes)
    assert operations.failed


def test_full_database_rolls_back_and_can_retry(operations: Operations) -> None:
    scribe = Scribe(MemoryLog())
    entries = scribe.group("a", said("x" * 100_000))
    pages: int = operations.connection.execute("PRAGMA page_count").fetchone()[0]
    operations.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StorageFull):
        operations.append(entries)
    with pytest.raises(StorageFull), operations.transaction():
        operations.connection.execute("INSERT INTO meta VALUES('large', zeroblob(100000))")
    assert not operations.failed and not operations.connection.in_transaction and operations.head == 0
    operations.connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    operations.append(entries)
    assert operations.head == 1


def test_close_tolerates_missing_watched_files(path: str, tmp_path: Path) -> None:
    opened = open_log(path, reserve_bytes=0)
    (tmp_path / "daemon.sock").write_text("")
    opened.watch([str(tmp_path / "daemon.sock")])
    (tmp_path / "daemon.sock").unlink()
    opened.finish()
    opened.connection.close()


def test_error_in_a_transaction_rolls_it_back(operations: Operations) -> None:
    with pytest.raises(ZeroDivisionError), operations.transaction():
        operations.connection.execute("INSERT INTO meta VALUES('x', 1)")
        raise ZeroDivisionError
    assert operations.connection.execute("SELECT count(*) FROM meta WHERE name = 'x'").fetchone() == (0,)
    with pytest.raises(StorageFailed), operations.transaction():
        raise sqlite3.OperationalError("something else")
    assert "something else" in operations.failed
