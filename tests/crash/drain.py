"""Many workers drain one list while workers and the daemon are killed; then the log is checked against what they saw.

    python tests/crash/drain.py --workers 64 --tasks 10000 --kills 200 --daemon-kills 20 --seed 1

Exit code 1 and the seed if the history is not one that may have happened.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from punchlist import Client, Conversation, LeaseHeld, LeaseLost, PunchlistError
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.history import Call, Violation, check_answers, check_log, check_order
from punchlistd.domain.commands import Fact

GRACE_S = 0.5
PATIENCE_S = 600.0
_PAGE = 10_000


class Plan(msgspec.Struct, frozen=True):
    """How large, and how cruel."""

    workers: int
    tasks: int
    kills: int
    daemon_kills: int
    seed: int


# a worker: a process of its own


def work(socket: str, notes: Path, owner: str, seed: int) -> None:
    """Claim, work a moment, complete, until nothing is left to do; every answer is noted before the next call."""
    random = Random(seed)
    fd = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def noted(kind: str, call: Callable[[], Any], tell: Callable[[Any], dict[str, Any]]) -> Any:
        began = time.monotonic_ns()
        result = call()
        ended = time.monotonic_ns()
        if facts := tell(result):
            os.write(fd, msgspec.json.encode(Call(kind, owner, began, ended, **facts)) + b"\n")
        return result

    with Client(socket=socket, name=owner, autostart=False, timeout_s=60) as client:
        plan = client.conversation("c")
        while True:
            claimed = noted("claim", lambda: plan.take(owner, wait_ms=500), _claim)
            if claimed.task is None:
                if plan.info().counts.completed == _all(plan):
                    return
                continue
            if random.random() < 0.3:
                time.sleep(random.random() * 0.003)
            if random.random() < 0.05:
                noted("read", lambda: plan.list(limit=1), _read)
            _complete(noted, plan, claimed)


def _all(plan: Conversation) -> int:
    counts = plan.info().counts
    return counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed


def _complete(noted: Any, plan: Conversation, claimed: Any) -> None:
    task, fence = claimed.task.id, claimed.fence
    try:
        noted("complete", lambda: plan.complete(task, fence=fence), partial(_end, fence))
    except (LeaseLost, LeaseHeld):
        return  # too late: the daemon was away for longer than the grace, and the log says who has it now


def _claim(result: Any) -> dict[str, Any]:
    if result.task is None:
        return {}
    return {"seq": result.fence, "version": result.version, "task": result.task.id, "fence": result.fence}


def _end(fence: int, result: Any) -> dict[str, Any]:
    return {"seq": result.seq, "version": result.version, "task": result.task.id, "fence": fence}


def _read(tasks: Any) -> dict[str, Any]:
    return {"seq": tasks.seq, "version": tasks.version, "completed": tasks.counts.completed}


# the one who kills


class Herd:
    """The workers, by process id; a killed one is followed by another of a new name."""

    def __init__(self, plan: Plan, daemon: Spawned, directory: Path) -> None:
        self._daemon = daemon
        self._directory = directory
        self._random = Random(plan.seed)
        self._names: dict[int, str] = {}
        self._born = 0
        self.killed = 0
        for _ in range(plan.workers):
            self.add()

    def add(self) -> None:
        """One more worker."""
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
        """SIGKILL for one of them, whatever it is doing."""
        pid = self._random.choice(sorted(self._names))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        del self._names[pid]
        self.killed += 1
        self.add()

    def gone(self) -> bool:
        """Whether all have come to their end.

        Raises:
            Violation: one of them ended in an error.
        """
        for pid in list(self._names):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                name = self._names.pop(pid)
                if status:
                    raise Violation(f"{name} ended with {status}")
        return not self._names

    def end(self) -> None:
        """Kill whoever is left."""
        for pid in self._names:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def drain(plan: Plan, directory: Path) -> str:
    """Run it and check it; the figures as a line.

    Raises:
        Violation: the history is not one that may have happened.
    """
    with spawned_daemon(directory, "--grace", str(GRACE_S), "--log-level", "error") as daemon:
        with Client(socket=daemon.socket, autostart=False) as client:
            _fill(client, plan.tasks)
        began = time.monotonic()
        herd = Herd(plan, daemon, directory)
        try:
            _let_loose(plan, daemon, herd, began)
        finally:
            herd.end()
        took = time.monotonic() - began
        facts = _facts(daemon)
    notes = [line for path in directory.glob("w*.jsonl") for line in path.read_bytes().splitlines(keepends=True)]
    calls = [msgspec.json.decode(line, type=Call) for line in notes if line.endswith(b"\n")]
    began = time.monotonic()
    check_order(calls)
    by_version = check_log(facts, tasks=plan.tasks)
    check_answers(calls, facts, by_version)
    again = sum(type(fact.event).__name__ == "Released" for fact in facts)
    return (
        f"{plan.tasks} tasks by {plan.workers} workers in {took:.1f} s ({plan.tasks / took:.0f}/s), "
        f"{herd.killed} workers and {plan.daemon_kills} daemons killed, {again} tasks done again, "
        f"{len(calls)} answers and {len(facts)} events checked in {time.monotonic() - began:.1f} s, seed {plan.seed}"
    )


def _fill(client: Client, tasks: int) -> None:
    plan = client.conversation("c")
    for first in range(1, tasks + 1, _PAGE):
        plan.add_many(f"task {number}" for number in range(first, min(first + _PAGE, tasks + 1)))


def _let_loose(plan: Plan, daemon: Spawned, herd: Herd, began: float) -> None:
    """Kill at moments spread over the work, until it is done."""
    random = Random(plan.seed + 1)
    deeds = ["worker"] * plan.kills + ["daemon"] * plan.daemon_kills
    random.shuffle(deeds)
    # The later tenth of the work is left in peace, so that every kill falls into it.
    marks = sorted(random.randrange(plan.tasks * 9 // 10) for _ in deeds)
    client = Client(socket=daemon.socket, autostart=False)
    while not herd.gone():
        if time.monotonic() - began > PATIENCE_S:
            raise Violation("the list is not drained: something is stuck")
        done = _completed(client)
        while marks and marks[0] <= done:
            marks.pop(0)
            if deeds.pop() == "worker":
                herd.kill_one()
            else:
                daemon.restart()
        time.sleep(0.01)
    client.close()
    if marks:
        raise Violation(f"{len(marks)} kills came too late")


def _completed(client: Client) -> int:
    try:
        return client.conversation("c").info().counts.completed
    except PunchlistError:
        return 0


def _facts(daemon: Spawned) -> list[Fact]:
    facts: list[Fact] = []
    with Client(socket=daemon.socket, autostart=False) as client:
        while changes := client.read(facts[-1].seq if facts else 0, "c", limit=_PAGE):
            facts += [Fact(each.seq, each.version, each.at, each.actor, each.event) for each in changes]
    return facts


def main() -> int:
    """Parse, drain, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("workers", 64), ("tasks", 10_000), ("kills", 200), ("daemon-kills", 20)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="N")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(3))
    plan = Plan(options.workers, options.tasks, options.kills, options.daemon_kills, seed)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="punchlist-drain-") as directory:
        try:
            print(drain(plan, Path(directory)))
        except Violation as violation:
            print(f"VIOLATION with seed {seed}: {violation}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
