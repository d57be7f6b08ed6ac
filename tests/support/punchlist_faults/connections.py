"""Thousands of idle connections beside a hundred active ones: what one costs, and how much later the others are served.

SIZE counts the idle ones; a hundredth as many, at least two, are active and call without a pause. What counts is their
time beside the idle ones, over that of the same ones alone: both come from one daemon on the same machine.
"""

import statistics
import threading

from punchlist_bench import native
from punchlist_bench.requests import call
from punchlist_faults.crowd import (
    Served,
    connections,
    load,
    need_descriptors,
    percentile,
    request,
    round_trips,
    rss_bytes,
)
from punchlist_faults.options import Figures, Options, Violation, main, need, workplace
from punchlist_faults.process import Daemon, daemon_in

SAMPLES = 5
SECONDS = 1.0
"""Of each sample; a fifth where there are few connections."""

CALLS = 50
"""Of each active one and sample, where threads of Python make the load."""

MAX_BYTES = 12 << 10


def run(options: Options) -> Figures:
    """Measure alone, open the idle ones, measure again."""
    active, large = max(2, options.size // 100), options.size >= 1_000
    need_descriptors(options.size + active)
    with workplace() as place, daemon_in(place) as daemon:
        daemon.start()
        alone = _middle(daemon, active, large)
        before = rss_bytes(daemon)
        with connections(daemon, options.size, request("daemon.hello")):
            each = (rss_bytes(daemon) - before) // options.size
            beside = _middle(daemon, active, large)
        need(daemon.stop() == 0, "the daemon did not stop well")
    need(each <= MAX_BYTES or not large, f"an idle connection costs {each:,} bytes")
    return {
        "idle": options.size,
        "active": active,
        "load from": "C" if native.compiler() else "Python: there is no C compiler",
        "bytes per idle one": each,
        "call p50, ms: beside, alone": f"{beside.p50_ms:.2f}, {alone.p50_ms:.2f}",
        "call p99, ms: beside, alone": f"{beside.p99_ms:.2f}, {alone.p99_ms:.2f}",
        "p50 over alone": round(beside.p50_ms / alone.p50_ms, 2),
        "p99 over alone": round(beside.p99_ms / alone.p99_ms, 2),
    }


def _middle(daemon: Daemon, active: int, large: bool) -> Served:
    sample = _from_c if native.compiler() else _from_threads
    taken = [sample(daemon, active, SECONDS if large else SECONDS / 5) for _ in range(SAMPLES if large else 1)]
    return Served(statistics.median(each.p50_ms for each in taken), statistics.median(each.p99_ms for each in taken))


def _from_c(daemon: Daemon, active: int, seconds: float) -> Served:
    return load(daemon, "-c", active, "-t", seconds, call("task.add", conversation="c{conn}", title="{g}"))


def _from_threads(daemon: Daemon, active: int, _seconds: float) -> Served:
    took: list[float] = []
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            took.extend(round_trips(daemon, CALLS, conversation=f"c{number}"))
        except BaseException as error:
            failures.append(error)

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(active)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    if failures:
        raise Violation(f"an active connection failed: {failures[0]!r}")
    return Served(percentile(took, 0.5) * 1000, percentile(took, 0.99) * 1000)


if __name__ == "__main__":
    main("connections", run, 10_000)
