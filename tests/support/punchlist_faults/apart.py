"""Three machines and three servers in their own network, under all faults at the same time.

SIZE is the number of runs, of SECONDS each. Workers claim, complete, add and read through three daemons, while servers,
daemons and workers are killed, stopped, cut off from each other and left without power. Afterwards each worker's
responses and each subscriber's pushes are compared with the shared log (`apart_judge`). Every second run strikes only
one machine, because only then is it certain that nothing happened to the others.

With ENGINE=postgres there is one PostgreSQL server instead, whose connections are also terminated. With BUG=late-post
the daemons run with that fault of `launch`, which the run must detect.
"""

import asyncio
import logging
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from random import Random
from typing import Any, NamedTuple

import msgspec

from punchlist_faults import apart_work
from punchlist_faults.apart_judge import ALL_SERVERS, Judge, Note, Trouble, check_same
from punchlist_faults.apart_postgres import PostgresWorld, terminate
from punchlist_faults.apart_world import MACHINES, SERVERS, SPACE, World, world
from punchlist_faults.background import Background
from punchlist_faults.ledger import LIST, Ledger, ReplicatedEvent
from punchlist_faults.options import ROOT, Figures, Options, Unavailable, Violation, need, workplace
from punchlist_faults.runner import describe
from punchlist_schemas.events import decode_event
from punchlist_testing.daemon import Raw
from punchlist_testing.hearing import heard
from punchlist_testing.nats_server import program
from punchlist_testing.postgres_server import programs
from punchlistd.replication.adapters.nats.log import NatsLog
from punchlistd.replication.adapters.postgres.log import PostgresLog
from punchlistd.replication.port import Posted, SharedLogError
from punchlistd.replication.posts.posting import PATIENCE_S
from punchlistd.replication.spaces import Space

WORLDS: dict[str, type[World]] = {"nats": World, "postgres": PostgresWorld}
"""By ENGINE."""

WORKERS = 3
"""Workers on each machine."""

TASKS = 100
"""Number of tasks at the start."""

LONGEST_S = 11.0
"""Duration of the longest fault: longer than a leader election, and longer than the timeout of a change. A machine that
receives nothing for that long must not conclude that a post it made at the start of the fault was not stored."""

SETTLE_S = 60.0
"""Time after the last fault within which everything must recover."""


# Faults: each function starts a fault and returns a function that ends it


Strike = Callable[[World, str], Callable[[], object]]


def _kill(world: World, name: str) -> Callable[[], object]:
    world.kill(name)
    return lambda: world.revive(name)


def _pause(world: World, name: str) -> Callable[[], object]:
    world.pause(name)
    return lambda: world.resume(name)


def _cut_pairs(world: World, pairs: list[tuple[str, str]]) -> Callable[[], object]:
    world.hosts.cut(pairs)
    return lambda: world.hosts.join(pairs)


def _cut(world: World, name: str) -> Callable[[], object]:
    return _cut_pairs(world, [(name, other) for other in world.servers if other != name])


def _deafen(world: World, name: str) -> Callable[[], object]:
    """Drop the responses to a machine, not its requests."""
    world.hosts.deafen(name, world.servers)
    return lambda: world.hosts.join((name, server) for server in world.servers)


def _cut_with_its_machines(world: World, name: str) -> Callable[[], object]:
    """Cut off a server and the machines connected to it from the other servers and machines."""
    inside = world.served_by(name) or [MACHINES[0]]
    others = [other for other in SERVERS if other != name]
    pairs = [(host, other) for host in (name, *inside) for other in others]
    return _cut_pairs(world, [*pairs, *((name, machine) for machine in MACHINES if machine not in inside)])


def _power(world: World, name: str) -> Callable[[], object]:
    world.power_off(name)
    return lambda: world.power_on(name)


def _power_of_all(world: World, _name: str) -> Callable[[], object]:
    world.power_off(*SERVERS)
    return lambda: world.power_on(*SERVERS)


