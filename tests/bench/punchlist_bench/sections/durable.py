"""Durable changes: an answer means that it is on the disk, for us and for the anchors."""

import os
from collections.abc import Callable, Sequence

from punchlist_bench import table
from punchlist_bench.harness import Bench, Load, middle, ratio
from punchlist_bench.requests import EVENT, PUT, TASK, TITLE, call, redis, statuses, tasks
from punchlist_bench.servers import Client, Daemon
from punchlist_bench.table import Row

TARGETS = {64: "≥ 1.25 ×", 8: "≥ 1.0 ×", 1: "≥ 0.9 ×"}
TAIL_TARGETS = {64: "≤ 1.2 ×"}


class _Servers:
    """Ours and the anchors, over the run of the section."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.daemon = bench.daemon()
        self.floor = bench.floor()
        self.redis = bench.redis(durable=True)
        self.script = self.redis.load_script(PUT) if self.redis else ""

    def taken(self, requests: Sequence[str], field: str, clients: int) -> dict[str, list[Load]]:
        """Samples of all; `field` is the one that Redis sets."""
        bench, peer = self.bench, self.redis
        samples: dict[str, Callable[[], Load]] = {
            "ours": lambda: bench.load(self.daemon, requests, clients),
            "floor": lambda: bench.load(self.floor, requests, clients),
        }
        if peer is not None:
            put = redis("EVALSHA", self.script, "2", "log:{conn}", "list:{conn}", EVENT, field, TASK)
            samples["redis"] = lambda: bench.load(peer, [put], clients)
        return bench.in_turn(samples)


def run(bench: Bench) -> list[Row]:
    """`task.add` and `task.set_status` beside Redis (XADD + HSET in Lua, always) and the C floor."""
    servers = _Servers(bench)
    with Client(servers.daemon.socket) as client:
        for number in range(64):
            client.call("task.add_many", conversation=f"status-{number}", tasks=tasks(50))
    add = [call("task.add", conversation="add-{conn}", title=TITLE + " {g}")]
    rows: list[Row] = []
    for clients in TARGETS:
        for name, requests, field in (
            ("task.add", add, "{g}"),
            ("task.set_status", statuses("status-{conn}"), "{task}"),
        ):
            table.progress(f"{name}, {clients} clients")
            rows.extend(_rows(name, clients, servers.taken(requests, field, clients)))
    return [*rows, _keyed(bench, servers.daemon)]


def _rows(name: str, clients: int, taken: dict[str, list[Load]]) -> list[Row]:
    what = f"{name}, {table.clients(clients)}"
    rates = {system: [load.rate for load in loads] for system, loads in taken.items()}
    tails = {system: [load.p99 for load in loads] for system, loads in taken.items()}
    figures = {system: f"{table.count(middle(each))}/s" for system, each in rates.items()}
    above_floor = table.compared(
        what, figures["ours"], f"C floor {figures['floor']}", ratio(rates["ours"], rates["floor"]), ""
    )
    if "redis" not in taken:
        return [table.skipped(what, "no Redis to compare with: apt-get install redis-server"), above_floor]
    return [
        table.compared(
            what, figures["ours"], f"Redis {figures['redis']}", ratio(rates["ours"], rates["redis"]), TARGETS[clients]
        ),
        table.compared(
            f"{what}, p99",
            table.micros(middle(tails["ours"])),
            f"Redis {table.micros(middle(tails['redis']))}",
            ratio(tails["ours"], tails["redis"]),
            TAIL_TARGETS.get(clients, ""),
        ),
        above_floor,
    ]


def _keyed(bench: Bench, daemon: Daemon) -> Row:
    """What an idempotency key costs, which the client library puts on every mutation."""
    plain = [call("task.add", conversation="plain-{conn}", title=TITLE + " {g}")]

    def keyed() -> Load:
        run = os.urandom(4).hex()
        return bench.load(
            daemon, [call("task.add", conversation="keyed-{conn}", title=TITLE + " {g}", key=run + "-{g}")], 64
        )

    taken = bench.in_turn({"keyed": keyed, "plain": lambda: bench.load(daemon, plain, 64)})
    rates = {name: [load.rate for load in loads] for name, loads in taken.items()}
    return table.compared(
        "task.add with an idempotency key, 64 clients",
        f"{table.count(middle(rates['keyed']))}/s",
        f"without {table.count(middle(rates['plain']))}/s",
        ratio(rates["keyed"], rates["plain"]),
        "",
    )
