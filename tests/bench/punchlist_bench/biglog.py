"""Creates a big log through a daemon's socket, so that it is laid out like one that grew in use."""

from collections.abc import Iterator
from pathlib import Path

from punchlist_bench.harness import Bench
from punchlist_bench.requests import call, tasks
from punchlist_bench.table import progress

TASKS = 20
EVENTS_EACH = 100
"""Events of each conversation: one that opens it, one for each task, then changes of status."""

STATUSES = ("in_progress", "completed", "pending", "in_progress")


def build(bench: Bench) -> Path:
    """Create the log, with each conversation's events spread over all of it; return the data directory."""
    data = bench.fresh("big")
    conversations = bench.big_conversations
    events = conversations * EVENTS_EACH
    with bench.daemon(data) as daemon:
        for number, request in enumerate(calls(), 1):
            if number % 10 == 0:
                progress(f"a log of {events:,} events: {number} of {EVENTS_EACH - TASKS}")
            bench.load(daemon, [request], 64, depth=16, count=conversations, slots=conversations)
    return data


def calls() -> Iterator[str]:
    """Yield the requests of each conversation in order."""
    yield call("task.add_many", conversation="c-{slot}", tasks=tasks(TASKS))
    for index in range(EVENTS_EACH - TASKS - 1):
        task, status = str(index % TASKS + 1), STATUSES[index // TASKS]
        yield call("task.set_status", conversation="c-{slot}", task=task, status=status)
