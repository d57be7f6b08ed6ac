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
    """A data directory whose log has one spoiled event, the third, of conversation a."""
    anyio.run(damaged_log, home / "data")
    return home / "data"


# backup


def test_a_backup_goes_beside_the_log_under_a_name_with_its_time(punch: Any, home: Path) -> None:
    punch("add", "one")
    done = punch("daemon", "backup")
    (name,) = os.listdir(home / "data" / "backups")
    assert re.fullmatch(r"punchlist-\d{8}-\d{6}\.db", name)
    assert done.code == 0
    assert done.lines[0].startswith(f"{home}/data/backups/{name}: 2 events of 1 list up to position 2, ")
    assert "checked" in done.lines[1] and "punch daemon restore" in done.lines[1]
    assert stat.S_IMODE(os.stat(home / "data" / "backups").st_mode) == 0o700


def test_a_backup_goes_where_it_is_told_seen_from_here(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "one")
    monkeypatch.chdir(home)
    made = punch("daemon", "backup", "mine.db", "--json").json
    assert (made["path"], made["events"], made["checked"]) == (str(home / "mine.db"), 2, True)
    assert punch("daemon", "verify", "mine.db").code == 0


def test_a_file_that_is_there_is_never_written_over(punch: Any, home: Path) -> None:
    (home / "taken").write_text("mine")
    refused = punch("daemon", "backup", str(home / "taken"))
    assert refused.code == 1 and "there already" in refused.err
    assert (home / "taken").read_text() == "mine"


# verify


def test_a_log_in_use_is_looked_at_in_a_copy_that_does_not_stay(punch: Any, home: Path) -> None:
    punch("add", "one")
    done = punch("daemon", "verify")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{home}/data/log.db: 2 events of 1 list up to position 2: sound")
    assert done.out.endswith("sound; its checksums and chains match\n")
    assert not [name for name in os.listdir(home / "data") if name.startswith("verify")]
    punch("add", "two")


def test_damage_in_a_log_in_use_is_told_with_its_place(damaged: Path, punch: Any) -> None:
    done = punch("daemon", "verify")
    assert done.code == 1
    assert done.lines[0] == "damaged: a at 3: its checksum does not match"
    assert done.lines[1].endswith("1 problem")
    assert done.lines[2] == "to repair it: punch daemon stop; punch daemon verify --repair"
    report = punch("daemon", "verify", "--json")
    assert report.code == 1 and report.json["problems"] == [
        {"conversation": "a", "seq": 3, "reason": "its checksum does not match"}
    ]
    assert report.json["path"] == str(damaged / "log.db")


@pytest.mark.usefixtures("damaged")
def test_a_hook_shows_a_damaged_list_as_far_as_it_is_whole_and_says_so(punch: Any) -> None:
    told = punch("agent", "prime", "--hook", "-c", "a", stdin="{}")
    assert told.code == 0
    assert "changes after position 3 are missing" in told.err
    assert punch("agent", "prime", "-c", "a").code == 1


def test_a_log_that_nobody_serves_is_looked_at_itself(damaged: Path, run: Any) -> None:
    before = (damaged / "log.db").read_bytes()
    done = run("daemon", "verify")
    assert done.code == 1 and done.lines[0].startswith("damaged: a at 3")
    assert (damaged / "log.db").read_bytes() == before


def test_the_log_of_another_data_directory_is_not_mistaken_for_the_one_that_is_served(
    punch: Any, home: Path, tmp_path: Path
) -> None:
    anyio.run(damaged_log, tmp_path / "other")
    assert punch("daemon", "verify").code == 0
    assert punch("daemon", "verify", "--data-dir", str(tmp_path / "other")).code == 1


def test_a_log_in_use_that_is_named_is_left_to_its_daemon(punch: Any, home: Path) -> None:
    refused = punch("daemon", "verify", str(home / "data" / "log.db"))
    assert refused.code == 75 and refused.err.startswith("error: process ")


@pytest.mark.parametrize("name", ["missing", "text"])
def test_what_is_no_log_is_said_so(run: Any, home: Path, name: str) -> None:
    (home / "text").write_text("a shopping list")
    for words in (
        ("daemon", "verify", str(home / name)),
        ("daemon", "restore", str(home / name), "--data-dir", str(home / "new")),
    ):
        refused = run(*words)
        assert refused.code == 78 and refused.err.startswith("error: ") and str(home / name) in refused.err


