from typing import Any


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
