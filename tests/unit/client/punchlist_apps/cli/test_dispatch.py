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
from punchlist_apps.common import wire
from punchlist_schemas.build import build_stamp

Punch = Callable[..., Any]


@pytest.mark.parametrize(
    ("fault", "code", "told"),
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
def test_what_ends_a_command_becomes_an_exit_code_and_the_connection_is_let_go(
    fault: BaseException, code: int, told: str, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Context] = []

    def failing(context: Context) -> int:
        raise fault

    def close(context: Context) -> None:
        closed.append(context)

    monkeypatch.setattr(completion, "run_completion", failing)
    monkeypatch.setattr(Context, "close", close)
    assert dispatch.run(["completion", "bash"]) == code
    assert capfd.readouterr().err.startswith(told)
    assert len(closed) == 1


def test_a_bug_is_not_hidden_and_has_an_exit_code_of_its_own(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(context: Context) -> int:
        return 1 // 0

    monkeypatch.setattr(completion, "run_completion", failing)
    assert dispatch.run(["completion", "bash"]) == 70
    told = capfd.readouterr().err
    assert "ZeroDivisionError" in told
    assert "report it with the traceback" in told


@pytest.mark.parametrize("words", [("add", "x", "--meta", "novalue"), ("add", "")])
def test_a_wrong_argument_names_the_help_of_its_command(punch: Punch, words: tuple[str, ...]) -> None:
    assert punch(*words).err.endswith(f"\n  see: punch {words[0]} --help\n")


OF_TASKS = [
    *("start", "done", "fail", "pause", "resume", "reopen", "rm -y", "queue release", "queue claim", "show", "why"),
    *("wait --timeout 1", "edit -t x", "move --to-end", "done 1", "add x --parent", "add x --blocked-by"),
    *("add x --blocks", "add x --before", "edit 1 --blocked-by", "move 1 --after", "next --done"),
]


def test_an_empty_task_is_refused_by_every_command(punch: Punch) -> None:
    punch("add", "a")
    version = punch("list", "--json").json["version"]
    for words in OF_TASKS:
        for empty in ("", " ", "#", ","):
            told = punch(*words.split(), empty)
            assert told.code == 2 or (empty == "," and told.code == 1 and "," in told.err), (words, empty)
    assert punch("list", "--json").json["version"] == version


def test_the_version_tells_the_build_that_a_daemon_of_the_same_files_tells_and_needs_no_command(capfd: Any) -> None:
    assert dispatch.run(["--version", "list"]) == 0
    build = build_stamp(__version__).removeprefix(f"{__version__}+")
    assert capfd.readouterr().out.startswith(f"punch {__version__} (build {build}, Python 3.")


def test_without_a_command_the_list_is_shown_with_what_to_do_next(
    punch: Punch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "zed")
    assert punch().lines[-1] == "next: punch add TITLE adds the first task; punch help lists the commands"
    punch("add", "a")
    punch("add", "b", "--priority", "urgent", "--blocked-by", "1")
    assert punch().lines == [*punch("list").lines, "next: punch start 1  (a)"]
    punch("start", "1")
    assert punch().lines[-1] == "next: punch done 1  (a)"
    punch("add", "b", "--parent", "1", "--blocked-by", "1")
    assert punch().lines[-1] == "next: punch done 1  (a)", "the part waits for it"
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


def test_what_to_do_next_is_what_a_claim_would_give_out(punch: Punch, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_argument_that_is_no_text_is_a_usage_error(run: Punch) -> None:
    done = run("add", "\udcff\udcfe")
    assert (done.code, done.out) == (2, "")
    assert "argument 2 is not UTF-8 text" in done.err


def test_a_list_whose_name_is_empty_is_refused_instead_of_taken_for_another(punch: Punch) -> None:
    for command in (("add", "x"), ("list",), ("list", "clear", "--yes")):
        done = punch(*command, "-c", "")
        assert done.code == 1 and "error: conversation" in done.err


def test_a_daemon_of_another_data_directory_is_not_taken_for_the_one_named(punch: Punch, home: Path) -> None:
    for command in (("add", "x"), ("list",)):
        done = punch(*command, "--data-dir", str(home / "elsewhere"))
        assert done.code == 78 and f"error: The daemon on {home}/run/daemon.sock" in done.err
        assert f"not {home / 'elsewhere'}" in done.err and f"set PUNCHLIST_SOCKET={home}/run/daemon.sock" in done.err
    assert punch("list", "--data-dir", str(home / "data")).code == 0


def test_a_daemon_that_runs_other_code_is_named_with_what_to_do(
    punch: Punch, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    punch("add", "a")
    monkeypatch.setattr(context, "build_stamp", lambda version: f"{version}+newer")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(wire, "build_stamp", lambda version: f"{version}+newer")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    done = punch("add", "b")
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert "runs another build" in done.err and "punch daemon stop" in done.err
    assert punch("list", "--json").err == ""


def test_a_daemon_of_another_commit_with_the_same_files_is_not_other_code(
    punch: Punch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_a_later_commit(version: str) -> str:
        return f"{version}+gcb19efad+{build_stamp(version).rpartition('+')[2]}"

    monkeypatch.setattr(context, "build_stamp", of_a_later_commit)
    monkeypatch.setattr(wire, "build_stamp", of_a_later_commit)
    for command in (("add", "a"), ("list", "--json"), ("daemon", "status")):
        assert punch(*command).err == ""
