import errno
import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from punchlistd.store.file import schema
from punchlistd.store.file.schema import apply_settings, connect, create, identify, upgrade
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.opening import open_log


def contents(directory: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir() if path.is_file()}


def test_new_log_is_identified_and_private(path: str) -> None:
    assert not identify(path, 2)
    create(path)
    assert identify(path, 2)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(os.path.dirname(path)) == ["log.db"]
    with closing(connect(path, "ro")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        strict = connection.execute("SELECT min(strict) FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'")
        assert strict.fetchone() == (1,)


@pytest.mark.parametrize("is_new", [True, False])
def test_file_system_without_locks_is_rejected(path: str, monkeypatch: pytest.MonkeyPatch, is_new: bool) -> None:
    if not is_new:
        create(path)

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.lockf", no_locks)
    with pytest.raises(LogUnusable, match=r"can't be locked \(No locks available\): .* choose another data directory"):
        open_log(path, reserve_bytes=0)
    assert os.path.exists(path) is not is_new


def test_half_created_log_is_recreated(path: str) -> None:
    Path(path + ".new").write_text("half")
    create(path)
    assert identify(path, 2)


@pytest.mark.parametrize("setting", [("synchronous", "NORMAL", 2), ("no_such_setting", "1", 1)])
def test_ineffective_setting_is_rejected(path: str, setting: tuple[str, str, str | int]) -> None:
    create(path)
    with closing(connect(path, "rw")) as connection, pytest.raises(LogUnusable, match=setting[0]):
        apply_settings(connection, [setting])


def foreign(path: Path, application_id: int, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("CREATE TABLE t(a)")


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("empty", "not a punchlist log"),
        ("text", "not a punchlist log"),
        ("foreign", "another program's database"),
        ("newer", "newer punchlistd"),
        ("version 0", "version 0"),
        ("directory", "not a file"),
        ("pipe", "not a file"),
        ("only a write-ahead file", "is missing"),
    ],
)
def test_foreign_file_is_rejected_untouched(tmp_path: Path, what: str, told: str) -> None:
    path = tmp_path / "log.db"
    match what:
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_bytes(b"hello\n" * 100)
        case "foreign":
            foreign(path, 7, 1)
        case "newer":
            foreign(path, schema.APPLICATION_ID, 2)
        case "version 0":
            foreign(path, schema.APPLICATION_ID, 0)
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            (tmp_path / "log.db-wal").write_bytes(b"x")
    before = contents(tmp_path) if what != "pipe" else None
    with pytest.raises(LogUnusable, match=told) as caught:
        identify(str(path), 1)
    assert str(path) in str(caught.value)
    assert any(way in str(caught.value) for way in ("move", "run ", "put "))
    assert before is None or contents(tmp_path) == before


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_unreadable_log_is_rejected(path: str) -> None:
    create(path)
    os.chmod(path, 0)
    with pytest.raises(LogUnusable, match="can't be read"):
        identify(path, 1)


def test_invalid_name_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogUnusable, match="can't be read"):
        identify(str(tmp_path / "file" / "log.db"), 1)


UPGRADES = (("ALTER TABLE log ADD COLUMN extra TEXT",), ("CREATE TABLE more(a INTEGER) STRICT",))


def test_upgrade_runs_after_a_verified_backup(path: str) -> None:
    create(path)
    directory = Path(path).parent
    with closing(connect(path, "rw")) as connection:
        apply_settings(connection)
        connection.execute("INSERT INTO log VALUES(1, 1, 0, x'00')")
        upgrade(connection, path, schema.UPGRADES)
        assert not list(directory.glob("*.backup*"))
        upgrade(connection, path, (*schema.UPGRADES, UPGRADES[0], ("UPDATE log SET extra = 'x'",)))
        assert connection.execute("SELECT extra FROM log").fetchone() == ("x",)
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    with closing(connect(path + ".v2.backup", "ro")) as backup:
        assert backup.execute("SELECT * FROM log").fetchall() == [(1, 1, 0, b"\0")]
        assert backup.execute("PRAGMA user_version").fetchone() == (2,)
    assert identify(path, 4)
    with pytest.raises(LogUnusable, match="version 4"):
        identify(path, 3)


def test_failed_upgrade_changes_nothing(path: str) -> None:
    create(path)
    with closing(connect(path, "rw")) as connection:
        apply_settings(connection)
        with pytest.raises(sqlite3.Error):
            upgrade(connection, path, (*schema.UPGRADES, UPGRADES[0], ("no sql",)))
        assert not connection.in_transaction
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert "extra" not in connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'log'").fetchone()[0]
        upgrade(connection, path, (*schema.UPGRADES, *UPGRADES))
    names = sorted(name for name in os.listdir(os.path.dirname(path)) if "backup" in name)
    assert names == ["log.db.v2.backup", "log.db.v2.backup-2"]


def test_newer_version_is_rejected(path: str) -> None:
    create(path)
    with closing(connect(path, "rw")) as connection:
        connection.execute("PRAGMA user_version = 9")
        with pytest.raises(LogUnusable, match="version 9"):
            upgrade(connection, path, schema.UPGRADES)


@pytest.mark.parametrize("slashes", ["/", "//", "///"])
def test_path_with_leading_slashes_is_local(path: str, slashes: str) -> None:
    create(path)
    with closing(connect(slashes + path.lstrip("/"), "ro")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
