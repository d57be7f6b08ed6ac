"""Starting a daemon: its arguments, detection of readiness and exit, and what remains afterwards."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from punchlist import DaemonUnavailable, connect
from punchlist.connection import starter
from punchlist.connection.launch import Target
from punchlist.connection.starter import Report, Starting, daemon

Pretend = Callable[[str], None]


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Replaces the interpreter with a shell script of these lines, which acts as the daemon."""
    program = tmp_path / "python"

    def write(lines: str) -> None:
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)

    write("exit 1")
    monkeypatch.setattr(sys, "executable", str(program))
    return write


@pytest.fixture
def begin(tmp_path: Path) -> Callable[[], Report]:
    """Starts a daemon in the test's directory and waits for its report."""

    def begin() -> Report:
        report = Starting(daemon(str(tmp_path / "run" / "s"), str(tmp_path / "data"))).wait(10)
        assert report is not None
        return report

    return begin


def test_ready_daemon_is_used_and_outlives_descriptors(tmp_path: Path, begin: Callable[[], Report]) -> None:
    before = set(os.listdir("/proc/self/fd"))
    assert begin() == Report(ready=True)
    assert set(os.listdir("/proc/self/fd")) == before
    with connect(socket=str(tmp_path / "run" / "s"), autostart=False) as client:
        assert client.shutdown()
    assert (tmp_path / "data" / "daemon.log").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_failed_daemon_is_reported_with_last_output(begin: Callable[[], Report], pretend: Pretend) -> None:
    pretend("for n in $(seq 20); do echo line $n >&2; done; exit 78")
    report = begin()
    assert (report.ready, report.lost_race, report.exit_code) == (False, False, 78)
    assert report.reason.splitlines() == ["it exited with code 78", *(f"line {n}" for n in range(11, 21))]


def test_silently_failed_daemon_is_reported_by_exit_code(
    tmp_path: Path, begin: Callable[[], Report], pretend: Pretend
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "daemon.log").write_text("words of long ago\n")
    pretend("exit 3")
    assert begin() == Report(ready=False, reason="it exited with code 3", exit_code=3)


def test_lost_race_differs_from_failure(begin: Callable[[], Report], pretend: Pretend) -> None:
    pretend("echo another one runs >&2; exit 75")
    assert begin() == Report(ready=False, lost_race=True, reason="another one runs", exit_code=75)


def test_only_the_word_ready_signals_readiness(begin: Callable[[], Report], pretend: Pretend) -> None:
    pretend("echo almost > /proc/$$/fd/${11}; exit 1")
    assert begin() == Report(ready=False, reason="it exited with code 1", exit_code=1)


def test_slow_daemon_survives_and_all_callers_agree(tmp_path: Path, pretend: Pretend) -> None:
    os.mkfifo(tmp_path / "go")
    pretend(f"read -r word < {tmp_path}/go; echo ready > /proc/$$/fd/${{11}}")
    starting = Starting(daemon(str(tmp_path / "run" / "s"), str(tmp_path / "data")))
    assert starting.wait(0.05) is None
    assert starting.wait(0) is None
    (tmp_path / "go").write_text("now\n")
    assert [starting.wait(10), starting.wait(0)] == [Report(ready=True)] * 2


def test_missing_interpreter_or_data_directory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(os.listdir("/proc/self/fd"))
    (tmp_path / "file").write_text("")
    python, file = "/nowhere/python", str(tmp_path / "file")
    for program, data, missing in ((python, tmp_path / "data", python), (sys.executable, file, file)):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(DaemonUnavailable, match=f"could not be started: .{re.escape(missing)}"):
            Target(str(tmp_path / "s"), str(data)).dial()
    assert set(os.listdir("/proc/self/fd")) == before


def test_started_daemon_resolves_relative_module_path(
    tmp_path: Path, begin: Callable[[], Report], pretend: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "daemon:/abs::client")
    pretend("echo path $PYTHONPATH >&2; exit 1")
    assert begin().reason.endswith(f"path {tmp_path}/daemon:/abs:{tmp_path}/client")


def test_started_daemon_gets_arguments_but_no_descriptors(
    tmp_path: Path, begin: Callable[[], Report], pretend: Pretend
) -> None:
    inherited, other = os.pipe()
    os.set_inheritable(inherited, True)
    pretend(
        "echo $@ >&2; echo in $PWD >&2; echo $$ of $(cut -d' ' -f6 /proc/$$/stat) >&2\nls -l /proc/$$/fd >&2; exit 1"
    )
    report = begin()
    os.close(inherited)
    os.close(other)
    _, arguments, folder, session, *descriptors = report.reason.splitlines()
    options = f"-P -m punchlistd --socket {tmp_path}/run/s --data-dir {tmp_path}/data --idle-exit 900 --ready-fd "
    assert arguments.startswith(options)
    assert folder == "in /"
    assert session.split(" of ")[0] == session.split(" of ")[1]
    pipes = [line for line in descriptors if "pipe:" in line]
    assert len(pipes) == 1
    assert f" {arguments.split()[-1]} -> " in pipes[0]


def test_daemon_drops_environment_of_first_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "NOTIFY_SOCKET", "LISTEN_FDS", "HOMEPAGE"}
    needed = {"LANG", "LC_ALL", "TZ", "XDG_RUNTIME_DIR", "PUNCHLIST_SOCKET", "VIRTUAL_ENV"}
    for name in secrets | needed:
        monkeypatch.setenv(name, "C" if name in ("LANG", "LC_ALL") else f"{tmp_path}/{name}")
    with connect(socket=str(tmp_path / "s"), data_dir=str(tmp_path / "data")) as client:
        found = Path(f"/proc/{client.open().pid}/environ").read_bytes().decode()
        client.shutdown()
    given = {line.partition("=")[0] for line in found.split("\0") if line}
    assert given >= needed
    assert given & secrets == set()
    allowed = (*starter.INHERITED_PREFIXES, *(name for name in starter.INHERITED))
    assert [name for name in sorted(given) if not name.startswith(allowed)] == []


def test_long_log_is_rotated(
    tmp_path: Path, begin: Callable[[], Report], pretend: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter, "MAX_LOG_BYTES", 10)
    data = tmp_path / "data"
    data.mkdir()
    (data / "daemon.log").write_text("a longer story\n")
    pretend("exit 1")
    assert not begin().ready
    assert (data / "daemon.log.1").read_text() == "a longer story\n"
    assert (data / "daemon.log").read_text() == ""
    assert (data / "daemon.log").stat().st_mode & 0o777 == 0o600
