import json
from typing import Any

import pytest

from punchlist_testing.terminal import terminal


def titles(punch: Any) -> list[str]:
    return [task["title"] for task in punch("list", "--json").json["tasks"]]


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_ACTOR", "ann")


def test_undo_keeps_changes_by_others(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    gone = punch("rm", "2")
    punch("done", "1", "-r", "hours of work", "--actor", "claude", "--force")
    assert punch("undo").lines == ["undone:", '  restored #2 "b"', "  to reverse this: punch redo"]
    assert [task["status"] for task in punch("list", "--json").json["tasks"]] == ["completed", "pending"]
    assert punch("redo").lines == ["redone:", '  removed #2 "b"', "  to reverse this: punch undo"]
    assert punch(*gone.lines[1].split("punch ")[1].split()).code == 1, "the redo has already undone it"
    punch("undo")
    assert titles(punch) == ["a", "b"]


def test_conflict_names_newer_change_and_actor(punch: Any) -> None:
    punch("add", "a")
    punch("edit", "1", "-t", "better", "--actor", "bob")
    outcome = punch("undo")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(
        "error: Call 1 can't be undone: the newer call 3 of bob depends on it (task #1).\n"
        "  undo the newer call first: punch undo 3; to undo as much as possible, add --force"
    )
    result = json.loads(punch("undo", "--json").err)["error"]
    assert (result["kind"], "--force" in result["advice"]) == ("undo_conflict", True)
    punch("undo", "3")
    assert titles(punch) == ["a"]
    punch("undo")
    assert titles(punch) == []
    assert (
        punch("undo").lines[1]
        == "  ann has nothing left to undo; punch log lists all changes, and punch undo CALL undoes any of them"
    )


def test_printed_undo_works_after_later_changes(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    gone = punch("rm", "2").lines[1].rpartition("punch ")[2].split()
    punch("add", "d")
    cleared = punch("list", "clear", "--yes").lines[1].rpartition("punch ")[2].split()
    assert punch(*cleared).code == 0
    assert titles(punch) == ["a", "c", "d"]
    assert punch(*gone).code == 0
    assert titles(punch) == ["a", "b", "c", "d"]


def test_revert_accepts_version_or_time(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    punch("list", "clear", "--yes", "--actor", "bob")
    punch("add", "c")
    assert punch("revert", "--at", "3", "--preview").lines[0] == "would revert:"
    assert titles(punch) == ["c"]
    assert punch("revert", "--at", "3").lines[-1] == "  to reverse this: punch undo"
    assert titles(punch) == ["a", "b"]
    assert punch("undo").code == 0
    assert titles(punch) == ["c"]
    early = punch("revert", "--at", "10 min ago")
    assert (early.code, "did not exist" in early.err) == (2, True)
    assert punch("list", "--at", "0s", "--json").json["tasks"][0]["title"] == "c"
    assert punch("revert", "--at", "99").err.startswith("error: The list is at version ")
    assert punch("revert").code == 2


def test_log_shows_reversals_with_versions(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "--actor", "bob")
    punch("undo")
    punch("redo")
    punch("revert", "--at", "2")
    lines = [line.partition("  by ")[0] for line in punch("log").lines]
    assert lines == [
        "   1  opened",
        "   2  #1 added  a",
        "   3  #2 added  b",
        "   4  #1 deleted  a  (undo of 1)",
        "   5  #1 added  a  (redo of 4)",
        "   6  #2 deleted  b  (back to version 2)",
    ]
    events = [json.loads(line) for line in punch("log", "--json").lines]
    assert [(one["version"], one["call"]) for one in events if "call" in one] == [(2, 1)]
    assert [one["undoes"] for one in events if "undoes" in one] == [[1], [4]]
    assert events[-1]["reverts_to"] == 2


def test_log_is_filtered_by_actor_task_and_time(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "--actor", "bob")
    punch("done", "1")
    assert [line.split()[0] for line in punch("log", "--actor", "bob").lines] == ["3"]
    assert [line.split()[0] for line in punch("log", "--task", "#1").lines] == ["2", "4"]
    assert len(punch("log", "--since", "10m").lines) == 4
    assert punch("log", "--since", "soon").code == 2


def test_undoing_several_changes_asks_on_terminal(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    with terminal("undo", "-n", "999", columns=100, env={"PUNCHLIST_ACTOR": "ann"}) as screen:
        screen.wait_for("Undo all of this? [y/N]")
        screen.type("n\n")
        screen.wait_for("nothing was changed")
    assert titles(punch) == ["a", "b", "c"]
    assert punch("undo", "-n", "2").code == 0, "there is no terminal to ask on"
    assert titles(punch) == ["a"]
    assert punch("undo", "3", "-n", "2").code == 2


def test_undo_includes_own_chats(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_ACTOR")
    punch("add", "own old command")
    punch("chat", "add pears")
    punch("chat", "--new", "add figs")
    punch("add", "an agent's", "--actor", "claude")
    assert punch("undo", "--actor", "claude", "--preview").lines[1:] == ['  removed #4 "an agent\'s"']
    monkeypatch.setenv("PUNCHLIST_ACTOR", "codex")
    assert punch("undo", "--preview").lines[0] == "nothing to undo"
    monkeypatch.delenv("PUNCHLIST_ACTOR")
    assert punch("undo", "--preview").lines == ["would undo:", '  removed #3 "figs"']
    assert punch("undo", "--preview", "--json").json["preview"] is True
    assert punch("undo").lines[1] == '  removed #3 "figs"'
    assert punch("undo", "-n", "2").lines[1:3] == ['  removed #2 "pears"', '  removed #1 "own old command"']
    assert punch("redo").lines[1] == '  restored #1 "own old command"'
    assert punch("chat", "--new", "undo").lines[0].startswith("This thread has no changes to undo")


def test_chat_of_user_is_not_own(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_ACTOR")
    opened = {"conversation": "chat-anns", "kind": "chat", "user": "ann", "metadata": {"list": "default"}}
    assert punch("daemon", "call", "conversation.open", json.dumps(opened)).code == 0
    punch("add", "ann's", "--actor", "chat/anns")
    assert punch("undo", "--preview").lines[0] == "nothing to undo"


def test_undo_without_changes_names_actor(punch: Any) -> None:
    punch("add", "a", "--actor", "claude-code/7f3c1a")
    punch("undo", "--of", "claude-code/7f3c1a")
    punch("add", "b")
    punch("add", "c", "--owner", "claude-code/7f3c1a")
    for name in ("claude-code/7f3c1a", "claude-code", "#3"):
        outcome = punch("undo", "--of", name)
        assert (outcome.code, outcome.lines[0]) == (0, "nothing to undo"), "the actor made changes, and all are undone"
        assert f"{name} has nothing left to undo" in outcome.lines[1]


def test_redo_without_undos_is_reported(punch: Any) -> None:
    punch("add", "a")
    outcome = punch("redo")
    assert (outcome.code, outcome.lines[0]) == (0, "nothing to redo")
    assert "has nothing left to redo" in outcome.lines[1]


def test_rejected_undo_offers_earlier_version(punch: Any) -> None:
    for title in ("a", "b"):
        punch("add", title)
    punch("start", "2", "--actor", "bob")
    assert punch("undo").err.endswith("; to undo that call and everything after it: punch revert --at 2\n")
    assert punch("revert", "--at", "2").code == 0
    assert titles(punch) == ["a"]


def test_claim_survives_revert_and_undo(punch: Any) -> None:
    punch("add", "a")
    punch("queue", "claim", "1", "-o", "bot")
    punch("revert", "--at", "2", "--yes")
    punch("undo")
    task = punch("show", "1", "--json").json["task"]
    assert (task["status"], task["owner"]) == ("in_progress", "bot")
    assert task["fence"] and task["lease_expires_at"]
