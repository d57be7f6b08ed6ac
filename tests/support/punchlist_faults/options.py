"""What a run is given (a seed and a size) and what it says: its figures, or how to get its failure again."""

import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

Figures = dict[str, Any]


class Violation(AssertionError):
    """A promise was broken."""


class Unavailable(Exception):
    """This machine can't do what a harness needs; the message says what is missing."""


class Options(NamedTuple):
    """A seed and how much to do; what a size counts is the harness's own."""

    seed: int
    size: int

    def random(self, salt: object = "") -> random.Random:
        """A generator of chance for one part of the run."""
        return random.Random(f"{self.seed}/{salt}")


@contextmanager
def workplace() -> Generator[Path]:
    """A short directory of a run's own (socket addresses hold 107 bytes), removed at the end."""
    with tempfile.TemporaryDirectory(prefix="pl-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _interrupted(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main(name: str, run: Callable[[Options], Figures], size: int) -> None:
    """Run a harness as a program: SEED and SIZE come from the environment, figures go to standard output."""
    signal.signal(signal.SIGTERM, _interrupted)  # so that everything started is ended
    options = Options(int(os.environ.get("SEED") or time.time_ns() % 1_000_000), int(os.environ.get("SIZE") or size))
    began = time.monotonic()
    try:
        figures = run(options)
    except Unavailable as missing:
        print(f"{name}: skipped: {missing}")
        return
    except Exception:
        traceback.print_exc()
        print(f"{name}: FAILED; again with: make {name} SEED={options.seed} SIZE={options.size}", flush=True)
        sys.exit(1)
    print(f"{name}: SEED={options.seed} SIZE={options.size}, {time.monotonic() - began:.0f} s")
    for figure, value in figures.items():
        print(f"  {figure:<34} {value:,}" if isinstance(value, int) else f"  {figure:<34} {value}")


def need(holds: object, said: str) -> None:
    """Raise a `Violation` unless something holds."""
    if not holds:
        raise Violation(said)
