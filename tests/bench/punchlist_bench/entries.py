"""Times commands as users run them: by the clock, and in processor time of all processes that work for them."""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

RUNS = 6
"""Number of runs in a sample."""


class Cost(NamedTuple):
    """Cost of a command in milliseconds.

    Attributes:
        wall: Median time from the command's start to its end.
        processor: Mean processor time of the command and its helpers.
    """

    wall: float
    processor: float


class Command(NamedTuple):
    """A command to time.

    Attributes:
        words: Its words; the first one is the program's path.
        helpers: Returns the ids of other processes that work for the command, such as a daemon.
        prepare: Called before each run, at no cost to the command.
    """

    words: Sequence[str | Path]
    env: Mapping[str, str]
    helpers: Callable[[], Iterable[int]] = tuple
    prepare: Callable[[], object] | None = None


def measure(command: Command, runs: int = RUNS) -> Cost:
    """Run a command several times and return its cost.

    Raises:
        RuntimeError: The command failed.
    """
    helpers = list(command.helpers())
    before = _sum_runtimes_ms(helpers)
    prepared_ms = 0.0
    samples: list[Cost] = []
    for _ in range(runs):
        if command.prepare is not None:
            prepared_ms -= _sum_runtimes_ms(helpers)
            command.prepare()
            prepared_ms += _sum_runtimes_ms(helpers)
        samples.append(_run(command))
    helped = (_sum_runtimes_ms(helpers) - before - prepared_ms) / runs
    return Cost(
        statistics.median(sample.wall for sample in samples),
        statistics.mean(sample.processor for sample in samples) + helped,
    )


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


def _run(command: Command) -> Cost:
    words = list(map(str, command.words))
    quiet = [(os.POSIX_SPAWN_OPEN, descriptor, "/dev/null", os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    begin = time.perf_counter()
    pid = os.posix_spawn(words[0], words, command.env, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(wall_s * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3)


def _sum_runtimes_ms(pids: Iterable[int]) -> float:
    schedules = (schedule for pid in pids for schedule in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(schedule.read_text().split()[0]) for schedule in schedules) / 1e6
