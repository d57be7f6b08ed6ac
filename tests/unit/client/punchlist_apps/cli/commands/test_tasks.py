import json
from typing import Any

import pytest


def test_task_is_added_with_all_options(punch: Any) -> None:
    punch("add", "First")
    outcome = punch(
        "add", "Write", "the", "lexer", "-p", "high", "-o", "ada", "-d", "long", "--meta", "pr=7", "--meta", "x=word"
    )
    assert (outcome.code, outcome.out) == (0, "  ☐ #2 ! Write the lexer  @ada\n")
    third = punch("add", "Third", "-b", "1,#2", "--parent", "#1", "--before", "1", "--json").json["task"]
    assert (third["blocked_by"], third["parent"]) == (["1", "2"], "1")
    task = punch("show", "2", "--json").json["task"]
    assert (task["metadata"], task["description"], task["blocks"]) == ({"pr": 7, "x": "word"}, "long", ["3"])
    assert [task["id"] for task in punch("list", "--json").json["tasks"]] == ["3", "1", "2"]


def test_empty_value_clears_member(punch: Any) -> None:
    punch("add", "a", "-o", "ada", "--meta", "k=1")
    punch("add", "b")
    edited = punch(
        "edit", "1", "-t", "A", "-o", "", "--meta", "k=", "--meta", "n=[1]", "--blocked-by", "2", "--json"
    ).json["task"]
    assert (edited["title"], edited.get("owner"), edited["metadata"], edited["blocked_by"]) == (
        "A",
        None,
        {"n": [1]},
        ["2"],
    )
    assert "blocked_by" not in punch("edit", "1", "--unblock-from", "#2", "--parent", "2", "--json").json["task"]
    assert "parent" not in punch("edit", "1", "--parent", "", "--json").json["task"]


