"""Three machines and three servers in a network of their own, under every fault at once; then everybody is asked.

SIZE counts runs of SECONDS each. Workers claim, complete, add and read through three daemons, while servers, daemons
and workers are killed, stopped, cut off from each other and left without power. Afterwards whatever anybody was told,
each worker's answers and each subscriber's pushes, is held against the shared log (`apart_judge`). Every second run
strikes one machine alone: only then is it certain that nothing had happened to the others.

With ENGINE=postgres it is one server of PostgreSQL, whose connections are also terminated.
"""

import asyncio
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from punchlist_faults import apart_work
from punchlist_faults.apart_judge import ALL_SERVERS, Entry, Judge, Note, Told, Trouble, order_of, same
from punchlist_faults.apart_postgres import PostgresWorld, terminate
from punchlist_faults.apart_work import LIST
from punchlist_faults.apart_world import MACHINES, SERVERS, SPACE, World, world
from punchlist_faults.mounts import enter
from punchlist_faults.options import Figures, Options, Unavailable, Violation, main, need, workplace
from punchlist_schemas.events import decode_event
from punchlist_testing.daemon import Raw
from punchlist_testing.nats_server import program
from punchlist_testing.postgres_server import programs
from punchlistd.replication.adapters.nats.log import NatsLog
from punchlistd.replication.adapters.postgres.log import PostgresLog
from punchlistd.replication.port import Beat, Link, Posted, SharedLogError
from punchlistd.replication.posts.posting import PATIENCE_S
from punchlistd.replication.spaces import Space

WORLDS: dict[str, type[World]] = {"nats": World, "postgres": PostgresWorld}
"""By ENGINE."""

WORKERS = 3
"""On each machine."""

TASKS = 100
"""That are there at the beginning."""

LONGEST_S = 11.0
"""No fault lasts longer: more than electing a leader takes, and more than a change is waited for. A machine that hears
nothing for so long must not take the post that it made at the beginning for one that is not in."""

SETTLE_S = 60.0
"""After the last fault everything is well again within so long, or something is stuck."""


# the faults


def _kill(world: World, name: str) -> Callable[[], None]:
    world.kill(name)
    return lambda: world.revive(name)


def _pause(world: World, name: str) -> Callable[[], None]:
    world.pause(name)
    return lambda: world.resume(name)


def _cut(world: World, name: str) -> Callable[[], None]:
    pairs = [(name, other) for other in world.servers if other != name]
    world.hosts.cut(pairs)
    return lambda: world.hosts.join(pairs)


def _deafen(world: World, name: str) -> Callable[[], None]:
    """What it posts goes in, and it is told nothing of that."""
    world.hosts.deafen(name, world.servers)
    return lambda: world.hosts.join((name, server) for server in world.servers)


def _cut_with_its_machines(world: World, name: str) -> Callable[[], None]:
    """The machines that are connected to a server see it alone; the other machine sees the other servers alone."""
    inside = world.served_by(name) or [MACHINES[0]]
    others = [other for other in SERVERS if other != name]
    pairs = [(one, other) for one in (name, *inside) for other in others]
    pairs += [(name, machine) for machine in MACHINES if machine not in inside]
    world.hosts.cut(pairs)
    return lambda: world.hosts.join(pairs)


def _power(world: World, name: str) -> Callable[[], None]:
    world.power_off(name)
    return lambda: world.power_on(name)


def _power_of_all(world: World, _name: str) -> Callable[[], None]:
    world.power_off(*SERVERS)
    return lambda: world.power_on(*SERVERS)


def _kill_all(world: World, _name: str) -> Callable[[], None]:
    for name in SERVERS:
        world.kill(name)

    def revive() -> None:
        for name in SERVERS:
            world.revive(name)

    return revive


def _delay(world: World, name: str) -> Callable[[], None]:
    world.hosts.delay(name, 20)
    return lambda: void(world.hosts.delay(name, 0))


def void(_result: object) -> None:
    """Nothing."""


class Fault(NamedTuple):
    """What strikes whom: `server`, the `leader` of the space, or a `machine`.

    `lasts` is how likely it is that it lasts long, `least_s` to `LONGEST_S` seconds; `weight` is how often it comes.
    """

    whom: str
    strike: Callable[[World, str], Callable[[], None]]
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
"""What befalls one server of PostgreSQL, and its machines."""

BESIDE = ("a daemon killed", "a daemon stopped", "a machine cut off")
"""What may strike at the same time as servers are struck."""


