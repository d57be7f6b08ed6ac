"""Reports about log files that no daemon has open, made by real processes."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer
from punchlist_testing.store import damaged_log
from punchlistd.__main__ import main
from punchlistd.process.lock import DataLock
from punchlistd.store.file import schema
from punchlistd.store.file.schema import connect
from punchlistd.store.port import LogUnusable

Program = Callable[..., tuple[int, Any]]


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Runs the audit; returns the exit code and the printed JSON."""
    monkeypatch.setenv("PUNCHLIST_DATA_DIR", str(tmp_path / "nowhere"))

    def program(*arguments: str) -> tuple[int, Any]:
        code = main(arguments)
        return code, json.loads(capsys.readouterr().out)

    return program


async def _used(directory: Path) -> None:
    """Create a log with a long list, a list with sessions and messages, and a deleted list."""
    async with running_daemon(directory) as daemon:
        peer = await Peer.open(daemon.socket)
        for number in range(70):
            await peer.result("task.add", conversation="a", title=str(number), blocked_by=[str(number)][: number > 0])
        await peer.result("conversation.attach", conversation="b", session="s")
        await peer.result("message.append", conversation="b", role="user", content={"x": [1]})
        await peer.result("task.add", conversation="c", title="gone")
        token = (await peer.refusal("conversation.delete", conversation="c"))["token"]
        await peer.result("conversation.delete", conversation="c", confirm=token)
        await peer.result("task.add", conversation="c", title="again")
        await peer.result("task.edit", conversation="a", task="2", title="later")
        peer.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("used")
    anyio.run(_used, directory)
    return directory / "data" / "log.db"


