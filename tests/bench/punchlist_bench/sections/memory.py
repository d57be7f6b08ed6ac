"""Memory of tasks and connections, and wake-ups of an idle daemon."""

import time
from contextlib import ExitStack

from punchlist_bench import process, table
from punchlist_bench.harness import Bench
from punchlist_bench.requests import TITLE, tasks
from punchlist_bench.servers import Client
from punchlist_bench.table import Row

IDLE = 1_000
TASKS_EACH = 1_000


def run(bench: Bench) -> list[Row]:
    """Measure bytes per loaded task and per idle connection, and wake-ups with a thousand subscribers."""
    return [_live_tasks(bench), *_idle(bench)]


def _live_tasks(bench: Bench) -> Row:
    """Measure the memory of conversations after a restart, loaded by a read of one task each."""
    conversations = 20 if bench.quick else 100
    total = conversations * TASKS_EACH
    table.progress(f"memory of {total:,} tasks")
    data = bench.fresh("tasks")
    with bench.daemon(data) as daemon, Client(daemon.socket) as client:
        for number in range(conversations):
            client.call("task.add_many", conversation=f"m-{number}", tasks=tasks(TASKS_EACH))
    with bench.daemon(data) as daemon, Client(daemon.socket) as client:
        client.call("task.get", conversation="m-0", task="1")
        before = process.resident_bytes(daemon.pid)
        for number in range(1, conversations):
            client.call("task.get", conversation=f"m-{number}", task="1")
        each = (process.resident_bytes(daemon.pid) - before) / (total - TASKS_EACH)
        for number in range(1, conversations):
            client.call("task.list", conversation=f"m-{number}")
        listed = (process.resident_bytes(daemon.pid) - before) / (total - TASKS_EACH)
    return table.value_row(
        f"memory per live task, {total:,} with titles of {len(TITLE) + 4} characters",
        f"{each:.0f} bytes",
        each,
        "≤ 700 bytes",
        f"{listed:.0f} once listed",
    )


def _idle(bench: Bench) -> list[Row]:
    daemon = bench.daemon()
    with ExitStack() as stack:
        table.progress(f"{IDLE:,} idle connections")
        first = stack.enter_context(Client(daemon.socket))
        first.call("daemon.hello")
        before = process.resident_bytes(daemon.pid)
        clients = [stack.enter_context(Client(daemon.socket)) for _ in range(IDLE)]
        for client in clients:
            client.call("daemon.hello")
        each = (process.resident_bytes(daemon.pid) - before) / IDLE
        for client in clients:
            client.call("event.subscribe", conversation="idle")
        subscribed = (process.resident_bytes(daemon.pid) - before) / IDLE
        seconds = 6 if bench.quick else 20
        table.progress(f"{seconds} s of silence")
        time.sleep(2)
        woken, busy = process.wake_ups(daemon.pid), process.cpu_seconds(daemon.pid)
        time.sleep(seconds)
        rate = (process.wake_ups(daemon.pid) - woken) / seconds
        busy = (process.cpu_seconds(daemon.pid) - busy) / seconds
    return [
        table.value_row(
            "memory per idle connection",
            f"{each / 1024:.1f} KiB",
            each / 1024,
            "≤ 16 KiB",
            f"{subscribed / 1024:.1f} subscribed",
        ),
        table.value_row(
            f"wake-ups while idle with {IDLE:,} subscribers",
            f"{rate:.2f}/s",
            rate,
            "≤ 1 /s",
            f"{busy:.2%} of a processor",
        ),
    ]
