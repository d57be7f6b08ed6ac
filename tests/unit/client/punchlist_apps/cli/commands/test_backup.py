import json
import os
import re
import stat
import subprocess
import sys
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.events import stream_events
from punchlist_testing.daemon import Running, spawned_daemon
from punchlist_testing.store import damaged_log
from punchlistd.store.file.schema import connect


@pytest.fixture
def damaged(home: Path) -> Path:
    """A data directory whose log has one damaged event: the third, of list a."""
    anyio.run(damaged_log, home / "data")
    return home / "data"


# backup


def test_default_backup_is_named_by_time(punch: Any, home: Path) -> None:
    punch("add", "one")
    outcome = punch("daemon", "backup")
    (name,) = os.listdir(home / "data" / "backups")
    assert re.fullmatch(r"punchlist-\d{8}-\d{6}\.db", name)
    assert outcome.code == 0
    assert outcome.lines[0].startswith(f"{home}/data/backups/{name}: 2 events of 1 list up to position 2, ")
    assert "valid" in outcome.lines[1] and "punch daemon restore" in outcome.lines[1]
    assert stat.S_IMODE(os.stat(home / "data" / "backups").st_mode) == 0o700


def test_backup_path_is_relative_to_working_directory(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "one")
    monkeypatch.chdir(home)
    made = punch("daemon", "backup", "mine.db", "--json").json
    assert (made["path"], made["events"], made["checked"]) == (str(home / "mine.db"), 2, True)
    assert punch("daemon", "verify", "mine.db").code == 0


def test_backup_never_overwrites_file(punch: Any, home: Path) -> None:
    (home / "taken").write_text("mine")
    outcome = punch("daemon", "backup", str(home / "taken"))
    assert outcome.code == 1 and "already exists" in outcome.err
    assert (home / "taken").read_text() == "mine"


# verify


def test_log_in_use_is_verified_in_temporary_copy(punch: Any, home: Path) -> None:
    punch("add", "one")
    outcome = punch("daemon", "verify")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{home}/data/log.db: 2 events of 1 list up to position 2: no damage")
    assert outcome.out.endswith("no damage; its checksums and chains match\n")
    assert not [name for name in os.listdir(home / "data") if name.startswith("verify")]
    punch("add", "two")


def test_damage_in_used_log_is_reported_with_position(damaged: Path, punch: Any) -> None:
    outcome = punch("daemon", "verify")
    assert outcome.code == 1
    assert outcome.lines[0] == "damaged: a at 3: its checksum does not match"
    assert outcome.lines[1].endswith("1 problem")
    assert outcome.lines[2] == "to repair it: punch daemon stop; punch daemon verify --repair"
    report = punch("daemon", "verify", "--json")
    assert report.code == 1 and report.json["problems"] == [
        {"conversation": "a", "seq": 3, "reason": "its checksum does not match"}
    ]
    assert report.json["path"] == str(damaged / "log.db")


@pytest.mark.usefixtures("damaged")
def test_hook_prints_undamaged_part_of_list_with_note(punch: Any) -> None:
    outcome = punch("agent", "prime", "--hook", "-c", "a", stdin="{}")
    assert outcome.code == 0
    assert "the list is incomplete: changes after position 3 are missing" in outcome.err
    assert punch("agent", "prime", "-c", "a").code == 1


def test_unserved_log_is_verified_in_place(damaged: Path, run: Any) -> None:
    before = (damaged / "log.db").read_bytes()
    outcome = run("daemon", "verify")
    assert outcome.code == 1 and outcome.lines[0].startswith("damaged: a at 3")
    assert (damaged / "log.db").read_bytes() == before


def test_other_data_directory_is_verified_while_daemon_runs(punch: Any, home: Path, tmp_path: Path) -> None:
    anyio.run(damaged_log, tmp_path / "other")
    assert punch("daemon", "verify").code == 0
    assert punch("daemon", "verify", "--data-dir", str(tmp_path / "other")).code == 1


def test_verifying_locked_log_by_path_is_rejected(punch: Any, home: Path) -> None:
    outcome = punch("daemon", "verify", str(home / "data" / "log.db"))
    assert outcome.code == 75 and outcome.err.startswith("error: process ")


@pytest.mark.parametrize("name", ["missing", "text"])
def test_files_that_are_not_logs_are_rejected(run: Any, home: Path, name: str) -> None:
    (home / "text").write_text("a shopping list")
    for words in (
        ("daemon", "verify", str(home / name)),
        ("daemon", "restore", str(home / name), "--data-dir", str(home / "new")),
    ):
        outcome = run(*words)
        assert outcome.code == 78 and outcome.err.startswith("error: ") and str(home / name) in outcome.err