def _kill_all(world: World, _name: str) -> Callable[[], object]:
    ends = [_kill(world, name) for name in SERVERS]
    return lambda: [end() for end in ends]


def _delay(world: World, name: str) -> Callable[[], object]:
    world.hosts.delay(name, 20)
    return lambda: world.hosts.delay(name, 0)


class Fault(NamedTuple):
    """A fault.

    Attributes:
        whom: Its target: a `server`, the `leader` of the space, or a `machine`.
        lasts: Probability that it is a long fault, which lasts `least_s` to `LONGEST_S` seconds.
        weight: Its relative frequency.
    """

    whom: str
    strike: Strike
    lasts: float = 0.0
    weight: int = 1
    least_s: float = 4.0


FAULTS: dict[str, Fault] = {
    "a server killed": Fault("server", _kill),
    "a server stopped": Fault("server", _pause),
    "a server cut off": Fault("server", _cut, lasts=0.35),
    "a server without power": Fault("server", _power),
    "the leader killed": Fault("leader", _kill, lasts=0.35),
    "the leader stopped": Fault("leader", _pause, lasts=0.35),
    "the leader cut off": Fault("leader", _cut, lasts=0.35),
    "the leader cut off with its machines": Fault("leader", _cut_with_its_machines, lasts=1, weight=3),
    "the leader without power": Fault("leader", _power),
    "all servers killed": Fault("server", _kill_all),
    "all servers without power": Fault("server", _power_of_all),
    "a daemon killed": Fault("machine", _kill),
    "a daemon stopped": Fault("machine", _pause, lasts=0.35),
    "a machine cut off": Fault("machine", _cut, lasts=0.6, weight=2),
    "a machine that hears nothing": Fault("machine", _deafen, lasts=0.6, weight=2, least_s=PATIENCE_S + 1),
    "a machine far away": Fault("machine", _delay, lasts=0.35),
}
POSTGRES_FAULTS = {
    "the server killed": Fault("server", _kill),
    "the server killed for longer": Fault("server", _kill, lasts=0.8),
    "the server stopped": Fault("server", _pause, lasts=0.35),
    "the server's connections terminated": Fault("server", terminate, weight=2),
    "the server without power": Fault("server", _power),
    **{name: fault for name, fault in FAULTS.items() if fault.whom == "machine"},
}

BESIDE = ("a daemon killed", "a daemon stopped", "a machine cut off")
"""Faults that may occur together with a fault of the servers."""


