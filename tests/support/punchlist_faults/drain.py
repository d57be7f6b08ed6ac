"""Many workers drain one list of SIZE tasks while workers and the daemon are killed; then the log is checked.

The log is compared with the workers' responses, which must be consistent with one possible history.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from punchlist import Client, LeaseHeld, LeaseLost, PunchlistError
from punchlist_faults.options import Figures, Options, need, workplace
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.history import Call, check_answers, check_log, check_order
from punchlistd.domain.commands import Fact

GRACE_S = 0.5
PATIENCE_S = 600.0
FULL, WORKERS = 10_000, 64
TASKS_PER_KILL, TASKS_PER_DAEMON_KILL = 50, 500
_PAGE = 10_000


# Worker processes


def work(socket: str, notes: Path, owner: str, seed: int) -> None:
    """Claim and complete tasks until none is left. Record every response before making the next call."""
    random, clock = Random(seed), time.monotonic_ns
    fd = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(kind: str, began: int, seq: int, version: int, **facts: Any) -> None:
        os.write(fd, msgspec.json.encode(Call(kind, owner, began, clock(), seq, version, **facts)) + b"\n")

    with Client(socket=socket, name=owner, autostart=False, timeout_s=60) as client:
        plan = client.conversation("c")
        while True:
            began = clock()
            claimed = plan.take(owner, wait_ms=500)
            if claimed.task is None:
                counts = plan.info().counts
                if not counts.pending + counts.in_progress + counts.paused + counts.failed:
                    return
                continue
            task, fence = claimed.task.id, claimed.fence
            note("claim", began, fence or 0, claimed.version, task=task, fence=fence)
            if random.random() < 0.3:
                time.sleep(random.random() * 0.003)
            if random.random() < 0.05:
                began = clock()
                tasks = plan.list(limit=1)
                note("read", began, tasks.seq, tasks.version, completed=tasks.counts.completed)
            began = clock()
            # The daemon was down for longer than the grace period, so the claim may belong to another worker now.
            with suppress(LeaseLost, LeaseHeld):
                done = plan.complete(task, fence=fence)
                note("complete", began, done.seq, done.version, task=done.task.id, fence=fence)


# Killing workers and the daemon


class Herd:
    """The workers by process id; a killed one is replaced by one with a new name."""

    def __init__(self, number: int, daemon: Spawned, directory: Path, random: Random) -> None:
        self._daemon = daemon
        self._directory = directory
        self._random = random
        self._names: dict[int, str] = {}
        self._born = 0
        for _ in range(number):
            self.add()

    def add(self) -> None:
        self._born += 1
        name, seed = f"w{self._born}", self._random.randrange(1 << 30)
        pid = os.fork()
        if pid:
            self._names[pid] = name
            return
        code = 1
        try:
            work(self._daemon.socket, self._directory / f"{name}.jsonl", name, seed)
            code = 0
        except BaseException as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)

    def kill_one(self) -> None:
        pid = self._random.choice(sorted(self._names))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        del self._names[pid]
        self.add()

    def is_gone(self) -> bool:
        for pid in list(self._names):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                name = self._names.pop(pid)
                need(not status, f"{name} ended with {status}")
        return not self._names

    def end(self) -> None:
        for pid in self._names:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def run(options: Options) -> Figures:
    tasks, workers = options.size, max(8, options.size * WORKERS // FULL)
    deeds = ["worker"] * (tasks // TASKS_PER_KILL) + ["daemon"] * max(2, tasks // TASKS_PER_DAEMON_KILL)
    options.random("deeds").shuffle(deeds)
    with workplace() as directory, spawned_daemon(directory, "--grace", str(GRACE_S), "--log-level", "error") as daemon:
        with Client(socket=daemon.socket, autostart=False) as client:
            for first in range(1, tasks + 1, _PAGE):
                numbers = range(first, min(first + _PAGE, tasks + 1))
                client.conversation("c").add_many(f"task {number}" for number in numbers)
        began = time.monotonic()
        herd = Herd(workers, daemon, directory, options.random("herd"))
        try:
            _kill_until_drained(tasks, deeds, daemon, herd, options.random("marks"))
        finally:
            herd.end()
        took = time.monotonic() - began
        facts = _facts(daemon)
        notes = [line for path in directory.glob("w*.jsonl") for line in path.read_bytes().splitlines(keepends=True)]
    calls = [msgspec.json.decode(line, type=Call) for line in notes if line.endswith(b"\n")]
    check_order(calls)
    check_answers(calls, facts, check_log(facts, tasks=tasks))
    return {
        "tasks": tasks,
        "workers": workers,
        "tasks a second": round(tasks / took),
        "workers, daemons killed": f"{deeds.count('worker')}, {deeds.count('daemon')}",
        "tasks done again": sum(type(fact.event).__name__ == "Released" for fact in facts),
        "answers": len(calls),
        "events": len(facts),
    }


def _kill_until_drained(tasks: int, deeds: list[str], daemon: Spawned, herd: Herd, random: Random) -> None:
    began = time.monotonic()
    # Kill nothing during the last tenth of the work, so that all kills happen before its end.
    marks = sorted(random.randrange(tasks * 9 // 10) for _ in deeds)
    left = list(deeds)
    with Client(socket=daemon.socket, autostart=False) as client:
        while not herd.is_gone():
            need(time.monotonic() - began < PATIENCE_S, "the list is not drained: something is stuck")
            done = _completed(client)
            while marks and marks[0] <= done:
                marks.pop(0)
                if left.pop() == "worker":
                    herd.kill_one()
                else:
                    daemon.restart()
            time.sleep(0.01)
    need(not marks, f"{len(marks)} kills came too late")


def _completed(client: Client) -> int:
    try:
        return client.conversation("c").info().counts.completed
    except PunchlistError:
        return 0


def _facts(daemon: Spawned) -> list[Fact]:
    facts: list[Fact] = []
    with Client(socket=daemon.socket, autostart=False) as client:
        while changes := client.read(facts[-1].seq if facts else 0, "c", limit=_PAGE):
            facts += [Fact(change.seq, change.version, change.at, change.actor, change.event) for change in changes]
    return facts