@pytest.fixture
def log(model: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "copy.db"
    copy.write_bytes(model.read_bytes())
    return copy


def execute(path: Path, statement: str, *values: Any) -> None:
    with closing(connect(str(path), "rw")) as connection:
        assert connection.execute(statement, values).rowcount


def problems(report: Any) -> list[tuple[str, int]]:
    return [(problem["conversation"], problem["seq"]) for problem in report["problems"]]


def test_log_with_every_event_type_verifies(program: Program, log: Path) -> None:
    before = log.read_bytes()
    code, report = program("--verify", str(log))
    assert (code, report["problems"]) == (0, [])
    assert (report["path"], report["conversations"]) == (str(log), 3)
    assert log.read_bytes() == before


def test_damage_is_reported_with_its_position(program: Program, log: Path) -> None:
    with closing(connect(str(log), "rw")) as connection:
        connection.execute(
            'UPDATE log SET body = CAST(replace(body, \'"title":"40"\', \'"title":"41"\') AS BLOB)'
        ).close()
    code, report = program("--verify", str(log))
    assert code == 1 and problems(report) == [("a", 42)]


def test_missing_commits_are_reported(program: Program, log: Path) -> None:
    execute(log, "DELETE FROM log WHERE seq = 10")
    code, report = program("--verify", str(log))
    assert code == 1 and problems(report) == [("", 10), ("a", 11)]


def test_log_in_use_is_rejected(program: Program, tmp_path: Path, model: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log.db").write_bytes(model.read_bytes())
    with closing(DataLock(str(tmp_path / "data" / "lock"))):
        code, report = program("--verify", str(tmp_path / "data" / "log.db"))
        assert (code, report["error"]) == (75, "in_use")
    assert program("--verify", str(tmp_path / "data" / "log.db"))[0] == 0


@pytest.mark.parametrize("content", [None, b"", b"no database " * 500])
def test_other_file_is_rejected(program: Program, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "x").write_bytes(content)
    for words in (
        ["--verify", str(tmp_path / "x")],
        ["--restore", str(tmp_path / "x"), "--data-dir", str(tmp_path / "d")],
    ):
        code, report = program(*words)
        assert (code, report["error"]) == (78, "unusable")
        assert report["message"].startswith(str(tmp_path / "x"))
        assert report["message"].endswith("; name another file: a log or a backup of punchlist")
    assert not (tmp_path / "d" / "log.db").exists()


def test_unusable_log_error_has_advice(program: Program, tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"no database " * 500)
    code, report = program("--verify", str(tmp_path / "log.db"))
    assert code == 78 and report["message"].endswith("restore a backup: punch daemon restore")


def test_progress_is_shown_only_on_terminals(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--verify", str(log)]) == 0
    assert capsys.readouterr().err == ""


# restore


def test_restored_backup_gets_a_new_epoch(program: Program, log: Path, tmp_path: Path) -> None:
    code, report = program("--restore", str(log), "--data-dir", str(tmp_path / "data"))
    original = program("--verify", str(log))[1]
    assert code == 0 and report["path"] == str(tmp_path / "data" / "log.db")
    assert report["head"] == original["head"] and report["epoch"] != original["epoch"]
    assert os.stat(tmp_path / "data").st_mode & 0o777 == 0o700
    assert os.stat(report["path"]).st_mode & 0o777 == 0o600
    assert program("--verify", report["path"])[0] == 0


async def test_restored_log_is_served(program: Program, log: Path, tmp_path: Path) -> None:
    await anyio.to_thread.run_sync(program, "--restore", str(log), "--data-dir", str(tmp_path / "data"))
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        tasks = (await peer.result("task.list", conversation="a"))["tasks"]
        assert [task["title"] for task in tasks[:3]] == ["0", "later", "2"]
        refused = await peer.refusal("event.read", after=3, epoch="of the lost log")
        assert refused["kind"] == "wrong_epoch"
        peer.close()


def test_existing_log_is_never_overwritten(program: Program, log: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "log.db").write_bytes(b"precious")
    code, report = program("--restore", str(log), "--data-dir", str(tmp_path / "data"))
    assert (code, report["error"]) == (1, "backup") and "already exists" in report["message"]
    assert (tmp_path / "data" / "log.db").read_bytes() == b"precious"


def test_restore_is_rejected_while_a_daemon_runs(program: Program, log: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    with closing(DataLock(str(tmp_path / "data" / "lock"))):
        code, report = program("--restore", str(log), "--data-dir", str(tmp_path / "data"))
    assert (code, report["error"]) == (75, "in_use")
    assert os.listdir(tmp_path / "data") == ["lock"]


ACCEPTED = ("ANALYZE",)
REJECTED = (
    "CREATE TABLE extra(a)",
    "CREATE VIEW extra AS SELECT 1",
    "CREATE INDEX extra ON log(sum)",
    "CREATE TRIGGER extra AFTER INSERT ON log BEGIN SELECT 1; END",
    "ALTER TABLE log RENAME COLUMN sum TO total",
    "DROP TABLE meta",
    "DELETE FROM meta WHERE name = 'epoch'",
    "UPDATE meta SET value = 7 WHERE name = 'epoch'",
    "PRAGMA user_version = 99",
)


@pytest.mark.parametrize("statement", [*ACCEPTED, *REJECTED])
async def test_backup_left_by_an_interrupted_restore_is_completed(
    program: Program, log: Path, tmp_path: Path, statement: str
) -> None:
    def change() -> None:
        with closing(connect(str(log), "rw")) as connection:
            connection.execute(statement)

    await anyio.to_thread.run_sync(change)
    served = tmp_path / "served"
    await anyio.Path(served / "data").mkdir(mode=0o700, parents=True)
    await anyio.to_thread.run_sync(shutil.copyfile, log, served / "data" / "log.db")
    starts = True
    try:
        async with running_daemon(served):
            pass
    except* LogUnusable:
        starts = False
    assert starts == (statement in ACCEPTED)
    restored = ("--restore", str(log), "--data-dir", str(tmp_path / "data"))
    code, report = await anyio.to_thread.run_sync(program, *restored)
    assert (code == 0) == starts, report
    assert ("log.db" in os.listdir(tmp_path / "data")) == starts
    assert (await anyio.to_thread.run_sync(program, "--verify", str(log)))[0] == code


def test_statistics_tables_are_rejected(program: Program, log: Path) -> None:
    with closing(connect(str(log), "rw")) as connection:
        connection.execute("CREATE TABLE extra(a)")
        connection.execute("PRAGMA writable_schema = ON")
        statistics = "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"
        connection.execute("UPDATE sqlite_schema SET name = ?, tbl_name = ?, sql = ? WHERE name = 'extra'", statistics)
    code, report = program("--verify", str(log))
    assert code == 78 and "the table sqlite_stat4" in report["message"]


def test_backup_that_fails_to_upgrade_is_removed(
    program: Program, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("--data-dir", str(tmp_path / "data"))
    assert program("--restore", str(log), *place)[0] == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    monkeypatch.setattr(schema, "UPGRADES", (*schema.UPGRADES, ("ALTER TABLE nothing ADD COLUMN extra",)))
    code, report = program("--restore", str(log), *place, "--aside", str(tmp_path / "data" / "aside-1"))
    assert code == 78, report
    after = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    assert {**after, **before} == after and set(after) - set(before) == {"log.db.v2.backup"}


async def test_damaged_backup_is_not_restored(program: Program, tmp_path: Path) -> None:
    await damaged_log(tmp_path / "damaged")

    def restore() -> tuple[int, Any]:
        return program("--restore", str(tmp_path / "damaged" / "log.db"), "--data-dir", str(tmp_path / "data"))

    code, report = await anyio.to_thread.run_sync(restore)
    assert (code, report["error"]) == (1, "backup") and "a at 3" in report["message"]
    assert not (tmp_path / "data" / "log.db").exists()
