"""A start over a big log whose daemon was killed while it wrote: when it accepts and answers, and what reads take.

SIZE counts events, a hundred for each conversation. Times count from the moment when Python could run the first line
of our code, as the same interpreter shows with a program of one line.
"""

import statistics
import subprocess
import sys
import threading
import time
from typing import NamedTuple

from punchlist_bench import biglog
from punchlist_bench.requests import call
from punchlist_faults.crowd import driver, load
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import DIE_WITH_US, Daemon, running_daemon
from punchlist_testing.daemon import Raw

KILLS = 5
READS = 200
"""Reads after each kill, of random conversations."""

AIM_MS = 150
"""Target for accepting; most of it is loading the program, which the log doesn't change."""

READS_MS = 250
"""Upper limit for a read, for a million events."""

FULL_SIZE = 1_000_000


class Start(NamedTuple):
    """Milliseconds until it accepted and until it answered, and of each read."""

    accepts: float
    answers: float
    reads: list[float]


def run(options: Options) -> Figures:
    conversations = max(64, options.size // biglog.EVENTS_EACH)
    chance = options.random()
    starts: list[Start] = []
    with running_daemon() as daemon:
        for request in biglog.calls():
            load(daemon, "-c", 64, "-d", 16, "-n", conversations, "-m", conversations, request)
        for _ in range(KILLS if options.size >= FULL_SIZE else 1):
            _kill_at_work(daemon, conversations, chance.uniform(0.2, 1.0))
            starts.append(_start(daemon, chance.sample(range(conversations), min(READS, conversations))))
        status = daemon.connect().result("daemon.status")
    slowest = [max(each.reads) for each in starts]
    figures = {
        "events, conversations": f"{status['seq']:,}, {conversations:,}",
        "kills": len(starts),
        f"accepts after, ms (aim {AIM_MS})": _figures([each.accepts for each in starts]),
        "answers after, ms": _figures([each.answers for each in starts]),
        f"slowest read of {READS}, ms": _figures(slowest),
        "usual read, ms": round(statistics.median(read for each in starts for read in each.reads), 2),
    }
    need(statistics.median(slowest) <= READS_MS or options.size < FULL_SIZE, f"reads are too slow: {figures}")
    return figures


def _figures(values: list[float]) -> str:
    return f"median {statistics.median(values):.0f}, worst {max(values):.0f}"


def _kill_at_work(daemon: Daemon, conversations: int, seconds: float) -> None:
    """SIGKILL while 64 clients change lists: there is a WAL, and events that no index has."""
    request = call("task.set_status", conversation="c-{slot}", task="{task}", status="completed")
    again = call("task.set_status", conversation="c-{slot}", task="{task}", status="pending")
    with driver(daemon, "-c", 64, "-t", 60, "-m", conversations, request, again):
        time.sleep(seconds)
        daemon.kill()


def _start(daemon: Daemon, wanted: list[int]) -> Start:
    nothing = statistics.median(_until_first_line() for _ in range(5))
    seen: list[float] = []

    def knock() -> None:
        link = _first(daemon.socket, began + 60)
        seen.append(time.monotonic())
        link.result("daemon.hello")
        seen.append(time.monotonic())
        link.close()

    began = time.monotonic()
    client = threading.Thread(target=knock)
    client.start()
    daemon.start()
    client.join()
    accepted, answered = (1000 * (at - began - nothing) for at in seen)
    return Start(accepted, answered, _reads(daemon, wanted))


def _first(path: str, deadline: float) -> Raw:
    while True:
        try:
            return Raw(path)
        except OSError:
            need(time.monotonic() < deadline, "it does not accept")
        time.sleep(0.001)


def _until_first_line() -> float:
    began = time.monotonic()
    program = [*DIE_WITH_US, sys.executable, "-c", "import time; print(time.monotonic())"]
    ran = subprocess.run(program, capture_output=True, text=True, check=True)
    return float(ran.stdout) - began


def _reads(daemon: Daemon, wanted: list[int]) -> list[float]:
    link, took = daemon.connect(), list[float]()
    for number in wanted:
        began = time.monotonic()
        version = link.result("task.list", conversation=f"c-{number}")["version"]
        took.append(1000 * (time.monotonic() - began))
        need(version >= biglog.EVENTS_EACH, f"c-{number} is at version {version}")
    daemon.hang_up()
    return took
