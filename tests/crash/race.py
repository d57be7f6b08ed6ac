"""Many daemons started at once: exactly one may live, the others end with 75, and every client is served.

    python tests/crash/race.py [--starters 50] [--rounds 50] [--seed N]

Each round finds something else in the way: nothing, a stale socket, nonsense in the lock, what a killed daemon leaves.
There are as many clients as daemons; each adds a task, and all tasks must be there once.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from punchlist_testing.daemon import Raw

Scene = Callable[[Path, random.Random], None]

ROOT = Path(__file__).resolve().parents[2]
SERVED_S = 30.0
LOST = 75


def nothing(directory: Path, chance: random.Random) -> None:
    """The first start of all."""


def stale_socket(directory: Path, chance: random.Random) -> None:
    """A socket file that nobody serves."""
    (directory / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(directory / "run" / "s"))


def stale_lock_text(directory: Path, chance: random.Random) -> None:
    """A lock file that names a living process, or says nonsense."""
    (directory / "data").mkdir(mode=0o700)
    text = chance.choice([b"1\n", b"%d\n" % os.getpid(), b"", chance.randbytes(64)])
    (directory / "data" / "lock").write_bytes(text)


def killed_daemon(directory: Path, chance: random.Random) -> None:
    """What is left after kill -9, with a task in the log."""
    process = start(directory)
    add(str(directory / "run" / "s"), "before")
    process.kill()
    process.wait()


SCENES: tuple[Scene, ...] = (nothing, stale_socket, stale_lock_text, killed_daemon)


def start(directory: Path) -> subprocess.Popen[bytes]:
    """A daemon, which may or may not come to life."""
    places = ["--socket", str(directory / "run" / "s"), "--data-dir", str(directory / "data")]
    with open(directory / "daemon.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "punchlistd", *places, "--log-level", "error"], stderr=log, env=environment()
        )


def environment() -> dict[str, str]:
    """Where the sources are."""
    sources = [str(ROOT / folder) for folder in ("daemon", "client", "schemas")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*sources, *filter(None, sys.path)])}


def add(path: str, title: str) -> None:
    """Add a task as soon as a daemon answers.

    Raises:
        OSError, EOFError: none did in time.
    """
    deadline = time.monotonic() + SERVED_S
    while True:
        try:
            client = Raw(path)
            try:
                client.result("task.add", conversation="race", title=title, key=title)
                return
            finally:
                client.close()
        except (OSError, EOFError):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def race(scene: Scene, starters: int, chance: random.Random) -> tuple[Counter[int], float]:
    """One round; exit codes of the losers, and the seconds until all clients were served.

    Raises:
        AssertionError: there was not exactly one survivor, or somebody was not served.
    """
    with tempfile.TemporaryDirectory(prefix="race") as name:
        directory = Path(name)
        scene(directory, chance)
        served: list[int] = []

        def serve(number: int) -> None:
            add(str(directory / "run" / "s"), str(number))
            served.append(number)

        began = time.monotonic()
        clients = [threading.Thread(target=serve, args=(number,)) for number in range(starters)]
        daemons = [start(directory) for _ in range(starters)]
        try:
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            took = time.monotonic() - began
            alive = settled(daemons)
            log = (directory / "daemon.log").read_text(errors="replace")
            assert len(alive) == 1, f"{len(alive)} daemons live: {log}"
            assert sorted(served) == list(range(starters)), f"{starters - len(served)} clients were not served: {log}"
            check_tasks(str(directory / "run" / "s"), starters)
            codes = Counter(daemon.returncode for daemon in daemons if daemon is not alive[0])
            assert set(codes) <= {LOST}, f"exit codes {dict(codes)}: {log}"
            alive[0].send_signal(signal.SIGTERM)
            assert alive[0].wait(SERVED_S) == 0, log
            return codes, took
        finally:
            for daemon in daemons:
                daemon.kill()
                daemon.wait()


def settled(daemons: list[subprocess.Popen[bytes]]) -> list[subprocess.Popen[bytes]]:
    """The daemons that live once all but one have ended, or the time is up."""
    deadline = time.monotonic() + SERVED_S
    while True:
        alive = [daemon for daemon in daemons if daemon.poll() is None]
        if len(alive) <= 1 or time.monotonic() > deadline:
            return alive
        time.sleep(0.02)


def check_tasks(path: str, starters: int) -> None:
    """Each client's task is there exactly once.

    Raises:
        AssertionError: one is missing or there twice.
    """
    client = Raw(path)
    tasks = client.result("task.list", conversation="race")["tasks"]
    client.close()
    titles = [task["title"] for task in tasks if task["title"] != "before"]
    assert sorted(titles, key=int) == [str(number) for number in range(starters)], titles


def run(starters: int, rounds: int, seed: int) -> None:
    """All rounds, with the figures printed."""
    print(f"race: {starters} starters × {rounds} rounds, seed {seed}")
    chance = random.Random(seed)
    lost, slowest, began = Counter[int](), 0.0, time.monotonic()
    for number in range(rounds):
        codes, took = race(SCENES[number % len(SCENES)], starters, chance)
        lost += codes
        slowest = max(slowest, took)
    print(f"exactly one survivor in {rounds} of {rounds} rounds; losers by exit code: {dict(lost)};")
    print(f"all {starters * rounds} clients served, a round's last after at most {slowest:.2f} s;")
    print(f"{time.monotonic() - began:.1f} s in all")


def main() -> None:
    """Read the command line and race."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starters", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    run(options.starters, options.rounds, options.seed)


if __name__ == "__main__":
    main()