class Run:
    """One run: the workers, the subscribers, and what strikes them.

    Args:
        world: a world that has been started.
        random: chance.
        seconds: how long.
        only: the one machine that is struck, None for everybody.
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
        """One more worker on a machine."""
        self._born += 1
        name = f"w{self._born}"
        holds = not any(where == machine for where, _ in self._workers.values())
        role = "taker" if machine == self._only else "holder" if holds else "adder"
        given = [name, role, str(self.random.randrange(1 << 30)), str(self.until), str(self._notes(name, machine))]
        command = [sys.executable, "-S", apart_work.__file__, self.world.daemons[machine].socket, *given]
        self._workers[name] = machine, subprocess.Popen(command)

    def _notes(self, name: str, machine: str) -> Path:
        return self.world.place / f"{name}.{machine}.notes"

    def live(self) -> None:
        """Work under faults, then let it become well.

        Raises:
            Violation: something ended by itself, or is stuck.
        """
        for follower in self.followers:
            follower.start()
        for machine in MACHINES * WORKERS:
            self.hire(machine)
        try:
            while time.monotonic() < self.until - 1:
                time.sleep(self.random.uniform(0.2, 1.5))
                self._trouble_them()
                self.world.look()
            self._gone()
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
        ends: list[Callable[[], None]] = []
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

    def _gone(self) -> None:
        deadline = self.until + apart_work.LAST_S + 2 * apart_work.PATIENCE_S
        for name, (machine, process) in self._workers.items():
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Violation(f"{name} on {machine} is stuck") from None
            need(code == 0, f"{name} on {machine} ended with {code}")

    def judge(self, wall: float) -> Figures:
        """Hold everything against the shared log.

        Raises:
            Violation: a promise was broken.
        """
        entries = self._settled()
        for follower in self.followers:
            follower.reaches(len(entries))
            same(entries, follower.name, follower.told[: len(entries)], "pushes")  # claims may have ended since
        notes = [
            msgspec.structs.replace(msgspec.json.decode(line, type=Note), machine=path.name.split(".")[1])
            for path in self.world.place.glob("*.notes")
            for line in path.read_bytes().splitlines(keepends=True)
            if line.endswith(b"\n")
        ]
        judge = Judge(entries, notes)
        attempts = Counter(attempt.end for note in notes for attempt in note.attempts)
        return {
            "events": len(entries),
            **judge.answers(),
            "reads": judge.reads(),
            "pushes": sum(len(follower.told) for follower in self.followers),
            "claims ended by other machines": judge.leases(self.trouble, wall),
            **{f"attempts: {end}": count for end, count in sorted(attempts.items())},
            **{f"struck: {name}": count for name, count in sorted(Counter(t.name for t in self.trouble).items())},
        }

    def _settled(self) -> list[Entry]:
        """The shared log, once every machine has all of it."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            entries = order_of(asyncio.run(read_log(self.world)))
            told = {name: read_replica(daemon.socket) for name, daemon in self.world.daemons.items()}
            if all(len(each) == len(entries) for each in told.values()) or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        for name, each in told.items():
            same(entries, name, each, "replica")
        return entries


class Follower(threading.Thread):
    """Subscribes to the list on one machine, again and again behind the last event that came.

    Args:
        name: the machine.
        path: its socket.
    """

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name=name, daemon=True)
        self.told: list[Told] = []
        self._path = path
        self._seq = 0
        self._over = threading.Event()
        self._fault: BaseException | None = None

    def run(self) -> None:
        """Follow until the end."""
        try:
            while not self._over.is_set():
                with suppress(OSError), closing(socket.socket(socket.AF_UNIX)) as link:
                    self._follow(link)
                self._over.wait(0.05)
        except BaseException as error:
            self._fault = error

    def _follow(self, link: socket.socket) -> None:
        link.settimeout(0.5)
        link.connect(self._path)
        params = {"conversation": LIST, "after": self._seq}
        link.sendall(
            msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "event.subscribe", "params": params}) + b"\n"
        )
        buffer = b""
        while not self._over.is_set():
            with suppress(TimeoutError):
                if not (more := link.recv(1 << 16)):
                    return
                *lines, buffer = (buffer + more).split(b"\n")
                for line in lines:
                    self._take(msgspec.json.decode(line))

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("id") == 1:
            need("result" in message, f"a subscription was refused: {message}")
            return
        need(message["method"] == "events", f"pushed: {message}")
        for each in message["params"]["events"]:
            need(each["seq"] > self._seq, f"pushed behind {self._seq}: {each}")
            self._seq = each["seq"]
            self.told.append(told_of(each))

    def reaches(self, number: int) -> None:
        """Wait until so many events came, then end."""
        deadline = time.monotonic() + SETTLE_S
        while len(self.told) < number and self._fault is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self._over.set()
        self.join()
        if self._fault is not None:
            raise Violation(f"what {self.name} pushed: {self._fault!r}") from self._fault


