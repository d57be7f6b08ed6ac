"""Figures of hosts' sessions: through the relay and its worker, and each in its own process. RUNS is a number (3)."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from punchlist import connect
from punchlist_bench.process import cpu_seconds
from punchlist_bench.table import markdown as build_table
from punchlist_bench.table import progress, ratio_row, value_row
from punchlist_schemas.events import TaskAdded
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.workers import Host, find_worker

MANY = 50
SOME = 10
CALLS = 300
OWN, SHARED = ("--own",), ()


class Session(NamedTuple):
    """Costs of one more session, and of several."""

    memory_mib: float
    cpu_ms: float
    start_ms: float
    all_mib: float


def measure(*, quick: bool) -> str:
    """Return the table of sessions."""
    runs = 1 if quick else int(os.environ.get("RUNS", "3"))
    with tempfile.TemporaryDirectory(prefix="pl-") as name, spawned_daemon(Path(name)) as daemon, ExitStack() as stack:
        folder = daemon.directory
        # The first session starts the worker, which the others share.
        stack.enter_context(Host(folder)).ask("tools/list", {})
        costs = {words: _measure_costs(folder, words, SOME, runs) for words in (OWN, SHARED)}
        calls = _compare_calls(folder, 30 if quick else CALLS)
        stream = _compare_streams(daemon, 30 if quick else CALLS)
        many = _measure_costs(folder, SHARED, MANY, 1)
    own, shared = costs[OWN], costs[SHARED]
    rows = [
        value_row(
            "memory of one more session (PSS)",
            f"{shared.memory_mib:.1f} MiB",
            shared.memory_mib,
            "≤ 5 MiB",
            f"{own.memory_mib:.1f} MiB",
        ),
        ratio_row("processor time to start it", *_pair(shared.cpu_ms, own.cpu_ms, "ms"), ""),
        ratio_row("start to the reply to `tools/list`", *_pair(shared.start_ms, own.start_ms, "ms"), "≤ 0.1 ×"),
        *(ratio_row(f"{tool}, p50", *_pair(*pair, "ms"), "≤ 1.1 ×") for tool, pair in calls.items()),
        ratio_row(
            "change → frame of `events/stream`, p50 (anchor: own subscription)", *_pair(*stream, "ms"), "≤ 1.2 ×"
        ),
        value_row(
            f"memory of {MANY} sessions, worker included",
            f"{many.all_mib:.0f} MiB",
            many.all_mib,
            "≤ 300 MiB",
            f"{MANY * own.memory_mib:,.0f} MiB",
        ),
    ]
    return build_table(rows).replace("| punchlist | anchor |", "| relay and worker | own process |")


def _pair(figure: float, anchor: float, unit: str) -> tuple[str, str, float]:
    return f"{figure:.1f} {unit}", f"{anchor:.1f} {unit}", figure / anchor


def _measure_costs(folder: Path, words: tuple[str, ...], count: int, runs: int) -> Session:
    measured: list[Session] = []
    for run in range(runs):
        progress(f"{count} sessions {' '.join(words)}, run {run + 1} of {runs}")
        with ExitStack() as stack:
            worker = find_worker(folder / "run")
            assert worker is not None
            memory, cpu, starts = _pss_mib(worker), cpu_seconds(worker), list[float]()
            hosts: list[Host] = []
            for _ in range(count):
                begin = time.perf_counter()
                hosts.append(stack.enter_context(Host(folder, *words)))
                hosts[-1].ask("tools/list", {})
                starts.append((time.perf_counter() - begin) * 1e3)
            pids = [host.process.pid for host in hosts]
            spent = sum(map(cpu_seconds, pids)) + cpu_seconds(worker) - cpu
            grown = sum(map(_pss_mib, pids)) + _pss_mib(worker) - memory
            every = sum(map(_pss_mib, pids)) + (0 if words else _pss_mib(worker))
            measured.append(Session(grown / count, spent / count * 1e3, statistics.median(starts), every))
    return Session(*(statistics.median(values) for values in zip(*measured, strict=True)))


def _compare_calls(folder: Path, count: int) -> dict[str, tuple[float, float]]:
    """Return the median durations of calls through the worker and in an own process, made in turn."""
    progress("calls in turn")
    with Host(folder) as shared, Host(folder, *OWN) as own:
        calls: dict[str, Callable[[Host, int], object]] = {
            "`tools/list`": lambda host, _number: host.ask("tools/list", {}),
            "`tasks`": lambda host, _number: host.call("tasks"),
            "`plan` of one task": lambda host, number: host.call("plan", tasks=[{"title": f"Task {number}"}]),
        }
        return {name: _time_in_turn(call, shared, own, count) for name, call in calls.items()}


def _compare_streams(daemon: Spawned, count: int) -> tuple[float, float]:
    """Return the median times from a change to the frame of a host's stream, and to the item of a subscription."""
    progress("streams")
    times = dict[str, list[float]](work=[], own=[])
    with (
        Host(daemon.directory) as host,
        connect(socket=daemon.socket, autostart=False) as client,
        connect(socket=daemon.socket, autostart=False) as watching,
        watching.conversation("own").watch() as items,
    ):
        host.request("events/stream", {"name": "task.added"})
        waits: dict[str, Callable[[], object]] = {"work": lambda: next(host.messages()), "own": items.next}
        waits["work"]()  # the stream is active
        lists = {name: client.conversation(name) for name in times}
        lists["own"].add("First")
        while not isinstance(items.next().event, TaskAdded):
            pass
        for number in range(count):
            for name in times if number % 2 else reversed(times):
                begin = time.perf_counter()
                lists[name].add(f"Task {number}")
                waits[name]()
                times[name].append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times["work"]), statistics.median(times["own"])


def _time_in_turn(call: Callable[[Host, int], object], shared: Host, own: Host, count: int) -> tuple[float, float]:
    times: dict[Host, list[float]] = {shared: [], own: []}
    for number in range(count):
        # The first call of a pair may pay for both, such as by waking the daemon's threads.
        for host in (shared, own) if number % 2 else (own, shared):
            begin = time.perf_counter()
            call(host, number)
            times[host].append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times[shared]), statistics.median(times[own])


def _pss_mib(pid: int) -> float:
    """Return a process's memory, with its share of pages that several processes use."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
