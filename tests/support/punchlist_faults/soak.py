"""Runs ordinary use for SIZE seconds, with clients that come and go. Memory, descriptors, threads and the WAL must not
grow.

The first third of the time is a warm-up. After the warm-up, the growth of memory is the slope of a line fitted to its
samples.
"""

import os
import time
from pathlib import Path

from punchlist_faults import judge
from punchlist_faults.load import workers
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import Daemon, running_daemon
from punchlist_faults.viewers import Viewer

CLIENTS = 4
ROUND_S = 5.0
MAX_WAL_BYTES = 64 << 20


def _held(daemon: Daemon) -> tuple[int, int]:
    process = Path(f"/proc/{daemon.pid()}")
    return len(os.listdir(process / "fd")), len(os.listdir(process / "task"))


def slope(samples: list[tuple[float, float]]) -> float:
    """Return the growth per second by least squares."""
    middle_x = sum(x for x, _ in samples) / len(samples)
    middle_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - middle_x) ** 2 for x, _ in samples)
    return sum((x - middle_x) * (y - middle_y) for x, y in samples) / spread if spread else 0.0


def run(options: Options) -> Figures:
    began = time.monotonic()
    memory: list[tuple[float, float]] = []
    wal = rounds = calls = 0
    quiet: tuple[int, int] | None = None
    with running_daemon() as daemon:
        random = options.random()
        # On a busy machine one round may take all the time, but a slope needs two samples.
        while (elapsed := time.monotonic() - began) < options.size or len(memory) < 2:
            viewer = Viewer(daemon.socket, options.random(rounds), "events", None, None)
            with workers(daemon.socket, CLIENTS, random, first=rounds * CLIENTS, pace_s=0.005) as crowd:
                time.sleep(min(ROUND_S, options.size / 6))
                wal = max(wal, Path(f"{daemon.log}-wal").stat().st_size)
                crowd.finish()
            viewer.close()
            calls += len(crowd.journal)
            rounds += 1
            time.sleep(0.2)
            if elapsed > options.size / 3:
                memory.append((time.monotonic() - began, daemon.memory()))
                held = _held(daemon)
                quiet = quiet or held
                need(held == quiet, f"descriptors and threads: {quiet} became {held}")
        daemon.stop()
        judge.verify_log(daemon.log)
    need(wal <= MAX_WAL_BYTES, f"the WAL grew to {wal:,} bytes")
    return {
        "rounds": rounds,
        "calls": calls,
        "memory at the end, KiB": round(memory[-1][1] / 1024),
        "memory growth, bytes a call": round(slope(memory) * options.size / max(1, calls)),
        "memory growth, KiB an hour": round(slope(memory) * 3600 / 1024),
        "largest WAL, KiB": wal // 1024,
        "descriptors, threads": str(quiet),
    }