def test_a_program_that_ends_without_a_report_is_a_fault_of_ours(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    refused = run("daemon", "verify", str(home / "x"))
    assert (refused.code, refused.err) == (
        70,
        "error: punchlistd ended without a report (exit code 1)\n",
    )


def test_of_very_much_damage_the_first_is_shown(run: Any, home: Path) -> None:
    anyio.run(damaged_log, home / "data")
    with closing(connect(str(home / "data" / "log.db"), "rw")) as connection:
        connection.execute("UPDATE log SET body = x'00' WHERE seq > 1").close()
        rows = [(seq, seq, 0, b"?") for seq in range(5, 152)]
        connection.executemany("INSERT INTO log VALUES(?, ?, ?, ?)", rows).close()
    done = run("daemon", "verify")
    assert done.code == 1 and len(done.lines) == 103
    assert done.lines[-3] == "and 50 more: --json has them all"


# repair


def test_a_damaged_log_is_repaired_once_its_daemon_has_ended(damaged: Path, punch: Any, daemon: Running) -> None:
    refused = punch("daemon", "verify", "--repair")
    assert refused.code == 75 and "punch daemon stop" in refused.err
    assert punch("daemon", "verify", "--repair", "some.db").code == 2


def test_a_repair_says_what_is_kept_and_what_is_lost(damaged: Path, run: Any) -> None:
    done = run("daemon", "verify", "--repair")
    (name,) = os.listdir(damaged / "backups")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].endswith(f"{damaged}/backups/{name}")
    assert done.lines[1].startswith("lost: a at 3")
    assert done.lines[-1].endswith(": sound") and "new epoch" in done.lines[-1]
    again = run("daemon", "verify", "--repair")
    assert (again.code, again.out) == (0, f"{damaged}/log.db is sound: nothing to repair\n")


# restore


def test_a_lost_log_is_brought_back(punch: Any, run: Any, tmp_path: Path) -> None:
    punch("add", "one")
    punch("daemon", "backup", str(tmp_path / "copy.db"))
    done = run("daemon", "restore", str(tmp_path / "copy.db"), "--data-dir", str(tmp_path / "new"))
    assert done.code == 0 and "2 events of 1 list" in done.lines[0] and "new epoch" in done.lines[0]
    assert done.lines[1:] == ["the next command starts the daemon on it"]
    assert run("daemon", "verify", "--data-dir", str(tmp_path / "new")).code == 0


def test_a_log_in_use_is_set_aside_for_a_backup_and_the_daemon_is_started_on_it(run: Any, home: Path) -> None:
    with spawned_daemon(home) as daemon:
        run("add", "one")
        run("daemon", "backup", "copy.db")
        run("add", "two")
        planned = run("daemon", "restore", "copy.db", "--dry-run")
        assert planned.code == 0 and [line.split()[0] for line in planned.lines[1:]] == ["stop", "set", "put", "start"]
        assert "two" in run("list").out
        done = run("daemon", "restore", "copy.db")
        (aside,) = home.glob("data/aside-*")
        assert (done.code, done.err) == (0, "") and str(aside) in done.lines[1]
        assert daemon.process is not None and daemon.process.wait(20) == 0
        listed = run("list").out
        assert "one" in listed and "two" not in listed
        kept = run("daemon", "verify", str(aside / "log.db"), "--json")
        assert (kept.code, kept.json["head"]) == (0, 3)
        assert run("daemon", "stop").code == 0


def test_a_backup_that_is_none_stops_nothing(run: Any, home: Path) -> None:
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


def test_a_restore_that_was_cut_off_is_told_and_repeated(run: Any, home: Path) -> None:
    with spawned_daemon(home):
        run("add", "one")
        run("daemon", "backup", "copy.db")
        run("daemon", "stop")
    killed = (
        "import os, sys; from punchlistd.store.recovery.aside import replacing\n"
        "with replacing(sys.argv[1], sys.argv[2], sys.argv[3]): os._exit(9)"  # as a kill does, between the two logs
    )
    places = [str(home / "data"), str(home / "data" / "aside-1"), str(home / "copy.db")]
    assert subprocess.run([sys.executable, "-c", killed, *places], check=False).returncode == 9
    done = subprocess.run([sys.executable, "-m", "punchlistd"], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 78 and f"punch daemon restore {home}/copy.db" in done.stderr
    assert (home / "data" / "aside-1" / "log.db").exists() and not (home / "data" / "log.db").exists()
    assert run("daemon", "restore", "copy.db").code == 0
    with spawned_daemon(home):
        assert "one" in run("list").out


def test_a_damaged_backup_is_not_put_in_place(damaged: Path, run: Any, tmp_path: Path) -> None:
    refused = run("daemon", "restore", str(damaged / "log.db"), "--data-dir", str(tmp_path / "new"))
    assert refused.code == 1 and refused.err.startswith("error: ") and "a at 3" in refused.err
    assert not (tmp_path / "new" / "log.db").exists()


# what is missing


def test_the_events_of_all_lists_are_shown_as_far_as_they_can_be_had(damaged: Path, punch: Any) -> None:
    done = punch("log", "--all-conversations", "--json")
    assert [line[:8] for line in done.lines] == ['{"seq":1', '{"seq":2', '{"seq":4']
    assert done.code == 0 and json.loads(done.err)["error"]["message"].startswith("The events behind 2 and before 4 ")


def test_following_goes_on_behind_what_is_missing(damaged: Path, daemon: Running) -> None:

    common = {"conversation": None, "json": True, "socket": None, "data_dir": None, "no_autostart": True}
    with closing(Context(Namespace(**common))) as context:
        events = stream_events(context, after=0, everywhere=True)
        assert [next(events)["seq"] for _ in range(3)] == [1, 2, 4]
