"""Commands, hooks and prompts with a suspended or hanging daemon."""

import json
import os
import signal
import socket
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from punchlist.connection import launch
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.commands import doctor
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.peer import Request, Session, scripted_peer
from punchlist_testing.terminal import spawned

FAR_S = 5.0
"""Duration longer than an immediate result takes on a loaded machine, and shorter than a call's timeout, in seconds."""

PROMPT_S = 1.0
"""Such a duration for commands that give up after a quarter of a second."""

HOOK = json.dumps({"session_id": "0f9619ff", "hook_event_name": "UserPromptSubmit"})


@pytest.fixture
def suspended(home: Path) -> Generator[Spawned]:
    """A daemon with one task, suspended by a signal."""
    with spawned_daemon(home) as daemon:
        with spawned("add", "one") as added:
            assert added.wait(20) == 0
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            yield daemon
        finally:
            daemon.process.send_signal(signal.SIGCONT)


def pid_of(daemon: Spawned) -> int:
    assert daemon.process is not None
    return daemon.process.pid


@pytest.mark.parametrize(
    "words",
    ["list", "list --all -s pending", "show 1", "add two", "edit 1 --title x", "log", "wait", "watch", "run -- true"],
)
def test_commands_name_a_suspended_daemon(suspended: Spawned, run: Any, words: str) -> None:
    began = time.monotonic()
    outcome = run(*words.split())
    assert time.monotonic() - began < FAR_S
    pid = pid_of(suspended)
    message = f"error: The daemon (pid {pid}) is suspended. To continue it: kill -CONT {pid}\n"
    assert (outcome.code, outcome.out, outcome.err) == (69, "", message)


def test_suspended_daemon_with_full_backlog_is_named(
    suspended: Spawned, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "CHECK_AFTER_S", 0.2)
    waiting: list[socket.socket] = []
    try:
        while True:
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            waiting[-1].connect(suspended.socket)
    except BlockingIOError:
        outcome = run("list")
    finally:
        for sock in waiting:
            sock.close()
    assert f"kill -CONT {pid_of(suspended)}" in outcome.err


@pytest.mark.parametrize("words", ["list --line", "agent statusline", "complete task -- done", "complete list -- -c"])
def test_prompts_give_up_a_suspended_daemon(suspended: Spawned, run: Any, words: str) -> None:
    began = time.monotonic()
    outcome = run(*words.split())
    assert time.monotonic() - began < PROMPT_S
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_hooks_give_up_a_suspended_daemon(suspended: Spawned, run: Any, event: str) -> None:
    began = time.monotonic()
    outcome = run("agent", "prime", "--hook", stdin=json.dumps({"session_id": "0f9619ff", "hook_event_name": event}))
    assert time.monotonic() - began < PROMPT_S
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith(f"punchlist: The daemon (pid {pid_of(suspended)}) is suspended.")


def test_hooks_give_up_a_hanging_daemon(home: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_DATA_DIR")
    path = str(home / "hangs.sock")
    monkeypatch.setenv("PUNCHLIST_SOCKET", path)
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(path)
        listening.listen()
        began = time.monotonic()
        outcome = run("agent", "prime", "--hook", stdin=HOOK)
        assert time.monotonic() - began < PROMPT_S
    assert (outcome.code, outcome.out) == (0, "")


def test_command_notes_busy_daemon_and_waits(home: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CHECK_AFTER_S", 0.05)
    monkeypatch.delenv("PUNCHLIST_DATA_DIR")

    def handler(session: Session, request: Request) -> None:
        time.sleep(0.3)  # as slow as an overloaded daemon
        session.answer(request, {"conversations": []})

    with scripted_peer(home, handler) as peer:
        monkeypatch.setenv("PUNCHLIST_SOCKET", peer.socket)
        outcome = run("list", "all")
    note = f"punch: no reply from the daemon (pid {os.getpid()}) yet, still waiting\n"
    assert (outcome.code, outcome.out, outcome.err) == (0, "no lists\n", note)


def test_waiting_call_prints_no_note(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CHECK_AFTER_S", 0.05)
    outcome = punch("queue", "claim", "--wait", "500ms")
    assert "still waiting" not in outcome.err and "no reply" not in outcome.err


def test_doctor_prints_immediately_and_names_signal(suspended: Spawned, home: Path) -> None:
    with spawned("doctor") as process:
        assert process.stdout is not None
        assert "python: " in process.stdout.readline()
        output = process.stdout.read()
        assert process.wait(20) == 1
    pid = pid_of(suspended)
    assert f"fail  daemon: The daemon (pid {pid}) is suspended. To continue it: kill -CONT {pid}\n" in output
    assert "punch doctor" not in output
    assert "project: " in output


def test_doctor_names_the_log_of_a_hanging_daemon(home: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "REPLY_S", 0.1)
    (home / "data").mkdir()
    (home / "data/daemon.log").write_text("")
    (home / "data/lock").write_text("")
    path = str(home / "hangs.sock")
    monkeypatch.setenv("PUNCHLIST_SOCKET", path)
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(path)
        listening.listen()
        outcome = run("doctor")
    assert outcome.code == 1
    assert f"daemon: no reply from pid {os.getpid()} for 0 s" in outcome.out
    assert f"see the end of {home}/data/daemon.log; if it doesn't recover, kill -9 {os.getpid()}" in outcome.out


def test_stop_resumes_a_suspended_daemon(suspended: Spawned, run: Any) -> None:
    outcome = run("daemon", "stop")
    assert outcome.code == 0, outcome.err
    assert suspended.process is not None
    assert suspended.process.wait(20) == 0


def test_stop_advises_killing_a_hanging_daemon(home: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "options", {"timeout_s": 0.1})
    monkeypatch.delenv("PUNCHLIST_DATA_DIR")
    with scripted_peer(home, lambda session, request: None) as peer:
        monkeypatch.setenv("PUNCHLIST_SOCKET", peer.socket)
        outcome = run("daemon", "stop")
    assert outcome.code == 69
    assert outcome.err.endswith(f"  kill it, which loses no acknowledged change: kill -9 {os.getpid()}\n")
