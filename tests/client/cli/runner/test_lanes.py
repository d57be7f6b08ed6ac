"""A run as a process of its own: interrupted, following, and over a restart of the daemon."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from punchlist import Client
from punchlist_testing.daemon import Spawned


@contextmanager
def runner(process: Spawned, *words: str) -> Generator[subprocess.Popen[str]]:
    """A `punch run` of its own."""
    path = os.pathsep.join(path for path in sys.path if path)
    env = {**os.environ, "PUNCHLIST_SOCKET": process.socket, "PUNCHLIST_DATA_DIR": process.data_dir, "PYTHONPATH": path}
    command = [sys.executable, "-m", "punchlist.cli", "run", *words]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            yield run
        finally:
            run.kill()


def lines_until(run: subprocess.Popen[str], wanted: str) -> None:
    assert run.stdout is not None
    for line in run.stdout:
        if wanted in line:
            return
    raise AssertionError(f"{wanted!r} was never said")


@pytest.mark.parametrize("interrupts", [1, 2])
def test_the_first_interrupt_finishes_what_runs_and_the_second_gives_it_back(process: Spawned, interrupts: int) -> None:
    with Client(socket=process.socket) as client:
        plan = client.conversation("default")
        plan.add_many("ab")
        with runner(process, "--", "sh", "-c", "echo begun; sleep 0.4; echo ended") as run:
            lines_until(run, "begun")
            run.send_signal(signal.SIGINT)
            lines_until(run, "finishing")
            if interrupts == 2:
                run.send_signal(signal.SIGINT)
            assert run.wait(10) == (0 if interrupts == 1 else 130)
            expected = ["completed", "pending"] if interrupts == 1 else ["pending", "pending"]
            assert [task.status for task in plan.list()] == expected


def test_following_waits_for_new_tasks_until_interrupted(process: Spawned) -> None:
    with Client(socket=process.socket) as client:
        plan = client.conversation("default")
        plan.open()
        with runner(process, "--follow", "--", "echo", "did {title}") as run:
            for title in ("one", "two"):
                plan.add(title)
                lines_until(run, f"did {title}")
            plan.wait("done", timeout_s=10)
            run.send_signal(signal.SIGINT)
            assert run.wait(10) == 0


def test_a_run_survives_a_restart_of_the_daemon_in_the_middle_of_a_task(process: Spawned) -> None:
    with Client(socket=process.socket) as client:
        plan = client.conversation("default")
        plan.add("a")
        with runner(process, "--", "sh", "-c", "echo begun; sleep 1; echo ended") as run:
            lines_until(run, "begun")
            process.restart()
            assert run.wait(20) == 0
            assert (plan.get("1").status, plan.get("1").attempts, plan.get("1").result_summary) == (
                "completed",
                1,
                "begun\nended",
            )
            events = json.dumps([str(change.event) for change in client.read(0, "default")])
            assert events.count("Claimed(") == 1
