"""Processes and loops that the measuring of coverage must leave alone."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager


def unmeasured() -> dict[str, str]:
    """Our environment for a process whose own modules are counted, or whose user may not write where we do."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def mostly_untraced(rounds: int, traced: int = 10) -> Generator[int]:
    """Counts rounds of random work. The first few show the tracer the lines; the others run without it."""
    yield from range(min(traced, rounds))
    with untraced():
        yield from range(traced, rounds)


@contextmanager
def untraced() -> Generator[None]:
    """Runs the body without coverage.py's tracer, which makes a million short calls fourteen times as slow.

    Threads that the body starts are not traced either.
    """
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
    finally:
        threading.settrace(of_threads)
        sys.settrace(tracer)