class Run:
    """One run: workers, subscribers and faults.

    Args:
        only: The only machine that faults may affect; None for all machines.
    """

    def __init__(self, world: World, random: Random, seconds: float, only: str | None) -> None:
        self._known = POSTGRES_FAULTS if isinstance(world, PostgresWorld) else FAULTS
        self.world = world
        self.random = random
        self._only = only
        self.until = time.monotonic() + seconds
        self.trouble: list[Trouble] = []
        self.followers = [Follower(name, world.daemons[name].socket) for name in MACHINES]
        self._workers: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}
        self._born = 0
        self._faults = [
            name
            for name, fault in self._known.items()
            if (fault.strike is not _delay or self._can_delay()) and (only is None or fault.whom == "machine")
        ]

    def _can_delay(self) -> bool:
        able = self.world.hosts.delay(MACHINES[0], 1)
        self.world.hosts.delay(MACHINES[0], 0)
        return able

    def hire(self, machine: str) -> None:
        self._born += 1
        name = f"w{self._born}"
        holds = not any(where == machine for where, _ in self._workers.values())
        role = "taker" if machine == self._only else "holder" if holds else "adder"
        notes = self.world.place / f"{name}.{machine}.notes"
        worker_arguments = [name, role, str(self.random.randrange(1 << 30)), str(self.until), str(notes)]
        command = [sys.executable, "-S", apart_work.__file__, self.world.daemons[machine].socket, *worker_arguments]
        self._workers[name] = machine, subprocess.Popen(command)

    def live(self) -> None:
        """Run the workers under faults, then wait until all of them have ended."""
        for follower in self.followers:
            follower.start()
        for machine in MACHINES * WORKERS:
            self.hire(machine)
        try:
            while time.monotonic() < self.until - 1:
                time.sleep(self.random.uniform(0.2, 1.5))
                self._trouble_them()
                self.world.check_running()
            self._join_workers()
        finally:
            for _, process in self._workers.values():
                process.kill()
                process.wait()

    def _trouble_them(self) -> None:
        random = self.random
        if random.random() < 0.15:
            name = random.choice(sorted(self._workers))
            machine, process = self._workers.pop(name)
            self.trouble.append(Trouble("a worker killed", frozenset(), time.monotonic(), time.monotonic()))
            process.kill()
            process.wait()
            self.hire(machine)
            return
        names = random.choices(self._faults, [self._known[name].weight for name in self._faults])
        if self._known[names[0]].whom != "machine" and random.random() < 0.3:
            names.append(random.choice(BESIDE))
        lasts = max(
            random.uniform(fault.least_s, LONGEST_S) if random.random() < fault.lasts else random.uniform(0.1, 3)
            for fault in map(self._known.__getitem__, names)
        )
        lasts = min(lasts, max(0.1, self.until - time.monotonic()))
        ends: list[Callable[[], object]] = []
        victims: set[str] = set()
        began = time.monotonic()
        for name in names:
            fault = self._known[name]
            if fault.whom == "machine":
                who = self._only or random.choice(MACHINES)
                victims.add(who)
            else:
                who = random.choice(list(self.world.servers))
                who = (self.world.leader() or who) if fault.whom == "leader" else who
                victims.add(ALL_SERVERS)
            ends.append(fault.strike(self.world, who))
        time.sleep(lasts)
        for end in ends:
            end()
        for name in names:
            self.trouble.append(Trouble(name, frozenset(victims), began, time.monotonic()))

    def _join_workers(self) -> None:
        deadline = self.until + apart_work.LAST_S + 2 * apart_work.PATIENCE_S
        for name, (machine, process) in self._workers.items():
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Violation(f"{name} on {machine} is stuck") from None
            need(code == 0, f"{name} on {machine} ended with {code}")

    def judge(self, wall: float) -> Figures:
        ledger = self._wait_until_settled()
        entries = ledger.entries
        for follower in self.followers:
            follower.reaches(len(entries))
            # Claims may have ended since the log was read.
            check_same(entries, follower.name, follower.events[: len(entries)], "pushes")
        notes = [
            msgspec.structs.replace(msgspec.json.decode(line, type=Note), machine=path.name.split(".")[1])
            for path in self.world.place.glob("*.notes")
            for line in path.read_bytes().splitlines(keepends=True)
            if line.endswith(b"\n")
        ]
        judge = Judge(ledger, notes)
        attempts = Counter(attempt.end for note in notes for attempt in note.attempts)
        return {
            "events": len(entries),
            **judge.answers(),
            "reads": judge.reads(),
            "pushes": sum(len(follower.events) for follower in self.followers),
            "claims ended by other machines": judge.leases(self.trouble, wall),
            **{f"attempts: {end}": count for end, count in sorted(attempts.items())},
            **{f"struck: {name}": count for name, count in sorted(Counter(t.name for t in self.trouble).items())},
        }

    def _wait_until_settled(self) -> Ledger:
        ledger, deadline = Ledger(), time.monotonic() + SETTLE_S
        while True:
            length = ledger.follow(asyncio.run(read_log(self.world)))
            events = {name: read_replica(daemon.socket) for name, daemon in self.world.daemons.items()}
            if all(len(replica) == length for replica in events.values()) or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        for name, replica in events.items():
            check_same(ledger.entries, name, replica, "replica")
        return ledger


