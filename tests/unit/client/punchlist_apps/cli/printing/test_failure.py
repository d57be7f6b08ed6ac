import json
from typing import Any

import pytest

from punchlist.errors import ConnectionLost, DaemonUnavailable, ProtocolError, RequestRefused, TimedOut
from punchlist_apps.cli.printing import failure
from punchlist_apps.cli.printing.failure import FormatError, StateError, UsageError, show_error, show_exception
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.project_file import DirectoryError

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_prints_its_message_or_json(kind: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    data: dict[str, Any] = {name: ["1", "2"] if name in ("allowed", "path") else "x" for name in ERRORS[kind].data}
    data |= dict.fromkeys(data.keys() & {"call", "newer"}, 7)
    for name in data.keys() & {"blockers", "open_children"}:
        data[name] = [{"id": "1", "title": "a"}]
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "a sentence", data)) == 1
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "a sentence", {})) == 1
    assert capsys.readouterr().err.startswith("error: a sentence\n")
    monkeypatch.setattr(failure, "_as_json", True)
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "a failure; advice", {})) == 1
    output = json.loads(capsys.readouterr().err)["error"]
    assert (output["kind"], output["message"]) == (kind, "a failure; advice")


def test_advice_is_printed_once(capsys: Capture) -> None:
    message = "There is no task '77'; list the tasks for their ids."
    show_exception(RequestRefused("not_found", ERRORS["not_found"].code, message, {"what": "task"}))
    assert capsys.readouterr().err == "error: There is no task '77'.\n  see all tasks: punch list --all\n"


def test_a_state_error_has_no_help_advice(capsys: Capture) -> None:
    assert show_exception(StateError("the list did not exist"), "revert") == 2
    assert capsys.readouterr().err == "error: the list did not exist\n"


@pytest.mark.parametrize(
    ("kind", "data", "advice"),
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
def test_an_error_has_advice(kind: str, data: dict[str, Any], advice: str, capsys: Capture) -> None:
    assert show_exception(RequestRefused(kind, ERRORS[kind].code, "no", data)) == 1
    assert capsys.readouterr().err == f"error: no\n  {advice}\n"


def test_an_unknown_kind_has_no_advice(capsys: Capture) -> None:
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
def test_every_exception_has_an_exit_code_and_kind(error: Exception, code: int, kind: str, capsys: Capture) -> None:
    assert show_exception(error) == code
    output = capsys.readouterr().err
    assert output.startswith("error: ")
    assert "gone" in output.splitlines()[0]


def test_file_errors_and_timeouts_have_plain_messages(capsys: Capture) -> None:
    show_exception(PermissionError(13, "Permission denied", "/x"))
    assert capsys.readouterr().err == "error: /x: Permission denied\n"
    show_exception(TimeoutError())
    assert capsys.readouterr().err == "error: timed out\n"


@pytest.mark.parametrize(
    "error", [UsageError("odd"), RequestRefused("invalid_params", ERRORS["invalid_params"].code, "odd", {})]
)
def test_a_usage_error_points_to_the_commands_help(error: Exception, capsys: Capture) -> None:
    show_exception(error, "add")
    assert capsys.readouterr().err.endswith(": odd\n  see: punch add --help\n")


def test_errors_are_escaped_for_the_terminal(capsys: Capture) -> None:
    show_error("kind", "a\n\x1b[2Jb", "c\n\x1b[2Jd")
    assert capsys.readouterr().err == "error: a\\x0a\\x1b[2Jb\n  c\\x0a\\x1b[2Jd\n"
