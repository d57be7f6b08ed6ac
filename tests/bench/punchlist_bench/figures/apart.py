"""Cost of shared lists: compared with local lists and bare posts, with added latency, and when a server or machine
dies.

Uses three NATS servers on loopback that fsync before they acknowledge, daemon processes, and load generators in C.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import statistics
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from punchlist_bench import table
from punchlist_bench.harness import Bench, Load, middle, ratio, running
from punchlist_bench.requests import TITLE, call
from punchlist_bench.servers import Client, Daemon
from punchlist_bench.table import Row, micros, ratio_row, value_row
from punchlist_schemas.events import AddedTask, ConversationOpened, TaskAdded
from punchlist_testing.distance import Distance
from punchlist_testing.hearing import heard
from punchlist_testing.nats_server import PORT, NatsServer, running_cluster
from punchlistd.domain.commands import Decision
from punchlistd.engine.calls import Step
from punchlistd.replication.adapters.nats.log import NatsLog
from punchlistd.replication.port import Conflict, SharedLogError
from punchlistd.replication.posts.posting import post
from punchlistd.replication.posts.posts import check_of, seal
from punchlistd.replication.spaces import Space

SPACE = "team"
AWAY_MS = 20.0
LEASE_MS = 3_000
JOINED = 10_000
PAUSE_S = 0.1
"""Pause before a failed call is retried, in seconds: calls to an unreachable space fail immediately."""

LAST_S = 4.0
"""Duration of concurrent load from several machines, in seconds."""


async def bare_posts(url: str, name: str, bodies: list[bytes]) -> list[float]:
    """Make posts in sequence through the adapter alone; return the time of each in microseconds."""
    log, took = NatsLog(Space(SPACE, (url,)), "bench_1"), list[float]()
    async with heard(log) as hearing:
        await hearing.link("up")
        position = await log.last(name)
        for number, body in enumerate(bodies):
            began, nonce = time.perf_counter(), f"{name}-{position}-{number}"
            try:
                position = await log.post(name, position, nonce, body)
            except SharedLogError:  # During a leader election, the post isn't measured, but it must be stored.
                try:
                    position = await post(log, name, position, nonce, body)
                except Conflict:
                    position = await post(log, name, await log.last(name), nonce, body)
            else:
                took.append((time.perf_counter() - began) * 1e6)
    return took


class Machines:
    """Daemons in one space."""

    def __init__(self, bench: Bench, servers: list[NatsServer]) -> None:
        self.bench = bench
        self.servers = servers
        urls = [server.url for server in servers]
        self.three = [self.add(*urls[number:], *urls[:number]) for number in range(3)]

    def add(self, *urls: str) -> Daemon:
        daemon = self.bench.daemon()
        with Client(daemon.socket) as client:
            answer = None
            for _ in range(100):
                answer = client.call("space.add", space=SPACE, urls=urls, refused=True)
                if "kind" not in answer.get("data", ()):
                    return daemon
                time.sleep(0.2)  # The servers must elect a leader first.
        raise RuntimeError(f"the space can't be added: {answer}")

    @staticmethod
    def share(name: str, first: Daemon, *others: Daemon) -> None:
        """Create and share a list on one machine, and join it on the others."""
        with Client(first.socket) as client:
            client.call("task.add", conversation=name, title="the first one")
            client.call("list.share", conversation=name, space=SPACE)
        for other in others:
            with Client(other.socket) as client:
                client.call("list.join", conversation=name, space=SPACE)

    def load_concurrently(self, name: str, daemons: list[Daemon], clients: int) -> list[Load]:
        """Put load on one list through several machines at the same time."""
        seconds, self.bench.seconds = self.bench.seconds, LAST_S

        def load(daemon: Daemon) -> Load:
            return self.bench.load(daemon, [add_request(name)], clients)

        try:
            with ThreadPoolExecutor(len(daemons)) as pool:
                return list(pool.map(load, daemons))
        finally:
            self.bench.seconds = seconds

    def leader(self) -> NatsServer:
        """Return the server that leads the space.

        Raises:
            RuntimeError: No server reports a leader.
        """
        for server in self.servers:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{server.monitor}/jsz?streams=true") as answer:
                for account in json.load(answer).get("account_details", ()):
                    for stream in account["stream_detail"]:
                        return self.servers[int(stream["cluster"]["leader"][1:])]
        raise RuntimeError("no server leads the space")


def add_request(name: str) -> str:
    return call("task.add", conversation=name, title=TITLE + " {g}")


def speed(machines: Machines) -> list[Row]:
    """Compare a shared list with a local one and with bare posts, on one machine."""
    bench, daemon, rows = machines.bench, machines.three[0], list[Row]()
    body = b"x" * 300
    posts = 150 if bench.quick else 400
    for clients, target in ((1, ""), (8, ""), (64, "≥ 0.45 ×")):
        shared, local = f"shared-{clients}", f"local-{clients}"
        machines.share(shared, daemon)
        taken = bench.in_turn(
            {
                "local": lambda name=local, n=clients: bench.load(daemon, [add_request(name)], n),
                "shared": lambda name=shared, n=clients: bench.load(daemon, [add_request(name)], n),
            }
        )
        if clients == 1:
            raw = bench.in_turn(
                {
                    "raw": lambda: statistics.median(
                        asyncio.run(bare_posts(machines.servers[0].url, "bare", [body] * posts))
                    ),
                    "shared": lambda: bench.load(daemon, [add_request("shared-1")], 1).p50,
                }
            )
            cost = ratio(raw["shared"], raw["raw"])
            figure, anchor = micros(middle(raw["shared"])), f"a bare post {micros(middle(raw['raw']))}"
            rows.append(ratio_row("task.add, 1 client, p50", figure, anchor, cost, "≤ 1.7 ×"))
        ours, theirs = ([load.rate for load in taken[which]] for which in ("shared", "local"))
        figure, anchor = f"{table.count(middle(ours))}/s", f"a local list {table.count(middle(theirs))}/s"
        rows.append(ratio_row(f"task.add, {table.clients(clients)}", figure, anchor, ratio(ours, theirs), target))
    return rows


def local(machines: Machines) -> list[Row]:
    """Compare a local list with and without a configured space."""
    bench, without = machines.bench, machines.bench.daemon()
    taken = bench.in_turn(
        {
            "with": lambda: bench.load(machines.three[0], [add_request("local")], 8),
            "without": lambda: bench.load(without, [add_request("local")], 8),
        },
        rounds=3 * bench.rounds,
    )
    ours, theirs = ([load.rate for load in taken[which]] for which in ("with", "without"))
    figure, anchor = f"{table.count(middle(ours))}/s", f"without a space {table.count(middle(theirs))}/s"
    return [ratio_row("a local list, 8 clients", figure, anchor, ratio(ours, theirs), "≥ 0.98 ×")]


def contention(machines: Machines) -> list[Row]:
    """Measure concurrent load on one list from three machines, then with one of them far away."""
    machines.share("three", *machines.three)
    near = [load.rate for load in machines.load_concurrently("three", machines.three, 8)]
    mean = statistics.mean(near)
    rows = [
        ratio_row(
            "three machines on one list, 8 clients each: the slowest",
            f"{table.count(min(near))}/s",
            f"their mean {table.count(mean)}/s",
            min(near) / mean,
            "≥ 0.7 ×",
        )
    ]
    distance = Distance(machines.servers[2].host, PORT, AWAY_MS)
    distance.start()
    try:
        far = machines.add(distance.url)
        machines.share("far", *machines.three[:2], far)
        trip = statistics.median(asyncio.run(bare_posts(distance.url, "bare", [b"x" * 300] * 20)))
        load = machines.load_concurrently("far", [*machines.three[:2], far], 8)[2]
    finally:
        machines.bench.stop_last()
        distance.end()
    what = f"the same, one of them {AWAY_MS:.0f} ms away: its p99"
    anchor = f"a round trip {micros(trip)}; {table.count(load.rate)}/s"
    return [*rows, ratio_row(what, micros(load.p99), anchor, load.p99 / trip, "≤ 10 ×")]


def propagation(machines: Machines) -> list[Row]:
    """Measure the time from a call on one machine to the push on another."""
    one, other = machines.three[:2]
    machines.share("seen", one, other)
    took: list[float] = []
    with (
        Client(one.socket) as writer,
        contextlib.closing(socket.socket(socket.AF_UNIX)) as link,
        link.makefile("rb") as lines,
    ):
        link.settimeout(30)
        link.connect(str(other.socket))
        request = call("event.subscribe", conversation="seen").replace("{id}", "1")
        link.sendall(request.encode() + b"\n")
        lines.readline()
        for number in range(200):
            began = time.perf_counter()
            writer.call("task.add", conversation="seen", title=f"{number}")
            assert b'"events"' in lines.readline()
            took.append((time.perf_counter() - began) * 1e6)
            time.sleep(0.005)
    figure, target = statistics.median(took), "≤ 5 ms"
    return [value_row("from a call to the push on another machine, p50", micros(figure), figure / 1000, target)]


def leader_loss(machines: Machines) -> list[Row]:
    """Kill the leader a few times. Measure the longest time without a response, and count rejected calls."""
    machines.share("led", machines.three[0])
    worst, refused = 0.0, 0
    with Client(machines.three[0].socket) as client:
        for _ in range(2 if machines.bench.quick else 3):
            client.call("task.add", conversation="led", title="before")
            leader = machines.leader()
            leader.kill()
            last = killed = time.monotonic()
            while time.monotonic() < killed + 12:
                answer = client.call("task.add", conversation="led", title="after", refused=True)
                now = time.monotonic()
                refused += "task" not in answer
                if "task" in answer:
                    worst, last = max(worst, now - last), now
                else:
                    time.sleep(PAUSE_S)
            leader.start()
            time.sleep(3)
    return [
        value_row("the leader is killed: longest time without an answer", f"{worst:.1f} s", worst, "≤ 10 s"),
        value_row("calls refused meanwhile", str(refused), refused, "≤ 0 calls"),
    ]


def claim_takeover(machines: Machines) -> list[Row]:
    """Measure how long after a machine's death another one can claim its task."""
    worst = 0.0
    for number in range(1 if machines.bench.quick else 3):
        name, dead = f"handed-{number}", machines.add(machines.servers[1].url)
        machines.share(name, dead, machines.three[0])
        with Client(dead.socket) as owner, Client(machines.three[0].socket) as heir:
            owner.call("task.claim", conversation=name, owner="ann", lease_ms=LEASE_MS)
            os.kill(dead.pid, signal.SIGKILL)
            died = time.monotonic()
            result = heir.call("task.claim", conversation=name, owner="bob", wait_ms=30_000)
            assert result["task"]["owner"] == "bob"
            worst = max(worst, time.monotonic() - died)
    limit = f"≤ {LEASE_MS / 1000 + 2:.0f} s"
    what = f"a machine dies; its claim of {LEASE_MS / 1000:.0f} s: another machine has it after"
    return [value_row(what, f"{worst:.1f} s", worst, limit)]


