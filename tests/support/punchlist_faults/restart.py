"""Starts a daemon on a big log whose previous daemon was killed during writes, and measures the time until it is ready
and the latency of reads.

SIZE is the number of events, with a hundred in each conversation.
"""

import statistics
import time
from random import Random

from punchlist_bench import biglog
from punchlist_bench.requests import call
from punchlist_faults.crowd import driver, load
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import Daemon, running_daemon

KILLS = 5
READS = 200
"""Reads after each kill, of random conversations."""

READS_MS = 250
"""Upper limit for a read with a log of a million events."""

FULL_SIZE = 1_000_000


def run(options: Options) -> Figures:
    conversations = max(64, options.size // biglog.EVENTS_EACH)
    random, starts, reads = options.random(), list[float](), list[list[float]]()
    with running_daemon() as daemon:
        for request in biglog.calls():
            load(daemon, "-c", 64, "-d", 16, "-n", conversations, "-m", conversations, request)
        for _ in range(KILLS if options.size >= FULL_SIZE else 1):
            _kill_at_work(daemon, conversations, random.uniform(0.2, 1.0))
            starts.append(1000 * daemon.start())
            reads.append(_read_some(daemon, conversations, random))
        status = daemon.connect().result("daemon.status")
    slowest = [max(samples) for samples in reads]
    figures = {
        "events, conversations": f"{status['seq']:,}, {conversations:,}",
        "kills": len(starts),
        "serves after, ms": _figures(starts),
        f"slowest read of {READS}, ms": _figures(slowest),
        "usual read, ms": round(statistics.median(read for samples in reads for read in samples), 2),
    }
    need(statistics.median(slowest) <= READS_MS or options.size < FULL_SIZE, f"reads are too slow: {figures}")
    return figures


def _figures(values: list[float]) -> str:
    return f"median {statistics.median(values):.0f}, worst {max(values):.0f}"


def _kill_at_work(daemon: Daemon, conversations: int, seconds: float) -> None:
    """Kill the daemon while 64 clients change lists, which leaves a WAL and unindexed events."""
    request = call("task.set_status", conversation="c-{slot}", task="{task}", status="completed")
    again = call("task.set_status", conversation="c-{slot}", task="{task}", status="pending")
    with driver(daemon, "-c", 64, "-t", 60, "-m", conversations, request, again):
        time.sleep(seconds)
        daemon.kill()


def _read_some(daemon: Daemon, conversations: int, random: Random) -> list[float]:
    """Return the time of each read in milliseconds."""
    link, took = daemon.connect(), list[float]()
    for number in random.sample(range(conversations), min(READS, conversations)):
        began = time.monotonic()
        version = link.result("task.list", conversation=f"c-{number}")["version"]
        took.append(1000 * (time.monotonic() - began))
        need(version >= biglog.EVENTS_EACH, f"c-{number} is at version {version}")
    daemon.hang_up()
    return took
