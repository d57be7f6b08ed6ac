import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_apps.relay.dialing import find_path, lock_path
from punchlist_testing.store import damaged_log


def test_list_is_filtered_and_limited(punch: Any) -> None:
    punch("add", "a", "-o", "ada")
    punch("add", "b", "-b", "1")
    punch("add", "c", "--status", "completed")
    assert [line.split()[1] for line in punch("list", "--ready").lines[1:]] == ["#1"]
    assert [line.split()[1] for line in punch("list", "-s", "completed", "-s", "pending").lines[1:]] == [
        "#1",
        "#2",
        "#3",
    ]
    assert [line.split()[1] for line in punch("list", "-o", "ada").lines[1:]] == ["#1"]
    assert punch("list", "-n", "1").lines[0].endswith("1 of 3")


def test_list_at_shows_past_state(punch: Any) -> None:
    punch("add", "a")
    version = punch("list", "--json").json["version"]
    punch("done", "1")
    past = punch("list", "--at", str(version))
    assert past.lines == [f"default  0/1  at version {version}", "  ☐ #1 a"]
    assert punch("list", "--at", "0").lines[1:] == ["  no tasks"]


def test_list_comes_from_option_environment_or_default(punch: Any, monkeypatch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "-c", "site")
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "site")
    assert punch("list").lines == ["site  0/1", "  ☐ #1 b"]
    assert punch("list", "--conversation=default").lines == ["default  0/1", "  ☐ #1 a"]


def test_json_is_safe_for_terminal(punch: Any) -> None:
    punch("add", "a\x1b\u202e\x9b")
    outcome = punch("list", "--json")
    assert outcome.json["tasks"][0]["title"] == "a\x1b\u202e\x9b"
    assert outcome.out.isascii()
    assert outcome.out.strip().isprintable()


def test_lists_show_progress(punch: Any) -> None:
    punch("add", "a", "-c", "one")
    punch("add", "b", "-c", "two")
    punch("done", "1", "-c", "one")
    punch("daemon", "call", "conversation.configure", "title=Evil \x1b[2J", "-c", "two")
    lines = punch("list", "all").lines
    assert lines == ["    0/1  two  Evil \\x1b[2J", "    1/1  one"]
    assert [one["conversation"] for one in punch("list", "all", "--active", "--json").json["conversations"]] == ["two"]
    assert len(punch("list", "all", "-n", "1").lines) == 2
    assert punch("list", "all", "-q", "nothing").lines == ["no lists"]


def test_needs_of_all_lists_are_shown(punch: Any) -> None:
    assert punch("list", "--needs").lines == ["no task needs anyone"]
    for title, options in (("ship \x1b[2J", ("--gate", "yes:ann")), ("check", ("--gate", "check:tests"))):
        punch("add", title, "-c", "one", *options)
    punch("add", "after", "-c", "one", "-b", "1")
    punch("done", "1", "2", "-c", "one", "--result", "all\ngreen \x1b[2J")
    for title in "abcdefghij":
        punch("add", title, "-c", "two")
    punch("fail", "1-10", "-c", "two", "--reason", "no disk")
    outcome = punch("list", "--needs")
    assert (outcome.code, outcome.lines[:3]) == (0, ["two", "  ✗ #1 a", "    no disk"])
    assert outcome.lines[17:] == [
        "  and 2 more: punch list -c two",
        "one",
        "  ‖ #1 ship \\x1b[2J  waits for a yes of ann",
        "    frees 1 · all green \\x1b[2J",
        "  ‖ #2 check  waits for the check tests",
        "    all green \\x1b[2J",
    ]
    assert punch("list", "--needs", "-c", "one").lines == outcome.lines[18:]
    (first, *_) = punch("list", "--needs", "--json").json["needs"]
    assert (first["conversation"], first["name"], first["id"], first["kind"]) == ("two", "two", "1", "failed")
    assert punch("list", "--needs", "--ready").code == 2
    assert punch("list", "all").lines == ["   0/10  two  10 failed", "    0/3  one  1 waits for a yes"]


def test_daemon_status_is_shown(punch: Any) -> None:
    punch("add", "a")
    outcome = punch("daemon", "status")
    assert outcome.code == 0
    assert re.search(r"daemon  punchlistd .*, pid \d+", outcome.out)
    assert "2 events" in outcome.out
    assert punch("daemon", "status", "--json").json["seq"] == 2


