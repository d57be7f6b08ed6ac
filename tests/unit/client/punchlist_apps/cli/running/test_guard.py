"""`punch run` and `punch gate` killed while they work: their commands end with all descendants."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from punchlist import Client
from punchlist_apps.cli.running import orphans
from punchlist_schemas.things import Gate
from punchlist_testing.blocking import eventually
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.terminal import command, environment

GRACE_S = 7

FAMILY = """
echo $$ >> pids
sleep 300 & echo $! >> pids
setsid sh -c 'echo $$ >> pids; sleep 300 & echo $! >> pids; echo all >> pids; wait' & wait
"""
"""A command with a child, and with a grandchild that has left its group."""

STUBBORN = """
trap '' TERM
for pid in $(cat pids); do readlink /proc/$pid/exe && echo $pid >> met; done
echo $$ >> pids; echo all >> pids
while :; do sleep 0.1; done
"""
"""A command that ignores SIGTERM, and records which processes of earlier commands are still running."""


@contextmanager
def runner(daemon: Spawned, place: Path, *words: str) -> Generator[subprocess.Popen[bytes]]:
    """Run `punch` in a directory."""
    env = environment(PUNCHLIST_SOCKET=daemon.socket, PUNCHLIST_DATA_DIR=daemon.data_dir, PUNCHLIST_AUTOSTART="0")
    with subprocess.Popen(command(*words), cwd=place, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def read_pids(place: Path, times: int = 1) -> list[int]:
    """Return all recorded process ids once this many commands have recorded theirs; before that, none."""
    words = (place / "pids").read_text().split() if (place / "pids").exists() else []
    return [int(word) for word in words if word != "all"] if words.count("all") == times else []


def is_running(pid: int) -> bool:
    """Return whether a process is running and not a zombie."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return False
    return True


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path / "daemon", "--grace", str(GRACE_S)) as daemon:
        yield daemon


@pytest.fixture
def place(tmp_path: Path) -> Generator[Path]:
    """The directory of the commands. Their processes are killed afterwards."""
    (tmp_path / "place").mkdir()
    yield tmp_path / "place"
    for pid in (int(word) for word in (tmp_path / "place" / "pids").read_text().split() if word != "all"):
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("words", ["run", "gate tests"])
def test_commands_end_with_their_runner(daemon: Spawned, place: Path, words: str) -> None:
    with Client(socket=daemon.socket) as client:
        plan = client.conversation("default")
        plan.add("a task", gate=Gate(check="tests"))
        if words != "run":
            plan.complete("1")
    with runner(daemon, place, *words.split(), "--", "sh", "-c", FAMILY) as run:
        assert eventually(lambda: read_pids(place) != [])
        assert all(map(is_running, read_pids(place)))
        run.kill()
        assert eventually(lambda: not any(map(is_running, read_pids(place))))


def test_a_task_never_runs_twice_at_once(daemon: Spawned, place: Path) -> None:
    with Client(socket=daemon.socket) as client:
        client.conversation("default").add("a task")
    with runner(daemon, place, "run", "--", "sh", "-c", STUBBORN) as first:
        assert eventually(lambda: read_pids(place) != [])
        with runner(daemon, place, "run", "--follow", "--", "sh", "-c", STUBBORN):
            first.kill()
            assert eventually(lambda: read_pids(place, times=2) != [])
    assert not (place / "met").exists()


@pytest.mark.parametrize(("lines", "ends"), [("+m\n", True), ("+m\n=m {pid}\n-m\n", False)])
def test_the_guard_ends_remaining_commands(lines: str, ends: bool) -> None:
    """A runner may be killed before it has reported the process group of its command."""
    env = {**os.environ, orphans.MARK: "m"}
    with subprocess.Popen(["sleep", "300"], env=env, start_new_session=True) as process:
        try:
            messages = lines.format(pid=process.pid).encode()
            command_line = [sys.executable, "-m", "punchlist_apps.cli.running.guard"]
            subprocess.run(command_line, input=messages, env=environment(), timeout=30, check=True)
            assert (process.poll() is not None) == ends
        finally:
            process.kill()
