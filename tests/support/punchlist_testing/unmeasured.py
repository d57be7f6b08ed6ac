"""Switches off coverage measurement for processes and loops."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager


def unmeasured() -> dict[str, str]:
    """Return the environment without coverage.py's variables.

    For processes that count their own imports, or that run as a user who can't write to the directory of the coverage
    data.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def mostly_untraced(rounds: int, traced: int = 10) -> Generator[int]:
    """Yield round numbers; only the first `traced` rounds run with coverage measurement."""
    yield from range(min(traced, rounds))
    with untraced():
        yield from range(traced, rounds)


@contextmanager
def untraced() -> Generator[None]:
    """Run the body and the threads it starts without coverage.py's tracer, which makes short calls fourteen times
    slower."""
    tracer, thread_tracer = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
    finally:
        threading.settrace(thread_tracer)
        sys.settrace(tracer)