def join_list(machines: Machines) -> list[Row]:
    """Measure the time to join a long list of single-event posts."""
    name, check = "long", ""
    bodies: list[bytes] = []
    for version in range(1, JOINED + 1):
        event = ConversationOpened() if version == 1 else TaskAdded(AddedTask(str(version - 1), f"{TITLE} {version}"))
        step = Step((event,), 1_763_600_000_000 + version, "bench", None, Decision())
        bodies.append(seal("bench_1", f"{name}-{version}", version, check, [step]))
        check = check_of(bodies[-1])
    asyncio.run(bare_posts(machines.leader().url, name, bodies))
    with Client(machines.add(machines.servers[0].url).socket) as client:
        began = time.monotonic()
        result = client.call("list.join", conversation=name, space=SPACE)
        took = time.monotonic() - began
        assert result["version"] == JOINED, result
    what = f"joining a list of {JOINED:,} posts"
    return [value_row(what, f"{took:.2f} s", took, "≤ 2 s", f"{JOINED / took:,.0f} events/s")]


SECTIONS = (speed, local, contention, propagation, leader_loss, claim_takeover, join_list)


def measure(*, quick: bool) -> str:
    rows: list[Row] = []
    with running(quick=quick) as bench, running_cluster(bench.fresh("nats"), "http_port: 8222\n") as servers:
        machines = Machines(bench, servers)
        for section in SECTIONS:
            table.progress(section.__name__)
            rows += section(machines)
    return table.markdown(rows)