def test_status_line_as_json_counts_tasks(punch: Any) -> None:
    punch("add", "a")
    assert punch("daemon", "status", "--line", "--json").json["pending"] == 1


SUSPENDED_WORKER = """
import fcntl, os, signal, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, b"%d" % os.getpid())
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_status_shows_a_suspended_worker(punch: Any, home: Path) -> None:
    punch("add", "a")
    lock = lock_path(find_path(str(home / "run" / "daemon.sock"), str(home / "data")))
    with subprocess.Popen([sys.executable, "-c", SUSPENDED_WORKER, lock]) as worker:
        try:
            os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)
            assert punch("daemon", "status", "--json").json["worker"]["state"] == "suspended"
            assert f"suspended, pid {worker.pid}; to have the next" in punch("daemon", "status").out
        finally:
            worker.kill()
    Path(lock).unlink()
    assert "worker" not in punch("daemon", "status").out
    Path(lock).symlink_to(home)
    assert f"{lock}: Too many levels of symbolic links" in punch("daemon", "status").out


def test_prompt_line_needs_no_daemon(run: Any, home: Any) -> None:
    (home / "run").mkdir()
    (home / "run" / "status").write_text("3 open, 1 in progress\n")
    assert run("daemon", "status", "--line").out == "3 open, 1 in progress\n"


@pytest.fixture
def damaged(home: Path) -> Path:
    """A data directory with two lists of one task each. The event after the task of `a` is damaged."""
    added = {"type": "TaskAdded", "task": {"id": "1", "title": "whole"}}
    anyio.run(damaged_log, home / "data", (3,), added)
    return home / "data"


READS = [
    *("list", "ls --json", "list --limit 5", "show 1", "log", "log --json", "log --limit 1 --follow"),
    *("export", "export --format=jsonl"),
]


@pytest.mark.usefixtures("damaged")
def test_damaged_list_is_printed_with_error(punch: Any) -> None:
    for words in READS:
        outcome = punch(*words.split(), "-c", "a")
        assert outcome.code == 1 and "whole" in outcome.out, words
        result = json.loads(outcome.err)["error"] if "--json" in words else {"message": outcome.err, "kind": "damaged"}
        assert result["kind"] == "damaged" and "changes after position 3 are missing " in result["message"], words
        assert "punch daemon verify --repair" in outcome.err and outcome.err.count("\n") == 1, words
        if "--follow" not in words:
            whole = punch(*words.split(), "-c", "b")
            assert (whole.code, whole.err) == (0, ""), words


@pytest.mark.usefixtures("damaged")
def test_changes_of_damaged_list_are_rejected(punch: Any) -> None:
    for words in ("undo --preview", "undo", "add more", "list clear --yes", "show 9"):
        outcome = punch(*words.split(), "-c", "a")
        assert outcome.code == 1 and outcome.err.startswith("error: The log of a is damaged at position 3 "), words
        assert outcome.err.count("punch daemon verify --repair") == 1, words
        assert outcome.err.endswith("\n  stop the daemon: punch daemon stop\n"), words


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("show", "2"), "☐ #2 ! Backend › tests"),
        (("next",), "  ☐ #2 ! Backend › tests"),
        (("next", "--take"), "  ● #2 ! Backend › tests  @ann"),
        (("queue", "claim"), "  ● #2 ! Backend › tests  @ann"),
        (("queue", "claim", "-n", "2"), "  ● #2 ! Backend › tests  @ann"),
        (("start", "2"), "  ● #2 ! Backend › tests  @ann"),
        (("why", "2"), "#2 Backend › tests"),
        ((), "next: punch start 2  (Backend › tests)"),
        (("done", "3"), "    next #2 Backend › tests · 2 left"),
    ],
)
def test_task_is_shown_with_parents(punch: Any, monkeypatch: Any, words: tuple[str, ...], shown: str) -> None:
    monkeypatch.setenv("PUNCHLIST_OWNER", "ann")
    punch("add", "Backend")
    punch("add", "tests", "--parent", "1", "-p", "high")
    punch("add", "docs")
    assert shown in punch(*words).lines
