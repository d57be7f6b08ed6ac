"""Thousands of idle connections with a hundred active ones: the memory that each one needs, and how much they slow down
the active ones.

SIZE is the number of idle connections. A hundredth of that number, but at least two, make calls in a closed loop. Their
latencies are compared with the latencies on the same daemon without idle connections.
"""

import statistics

from punchlist_bench.requests import call
from punchlist_faults.crowd import Served, connections, load, need_descriptors, request
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import Daemon, running_daemon

SAMPLES = 5
SECONDS = 1.0
"""Duration of each sample, in seconds. With fewer than a thousand idle connections, a sample takes a fifth of it."""

MAX_BYTES = 12 << 10
"""Upper limit for the memory of an idle connection."""


def run(options: Options) -> Figures:
    active, large = max(2, options.size // 100), options.size >= 1_000
    need_descriptors(options.size + active)
    with running_daemon() as daemon:
        alone = _median(daemon, active, large)
        before = daemon.memory()
        with connections(daemon, options.size, request("daemon.hello")):
            each = (daemon.memory() - before) // options.size
            with_idle = _median(daemon, active, large)
    need(each <= MAX_BYTES or not large, f"an idle connection costs {each:,} bytes")
    return {
        "idle": options.size,
        "active": active,
        "bytes per idle one": each,
        "call p50, ms: with idle ones, alone": f"{with_idle.p50_ms:.2f}, {alone.p50_ms:.2f}",
        "call p99, ms: with idle ones, alone": f"{with_idle.p99_ms:.2f}, {alone.p99_ms:.2f}",
        "p50 over alone": round(with_idle.p50_ms / alone.p50_ms, 2),
        "p99 over alone": round(with_idle.p99_ms / alone.p99_ms, 2),
    }


def _median(daemon: Daemon, active: int, large: bool) -> Served:
    request = call("task.add", conversation="c{conn}", title="{g}")
    seconds = SECONDS if large else SECONDS / 5
    taken = [load(daemon, "-c", active, "-t", seconds, request) for _ in range(SAMPLES if large else 1)]
    return Served(
        statistics.median(sample.p50_ms for sample in taken), statistics.median(sample.p99_ms for sample in taken)
    )
