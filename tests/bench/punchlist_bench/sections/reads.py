"""Speed of queries, which are answered from memory."""

import sys
from pathlib import Path

import msgspec

from punchlist_bench import table
from punchlist_bench.harness import Bench, middle, ratio
from punchlist_bench.requests import call, redis, tasks
from punchlist_bench.servers import Client, Daemon
from punchlist_bench.table import Row

ECHO = Path(__file__).parents[1] / "echo.py"


def run(bench: Bench) -> list[Row]:
    """Compare `task.list` of 50 tasks with LRANGE of as many bytes, and `task.get` with a minimal server."""
    daemon = bench.daemon()
    with Client(daemon.socket) as client:
        client.call("task.add_many", conversation="read", tasks=tasks(50))
        listed = client.call("task.list", conversation="read")["tasks"]
    return [*_lists(bench, daemon, [msgspec.json.encode(task).decode() for task in listed]), *_gets(bench, daemon)]


def _lists(bench: Bench, daemon: Daemon, encoded: list[str]) -> list[Row]:
    peer = bench.redis(durable=False)
    if peer is None:
        return [table.skipped_row("task.list of 50", "no Redis to compare with: apt-get install redis-server")]
    peer.command("RPUSH", "l50", *encoded)
    request, lrange = [call("task.list", conversation="read")], [redis("LRANGE", "l50", "0", "49")]
    rows: list[Row] = []
    for clients, target in ((64, "≥ 0.9 ×"), (8, "≥ 0.8 ×"), (1, "")):
        table.progress(f"task.list, {clients} clients")
        taken = bench.in_turn(
            {
                "ours": lambda clients=clients: bench.load(daemon, request, clients),
                "redis": lambda clients=clients: bench.load(peer, lrange, clients),
            }
        )
        if target:
            ours, theirs = ([load.rate for load in taken[name]] for name in ("ours", "redis"))
            figures = (f"{table.count(middle(ours))}/s", f"LRANGE 50 {table.count(middle(theirs))}/s")
        else:
            ours, theirs = ([load.p50 for load in taken[name]] for name in ("ours", "redis"))
            figures = (f"p50 {table.micros(middle(ours))}", f"LRANGE 50 {table.micros(middle(theirs))}")
        rows.append(
            table.ratio_row(
                f"task.list of 50, {table.clients(clients)}", *figures, ratio(ours, theirs), target or "≤ 1.2 ×"
            )
        )
    return rows


def _gets(bench: Bench, daemon: Daemon) -> list[Row]:
    echo = bench.serve(sys.executable, ECHO, "{socket}")
    request = [call("task.get", conversation="read", task="{task}")]
    rows: list[Row] = []
    for clients, target in ((64, "≥ 0.6 ×"), (1, "")):
        table.progress(f"task.get, {clients} clients")
        taken = bench.in_turn(
            {
                "ours": lambda clients=clients: bench.load(daemon, request, clients),
                "bare": lambda clients=clients: bench.load(echo, request, clients),
            }
        )
        ours, bare = ([load.rate for load in taken[name]] for name in ("ours", "bare"))
        rows.append(
            table.ratio_row(
                f"task.get, {table.clients(clients)}",
                f"{table.count(middle(ours))}/s",
                f"bare protocol {table.count(middle(bare))}/s",
                ratio(ours, bare),
                target,
            )
        )
    return rows
