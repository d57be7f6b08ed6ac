from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from punchlist import __version__
from punchlist.errors import DaemonUnavailable
from punchlist_apps.cli import dispatch
from punchlist_apps.cli.calling import context
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.commands import completion
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_schemas.build import build_stamp

Punch = Callable[..., Any]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DaemonUnavailable("gone"), 69, "error: gone\n"),
        (UsageError("odd"), 2, "error: odd\n"),
        (BrokenPipeError(), 0, ""),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(143), 143, ""),
        (SystemExit("words"), 2, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_exceptions_become_exit_codes_and_close_connections(
    error: BaseException, code: int, message: str, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Context] = []

    def failing(context: Context) -> int:
        raise error

    def close(context: Context) -> None:
        closed.append(context)

    monkeypatch.setattr(completion, "run_completion", failing)
    monkeypatch.setattr(Context, "close", close)
    assert dispatch.run(["completion", "bash"]) == code
    assert capfd.readouterr().err.startswith(message)
    assert len(closed) == 1


def test_a_bug_prints_a_traceback(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(context: Context) -> int:
        return 1 // 0

    monkeypatch.setattr(completion, "run_completion", failing)
    assert dispatch.run(["completion", "bash"]) == 70
    output = capfd.readouterr().err
    assert "ZeroDivisionError" in output
    assert "report it with the traceback" in output


@pytest.mark.parametrize("words", [("add", "x", "--meta", "novalue"), ("add", "")])
def test_wrong_argument_names_command_help(punch: Punch, words: tuple[str, ...]) -> None:
    assert punch(*words).err.endswith(f"\n  see: punch {words[0]} --help\n")


OF_TASKS = [
    *("start", "done", "fail", "pause", "resume", "reopen", "rm -y", "queue release", "queue claim", "show", "why"),
    *("wait --timeout 1", "edit -t x", "move --to-end", "done 1", "add x --parent", "add x --blocked-by"),
    *("add x --blocks", "add x --before", "edit 1 --blocked-by", "move 1 --after", "next --done"),
]


def test_every_command_rejects_an_empty_task(punch: Punch) -> None:
    punch("add", "a")
    version = punch("list", "--json").json["version"]
    for words in OF_TASKS:
        for empty in ("", " ", "#", ","):
            outcome = punch(*words.split(), empty)
            assert outcome.code == 2 or (empty == "," and outcome.code == 1 and "," in outcome.err), (words, empty)
    assert punch("list", "--json").json["version"] == version


def test_the_version_shows_the_daemons_build(capfd: Any) -> None:
    assert dispatch.run(["--version", "list"]) == 0
    build = build_stamp(__version__).removeprefix(f"{__version__}+")
    assert capfd.readouterr().out.startswith(f"punch {__version__} (build {build}, Python 3.")


def test_punch_alone_shows_list_and_next_step(punch: Punch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "zed")
    assert punch().lines[-1] == "next: punch add TITLE adds the first task; punch help lists the commands"
    punch("add", "a")
    punch("add", "b", "--priority", "urgent", "--blocked-by", "1")
    assert punch().lines == [*punch("list").lines, "next: punch start 1  (a)"]
    punch("start", "1")
    assert punch().lines[-1] == "next: punch done 1  (a)"
    punch("add", "b", "--parent", "1", "--blocked-by", "1")
    assert punch().lines[-1] == "next: punch done 1  (a)", "the child process waits"
    punch("rm", "3", "--yes")
    assert punch("--json").json["tasks"][0]["id"] == "1"
    punch("start", "1", "-o", "ann", "--actor", "ann")
    punch("queue", "release", "1")
    punch("start", "1", "-o", "ann")
    assert punch().lines[-1] == "next: no task is ready; punch why 1 shows why #1 is not"
    punch("done", "1", "--force")
    assert punch("-c", "default").lines[-1] == "next: punch start 2  (b)"
    punch("done", "2")
    assert punch().lines[-1] == "next: all tasks are finished; punch add TITLE adds another"


def test_the_next_step_matches_a_claim(punch: Punch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "zed")
    punch("add", "plan")
    punch("add", "part", "--parent", "1", "--priority", "urgent")
    punch("add", "other")
    punch("start", "1")
    punch("pause", "1")
    assert punch().lines[-1] == "next: punch start 3  (other)"
    assert punch("next").out == "  ☐ #3 other\n"
    punch("set", "on_failure=stop")
    punch("fail", "3")
    punch("add", "last")
    assert punch().lines[-1] == "next: no task is ready; punch why 1 shows why #1 is not"
    assert punch("next").code == 1


def test_an_argument_that_is_not_utf8_is_rejected(run: Punch) -> None:
    outcome = run("add", "\udcff\udcfe")
    assert (outcome.code, outcome.out) == (2, "")
    assert "argument 2 is not UTF-8 text" in outcome.err


def test_an_empty_list_name_is_rejected(punch: Punch) -> None:
    for command in (("add", "x"), ("list",), ("list", "clear", "--yes")):
        outcome = punch(*command, "-c", "")
        assert outcome.code == 1 and "error: conversation" in outcome.err


def test_a_daemon_of_another_data_directory_is_rejected(punch: Punch, home: Path) -> None:
    for command in (("add", "x"), ("list",)):
        outcome = punch(*command, "--data-dir", str(home / "elsewhere"))
        assert outcome.code == 78 and f"error: The daemon on {home}/run/daemon.sock" in outcome.err
        assert (
            f"not {home / 'elsewhere'}" in outcome.err and f"set PUNCHLIST_SOCKET={home}/run/daemon.sock" in outcome.err
        )
    assert punch("list", "--data-dir", str(home / "data")).code == 0


def test_a_daemon_of_another_build_is_reported(punch: Punch, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "a")
    monkeypatch.setattr(context, "build_stamp", lambda version: f"{version}+newer")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    outcome = punch("add", "b")
    assert (outcome.code, outcome.err.count("\n")) == (0, 1)
    assert "runs another build" in outcome.err and "punch daemon stop" in outcome.err
    assert punch("list", "--json").err == ""


def test_commit_with_equal_files_is_same_build(punch: Punch, monkeypatch: pytest.MonkeyPatch) -> None:
    def stamp_of_later_commit(version: str) -> str:
        return f"{version}+gcb19efad+{build_stamp(version).rpartition('+')[2]}"

    monkeypatch.setattr(context, "build_stamp", stamp_of_later_commit)
    for command in (("add", "a"), ("list", "--json"), ("daemon", "status")):
        assert punch(*command).err == ""
