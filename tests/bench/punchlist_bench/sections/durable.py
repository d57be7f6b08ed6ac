"""Speed of durable changes: both punchlistd and the anchors respond after an fsync."""

import os
from collections.abc import Callable, Sequence

from punchlist_bench import table
from punchlist_bench.harness import Bench, Load, middle, ratio
from punchlist_bench.requests import EVENT, FULL_ADD, FULL_STATUS, PUT, TASK, TITLE, call, redis, statuses, tasks
from punchlist_bench.servers import Client, Daemon
from punchlist_bench.table import Row

TARGETS = {64: "≥ 0.88 ×", 8: "≥ 0.95 ×", 1: "≥ 0.72 ×"}
FULL_TARGETS = {64: "≥ 1.3 ×", 8: "≥ 1.15 ×", 1: "≥ 0.85 ×"}
TAIL_TARGETS = {64: "≤ 1.2 ×"}


class _Servers:
    """The daemon and its anchors."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.daemon = bench.daemon()
        self.floor = bench.floor()
        self.redis = bench.redis(durable=True)
        self.full = bench.redis(durable=True)
        self.script = self.redis.load_script(PUT) if self.redis else ""
        self.full_add = self.full.load_script(FULL_ADD) if self.full else ""
        self.full_status = self.full.load_script(FULL_STATUS) if self.full else ""

    def full_requests(self, name: str) -> list[str]:
        """Return the Redis commands that do the daemon's work; statuses cycle as in `statuses`."""
        keys = ("4", "log:{conn}", "list:{conn}", "counts:{conn}", "seq")
        if name == "task.add":
            return [redis("EVALSHA", self.full_add, *keys, TITLE + " {g}", "add-{conn}")]
        return [
            redis("EVALSHA", self.full_status, *keys, "{task}", status, "status-{conn}")
            for status in ("in_progress", "completed", "pending")
        ]

    def fill(self) -> None:
        """Create a list of fifty tasks for each connection, in the daemon and in the Redis that does its work."""
        with Client(self.daemon.socket) as client:
            for number in range(64):
                client.call("task.add_many", conversation=f"status-{number}", tasks=tasks(50))
                if self.full is not None:
                    self.full.command("DEL", f"list:{number}", f"counts:{number}")
                    keys = ("4", f"log:{number}", f"list:{number}", f"counts:{number}", "seq")
                    for task in range(1, 51):
                        self.full.command("EVALSHA", self.full_add, *keys, f"{TITLE} {task}", f"status-{number}")

    def sample_all(self, name: str, requests: Sequence[str], field: str, clients: int) -> dict[str, list[Load]]:
        """Sample all servers; `field` is the hash field that Redis sets."""
        bench, peer = self.bench, self.redis
        samples: dict[str, Callable[[], Load]] = {
            "ours": lambda: bench.load(self.daemon, requests, clients),
            "floor": lambda: bench.load(self.floor, requests, clients),
        }
        if peer is not None:
            put = redis("EVALSHA", self.script, "2", "log:{conn}", "list:{conn}", EVENT, field, TASK)
            samples["redis"] = lambda: bench.load(peer, [put], clients)
        if (full := self.full) is not None:
            samples["full"] = lambda: bench.load(full, self.full_requests(name), clients)
        return bench.in_turn(samples)


def run(bench: Bench) -> list[Row]:
    """Compare `task.add` and `task.set_status` with two Redis servers (XADD and HSET, `always`) and the C floor.

    One server stores events and tasks that the client has already encoded. The other one validates, numbers and encodes
    like the daemon, as far as a script can, but has no idempotency keys, dependencies between tasks, checksums or
    pushes.
    """
    servers = _Servers(bench)
    servers.fill()
    add = [call("task.add", conversation="add-{conn}", title=TITLE + " {g}")]
    rows: list[Row] = []
    for clients in TARGETS:
        for name, requests, field in (
            ("task.add", add, "{g}"),
            ("task.set_status", statuses("status-{conn}"), "{task}"),
        ):
            table.progress(f"{name}, {clients} clients")
            rows.extend(_rows(name, clients, servers.sample_all(name, requests, field, clients)))
    return [*rows, _keyed(bench, servers.daemon)]


def _rows(name: str, clients: int, taken: dict[str, list[Load]]) -> list[Row]:
    what = f"{name}, {table.clients(clients)}"
    rates = {system: [load.rate for load in loads] for system, loads in taken.items()}
    tails = {system: [load.p99 for load in loads] for system, loads in taken.items()}
    figures = {system: f"{table.count(middle(samples))}/s" for system, samples in rates.items()}
    above_floor = table.ratio_row(
        what, figures["ours"], f"C floor {figures['floor']}", ratio(rates["ours"], rates["floor"]), ""
    )
    if "redis" not in taken:
        return [table.skipped_row(what, "no Redis to compare with: apt-get install redis-server"), above_floor]
    return [
        table.ratio_row(
            what, figures["ours"], f"Redis {figures['redis']}", ratio(rates["ours"], rates["redis"]), TARGETS[clients]
        ),
        table.ratio_row(
            what,
            figures["ours"],
            f"Redis, same work {figures['full']}",
            ratio(rates["ours"], rates["full"]),
            FULL_TARGETS[clients],
        ),
        table.ratio_row(
            f"{what}, p99",
            table.micros(middle(tails["ours"])),
            f"Redis {table.micros(middle(tails['redis']))}",
            ratio(tails["ours"], tails["redis"]),
            TAIL_TARGETS.get(clients, ""),
        ),
        above_floor,
    ]


def _keyed(bench: Bench, daemon: Daemon) -> Row:
    """Measure the cost of the idempotency key that the client library adds to every mutation."""
    plain = [call("task.add", conversation="plain-{conn}", title=TITLE + " {g}")]

    def keyed() -> Load:
        run = os.urandom(4).hex()
        return bench.load(
            daemon, [call("task.add", conversation="keyed-{conn}", title=TITLE + " {g}", key=run + "-{g}")], 64
        )

    taken = bench.in_turn({"keyed": keyed, "plain": lambda: bench.load(daemon, plain, 64)})
    rates = {name: [load.rate for load in loads] for name, loads in taken.items()}
    return table.ratio_row(
        "task.add with an idempotency key, 64 clients",
        f"{table.count(middle(rates['keyed']))}/s",
        f"without {table.count(middle(rates['plain']))}/s",
        ratio(rates["keyed"], rates["plain"]),
        "",
    )