def told_of(event: dict[str, Any]) -> Told:
    """An event as a daemon tells of it."""
    return event["version"], event["at"], event["actor"], decode_event(msgspec.json.encode(event["event"]))


def read_replica(path: str) -> list[Told]:
    """What a daemon has."""
    told: list[Told] = []
    after = 0
    with closing(Raw(path)) as link:
        while (page := link.result("event.read", conversation=LIST, after=after, limit=1_000))["events"]:
            told += map(told_of, page["events"])
            after = page["events"][-1]["seq"]
    return told


class _Nobody:
    """A listener that waits for the way to be open."""

    def __init__(self) -> None:
        self.up = asyncio.Event()

    def posted(self, post: Posted) -> None:
        pass

    def link_changed(self, link: Link) -> None:
        if link.state == "up":
            self.up.set()

    def beat(self, beat: Beat) -> None:
        pass

    def wanted(self, list: str, member: str, round_trip_s: float) -> None:
        pass


async def read_log(world: World) -> list[Posted]:
    """All posts, in order."""
    space = Space(SPACE, world.urls(), creds=world.creds["judge"], ca=world.ca)
    log = (NatsLog if space.engine == "nats" else PostgresLog)(space, "judge_1")
    hearing = _Nobody()
    running = asyncio.create_task(log.run(hearing))
    try:
        async with asyncio.timeout(SETTLE_S):
            await hearing.up.wait()
            while True:
                try:
                    found = await log.read(LIST, 0)
                    if await log.is_current(LIST, found[-1].position):
                        return found
                except SharedLogError:
                    pass
                await asyncio.sleep(0.1)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def one(seed: int, seconds: float) -> Figures:
    """One run.

    Raises:
        Violation: a promise was broken; what was noted is in build/apart/SEED.
    """
    with workplace() as place:
        with world(place, kind=WORLDS[os.environ.get("ENGINE") or "nats"]) as made:
            random = Random(f"apart/{seed}")
            with closing(Raw(made.daemons[MACHINES[0]].socket)) as link:
                titles = [{"title": f"task {number}"} for number in range(TASKS)]
                link.result("task.add_many", conversation=LIST, tasks=titles, key="tasks")
            run = Run(made, random, seconds, MACHINES[seed // 2 % len(MACHINES)] if seed % 2 else None)
            try:
                run.live()
                return run.judge(time.time() - time.monotonic())
            except Exception:
                kept = Path(__file__).resolve().parents[3] / "build" / "apart" / str(seed)
                leave = shutil.ignore_patterns("disk", "image", "s", "data", "*.creds", "*.key")
                shutil.copytree(place, kept, ignore=leave, dirs_exist_ok=True)
                (kept / "trouble").write_text("\n".join(map(str, run.trouble)))
                raise


def run(options: Options) -> Figures:
    """As many runs as SIZE says, from SEED on."""
    engine = os.environ.get("ENGINE") or "nats"
    if engine == "nats" and program() is None:
        raise Unavailable("needs nats-server 2.14 or newer: make nats-server fetches one")
    if engine == "postgres" and programs() is None:
        raise Unavailable("needs PostgreSQL: postgres, initdb and psql in PATH or /usr/lib/postgresql")
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of how TLS connections end
    enter("ip", "nsenter", "mkfs.ext4", "openssl", network=True)
    seconds = float(os.environ.get("SECONDS") or 60)
    total: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.size):
        try:
            figures = one(seed, seconds)
        except Exception:
            print(f"make apart SEED={seed} SIZE=1 SECONDS={seconds:g} ENGINE={engine}", flush=True)
            raise
        total.update(figures)
        print(
            f"  {seed}: {figures['acknowledged']} acknowledged, {figures['refusals proved']} refusals proved",
            flush=True,
        )
    return {"runs": options.size, **dict(sorted(total.items())), "violations": 0}


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main("apart", run, 3)
