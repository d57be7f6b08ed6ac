"""`punch run` and `punch gate` killed at work: their commands, and all that these started, end with them."""

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
"""A command that ignores the request to end, and notes which of those before it still run."""


@contextmanager
def runner(daemon: Spawned, place: Path, *words: str) -> Generator[subprocess.Popen[bytes]]:
    """`punch` at work in a directory."""
    env = environment(PUNCHLIST_SOCKET=daemon.socket, PUNCHLIST_DATA_DIR=daemon.data_dir, PUNCHLIST_AUTOSTART="0")
    with subprocess.Popen(command(*words), cwd=place, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def pids(place: Path, times: int = 1) -> list[int]:
    """The processes that commands have noted, once so many of these have noted all; else none."""
    words = (place / "pids").read_text().split() if (place / "pids").exists() else []
    return [int(word) for word in words if word != "all"] if words.count("all") == times else []


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
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
    """The directory in which commands run; what they leave there is killed."""
    (tmp_path / "place").mkdir()
    yield tmp_path / "place"
    for pid in (int(word) for word in (tmp_path / "place" / "pids").read_text().split() if word != "all"):
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("words", ["run", "gate tests"])
def test_commands_end_with_their_runner(daemon: Spawned, place: Path, words: str) -> None:
    with Client(socket=daemon.socket) as client:
        plan = client.conversation("default")
        plan.add("a task", gate=Gate(check="tests"))
        if words != "run":
            plan.complete("1")
    with runner(daemon, place, *words.split(), "--", "sh", "-c", FAMILY) as run:
        assert eventually(lambda: pids(place) != [])
        assert all(map(runs, pids(place)))
        run.kill()
        assert eventually(lambda: not any(map(runs, pids(place))))


def test_no_task_runs_beside_itself(daemon: Spawned, place: Path) -> None:
    with Client(socket=daemon.socket) as client:
        client.conversation("default").add("a task")
    with runner(daemon, place, "run", "--", "sh", "-c", STUBBORN) as first:
        assert eventually(lambda: pids(place) != [])
        with runner(daemon, place, "run", "--follow", "--", "sh", "-c", STUBBORN):
            first.kill()
            assert eventually(lambda: pids(place, times=2) != [])
    assert not (place / "met").exists()


@pytest.mark.parametrize(("lines", "ends"), [("+m\n", True), ("+m\n=m {pid}\n-m\n", False)])
def test_the_guard_ends_what_its_input_leaves(lines: str, ends: bool) -> None:
    """A runner may be killed before it can tell which group its command has."""
    sleeping = {**os.environ, orphans.MARK: "m"}
    with subprocess.Popen(["sleep", "300"], env=sleeping, start_new_session=True) as process:
        try:
            told = lines.format(pid=process.pid).encode()
            guarding = [sys.executable, "-m", "punchlist_apps.cli.running.guard"]
            subprocess.run(guarding, input=told, env=environment(), timeout=30, check=True)
            assert (process.poll() is not None) == ends
        finally:
            process.kill()
