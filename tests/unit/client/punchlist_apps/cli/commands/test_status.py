import json
import time
from typing import Any

import pytest


def test_several_tasks_are_completed_in_one_call(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    punch("add", "c", "-b", "1", "-b", "2")
    outcome = punch("done", "1", "#2", "--result", "fine")
    assert outcome.lines == [
        "  ✓ #1 a",
        "  ✓ #2 b",
        "    unblocked #3 · next #3 c · 1 left",
    ]
    assert punch("show", "1", "--json").json["task"]["result_summary"] == "fine"
    assert punch("done", "3").lines[-1] == "    all finished"


def test_rejected_task_does_not_stop_others(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    outcome = punch("done", "9", "1")
    assert outcome.code == 1
    assert outcome.err.startswith("error: ")
    assert outcome.lines[0] == "  ✓ #1 a"


def test_one_undo_reverses_several_tasks(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    for command in ("start", "done", "fail", "pause"):
        assert punch(command, "1", "2").code == 0
        punch("undo")
        statuses = [task["status"] for task in punch("list", "--all", "--json").json["tasks"]]
        assert statuses == ["pending", "pending"], command


def test_one_undo_reverses_restart(punch: Any) -> None:
    punch("add", "a")
    punch("pause", "1")
    punch("start", "1")
    punch("undo")
    assert punch("show", "1", "--json").json["task"]["status"] == "paused"


def test_task_completed_by_other_is_not_started(punch: Any) -> None:
    punch("add", "a")
    punch("queue", "claim", "1", "-o", "bot")
    punch("done", "1", "--actor", "bot", "-r", "hours of work")
    outcome = punch("start", "1")
    assert outcome.code == 1
    assert outcome.err == ("error: #1 was completed by bot\n  make it pending again: punch reopen 1\n")
    assert punch("show", "1", "--json").json["task"]["result_summary"] == "hours of work"


def test_claimed_task_needs_force(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "zed")
    punch("add", "a")
    punch("add", "b")
    punch("queue", "claim", "1", "-o", "claude-code/7f3c1a")
    punch("queue", "claim", "2")
    outcome = punch("done", "1", "2")
    assert outcome.code == 1
    assert outcome.err.startswith("error: Task #1 is held by claude-code/7f3c1a; ")
    assert outcome.err.endswith("\n  change it anyway, in your name: punch done 1 --force\n")
    assert outcome.lines[0] == "  ✓ #2 b", "the user's own claim needs no force"
    assert punch("fail", "1", "--reason", "not needed").code == 1
    assert punch("fail", "1", "--reason", "not needed", "--force").code == 0
    assert punch("log", "--json").out.count('"actor":"zed","event":{"type":"StatusChanged"') == 2, (
        "the overriding actor is named"
    )


def test_started_task_is_claimed(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other agent can start the task, `next --result` completes it, and it can be released."""
    monkeypatch.setenv("USER", "zed")
    for title in "abc":
        punch("add", title)
    assert punch("start", "1").out == "  ● #1 a  @zed\n"
    assert punch("start", "1").out == "  ● #1 a  @zed\n", "a repeated call has no effect"
    outcome = punch("start", "1", "--owner", "ann")
    assert outcome.err.startswith("error: Task #1 is held by zed; ")
    assert outcome.err.endswith("\n  free it for others: punch reopen 1\n")
    assert punch("next", "--result", "in a.txt").out == "  ✓ #1 a\n  ● #2 b  @zed\n"
    assert punch("queue", "release", "2").out == "  ☐ #2 b\n"
    assert punch("start", "3", "-o", "ann").out == "  ● #3 c  @ann\n"
    assert {event["actor"] for event in map(json.loads, punch("log", "--json").lines)} == {"zed"}


def test_paused_or_finished_task_is_restarted(punch: Any) -> None:
    for number, command in enumerate(("pause", "done", "fail"), 1):
        punch("add", "a")
        punch(command, str(number))
        assert punch("start", str(number), "--owner", "ann").out == f"  ● #{number} a  @ann\n"


def test_actor_comes_from_environment(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "zed")
    monkeypatch.setenv("PUNCHLIST_ACTOR", "codex")
    punch("add", "a")
    assert punch("start", "1").out == "  ● #1 a  @codex\n"
    punch("edit", "1", "-t", "b", "--actor", "ann")
    punch("rm", "1", "--yes")
    log = [json.loads(line) for line in punch("log", "--json").lines]
    assert [event["actor"] for event in log] == ["codex", "codex", "codex", "ann", "codex"]


def test_task_passes_through_all_statuses(punch: Any) -> None:
    punch("add", "a")
    states: list[str] = []
    for words in (("start",), ("pause",), ("resume",), ("fail", "--reason", "no luck"), ("reopen",), ("done",)):
        result = punch(words[0], "1", *words[1:], "--json").json
        states.append(result["task"]["status"])
    assert states == ["in_progress", "paused", "in_progress", "failed", "pending", "completed"]


def test_only_started_task_is_resumed(punch: Any) -> None:
    for number, state in enumerate(("pending", "completed", "failed"), 1):
        punch("add", "a", "--status", state)
        outcome = punch("resume", str(number))
        way = f"start it: punch start {number}"
        assert outcome.code == 1
        assert outcome.err == f"error: can't resume #{number}, which is {state}\n  {way}\n"
        assert punch("show", str(number), "--json").json["task"]["status"] == state


def test_resuming_task_in_progress_is_no_op(punch: Any) -> None:
    punch("add", "a")
    punch("start", "1")
    version = punch("list", "--json").json["version"]
    assert punch("resume", "1").code == 0
    assert punch("list", "--json").json["version"] == version


def test_failed_tasks_keep_list_unfinished(punch: Any) -> None:
    for title in ("one", "two", "three"):
        punch("add", title)
    punch("fail", "1", "2", "--reason", "no paper")
    punch("done", "3")
    assert punch("fail", "1").lines[-1] == "    nothing left: 2 failed (punch list --status failed)"
    assert punch("next").lines[-1] == "nothing left: 2 failed (punch list --status failed)"
    punch("done", "2", "--force")
    punch("reopen", "1")
    assert punch("fail", "1").lines[-1] == "    nothing left: 1 failed (punch reopen 1)"
    assert punch().lines[-1] == "next: nothing left: 1 failed (punch reopen 1)"


def test_parent_is_completed_after_children_or_by_force(punch: Any) -> None:
    punch("add", "epic")
    for title in ("a", "b"):
        punch("add", title, "--parent", "1")
    outcome = punch("done", "1")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        "error: Task #1 has 2 open tasks: #2, #3. "
        "Complete those first, or set `force` to complete #1 without them.\n"
        "  complete all: punch done 2 3 1; without them: punch done 1 --force\n"
    )
    assert [line for line in punch("done", "1", "2", "3").lines if "✓" in line] == [
        "  ✓ #2 a",
        "  ✓ #3 b",
        "  ✓ #1 epic",
    ]
    punch("undo")
    punch("reopen", "3")
    assert punch("done", "1", "--force").lines[0] == "  ✓ #1 epic"
    assert punch("show", "3", "--json").json["task"]["status"] == "pending"


def test_parent_is_paused_without_claim(punch: Any) -> None:
    punch("add", "epic")
    punch("add", "a", "--parent", "1")
    outcome = punch("start", "1")
    assert outcome.err == (
        "error: Task #1 has 1 open task: #2. Work on those.\n  start one of them first: punch start 2\n"
    )
    assert punch("pause", "1").code == 0
    assert punch("start", "2").code == 1
    assert punch("resume", "1").lines[0] == "  ☐ #1 epic"
    assert punch("start", "2").code == 0


def test_done_names_earlier_actor(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "a")
    assert "already" not in punch("done", "1", "--actor", "codex/1a2b3c").out
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7_200)
    assert punch("done", "1").lines[-1] == "    was already completed by codex/1a2b3c 2h ago"
    assert "already" not in punch("reopen", "1").out
