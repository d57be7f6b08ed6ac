import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.store import damaged_log


def test_the_list_is_filtered_and_cut(punch: Any) -> None:
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


def test_the_list_as_it_was(punch: Any) -> None:
    punch("add", "a")
    version = punch("list", "--json").json["version"]
    punch("done", "1")
    past = punch("list", "--at", str(version))
    assert past.lines == [f"default  0/1  at version {version}", "  ☐ #1 a"]
    assert punch("list", "--at", "0").lines[1:] == ["  no tasks"]


def test_the_conversation_comes_from_the_option_the_environment_or_is_default(punch: Any, monkeypatch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "-c", "site")
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "site")
    assert punch("list").lines == ["site  0/1", "  ☐ #1 b"]
    assert punch("list", "--conversation=default").lines == ["default  0/1", "  ☐ #1 a"]


def test_json_is_harmless_for_a_terminal(punch: Any) -> None:
    punch("add", "a\x1b\u202e\x9b")
    shown = punch("list", "--json")
    assert shown.json["tasks"][0]["title"] == "a\x1b\u202e\x9b"
    assert shown.out.isascii()
    assert shown.out.strip().isprintable()


def test_conversations_with_their_progress(punch: Any) -> None:
    punch("add", "a", "-c", "one")
    punch("add", "b", "-c", "two")
    punch("done", "1", "-c", "one")
    punch("daemon", "call", "conversation.configure", "title=Evil \x1b[2J", "-c", "two")
    lines = punch("list", "all").lines
    assert lines == ["    0/1  two  Evil \\x1b[2J", "    1/1  one"]
    assert [one["conversation"] for one in punch("list", "all", "--active", "--json").json["conversations"]] == ["two"]
    assert len(punch("list", "all", "-n", "1").lines) == 2
    assert punch("list", "all", "-q", "nothing").lines == ["no lists"]


def test_the_state_of_the_daemon(punch: Any) -> None:
    punch("add", "a")
    shown = punch("daemon", "status")
    assert shown.code == 0
    assert re.search(r"daemon  punchlistd .*, pid \d+", shown.out)
    assert "2 events" in shown.out
    assert punch("daemon", "status", "--json").json["seq"] == 2


def test_the_line_for_prompts_comes_from_the_file_without_a_daemon(run: Any, home: Any) -> None:
    (home / "run").mkdir()
    (home / "run" / "status").write_text("3 open, 1 in progress\n")
    assert run("daemon", "status", "--line").out == "3 open, 1 in progress\n"


@pytest.fixture
def damaged(home: Path) -> Path:
    """A data directory with two lists of a task; of `a` the event behind it is spoiled."""
    added = {"type": "TaskAdded", "task": {"id": "1", "title": "whole"}}
    anyio.run(damaged_log, home / "data", (3,), added)
    return home / "data"


READS = [
    *("list", "ls --json", "list --limit 5", "show 1", "log", "log --json", "log --limit 1 --follow"),
    *("export", "export --format=jsonl"),
]


@pytest.mark.usefixtures("damaged")
def test_a_list_that_is_cut_at_damage_is_printed_and_the_command_says_so_and_fails(punch: Any) -> None:
    for words in READS:
        shown = punch(*words.split(), "-c", "a")
        assert shown.code == 1 and "whole" in shown.out, words
        told = json.loads(shown.err)["error"] if "--json" in words else {"message": shown.err, "kind": "damaged"}
        assert told["kind"] == "damaged" and "changes after position 3 are missing" in told["message"], words
        assert "punch daemon verify --repair" in shown.err and shown.err.count("\n") == 1, words
        if "--follow" not in words:
            whole = punch(*words.split(), "-c", "b")
            assert (whole.code, whole.err) == (0, ""), words


@pytest.mark.usefixtures("damaged")
def test_what_damage_does_not_allow_is_refused_with_one_way_out(punch: Any) -> None:
    for words in ("undo --preview", "undo", "add more", "list clear --yes", "show 9"):
        refused = punch(*words.split(), "-c", "a")
        assert refused.code == 1 and refused.err.startswith("error: The log of a is damaged at position 3 "), words
        assert refused.err.count("punch daemon verify --repair") == 1, words
        assert refused.err.endswith("\n  stop the daemon: punch daemon stop\n"), words


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
def test_a_task_is_shown_below_its_parents(punch: Any, monkeypatch: Any, words: tuple[str, ...], shown: str) -> None:
    monkeypatch.setenv("PUNCHLIST_OWNER", "ann")
    punch("add", "Backend")
    punch("add", "tests", "--parent", "1", "-p", "high")
    punch("add", "docs")
    assert shown in punch(*words).lines
