from typing import Any

import pytest


def test_several_tasks_at_once_and_what_it_means_for_the_rest(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    punch("add", "c", "-b", "1", "-b", "2")
    done = punch("done", "1", "#2", "--result", "fine")
    assert done.lines == [
        "  ✓ #1 a",
        "    next #2 b · 2 left",
        "  ✓ #2 b",
        "    unblocked #3 · next #3 c · 1 left",
    ]
    assert punch("show", "1", "--json").json["task"]["result_summary"] == "fine"
    assert punch("done", "3").lines[-1] == "    all finished"


def test_a_refused_task_does_not_keep_the_others_from_being_done(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    done = punch("done", "9", "1")
    assert done.code == 1
    assert done.err.startswith("error: not_found: ")
    assert done.lines[0] == "  ✓ #1 a"


def test_what_somebody_else_has_claimed_is_finished_by_force_alone(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "zed")
    punch("add", "a")
    punch("add", "b")
    punch("claim", "1", "-o", "claude-code/7f3c1a")
    punch("claim", "2")
    refused = punch("done", "1", "2")
    assert refused.code == 1
    assert refused.err.startswith("error: lease_held: Task #1 is held by claude-code/7f3c1a; ")
    assert refused.err.endswith("\n  punch done 1 --force does it all the same, in your name\n")
    assert refused.lines[0] == "  ✓ #2 b", "one's own claim needs no force"
    assert punch("fail", "1", "--reason", "not needed").code == 1
    assert punch("fail", "1", "--reason", "not needed", "--force").code == 0
    assert punch("log", "--json").out.count('"actor":"zed"') == 2, "whoever overrides is named"


def test_the_whole_life_of_a_task(punch: Any) -> None:
    punch("add", "a")
    states: list[str] = []
    for words in (("start",), ("pause",), ("resume",), ("fail", "--reason", "no luck"), ("reopen",), ("done",)):
        result = punch(words[0], "1", *words[1:], "--json").json
        states.append(result["task"]["status"])
    assert states == ["in_progress", "paused", "in_progress", "failed", "pending", "completed"]


def test_a_failed_task_shows_its_reason(punch: Any) -> None:
    punch("add", "a")
    punch("fail", "1", "--reason", "no luck")
    assert punch("list").lines[1:] == ["  ✗ #1 a", "    no luck"]


@pytest.mark.parametrize("state", ["pending", "completed", "failed"])
def test_only_what_was_begun_is_resumed(punch: Any, state: str) -> None:
    punch("add", "a", "--status", state)
    told = punch("resume", "1")
    assert told.code == 1
    assert (
        told.err == f"error: illegal_transition: #1 is {state}, there is nothing to resume\n  begin it: punch start 1\n"
    )
    assert punch("show", "1", "--json").json["task"]["status"] == state


def test_resuming_what_is_in_progress_changes_nothing(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1")
    version = punch("list", "--json").json["version"]
    assert punch("resume", "1").code == 0
    assert punch("list", "--json").json["version"] == version
