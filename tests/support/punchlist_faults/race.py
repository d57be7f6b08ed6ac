"""Starts SIZE daemons at the same time, in SIZE rounds.

One daemon may survive, the others must end with exit code 75, and every client must be served.

Each round starts with a different obstacle: nothing, a stale socket, a nonsensical lock, the files of a killed
daemon. There are as many clients as daemons. Each adds a task, and the list must contain each task once.
"""

import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from subprocess import Popen

from punchlist_faults.options import Figures, Options, need, workplace
from punchlist_faults.process import environment
from punchlist_testing.daemon import Raw

SERVED_S = 30.0
LOST = 75


def nothing(directory: Path, chance: Random) -> None:
    """Leave nothing, for a first start."""


def stale_socket(directory: Path, chance: Random) -> None:
    """Leave a socket file that no process serves."""
    (directory / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(directory / "run" / "s"))


def stale_lock(directory: Path, chance: Random) -> None:
    """Leave a lock file that names a living process, or nonsense."""
    (directory / "data").mkdir(mode=0o700)
    text = chance.choice([b"1\n", b"%d\n" % os.getpid(), b"", chance.randbytes(64)])
    (directory / "data" / "lock").write_bytes(text)


def killed_daemon(directory: Path, chance: Random) -> None:
    """Leave the files of a killed daemon, with a task in the log."""
    process = start(directory)
    add(directory, "before")
    process.kill()
    process.wait()


SCENES: tuple[Callable[[Path, Random], None], ...] = (nothing, stale_socket, stale_lock, killed_daemon)


def start(directory: Path) -> Popen[bytes]:
    places = ["--socket", str(directory / "run" / "s"), "--data-dir", str(directory / "data")]
    command = [sys.executable, "-P", "-m", "punchlistd", *places, "--log-level", "error"]
    with open(directory / "daemon.log", "ab") as log:
        return Popen(command, stderr=log, env=environment())


def add(directory: Path, title: str) -> None:
    deadline = time.monotonic() + SERVED_S
    while True:
        try:
            link = Raw(str(directory / "run" / "s"))
            link.result("task.add", conversation="race", title=title, key=title)
            link.close()
            return
        except (OSError, EOFError):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def race(number: int, starters: int, chance: Random) -> tuple[Counter[int], float]:
    with workplace() as directory, ThreadPoolExecutor(starters) as threads:
        SCENES[number % len(SCENES)](directory, chance)
        began = time.monotonic()
        clients = [threads.submit(add, directory, str(index)) for index in range(starters)]
        daemons = [start(directory) for _ in range(starters)]
        try:
            for client in clients:
                client.result()
            took = time.monotonic() - began
            alive = survivors(daemons)
            log = (directory / "daemon.log").read_text(errors="replace")
            need(len(alive) == 1, f"{len(alive)} daemons live: {log}")
            link = Raw(str(directory / "run" / "s"))
            tasks = link.result("task.list", conversation="race")["tasks"]
            link.close()
            titles = [task["title"] for task in tasks if task["title"] != "before"]
            need(sorted(titles, key=int) == [str(index) for index in range(starters)], f"the tasks are {titles}")
            codes = Counter(daemon.returncode for daemon in daemons if daemon is not alive[0])
            need(set(codes) <= {LOST}, f"exit codes {dict(codes)}: {log}")
            alive[0].send_signal(signal.SIGTERM)
            need(alive[0].wait(SERVED_S) == 0, log)
            return codes, took
        finally:
            for daemon in daemons:
                daemon.kill()
                daemon.wait()


def survivors(daemons: list[Popen[bytes]]) -> list[Popen[bytes]]:
    deadline = time.monotonic() + SERVED_S
    while True:
        alive = [daemon for daemon in daemons if daemon.poll() is None]
        if len(alive) <= 1 or time.monotonic() > deadline:
            return alive
        time.sleep(0.02)


def run(options: Options) -> Figures:
    chance, lost, slowest = options.random(), Counter[int](), 0.0
    for number in range(options.size):
        codes, took = race(number, options.size, chance)
        lost += codes
        slowest = max(slowest, took)
    return {
        "rounds": options.size,
        "losers by exit code": str(dict(lost)),
        "slowest last client, s": round(slowest, 2),
    }
