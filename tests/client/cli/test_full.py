from importlib.metadata import version
from typing import Any

import pytest

from punchlist.cli import full
from punchlist.cli.commands import shells
from punchlist.cli.context import Context
from punchlist.cli.failure import UsageError
from punchlist.errors import DaemonUnavailable


@pytest.mark.parametrize(
    ("fault", "code", "told"),
    [
        (DaemonUnavailable("gone"), 69, "error: no_daemon: gone\n"),
        (UsageError("odd"), 2, "error: usage: odd\n"),
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

    monkeypatch.setattr(shells, "run_completion", failing)
    monkeypatch.setattr(Context, "close", close)
    assert full.run(["completion", "bash"]) == code
    assert capfd.readouterr().err.startswith(told)
    assert len(closed) == 1


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(context: Context) -> int:
        return 1 // 0

    monkeypatch.setattr(shells, "run_completion", failing)
    with pytest.raises(ZeroDivisionError):
        full.run(["completion", "bash"])


def test_the_exit_code_is_the_commands_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(context: Context) -> int:
        return 1

    monkeypatch.setattr(shells, "run_completion", refused)
    assert full.run(["completion", "bash"]) == 1


def test_an_alias_is_the_command_itself(punch: Any) -> None:
    punch("add", "a")
    assert punch("ls", "--ready").out == punch("list", "--ready").out == "default  0/1\n  ☐ #1 a\n"


def test_the_version_is_the_installed_one_and_needs_no_command(capfd: Any) -> None:
    assert full.run(["--version", "list"]) == 0
    assert capfd.readouterr().out.startswith(f"punch {version('punchlist')} (Python 3.")


def test_without_a_command_help_is_printed(capfd: Any) -> None:
    assert full.run([]) == 0
    assert capfd.readouterr().out.startswith("usage: punch ")
