"""Figures of the `punch web` page in Chromium, and of `punch ui` on a terminal. RUNS is the number of runs (3).

The tests of the page store their figures. The anchor of `punch ui` is textual's `DataTable` with the same rows, and a
spinner for each task in progress.
"""

import asyncio
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import DataTable

from punchlist import connect, connect_async
from punchlist.calls.cursor import Cursor, FoldView
from punchlist_apps.ui.line_screen import FRAME_S
from punchlist_apps.ui.parts import FRAMES
from punchlist_bench.process import cpu_seconds
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.figures import KEPT, ROOT, keep, table
from punchlist_testing.terminal import environment

SMALL, LARGE = 12, 10_000
ROUNDS = 5
PER_SECOND = 100
SECONDS = 6.0
TESTS = ("tests/faces/test_size.py", "tests/faces/test_server.py")


class Table(App[None]):
    """The anchor: a `DataTable` that follows a daemon's list."""

    def __init__(self, socket: str, name: str) -> None:
        super().__init__()
        self._socket = socket
        self._list = name
        self._in_progress = set[str]()

    def compose(self) -> ComposeResult:
        yield DataTable[str]()

    def on_mount(self) -> None:
        self.query_one(DataTable).add_columns(*(("id", "id"), ("status", "status"), ("title", "title")))
        self.run_worker(self._follow())
        self.set_interval(FRAME_S, self._spin)

    async def _follow(self) -> None:
        table = self.query_one(DataTable[str])
        async with connect_async(socket=self._socket, autostart=False) as client:
            async for rows in client.follow(Cursor(self._list, FoldView())):
                changed = rows.take_changes()
                if changed is None:
                    for row in rows.order:
                        table.add_row(f"#{row.id}", row.status, row.title, key=row.id)
                for name in changed or ():
                    table.update_cell(name, "status", rows.by_id[name].status)
                    self._in_progress.discard(name)
                    if rows.by_id[name].status == "in_progress":
                        self._in_progress.add(name)

    def _spin(self) -> None:
        table = self.query_one(DataTable[str])
        for name in self._in_progress:
            table.update_cell(name, "status", FRAMES[int(time.monotonic() / FRAME_S) % len(FRAMES)])


class Screen:
    """A program on a terminal of 140 columns and 45 lines."""

    def __init__(self, words: list[str], socket: str) -> None:
        self.began = time.monotonic()
        self._master, slave = pty.openpty()
        ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
        env = environment(TERM="xterm-256color", PUNCHLIST_SOCKET=socket, PUNCHLIST_AUTOSTART="0")
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)

    def wait_for(self, text: bytes) -> float:
        """Wait until text is on the screen; return the seconds since the start."""
        output = b""
        while text not in output:
            assert select.select([self._master], [], [], 60)[0], output[-500:]
            output = output[-200:] + os.read(self._master, 65_536)
        return time.monotonic() - self.began

    def drain(self) -> None:
        while select.select([self._master], [], [], 0)[0]:
            os.read(self._master, 65_536)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@contextmanager
def open_screen(words: list[str], socket: str) -> Generator[Screen]:
    screen = Screen(words, socket)
    try:
        yield screen
    finally:
        screen.close()


def measure_busy_share(words: list[str], socket: str, name: str) -> float:
    """Return the share of a processor that the program uses while visible tasks change."""
    with open_screen(words, socket) as screen, connect(socket=socket, autostart=False) as client:
        plan = client.conversation(name)
        screen.wait_for(b"task 30.")  # the first one that no run changes, so it stays among the ready ones
        began, before = time.monotonic(), cpu_seconds(screen.process.pid)
        changes = 0
        while (now := time.monotonic() - began) < SECONDS:
            if changes < now * PER_SECOND:
                task = str(1 + changes // 2 % 30)
                plan.pause(task) if changes % 2 else plan.start(task)
                changes += 1
            else:
                screen.drain()
                time.sleep(0.002)
        assert changes > SECONDS * PER_SECOND * 0.8, f"only {changes} changes were made"
        return (cpu_seconds(screen.process.pid) - before) / (time.monotonic() - began)


def measure_ui() -> None:
    """Store two ratios of `punch ui`: first paint of a large to a small list, and processor time to the anchor's."""
    with tempfile.TemporaryDirectory() as place, spawned_daemon(Path(place)) as daemon:
        with connect(socket=daemon.socket, autostart=False) as client:
            for count in (SMALL, LARGE):
                for first in range(0, count, 1_000):
                    titles = [f"task {n}." for n in range(first, min(first + 1_000, count))]
                    client.conversation(f"of-{count}").add_many(titles)
        paints: dict[int, list[float]] = {SMALL: [], LARGE: []}
        ui = [sys.executable, "-m", "punchlist", "ui", "--theme", "dark", "-c"]
        for _ in range(ROUNDS):
            for count, times in paints.items():
                with open_screen([*ui, f"of-{count}"], daemon.socket) as screen:
                    times.append(screen.wait_for(b"task 9."))
        small, large = (statistics.median(times) for times in paints.values())
        name = f"of-{LARGE}"
        anchor = [sys.executable, "-m", __name__, daemon.socket, name]
        pairs = [
            (measure_busy_share([*ui, name], daemon.socket, name), measure_busy_share(anchor, daemon.socket, name))
            for _ in (1, 2)
        ]
        ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    keep(ui_paint_ratio=large / small, ui_work_ratio=ours / theirs)


def measure(*, quick: bool) -> str:
    KEPT.unlink(missing_ok=True)
    for _ in range(1 if quick else int(os.environ.get("RUNS") or 3)):
        subprocess.run([sys.executable, "-m", "pytest", "-q", *TESTS], cwd=ROOT, check=False)
        measure_ui()
    return table([json.loads(line) for line in KEPT.read_text().splitlines()])


if __name__ == "__main__":
    asyncio.run(Table(*sys.argv[1:]).run_async())
