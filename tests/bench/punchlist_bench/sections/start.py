"""Duration of a start with a big log, and of the first reads."""

import random
import time
from pathlib import Path

from punchlist_bench import process, table
from punchlist_bench.biglog import EVENTS_EACH
from punchlist_bench.harness import Bench, middle, ratio
from punchlist_bench.servers import Client
from punchlist_bench.table import Row

LOOKED_AT = 200
SEED = 20_240_501


def run(bench: Bench) -> list[Row]:
    """Measure the time from exec to the first response, the first reads, and the memory before them."""
    big, empty = bench.big_log, bench.fresh("empty")
    events = bench.big_conversations * EVENTS_EACH
    title = f"{events:,} events in {bench.big_conversations:,} conversations"
    resident: list[int] = []
    first_reads: list[list[float]] = []

    def start_big() -> float:
        with bench.daemon(big) as daemon:
            first_reads.append(_first_reads(daemon.socket, bench.big_conversations, resident, daemon.pid))
            return daemon.started_s

    def start_empty() -> float:
        with bench.daemon(empty) as daemon:
            return daemon.started_s

    table.progress(f"start over {title}")
    taken = bench.in_turn({"big": start_big, "empty": start_empty})
    slowest = middle([max(reads) for reads in first_reads])
    usual = middle([middle(reads) for reads in first_reads])
    memory = middle(resident)
    return [
        table.ratio_row(
            f"start over {title}, exec to first response",
            f"{middle(taken['big']) * 1e3:.0f} ms",
            f"empty log {middle(taken['empty']) * 1e3:.0f} ms",
            ratio(taken["big"], taken["empty"]),
            "≤ 1.5 ×",
        ),
        table.value_row(
            f"first read of a conversation after it, slowest of {LOOKED_AT}",
            f"{slowest:.1f} ms",
            slowest,
            "≤ 10 ms",
            f"median {usual:.2f} ms",
        ),
        table.value_row("memory after that start", f"{memory / 2**20:.1f} MiB", memory / 2**20, "≤ 60 MiB"),
    ]


def _first_reads(socket: Path, conversations: int, resident: list[int], pid: int) -> list[float]:
    """Return the times of the first reads of random conversations, in milliseconds; record the memory before them."""
    times: list[float] = []
    resident.append(process.resident_bytes(pid))
    with Client(socket) as client:
        for number in random.Random(SEED).sample(range(conversations), LOOKED_AT):
            begin = time.perf_counter()
            listed = client.call("task.list", conversation=f"c-{number}")
            times.append((time.perf_counter() - begin) * 1e3)
            if listed["version"] != EVENTS_EACH:
                raise RuntimeError(f"c-{number} is at version {listed['version']}, not {EVENTS_EACH}")
    return times
