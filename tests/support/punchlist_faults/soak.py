"""Minutes of ordinary use with clients that come and go: memory, descriptors, threads and the WAL must not grow.

SIZE counts seconds. A third of them is warming up; then a line is laid through the samples of memory.
"""

import os
import time
from pathlib import Path

from punchlist_faults import judge
from punchlist_faults.crowd import rss_bytes
from punchlist_faults.load import Follower, workers
from punchlist_faults.options import Figures, Options, main, need, workplace
from punchlist_faults.process import Daemon, daemon_in

CLIENTS = 4
ROUND_S = 5.0
MAX_WAL = 64 << 20


def _sample(daemon: Daemon) -> tuple[int, int, int, int]:
    """Memory, descriptors, threads, bytes written ahead."""
    process = Path(f"/proc/{daemon.pid()}")
    wal = Path(f"{daemon.log}-wal")
    return (
        rss_bytes(daemon),
        len(os.listdir(process / "fd")),
        len(os.listdir(process / "task")),
        wal.stat().st_size if wal.exists() else 0,
    )


def slope(samples: list[tuple[float, float]]) -> float:
    """Growth a second by least squares."""
    middle_x = sum(x for x, _ in samples) / len(samples)
    middle_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - middle_x) ** 2 for x, _ in samples)
    return sum((x - middle_x) * (y - middle_y) for x, y in samples) / spread if spread else 0.0


def run(options: Options) -> Figures:
    """Use a daemon for as long as SIZE says."""
    began = time.monotonic()
    memory: list[tuple[float, float]] = []
    wal = rounds = calls = 0
    with workplace() as place, daemon_in(place) as daemon:
        daemon.start()
        random = options.random()
        quiet: tuple[int, int] | None = None
        # On a machine that is busy one round may take all the time; a slope needs two samples.
        while (elapsed := time.monotonic() - began) < options.size or len(memory) < 2:
            length = min(ROUND_S, options.size / 6)
            follower = Follower(daemon.socket)
            with workers(daemon.socket, CLIENTS, random, first=rounds * CLIENTS, pace_s=0.005) as crowd:
                time.sleep(length)
                wal = max(wal, _sample(daemon)[3])
                for worker in crowd:
                    worker.finish()
                for worker in crowd:
                    worker.join()
            follower.close()
            calls += sum(len(worker.journal) for worker in crowd)
            rounds += 1
            time.sleep(0.2)
            rss, descriptors, threads, _ = _sample(daemon)
            if elapsed > options.size / 3:
                memory.append((time.monotonic() - began, rss))
                quiet = quiet or (descriptors, threads)
                need((descriptors, threads) == quiet, f"descriptors and threads: {quiet} became {descriptors, threads}")
        need(daemon.stop() == 0, "the daemon did not stop well")
        judge.sound(daemon.log)
    hourly = slope(memory) * 3600
    need(wal <= MAX_WAL, f"the WAL grew to {wal:,} bytes")
    return {
        "rounds": rounds,
        "calls": calls,
        "memory at the end, KiB": round(memory[-1][1] / 1024),
        "memory growth, bytes a call": round(slope(memory) * options.size / max(1, calls)),
        "memory growth, KiB an hour": round(hourly / 1024),
        "largest WAL, KiB": wal // 1024,
        "descriptors": quiet[0] if quiet else 0,
        "threads": quiet[1] if quiet else 0,
    }


if __name__ == "__main__":
    main("soak", run, 300)