class Follower(Background):
    """A subscriber to the list on one machine, which resumes after the last event that it received."""

    def __init__(self, machine: str, path: str) -> None:
        super().__init__(machine, path)
        self.events: list[ReplicatedEvent] = []
        self._seq = 0

    def work(self) -> None:
        while not self.ending.wait(0.05):
            self.hang_up()
            with suppress(OSError, EOFError):
                link = self.connect()
                link.result("event.subscribe", conversation=LIST, after=self._seq)
                link.sock.settimeout(None)
                while not self.ending.is_set() and (message := link.receive()) is not None:
                    self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        need(message["method"] == "events", f"pushed: {message}")
        for event in message["params"]["events"]:
            need(event["seq"] > self._seq, f"pushed after {self._seq}: {event}")
            self._seq = event["seq"]
            self.events.append(replicated_event(event))

    def reaches(self, number: int) -> None:
        deadline = time.monotonic() + SETTLE_S
        while len(self.events) < number and self.failure is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self.close()
        self.check()


def replicated_event(event: dict[str, Any]) -> ReplicatedEvent:
    return event["version"], event["at"], event["actor"], decode_event(msgspec.json.encode(event["event"]))


def read_replica(path: str) -> list[ReplicatedEvent]:
    events: list[ReplicatedEvent] = []
    after = 0
    with closing(Raw(path)) as link:
        while (page := link.result("event.read", conversation=LIST, after=after, limit=1_000))["events"]:
            events += map(replicated_event, page["events"])
            after = page["events"][-1]["seq"]
    return events


async def read_log(world: World) -> list[Posted]:
    space = Space(SPACE, world.urls(), creds=world.creds["judge"], ca=world.ca)
    log = (NatsLog if space.engine == "nats" else PostgresLog)(space, "judge_1")
    async with asyncio.timeout(SETTLE_S), heard(log) as hearing:
        await hearing.link("up")
        while True:
            with suppress(SharedLogError):
                found = await log.read(LIST, 0)
                if await log.is_current(LIST, found[-1].position):
                    return found
            await asyncio.sleep(0.1)


def run_seed(seed: int, options: Options) -> Figures:
    """Make one run; after a violation, keep the run's notes and logs in build/apart/SEED."""
    with workplace() as place, world(place, WORLDS[options.engine], options.bug) as made:
        random = Random(f"apart/{seed}")
        with closing(Raw(made.daemons[MACHINES[0]].socket)) as link:
            titles = [{"title": f"task {number}"} for number in range(TASKS)]
            link.result("task.add_many", conversation=LIST, tasks=titles, key="tasks")
        run = Run(made, random, options.seconds or 60, MACHINES[seed // 2 % len(MACHINES)] if seed % 2 else None)
        try:
            run.live()
            return run.judge(time.time() - time.monotonic())
        except Exception:
            kept = ROOT / "build" / "apart" / str(seed)
            leave = shutil.ignore_patterns("disk", "image", "s", "data", "*.creds", "*.key")
            shutil.copytree(place, kept, ignore=leave, dirs_exist_ok=True)
            (kept / "trouble").write_text("\n".join(map(str, run.trouble)))
            raise


def run(options: Options) -> Figures:
    if options.engine == "nats" and program() is None:
        raise Unavailable("needs nats-server 2.14 or newer: make optional fetches one")
    if options.engine == "postgres" and programs() is None:
        raise Unavailable("needs PostgreSQL: postgres, initdb and psql in PATH or /usr/lib/postgresql")
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # asyncio warns when TLS connections end
    total: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.size):
        try:
            figures = run_seed(seed, options)
        except Exception:
            print(describe("apart", options._replace(seed=seed, size=1)), flush=True)
            raise
        total.update(figures)
        print(
            f"  {seed}: {figures['acknowledged']} acknowledged, {figures['refusals proved']} refusals proved",
            flush=True,
        )
    return {"runs": options.size, **dict(sorted(total.items()))}