def test_tasks_are_moved(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    punch("move", "3", "--before", "1")
    punch("move", "1", "--to-end")
    assert [task["title"] for task in punch("list", "--json").json["tasks"]] == ["c", "b", "a"]


def test_deletion_in_pipe_can_be_undone(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    gone = punch("rm", "#1", "3")
    assert gone.lines == ["deleted #1, #3", "  to reverse this: punch undo 6"]
    assert punch("undo").lines[0] == "undone:"
    assert len(punch("list", "--json").json["tasks"]) == 3


def test_clearing_in_pipe_needs_yes(punch: Any) -> None:
    punch("add", "a")
    assert punch("list", "clear").code == 2
    assert punch("list", "clear", "--yes").lines[0] == "removed 1 tasks"
    assert punch("list").lines[1:] == ["  no tasks"]


def test_undo_accepts_preview_count_and_actor(punch: Any) -> None:
    punch("add", "a", "--actor", "ada")
    punch("add", "b", "--actor", "bob")
    punch("add", "c", "--actor", "ada")
    preview = punch("undo", "-n", "2", "--of", "ada", "--preview")
    assert preview.lines[0] == "would undo:"
    assert len(punch("list", "--json").json["tasks"]) == 3
    punch("undo", "--of", "ada", "--all", "--actor", "eve")
    assert '"actor":"eve"' in punch("log", "--json").lines[-1].replace(" ", "")
    assert [task["title"] for task in punch("list", "--json").json["tasks"]] == ["b"]
    punch("undo", "--actor", "bob")
    assert punch("undo", "--actor", "unknown").lines[0] == "nothing to undo"


@pytest.mark.parametrize(
    ("words", "kind", "advice"),
    [
        (("show", "9"), "not_found", "punch list --all"),
        (("start", "2"), "blocked", "punch done 1"),
        (("edit", "1", "--blocked-by", "2"), "dependency_cycle", "→"),
        (("pause", "3"), "illegal_transition", "allowed from here"),
        (("add", "x" * 501), "invalid_params", "--help"),
        (("daemon", "call", "task.lst=1"), "usage", "--help"),
        (("daemon", "call", "task.get", "task=1", "colour=1"), "invalid_params", ""),
    ],
)
def test_rejection_has_kind_and_advice(punch: Any, words: tuple[str, ...], kind: str, advice: str) -> None:
    punch("add", "a")
    punch("add", "b", "-b", "1")
    punch("add", "c", "--status", "completed")
    outcome = punch(*words)
    assert outcome.code == (2 if kind == "usage" else 1)
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert advice in outcome.err
    assert "Traceback" not in outcome.err
    assert json.loads(punch(*words, "--json").err)["error"]["kind"] == kind


def test_details_are_set_shown_and_cleared(punch: Any) -> None:
    added = punch("add", "a", "--label", "ops", "--label", "needs review", "--due", "2126-12-24", "--estimate", "90m")
    assert added.lines == ["  ☐ #1 a  +ops  +needs review  due 2126-12-24"]
    punch("edit", "1", "--after-date", "2126-12-01 08:30", "--link", "path=src/a.py:12", "--link", "relates-to=1")
    shown = punch("show", "1").out
    for line in ("due: 2126-12-24", "not before: 2126-12-01 08:30", "labels: ops, needs review", "path: src/a.py:12"):
        assert f"  {line}\n" in shown
    assert punch("why", "1").lines[1] == "  ← it is deferred until 2126-12-01 08:30"
    cleared = ("--due", "", "--after-date", "", "--estimate", "", "--link", "", "--unlabel", "ops")
    task = punch("edit", "1", *cleared, "--json").json["task"]
    assert {"due", "not_before", "estimate_ms", "links"}.isdisjoint(task)
    assert task["labels"] == ["needs review"]


def test_invalid_date_is_rejected_with_example(run: Any) -> None:
    outcome = run("add", "a", "--due=2026-02-30")
    assert outcome.code == 2 and "write 2026-12-24" in outcome.err


def test_notes_have_actor_and_time(punch: Any) -> None:
    punch("add", "a")
    punch("note", "1", "first", "line", "--actor", "ann")
    assert punch("note", "1", "second\x1b[31m").lines == ["noted on #1 a: second\\x1b[31m"]
    shown = punch("show", "1").lines
    assert shown[-1] == "  second\\x1b[31m"
    assert [line.strip() for line in shown if "ann" in line or "first" in line][-1] == "first line"
    assert "#1 note: first line" in punch("log").out
    assert punch("note", "9", "x").code == 1
    punch("undo")
    assert [each["text"] for each in punch("show", "1", "--json").json["task"]["notes"]] == ["first line"]


def test_list_is_filtered_by_label_parent_due_text(punch: Any) -> None:
    punch("add", "a", "--label", "ops", "--due", "1d")
    punch("add", "b", "--parent", "1", "--due", "9d", "--label", "ops", "--label", "ui")
    punch("add", "c", "-d", "Über alles")
    for words, expected in (
        (("--label", "ops"), ["1", "2"]),
        (("--label", "ops", "--label", "ui"), ["2"]),
        (("--parent", "#1"), ["2"]),
        (("--due", "7d"), ["1"]),
        (("--text", "über"), ["3"]),
    ):
        assert [task["id"] for task in punch("list", *words, "--json").json["tasks"]] == expected


def test_rejected_label_and_note_change_nothing(punch: Any) -> None:
    assert "labels[0] is wrong" in punch("add", "a", "--label", "x" * 10_000).err
    punch("add", "a")
    punch("rm", "1", "--yes")
    before = punch("log", "--json").out
    assert punch("note", "1", "too late").err.startswith("error: ")
    assert punch("log", "--json").out == before


def test_empty_title_is_usage_error(punch: Any) -> None:
    punch("add", "one")
    for words in (("add", ""), ("add", " ", ""), ("edit", "1", "--title", ""), ("edit", "1", "-t", " ")):
        outcome = punch(*words)
        assert outcome.code == 2
        assert outcome.err.startswith("error: the title is empty; ")


def test_several_quoted_titles_are_rejected(punch: Any) -> None:
    for words in (("a b", "c d"), ("a b", "c d", "--label", "x")):
        outcome = punch("add", *words)
        assert outcome.code == 2
        assert outcome.err.startswith("error: these are 2 titles; ")
        assert "punch add 'a b'" in outcome.err and "punch add 'a b c d'" in outcome.err
    assert punch("list", "--json").json["tasks"] == []
    for words in (("a b", "c"), ("a", "b"), ("a b",)):
        assert punch("add", *words).code == 0
