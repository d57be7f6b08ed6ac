"""What people met in their first hour: each hint leads on."""

import os
from pathlib import Path
from typing import Any

import pytest

from punchlist.connection.launch import Target
from punchlist.errors import WrongDataDirectory


def test_who_resumes_their_task_has_it_for_themselves_again(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1")
    punch("pause", "1")
    assert punch("resume", "1").code == 0
    assert punch("queue", "renew", "1").code == 0
    assert "held by" in punch("queue", "claim", "1", "-o", "ann").err


def test_resuming_somebody_elses_task_takes_nothing_from_them(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1", "-o", "ann", "--actor", "ann")
    punch("pause", "1")
    assert punch("resume", "1", "--json").json["task"]["owner"] == "ann"


@pytest.mark.parametrize("end", ["pause", "fail"])
def test_who_starts_what_another_has_paused_or_ended_has_it(punch: Any, end: str) -> None:
    punch("add", "a")
    punch("start", "1", "--actor", "ann")
    punch(end, "1", "--actor", "ann")
    assert punch("start", "1", "--actor", "bob").code == 0
    task = punch("show", "1", "--json").json["task"]
    assert (task["status"], task["owner"], task["fence"] > 0) == ("in_progress", "bob", True)
    assert punch("done", "1", "--actor", "ann").code == 1, "it is bob's now"
    assert punch("done", "1", "--actor", "bob").code == 0


def test_what_was_put_back_to_work_in_somebodys_name_can_be_taken(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1", "--actor", "ann")
    punch("pause", "1")
    punch("resume", "1", "--actor", "bob")
    refused = punch("start", "1", "--actor", "bob")
    assert refused.code == 1 and "punch pause 1 takes it away from ann; punch start 1 takes it then" in refused.err
    punch("pause", "1", "--actor", "bob")
    assert punch("start", "1", "--actor", "bob").code == 0


def test_a_deleted_task_is_told_from_one_that_never_was(punch: Any) -> None:
    punch("add", "a")
    punch("rm", "1")
    for command in (("show", "1"), ("done", "1"), ("edit", "1", "--title", "b"), ("note", "1", "b"), ("start", "1")):
        refused = punch(*command)
        assert refused.code == 1 and "Task #1 was deleted." in refused.err and "punch undo CALL" in refused.err
    for never in ("2", "01", "x"):
        assert "There is no task" in punch("show", never).err


def test_what_was_cleared_leaves_no_hole_in_the_log(punch: Any) -> None:
    punch("add", "a", "--owner", "ann")
    punch("edit", "1", "--owner", "")
    assert "edited owner (cleared)" in punch("log").out


def test_hints_name_what_to_type(punch: Any, home: Path) -> None:
    punch("add", "a")
    assert "write title=VALUE" in punch("list", "set", "title", "foo").err
    assert "name a word" in punch("find", "").err
    missing = punch("mirror", "add", "nosuch.md")
    assert missing.code == 1 and "mkdir" not in missing.err and "punch export" in missing.err
    assert "it can go to: \n" not in punch("approve", "1").err
    backup = punch("daemon", "backup", str(home / "b.db"))
    assert "2 events of 1 list up" in backup.out


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every directory")
def test_a_named_data_directory_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0)
    with pytest.raises(WrongDataDirectory, match="can't be read"):
        Target("/s", str(tmp_path / "mine"), env={}).check("1", "2")


def test_a_named_data_directory_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongDataDirectory, match="can't be read"):
        Target("/s", str(tmp_path / "file"), env={}).check("1", "2")
    Target("/s", env={"HOME": str(tmp_path / "file")}).check("1", "2")


def test_a_date_that_does_not_exist_is_told_as_a_sentence_of_its_own(punch: Any, home: Path) -> None:
    (home / "issues.jsonl").write_text('{"id":"a","title":"A","status":"open","due_at":"2026-02-30","creator":"x"}\n')
    lines = punch("import", "issues.jsonl").lines
    assert "  passed over: members without a place here: creator 1" in lines
    assert "  passed over: 1 × `due_at` that is not a date (“2026-02-30”) (line 1)" in lines


def test_the_log_shows_dates_labels_and_estimates_as_show_does(punch: Any) -> None:
    punch("add", "a")
    punch("edit", "1", "--due", "2026-12-24 18:00", "--estimate", "90m", "--label", "ui", "--link", "path=a.py:1")
    line = next(line for line in punch("log").lines if "edited" in line)
    for told in ("due 2026-12-24 18:00", "estimate 1h 30m", "labels ui", "links path a.py:1"):
        assert told in line
    assert "estimate: 1h 30m" in punch("show", "1").out


def test_a_mistyped_option_is_told_with_the_one_that_was_meant(punch: Any) -> None:
    assert (
        "unknown arguments: --prioritty high; did you mean '--priority'?"
        in punch("add", "a", "--prioritty", "high").err
    )
    assert punch("add", "a", "--zzz").err.splitlines()[0].endswith("unknown arguments: --zzz")


@pytest.mark.parametrize("command", ["share", "join"])
def test_a_space_without_its_option_is_understood(run: Any, command: str) -> None:
    told = run(command, "plan", "team").err
    assert told.startswith("error: unknown arguments: team; did you mean '--space team'?")
    assert "did you mean" not in run(command, "plan", "team", "--space", "other").err
    assert "did you mean" not in run(command, "plan", "--zzz").err
    assert "did you mean" not in run("leave", "plan", "team").err


def test_a_serial_list_that_is_busy_says_what_makes_room(punch: Any) -> None:
    punch("set", "execution=serial")
    for title in "ab":
        punch("add", title)
    assert "punch pause 1 makes room for it" in punch("start", "2").err


def test_what_a_task_waits_for_is_said_once_and_when_it_was_made(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "-b", "1")
    shown = punch("show", "2").out
    assert "blocked by: #1" in shown and "waits for" not in shown and "created: 20" in shown
