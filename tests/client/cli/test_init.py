import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist.cli import fast, main
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import command, environment, terminal


def run_apart(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=20, check=False, env=environment())


@pytest.mark.parametrize(
    "words", [("list",), ("add", "x"), ("watch",), ("daemon", "rpc", "--stdio"), ("log",)], ids=" ".join
)
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


@pytest.mark.usefixtures("home")
def test_a_reader_that_left_is_no_error(daemon: Running) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    buffered = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"}
    for words in (["list"], ["daemon", "call", "--list"], ["--help"], ["list", "--help"]):
        with open(os.dup(writing), "wb") as out:
            done = subprocess.run(
                command(*words),
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=20,
                check=False,
                env=buffered,
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
def test_ctrl_c_ends_with_130_and_without_a_traceback(daemon: Running) -> None:
    with terminal("wait", "--any-change", "--json") as shown:
        while not run_apart("daemon", "call", "daemon.status").stdout.count('"subscription":'):
            pass
        shown.process.send_signal(signal.SIGINT)
        assert shown.finish() == 130
        assert "Traceback" not in shown.shown


@pytest.mark.parametrize(("fault", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 0)])
def test_an_end_in_the_middle_of_the_fast_path_is_quiet(
    fault: type[BaseException], code: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(path: str, method: str, params: dict[str, str]) -> str:
        return '{"tasks":[],"counts":{}}'

    def interrupted(text: str) -> int:
        raise fault

    monkeypatch.setattr(fast.wire, "call", answer)
    monkeypatch.setattr(fast, "write", interrupted)
    assert main(["list", "--json", "-c", "default"]) == code
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["add a", "list", "status"])
def test_with_its_output_closed_it_writes_to_nobody_and_says_so(words: str) -> None:
    line = f'exec "$@" {words} >&-'
    told = subprocess.run(
        ["sh", "-c", line, "sh", *command()], capture_output=True, env=environment(), timeout=20, check=False
    )
    assert told.returncode == 1
    lines = told.stderr.decode().splitlines()
    assert "error: file: standard output: Bad file descriptor" in lines
    assert ("  the change is stored (#1 of default), so don't repeat it" in lines) == (words == "add a")


CHANGES = {
    "add one": "#1",
    "add two --json": "#2",
    "add three --priority high": "#3",
    "start 1": "#1",
    "pause 1": "#1",
    "resume 1": "#1",
    "done 1": "#1",
    "reopen 1": "#1",
    "edit 1 --title uno": "#1",
    "note 1 noted": "#1",
    "move 3 --before 1": "#3",
    "rm 2 3": "#2, #3",
    "undo": "list.undo",
    "next --take": "#3",
    "queue renew 3": "#3",
    "queue release 3": "#3",
    "set execution=serial": "conversation.configure",
    "daemon call task.add title=four": "#4",
    "list clear --yes": "list.clear",
}


@pytest.mark.usefixtures("home", "daemon")
def test_a_change_whose_output_is_lost_is_stored(daemon: Running) -> None:
    for words, ids in CHANGES.items():
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                command(*words.split()), stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
            )
        message, advice = "standard output: No space left on device", f"the change is stored ({ids} of default)"
        shown = (
            json.dumps({"error": {"kind": "file", "message": message, "advice": f"{advice}, so don't repeat it"}})
            + "\n"
            if "--json" in words
            else f"error: file: {message}\n  {advice}, so don't repeat it\n"
        )
        assert (done.returncode, done.stderr) == (1, shown), words


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["list", "undo --preview", "show 1 --json", "next", "daemon status", "log", "why 1"])
def test_a_read_whose_output_is_lost_stores_nothing(words: str) -> None:
    assert run_apart("add", "one").returncode == 0
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command(*words.split()), stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "stored" not in done.stderr


@pytest.mark.usefixtures("home", "daemon")
def test_with_both_outputs_closed_the_exit_code_is_the_same() -> None:
    line = 'exec "$@" list --status foo >&- 2>&-'
    assert (
        subprocess.run(["sh", "-c", line, "sh", *command()], env=environment(), timeout=20, check=False).returncode == 2
    )
