"""Problems that new users meet, each with a hint on how to continue."""

import os
from pathlib import Path
from typing import Any

import pytest

from punchlist.connection.launch import Target
from punchlist.errors import WrongDataDirectory


def test_resuming_own_task_claims_it(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1")
    punch("pause", "1")
    assert punch("resume", "1").code == 0
    assert punch("queue", "renew", "1").code == 0
    assert "held by" in punch("queue", "claim", "1", "-o", "ann").err


def test_resuming_anothers_task_keeps_its_owner(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1", "-o", "ann", "--actor", "ann")
    punch("pause", "1")
    assert punch("resume", "1", "--json").json["task"]["owner"] == "ann"


@pytest.mark.parametrize("end", ["pause", "fail"])
def test_starting_anothers_paused_or_ended_task_claims_it(punch: Any, end: str) -> None:
    punch("add", "a")
    punch("start", "1", "--actor", "ann")
    punch(end, "1", "--actor", "ann")
    assert punch("start", "1", "--actor", "bob").code == 0
    task = punch("show", "1", "--json").json["task"]
    assert (task["status"], task["owner"], task["fence"] > 0) == ("in_progress", "bob", True)
    assert punch("done", "1", "--actor", "ann").code == 1, "the task is bob's now"
    assert punch("done", "1", "--actor", "bob").code == 0


def test_a_task_resumed_for_another_can_be_claimed(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1", "--actor", "ann")
    punch("pause", "1")
    punch("resume", "1", "--actor", "bob")
    outcome = punch("start", "1", "--actor", "bob")
    assert outcome.code == 1 and "take it from ann: punch pause 1, then punch start 1" in outcome.err
    punch("pause", "1", "--actor", "bob")
    assert punch("start", "1", "--actor", "bob").code == 0


def test_a_deleted_task_differs_from_an_unknown_one(punch: Any) -> None:
    punch("add", "a")
    punch("rm", "1")
    for command in (("show", "1"), ("done", "1"), ("edit", "1", "--title", "b"), ("note", "1", "b"), ("start", "1")):
        outcome = punch(*command)
        assert outcome.code == 1 and "Task #1 was deleted." in outcome.err and "punch undo CALL" in outcome.err
    for unknown in ("2", "01", "x"):
        assert "There is no task" in punch("show", unknown).err


def test_the_log_shows_a_cleared_owner(punch: Any) -> None:
    punch("add", "a", "--owner", "ann")
    punch("edit", "1", "--owner", "")
    assert "edited owner (cleared)" in punch("log").out


def test_hints_have_commands(punch: Any, home: Path) -> None:
    punch("add", "a")
    assert "write title=VALUE" in punch("list", "set", "title", "foo").err
    assert "no word given" in punch("find", "").err
    missing = punch("mirror", "add", "nosuch.md")
    assert missing.code == 1 and "mkdir" not in missing.err and "punch export" in missing.err
    assert "it can go to: \n" not in punch("approve", "1").err
    backup = punch("daemon", "backup", str(home / "b.db"))
    assert "2 events of 1 list up" in backup.out


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every directory")
def test_an_unreadable_data_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0)
    with pytest.raises(WrongDataDirectory, match="can't be read"):
        Target("/s", str(tmp_path / "mine"), env={}).check("1", "2")


def test_a_missing_data_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongDataDirectory, match="can't be read"):
        Target("/s", str(tmp_path / "file"), env={}).check("1", "2")
    Target("/s", env={"HOME": str(tmp_path / "file")}).check("1", "2")


def test_a_nonexistent_date_has_its_own_message(punch: Any, home: Path) -> None:
    (home / "issues.jsonl").write_text('{"id":"a","title":"A","status":"open","due_at":"2026-02-30","creator":"x"}\n')
    lines = punch("import", "issues.jsonl").lines
    assert "  skipped: unsupported members: creator 1" in lines
    assert "  skipped: 1 × `due_at` that is not a date (“2026-02-30”) (line 1)" in lines


def test_log_and_show_format_members_alike(punch: Any) -> None:
    punch("add", "a")
    punch("edit", "1", "--due", "2026-12-24 18:00", "--estimate", "90m", "--label", "ui", "--link", "path=a.py:1")
    line = next(line for line in punch("log").lines if "edited" in line)
    for detail in ("due 2026-12-24 18:00", "estimate 1h 30m", "labels ui", "links path a.py:1"):
        assert detail in line
    assert "estimate: 1h 30m" in punch("show", "1").out


def test_a_mistyped_option_gets_a_suggestion(punch: Any) -> None:
    assert (
        "unknown arguments: --prioritty high; did you mean '--priority'?"
        in punch("add", "a", "--prioritty", "high").err
    )
    assert punch("add", "a", "--zzz").err.splitlines()[0].endswith("unknown arguments: --zzz")


@pytest.mark.parametrize("command", ["share", "join"])
def test_a_space_without_its_option_gets_a_suggestion(run: Any, command: str) -> None:
    output = run(command, "plan", "team").err
    assert output.startswith("error: unknown arguments: team; did you mean '--space team'?")
    assert "did you mean" not in run(command, "plan", "team", "--space", "other").err
    assert "did you mean" not in run(command, "plan", "--zzz").err
    assert "did you mean" not in run("leave", "plan", "team").err


def test_a_busy_serial_list_advises_a_pause(punch: Any) -> None:
    punch("set", "execution=serial")
    for title in "ab":
        punch("add", title)
    assert "pause the current task first: punch pause 1" in punch("start", "2").err


def test_show_prints_blockers_once_and_the_creation_time(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "-b", "1")
    output = punch("show", "2").out
    assert "blocked by: #1" in output and "waits for" not in output and "created: 20" in output
