from typing import Any


def test_set_without_arguments_shows_all(punch: Any) -> None:
    assert punch("set").lines == [
        "title=                     name of the list",
        "execution=manual           how tasks are worked on: workers start them",
        "on_failure=continue        what happens to the others when a task fails: nothing",
        "max_attempts=0             attempts before a task counts as failed, 0 to 1000",
        "auto_clear=never           when a finished list is emptied: only by hand",
        "complete_parents=headings  which tasks are completed with the last task below them: "
        "those imported as headings; others become ready",
        "rate_limit=0               maximum number of changes per minute for each actor, 0 for no limit",
        "leave_grace=300            seconds that a session's claims last after it has left",
    ]


def test_set_changes_only_named_settings(punch: Any) -> None:
    punch("set", "max_attempts=2", "title=Release \x1b[2J")
    assert punch("set", "execution=serial").lines == [
        "execution=serial  how tasks are worked on: one at a time; the end of a task starts the next"
    ]
    assert punch("set", "--json").json == {
        "conversation": "default",
        "title": "Release \x1b[2J",
        "execution": "serial",
        "on_failure": "continue",
        "max_attempts": 2,
        "auto_clear": "never",
        "complete_parents": "headings",
        "rate_limit": 0,
        "leave_grace": 300,
    }
    assert "\x1b" not in punch("set").out
    punch("add", "a")
    assert punch("add", "b").code == 0
    assert [task["status"] for task in punch("list", "--json").json["tasks"]] == ["in_progress", "pending"]


def test_invalid_setting_changes_nothing(punch: Any) -> None:
    outcome = punch("set", "max_attempts=3", "execution=seral")
    assert outcome.code == 2
    assert "did you mean serial?" in outcome.err
    assert punch("list", "all", "--json").json["conversations"] == []


def test_settings_of_unknown_list_are_rejected(punch: Any) -> None:
    assert punch("set", "-c", "nonesuch").err.startswith("error: no list named nonesuch")
    assert punch("set", "auto_clear=idle", "-c", "fresh").code == 0


def test_rejection_by_daemon_is_shown(punch: Any) -> None:
    punch("add", "a", "--status", "in_progress")
    punch("add", "b", "--status", "in_progress")
    assert punch("set", "execution=serial").err.startswith("error: ")
