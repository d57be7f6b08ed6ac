"""Runs: interrupts, --follow, daemon restarts, and lanes that wait for each other."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import Client, connect_async
from punchlist.clients.work import AsyncWork
from punchlist_apps.cli.running.command import Command
from punchlist_apps.cli.running.display import Display
from punchlist_apps.cli.running.lanes import Lanes, Plan
from punchlist_apps.common.terminal.style import Style
from punchlist_schemas.things import Task
from punchlist_testing.daemon import Spawned


@contextmanager
def runner(process: Spawned, *words: str) -> Generator[subprocess.Popen[str]]:
    """Run `punch run` in a process."""
    path = os.pathsep.join(path for path in sys.path if path)
    env = {**os.environ, "PUNCHLIST_SOCKET": process.socket, "PUNCHLIST_DATA_DIR": process.data_dir, "PYTHONPATH": path}
    env["PUNCHLIST_AUTOSTART"] = "0"  # the runner must not start a daemon while the test restarts it
    command = [sys.executable, "-m", "punchlist", "run", "-c", "default", *words]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            yield run
        finally:
            run.kill()


def read_until(run: subprocess.Popen[str], text: str) -> None:
    assert run.stdout is not None
    for line in run.stdout:
        if text in line:
            return
    raise AssertionError(f"{text!r} was never printed")


@pytest.mark.parametrize("interrupts", [1, 2])
def test_one_interrupt_drains_and_two_release(process: Spawned, interrupts: int) -> None:
    with Client(socket=process.socket) as client:
        plan = client.conversation("default")
        plan.add_many("ab")
        with runner(process, "--", "sh", "-c", "echo begun; sleep 0.4; echo ended") as run:
            read_until(run, "begun")
            run.send_signal(signal.SIGINT)
            read_until(run, "waiting for running commands")
            if interrupts == 2:
                run.send_signal(signal.SIGINT)
            assert run.wait(10) == (0 if interrupts == 1 else 130)
            expected = ["completed", "pending"] if interrupts == 1 else ["pending", "pending"]
            assert [task.status for task in plan.list()] == expected


def test_follow_waits_for_new_tasks_until_interrupted(process: Spawned) -> None:
    with Client(socket=process.socket) as client:
        plan = client.conversation("default")
        plan.open()
        with runner(process, "--follow", "--", "echo", "did {title}") as run:
            for title in ("one", "two"):
                plan.add(title)
                read_until(run, f"did {title}")
            plan.wait("done", timeout_s=10)
            run.send_signal(signal.SIGINT)
            assert run.wait(10) == 0


def test_a_run_survives_a_daemon_restart(process: Spawned) -> None:
    with Client(socket=process.socket) as client:
        plan = client.conversation("default")
        plan.add("a")
        with runner(process, "--", "sh", "-c", "echo begun; sleep 1; echo ended") as run:
            read_until(run, "begun")
            process.restart()
            assert run.wait(20) == 0
            assert (plan.get("1").status, plan.get("1").attempts, plan.get("1").result_summary) == (
                "completed",
                1,
                "begun\nended",
            )
            events = json.dumps([str(change.event) for change in client.read(0, "default")])
            assert events.count("Claimed(") == 1


async def test_a_lane_waits_for_the_others_to_finish(
    process: Spawned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of one task can make others ready: here, two that need both lanes."""
    ended = anyio.Event()
    complete, claim = AsyncWork.complete, Lanes._claim_cancellably  # pyright: ignore[reportPrivateUsage]

    async def complete_and_report(work: AsyncWork, result: str | None = None) -> Any:
        ended.set()
        return await complete(work, result)

    async def claim_late(lanes: Lanes, work: AsyncWork, label: str) -> Task | None:
        task = await claim(lanes, work, label)
        if task is None:  # return only after the other lane's command has ended
            with anyio.fail_after(30):
                await ended.wait()
        return task

    monkeypatch.setattr(AsyncWork, "complete", complete_and_report)
    monkeypatch.setattr(Lanes, "_claim_cancellably", claim_late)
    meet = 'test "$1" = 1 && exit; cd "$0"; touch "$1"; '
    meet += "for i in $(seq 100); do test $(ls | wc -l) = 2 && exit; sleep 0.05; done; exit 1"
    place = tmp_path / "met"
    place.mkdir()
    words = ("sh", "-c", meet, str(place), "{id}")
    plan = Plan(command=Command(words), owner="ann", log_dir=str(tmp_path / "logs"), env={}, jobs=2)
    async with connect_async(socket=process.socket, autostart=False) as client:
        conversation = client.conversation("c")
        await conversation.add("first")
        for title in "xy":
            await conversation.add(title, blocked_by=["1"])
        lanes = Lanes(conversation, plan, Display(Style()))
        await lanes.run()
    assert (lanes.done, lanes.failed) == (3, set())
