import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import Running
from punchlist_testing.terminal import command, environment, terminal


def run_apart(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=20, check=False, env=environment())


@pytest.mark.parametrize(
    "words", [("list",), ("add", "x"), ("watch",), ("daemon", "rpc", "--stdio"), ("log",)], ids=" ".join
)
def test_without_a_daemon_the_exit_code_is_69(run: Any, words: tuple[str, ...]) -> None:
    outcome = run(*words)
    assert (outcome.code, outcome.out) == (69, "")
    assert outcome.err.startswith("error: ")
    assert "punchlistd --socket" in outcome.err


def test_an_unusable_log_is_exit_code_78(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_AUTOSTART")
    (home / "data").mkdir(mode=0o700)
    (home / "data" / "log.db").write_bytes(b"this is not a database" * 100)
    outcome = run("add", "x")
    assert outcome.code == 78
    assert outcome.err.startswith("error: ")
    assert "log.db" in outcome.err


def test_autostart_can_be_switched_off_by_an_option(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_AUTOSTART")
    assert run("add", "x", "--no-autostart").code == 69
    assert run("list", "--no-autostart").code == 69


@pytest.mark.usefixtures("home")
def test_a_closed_pipe_is_not_an_error(daemon: Running) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    buffered = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"}
    for words in (["list"], ["daemon", "call", "--list"], ["--help"], ["list", "--help"]):
        with open(os.dup(writing), "wb") as out:
            outcome = subprocess.run(
                command(*words),
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=20,
                check=False,
                env=buffered,
            )
        assert (outcome.returncode, outcome.stderr) == (0, b""), words
    os.close(writing)


@pytest.mark.usefixtures("home")
def test_unencodable_characters_become_ascii(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_apart("add", "Grüße 中").returncode == 0
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    outcome = run_apart("list")
    assert outcome.stdout == "default  0/1\n  [ ] #1 Gr\\xfc\\xdfe \\u4e2d\n"


@pytest.mark.usefixtures("home")
def test_ctrl_c_exits_with_130(daemon: Running) -> None:
    with terminal("wait", "--any-change", "--json") as screen:
        while not run_apart("daemon", "call", "daemon.status").stdout.count('"subscription":'):
            pass
        screen.process.send_signal(signal.SIGINT)
        assert screen.finish() == 130
        assert "Traceback" not in screen.shown
