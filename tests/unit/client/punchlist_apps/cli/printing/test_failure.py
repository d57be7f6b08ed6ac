import json
from typing import Any

import pytest

from punchlist.errors import ConnectionLost, DaemonUnavailable, ProtocolError, RequestRefused, TimedOut
from punchlist_apps.cli.printing import failure
from punchlist_apps.cli.printing.failure import FormatError, StateError, UsageError, show_error, show_exception
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.project_file import DirectoryError

Told = pytest.CaptureFixture[str]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_refusal_is_told_by_its_sentence_and_as_json_whole(
    kind: str, capsys: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts: dict[str, Any] = {name: ["1", "2"] if name in ("allowed", "path") else "x" for name in ERRORS[kind].data}
    facts |= dict.fromkeys(facts.keys() & {"call", "newer"}, 7)
    for name in facts.keys() & {"blockers", "open_children"}:
        facts[name] = [{"id": "1", "title": "a"}]
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "a sentence", facts)) == 1
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "a sentence", {})) == 1
    assert capsys.readouterr().err.startswith("error: a sentence\n")
    monkeypatch.setattr(failure, "_as_json", True)
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "a failure; a way", {})) == 1
    told = json.loads(capsys.readouterr().err)["error"]
    assert (told["kind"], told["message"]) == (kind, "a failure; a way")


def test_what_to_do_is_said_once(capsys: Told) -> None:
    message = "There is no task '77'; list the tasks for their ids."
    show_exception(RequestRefused("not_found", ERRORS["not_found"].code, message, {"what": "task"}))
    assert capsys.readouterr().err == "error: There is no task '77'.\n  see all tasks: punch list --all\n"


def test_an_error_of_the_state_names_no_help(capsys: Told) -> None:
    assert show_exception(StateError("the list did not exist"), "revert") == 2
    assert capsys.readouterr().err == "error: the list did not exist\n"


@pytest.mark.parametrize(
    ("kind", "facts", "advice"),
    [
        ("blocked", {"blockers": [{"id": "2"}, {"id": "3"}]}, "finish #2, #3 first: punch done 2 3"),
        ("not_found", {"what": "task"}, "see all tasks: punch list --all"),
        ("not_found", {"what": "conversation"}, "see all lists: punch list all"),
        ("not_found", {"what": "message"}, "see the list: punch list"),
        ("illegal_transition", {"allowed": ["pending", "completed"]}, "allowed from here: pending, completed"),
        (
            "dependency_cycle",
            {"path": ["1", "2", "1"]},
            "see a task's dependencies and parent: punch show ID",
        ),
        ("method_not_found", {"nearest": "task.list"}, "did you mean task.list?"),
        ("method_not_found", {}, "see all methods: punch daemon call --list"),
        ("invalid_params", {"nearest": "title"}, "did you mean title?"),
        ("invalid_params", {}, "see: punch --help"),
        ("confirmation_required", {"token": "t-1"}, "to confirm, repeat the call with confirm=t-1"),
        ("outcome_unknown", {}, "check whether it was done: punch log -n 5"),
    ],
)
def test_a_refusal_says_what_to_do_next(kind: str, facts: dict[str, Any], advice: str, capsys: Told) -> None:
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "no", facts)) == 1
    assert capsys.readouterr().err == f"error: no\n  {advice}\n"


def test_a_refusal_of_a_kind_from_the_future_is_told_without_advice(capsys: Told) -> None:
    assert show_exception(RequestRefused("novelty", -32099, "no", {})) == 1
    assert capsys.readouterr().err == "error: no\n"


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (DaemonUnavailable("gone"), 69, "no_daemon"),
        (DaemonUnavailable("gone", exit_code=74), 69, "no_daemon"),
        (DaemonUnavailable("gone", exit_code=75), 75, "lost_race"),
        (DaemonUnavailable("gone", exit_code=78), 78, "configuration"),
        (ConnectionLost("gone"), 69, "connection_lost"),
        (TimedOut("gone"), 69, "timed_out"),
        (FormatError("gone", "plan.md", 3), 1, "unreadable_file"),
        (UsageError("gone"), 2, "usage"),
        (DirectoryError("gone"), 78, "configuration"),
        (ProtocolError("gone"), 1, "protocol"),
        (PermissionError(13, "gone", "/x"), 1, "file"),
        (OSError("gone"), 1, "file"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_every_fault_has_its_exit_code_and_its_kind(error: Exception, code: int, kind: str, capsys: Told) -> None:
    assert show_exception(error) == code
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert "gone" in told.splitlines()[0]


def test_a_file_is_named_and_time_that_is_up_is_said_in_words(capsys: Told) -> None:
    show_exception(PermissionError(13, "Permission denied", "/x"))
    assert capsys.readouterr().err == "error: /x: Permission denied\n"
    show_exception(TimeoutError())
    assert capsys.readouterr().err == "error: timed out\n"


@pytest.mark.parametrize(
    "error", [UsageError("odd"), RequestRefused("invalid_params", ERRORS["invalid_params"].code, "odd", {})]
)
def test_a_wrong_argument_is_told_with_the_help_of_its_command(error: Exception, capsys: Told) -> None:
    show_exception(error, "add")
    assert capsys.readouterr().err.endswith(": odd\n  see: punch add --help\n")


def test_foreign_words_can_not_steer_the_terminal(capsys: Told) -> None:
    show_error("kind", "a\n\x1b[2Jb", "c\n\x1b[2Jd")
    assert capsys.readouterr().err == "error: a\\x0a\\x1b[2Jb\n  c\\x0a\\x1b[2Jd\n"
