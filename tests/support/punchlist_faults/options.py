"""Options of a fault program, the exceptions that it raises, and its directory."""

import random
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]

Figures = dict[str, Any]


class Violation(AssertionError):
    """A promise of RELIABILITY.md wasn't kept."""


class Unavailable(Exception):
    """This machine can't run a program; the message names the missing requirement."""


class Options(NamedTuple):
    """Options of one run.

    Attributes:
        size: Amount of work, in a unit that depends on the program.
        seconds: Duration of each part; None for the program's own default.
        only: The only scenario or target to run; "" for all.
        bug: A fault of `launch` to inject, which the run must detect.
        engine: The server of the space: "nats" or "postgres".
    """

    seed: int
    size: int
    seconds: float | None = None
    only: str = ""
    bug: str = ""
    engine: str = "nats"

    def random(self, salt: object = "") -> random.Random:
        return random.Random(f"{self.seed}/{salt}")


@contextmanager
def workplace() -> Generator[Path]:
    """Make a directory with a short path, since socket addresses hold 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="pl-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def need(holds: object, message: str) -> None:
    if not holds:
        raise Violation(message)