def test_missing_report_is_internal_error(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    outcome = run("daemon", "verify", str(home / "x"))
    assert (outcome.code, outcome.err) == (
        70,
        "error: punchlistd ended without a report (exit code 1)\n",
    )


def test_problems_beyond_limit_are_counted(run: Any, home: Path) -> None:
    anyio.run(damaged_log, home / "data")
    with closing(connect(str(home / "data" / "log.db"), "rw")) as connection:
        connection.execute("UPDATE log SET body = x'00' WHERE seq > 1").close()
        rows = [(seq, seq, 0, b"?") for seq in range(5, 152)]
        connection.executemany("INSERT INTO log VALUES(?, ?, ?, ?)", rows).close()
    outcome = run("daemon", "verify")
    assert outcome.code == 1 and len(outcome.lines) == 103
    assert outcome.lines[-3] == "and 50 more; to list all: --json"


# repair


def test_repair_is_rejected_while_daemon_runs(damaged: Path, punch: Any, daemon: Running) -> None:
    outcome = punch("daemon", "verify", "--repair")
    assert outcome.code == 75 and "punch daemon stop" in outcome.err
    assert punch("daemon", "verify", "--repair", "some.db").code == 2


def test_repair_reports_backup_and_losses(damaged: Path, run: Any) -> None:
    outcome = run("daemon", "verify", "--repair")
    (name,) = os.listdir(damaged / "backups")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[0].endswith(f"{damaged}/backups/{name}")
    assert outcome.lines[1].startswith("lost: a at 3")
    assert outcome.lines[-1].endswith(": no damage") and "new epoch" in outcome.lines[-1]
    again = run("daemon", "verify", "--repair")
    assert (again.code, again.out) == (0, f"{damaged}/log.db has no damage: nothing to repair\n")


# restore


def test_lost_log_is_restored(punch: Any, run: Any, tmp_path: Path) -> None:
    punch("add", "one")
    punch("daemon", "backup", str(tmp_path / "copy.db"))
    outcome = run("daemon", "restore", str(tmp_path / "copy.db"), "--data-dir", str(tmp_path / "new"))
    assert outcome.code == 0 and "2 events of 1 list" in outcome.lines[0] and "new epoch" in outcome.lines[0]
    assert outcome.lines[1:] == ["the next command starts the daemon"]
    assert run("daemon", "verify", "--data-dir", str(tmp_path / "new")).code == 0


def test_restore_moves_log_aside_and_restarts_daemon(run: Any, home: Path) -> None:
    with spawned_daemon(home) as daemon:
        run("add", "one")
        run("daemon", "backup", "copy.db")
        run("add", "two")
        planned = run("daemon", "restore", "copy.db", "--dry-run")
        assert planned.code == 0 and [line.split()[0] for line in planned.lines[1:]] == ["stop", "move", "put", "start"]
        assert "two" in run("list").out
        outcome = run("daemon", "restore", "copy.db")
        (aside,) = home.glob("data/aside-*")
        assert (outcome.code, outcome.err) == (0, "") and str(aside) in outcome.lines[1]
        assert daemon.process is not None and daemon.process.wait(20) == 0
        listed = run("list").out
        assert "one" in listed and "two" not in listed
        kept = run("daemon", "verify", str(aside / "log.db"), "--json")
        assert (kept.code, kept.json["head"]) == (0, 3)
        assert run("daemon", "stop").code == 0


def test_invalid_backup_does_not_stop_daemon(run: Any, home: Path) -> None:
    with spawned_daemon(home) as daemon:
        run("add", "one")
        (home / "text").write_text("a shopping list")
        run("daemon", "backup", "altered.db")
        with closing(connect(str(home / "altered.db"), "rw")) as connection:
            connection.execute("CREATE VIEW mine AS SELECT 1").close()
        assert "the view mine" in run("daemon", "restore", "altered.db").err
        for name in ("text", "missing", "data/log.db", "altered.db"):
            assert run("daemon", "restore", name).code != 0
        assert daemon.process is not None and daemon.process.poll() is None
        assert not list(home.glob("data/aside-*"))


def test_interrupted_restore_is_reported_and_can_be_repeated(run: Any, home: Path) -> None:
    with spawned_daemon(home):
        run("add", "one")
        run("daemon", "backup", "copy.db")
        run("daemon", "stop")
    killed = (
        "import os, sys; from punchlistd.store.recovery.aside import replacing\n"
        "with replacing(sys.argv[1], sys.argv[2], sys.argv[3]): os._exit(9)"  # a kill between the two logs
    )
    places = [str(home / "data"), str(home / "data" / "aside-1"), str(home / "copy.db")]
    assert subprocess.run([sys.executable, "-c", killed, *places], check=False).returncode == 9
    process = subprocess.run(
        [sys.executable, "-m", "punchlistd"], capture_output=True, text=True, check=False, timeout=50
    )
    assert process.returncode == 78 and f"punch daemon restore {home}/copy.db" in process.stderr
    assert (home / "data" / "aside-1" / "log.db").exists() and not (home / "data" / "log.db").exists()
    assert run("daemon", "restore", "copy.db").code == 0
    with spawned_daemon(home):
        assert "one" in run("list").out


def test_damaged_backup_is_not_restored(damaged: Path, run: Any, tmp_path: Path) -> None:
    outcome = run("daemon", "restore", str(damaged / "log.db"), "--data-dir", str(tmp_path / "new"))
    assert outcome.code == 1 and outcome.err.startswith("error: ") and "a at 3" in outcome.err
    assert not (tmp_path / "new" / "log.db").exists()


# missing events


def test_events_of_all_lists_skip_damage(damaged: Path, punch: Any) -> None:
    outcome = punch("log", "--all-conversations", "--json")
    assert [line[:8] for line in outcome.lines] == ['{"seq":1', '{"seq":2', '{"seq":4']
    assert outcome.code == 0 and json.loads(outcome.err)["error"]["message"].startswith("The events between 2 and 4 ")


def test_following_continues_after_missing_events(damaged: Path, daemon: Running) -> None:

    common = {"conversation": None, "json": True, "socket": None, "data_dir": None, "no_autostart": True}
    with closing(Context(Namespace(**common))) as context:
        events = stream_events(context, after=0, everywhere=True)
        assert [next(events)["seq"] for _ in range(3)] == [1, 2, 4]
