"""`punch mirror run` without inotify watches or with dropped events, caused by real limits in a namespace."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import anyio
import pytest
from anyio.to_thread import run_sync

from punchlist.taskfiles.config import Config, Entry
from punchlist.taskfiles.report import status
from punchlist_apps.files.mirror import runner
from punchlist_testing.mirrors import Place
from punchlist_testing.savers import sed

NAMESPACE = ("unshare", "--user", "--map-root-user")
LIMITS = "/proc/sys/user"
QUEUE = "/proc/sys/fs/inotify/max_queued_events"


def needs_namespace() -> None:
    """Skip the test if a process can't have its own limits."""
    script = f"test -w {LIMITS}/max_inotify_instances && echo 9 > {LIMITS}/max_inotify_instances"
    if shutil.which("unshare") is None or subprocess.run([*NAMESPACE, "sh", "-c", script], check=False).returncode:
        pytest.skip("no user namespace, or none with limits of inotify, can be made here")


@contextmanager
def process(place: Place, *before: str) -> Generator[subprocess.Popen[bytes]]:
    """Run `punch mirror run` in its own process."""
    Config(place.daemon.data_dir).add(Entry(str(place.directory), "checklist", ("web",)))
    options = ["--socket", place.daemon.socket, "--data-dir", place.daemon.data_dir, "--no-autostart"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COVERAGE_PROCESS_START": ""}
    running = subprocess.Popen([*before, sys.executable, "-m", "punchlist", "mirror", "run", *options], env=env)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


async def shown(place: Place, title: str) -> None:
    with anyio.fail_after(30):
        while not place.file.exists() or title not in place.file.read_text():  # noqa: ASYNC110, ASYNC240
            await anyio.sleep(0.02)


def limited(limit: str) -> Sequence[str]:
    return (*NAMESPACE, "sh", "-c", f'echo 0 > {LIMITS}/{limit} && exec "$@"', "sh")


@pytest.mark.parametrize("limit", ["max_inotify_instances", "max_inotify_watches"])
async def test_polling_finds_edits_without_watches(place: Place, limit: str) -> None:
    await run_sync(needs_namespace)
    await place.list.add("one")
    with process(place, *limited(limit)):
        await shown(place, "one")
        with anyio.fail_after(30):
            while (said := status(place.daemon.data_dir)) is None or said.watching != "polling":  # noqa: ASYNC110
                await anyio.sleep(0.02)
        await run_sync(sed, place.file, 's/"one"/"ONE"/')
        await place.list.wait(lambda tasks: tasks[0].title == "ONE", timeout_s=20)


async def test_edit_with_dropped_events_is_found(place: Place) -> None:
    with open(QUEUE) as file:  # noqa: ASYNC230
        queue = int(file.read())
    if queue > 100_000:  # noqa: PLR2004
        pytest.skip(f"the kernel's queue holds {queue} events: too many to fill here")
    await place.list.add("one")
    with process(place) as running:
        await shown(place, "one")
        await anyio.sleep(runner._AFTER_BURST_S * 3)  # pyright: ignore[reportPrivateUsage] - the check after a start
        running.send_signal(signal.SIGSTOP)
        await run_sync(overflow, place, queue)
        await run_sync(sed, place.file, 's/"one"/"ONE"/')
        running.send_signal(signal.SIGCONT)
        await place.list.wait(lambda tasks: tasks[0].title == "ONE", timeout_s=20)


def overflow(place: Place, queue: int) -> None:
    """Overflow the kernel's queue, so that it drops later events."""
    for number in range(queue // 2 + 1_000):
        noise = place.file.with_name(f"noise{number}")
        noise.touch()
        noise.unlink()
