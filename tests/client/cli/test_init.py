import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist.cli.failure import tell_any
from punchlist.errors import DaemonUnavailable, ProtocolError, RequestRefused
from punchlist_schemas.errors import ERRORS
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import command, environment, terminal


def run_apart(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=20, check=False, env=environment())


@pytest.mark.parametrize("words", [("list",), ("add", "x"), ("watch",), ("rpc", "--stdio"), ("log",)], ids=" ".join)
def test_without_a_daemon_that_may_be_started_the_exit_code_is_69(run: Any, words: tuple[str, ...]) -> None:
    outcome = run(*words)
    assert (outcome.code, outcome.out) == (69, "")
    assert outcome.err.startswith("error: no_daemon: ")
    assert "punchlistd --socket" in outcome.err


def test_an_unusable_log_is_exit_code_78(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_AUTOSTART")
    (home / "data").mkdir(mode=0o700)
    (home / "data" / "log.db").write_bytes(b"this is not a database" * 100)
    outcome = run("add", "x")
    assert outcome.code == 78
    assert outcome.err.startswith("error: configuration: ")
    assert "log.db" in outcome.err


def test_autostart_can_be_switched_off_by_an_option(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_AUTOSTART")
    assert run("add", "x", "--no-autostart").code == 69
    assert run("list", "--no-autostart").code == 69


@pytest.mark.parametrize("kind", ERRORS)
def test_every_refusal_is_told_with_its_kind(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    facts: dict[str, Any] = {name: ["1", "2"] if name in ("allowed", "path") else "x" for name in ERRORS[kind].data}
    if "blockers" in facts:
        facts["blockers"] = [{"id": "1", "title": "a"}]
    assert tell_any(RequestRefused(kind, ERRORS[kind].code, "a sentence", facts)) == 1
    assert tell_any(RequestRefused(kind, ERRORS[kind].code, "a sentence", {})) == 1
    assert capsys.readouterr().err.startswith(f"error: {kind}: a sentence\n")


def test_other_faults_have_their_codes_and_a_bug_is_not_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    assert tell_any(DaemonUnavailable("gone")) == 69
    assert tell_any(ProtocolError("odd")) == 1
    assert tell_any(PermissionError(13, "Permission denied", "/x")) == 1
    assert capsys.readouterr().err.endswith("error: file: /x: Permission denied\n")
    assert tell_any(ZeroDivisionError()) is None


@pytest.mark.usefixtures("home")
def test_a_reader_that_left_is_no_error(daemon: Running) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for words in (["list"], ["call", "--list"], ["--help"]):
        with open(os.dup(writing), "wb") as out:
            done = subprocess.run(
                command(*words),
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=20,
                check=False,
                env=environment(),
            )
        assert (done.returncode, done.stderr) == (0, b""), words
    os.close(writing)


@pytest.mark.usefixtures("home")
def test_what_the_encoding_cannot_hold_becomes_ascii(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_apart("add", "Grüße 中").returncode == 0
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = run_apart("list")
    assert done.stdout == "default  0/1\n  [ ] #1 Gr\\xfc\\xdfe \\u4e2d\n"


@pytest.mark.usefixtures("home")
def test_on_a_terminal_there_are_colours_and_a_width(daemon: Running) -> None:
    run_apart("add", "x" * 100)
    with terminal("list", columns=30) as shown:
        assert shown.finish() == 0
        assert "\x1b[1mdefault" in shown.shown
        assert f"#1\x1b[0m {'x' * 22}…\r\n" in shown.shown
    with terminal("list", env={"NO_COLOR": "1"}) as shown:
        assert shown.finish() == 0
        assert "\x1b" not in shown.shown


@pytest.mark.usefixtures("home")
def test_on_a_terminal_deleting_asks(daemon: Running) -> None:
    run_apart("add", "a")
    for words, answer, left in ((("rm", "1"), "n", 1), (("clear",), "\n", 1), (("rm", "1"), "y", 0)):
        with terminal(*words) as shown:
            shown.wait_for("[y/N] ")
            shown.type(answer + "\n")
            assert shown.finish() == int(answer != "y")
        assert run_apart("list").stdout.count("#1") == left


@pytest.mark.usefixtures("home")
def test_ctrl_c_ends_with_130_and_without_a_traceback(daemon: Running) -> None:
    with terminal("wait", "--any-change", "--json") as shown:
        while not run_apart("call", "daemon.status").stdout.count('"subscription":'):
            pass
        shown.process.send_signal(signal.SIGINT)
        assert shown.finish() == 130
        assert "Traceback" not in shown.shown
