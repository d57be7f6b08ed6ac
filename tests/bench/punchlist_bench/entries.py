"""Times commands as users run them, in turn: by the clock, and in processor time of all processes that do their work."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from punchlist_bench.harness import middle

RUNS = 10
"""Number of runs of a command in a sample."""


class Cost(NamedTuple):
    """Medians of a command's runs, in milliseconds.

    Attributes:
        wall: From its start to its end.
        processor: Processor time of the command itself and of its helpers.
    """

    wall: float
    processor: float


class Command(NamedTuple):
    """A command to time.

    Attributes:
        words: Returns the words of the next run, of which the first is a path.
        helpers: Returns the ids of other processes that work for it, such as a daemon.
    """

    words: Callable[[], Sequence[str]]
    env: Mapping[str, str]
    helpers: Callable[[], Iterable[int]] = tuple


def time_in_turn(commands: Mapping[str, Command], rounds: int) -> dict[str, Cost]:
    """Run each command `RUNS` times a round, and return the medians.

    Raises:
        RuntimeError: A command failed.
    """
    walls: dict[str, list[float]] = {name: [] for name in commands}
    processors: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            helpers = list(command.helpers())
            own, before = 0.0, _sum_runtime_ms(helpers)
            for _ in range(RUNS):
                wall_ms, processor_ms = _run(command.words(), command.env)
                walls[name].append(wall_ms)
                own += processor_ms
            processors[name].append((own + _sum_runtime_ms(helpers) - before) / RUNS)
    return {name: Cost(middle(walls[name]), middle(processors[name])) for name in commands}


def find_processes(text: str) -> list[int]:
    """Return the ids of the processes whose command line contains `text`."""
    found: list[int] = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in line.read_bytes():
                found.append(int(line.parent.name))
        except OSError:  # it has just ended
            continue
    return found


def _run(words: Sequence[str], env: Mapping[str, str]) -> tuple[float, float]:
    quiet = [(os.POSIX_SPAWN_OPEN, descriptor, "/dev/null", os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    begin = time.perf_counter()
    pid = os.posix_spawn(words[0], list(words), env, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return wall_s * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3


def _sum_runtime_ms(pids: Iterable[int]) -> float:
    total_ns = 0
    for pid in pids:
        for schedule in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            total_ns += int(schedule.read_text().split()[0])
    return total_ns / 1e6
