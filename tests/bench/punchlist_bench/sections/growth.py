"""Growth with the log, a list, and the number of conversations. Runs last, since it writes to the big log."""

import os

from punchlist_bench import process, table
from punchlist_bench.biglog import EVENTS_EACH
from punchlist_bench.harness import Bench, middle, ratio
from punchlist_bench.requests import TITLE, call, statuses, tasks
from punchlist_bench.servers import Client
from punchlist_bench.table import Row

LONG, SHORT = 10_000, 10
SHORT_LISTS = 50
EVENT_BYTES = 130


def run(bench: Bench) -> list[Row]:
    """Measure disk use, commits to a big log, adds to a long list, and many conversations."""
    return [_disk(bench), _commits(bench), _long_list(bench), _conversations(bench)]


def _disk(bench: Bench) -> Row:
    """Measure the disk use of an event, without that of an empty log.

    Events are stored in their wire format. The target is for events of `EVENT_BYTES`, so the figure is the overhead
    over the wire format plus that size.
    """
    events = bench.big_conversations * EVENTS_EACH
    empty = bench.fresh("empty")
    bench.daemon(empty).stop()
    on_disk = (process.directory_bytes(bench.big_log) - process.directory_bytes(empty)) / events
    with bench.daemon(bench.big_log) as daemon:
        table.progress("bytes per event")
        caught = bench.catch_up(daemon, call("event.subscribe", after=0), events)
    wire = caught.bytes / events
    return table.value_row(
        f"disk per event of {EVENT_BYTES} bytes, {events:,} events, everything included",
        f"{on_disk - wire + EVENT_BYTES:.0f} bytes",
        on_disk - wire + EVENT_BYTES,
        "≤ 250 bytes",
        f"{on_disk:.0f} for events of {wire:.0f}",
    )


def _commits(bench: Bench) -> Row:
    """Compare one client's durable changes to a big log and to a small one."""
    events = bench.big_conversations * EVENTS_EACH
    table.progress(f"commits over {events:,} events")
    with bench.daemon(bench.big_log) as big, bench.daemon() as small:
        for daemon in (big, small):
            with Client(daemon.socket) as client:
                client.call("task.add_many", conversation="grow", tasks=tasks(50))
        bench.load(small, statuses("grow"), count=900)
        taken = bench.in_turn(
            {
                "big": lambda: bench.load(big, statuses("grow")),
                "small": lambda: bench.load(small, statuses("grow"), count=150 if bench.quick else 400),
            },
            bench.rounds * 2,
        )
    ours, anchor = ([load.p50 for load in taken[name]] for name in ("big", "small"))
    return table.ratio_row(
        f"commit over {events:,} events, 1 client, p50",
        table.micros(middle(ours)),
        f"over 1,000 {table.micros(middle(anchor))}",
        ratio(ours, anchor),
        "≤ 1.15 ×",
    )


def _long_list(bench: Bench) -> Row:
    """Compare `task.add` to lists of 10,000 and of 10 tasks, with few adds to each list."""
    table.progress("adding to a long list")
    with bench.daemon() as daemon:
        with Client(daemon.socket) as client:
            for part in range(LONG // 1_000):
                client.call("task.add_many", conversation="long-0", tasks=tasks(1_000), actor=str(part))
        number = iter(range(1_000))

        def short() -> float:
            run = next(number)
            with Client(daemon.socket) as client:
                for slot in range(SHORT_LISTS):
                    client.call("task.add_many", conversation=f"short-{run}-{slot}", tasks=tasks(SHORT))
            return add(f"short-{run}-{{slot}}")

        def add(conversation: str) -> float:
            request = call("task.add", conversation=conversation, title=TITLE)
            return bench.load(daemon, [request], count=4 * SHORT_LISTS, slots=SHORT_LISTS).p50

        taken = bench.in_turn({"long": lambda: add("long-0"), "short": short}, bench.rounds * 2)
    return table.ratio_row(
        "task.add to a list of 10,000, 1 client, p50",
        table.micros(middle(taken["long"])),
        f"to one of 10 {table.micros(middle(taken['short']))}",
        ratio(taken["long"], taken["short"]),
        "≤ 1.3 ×",
    )


def _conversations(bench: Bench) -> Row:
    """Compare edits by 64 clients in many conversations and in one."""
    many = bench.big_conversations
    table.progress(f"changes in {many:,} conversations")

    def request(conversation: str) -> list[str]:
        # Use a new title each time, because an edit without a change appends no event.
        return [call("task.edit", conversation=conversation, task="1", title=f"{TITLE} {os.urandom(3).hex()}-{{g}}")]

    with bench.daemon() as daemon:
        first = [call("task.add_many", conversation="c-{slot}", tasks=tasks(2))]
        bench.load(daemon, first, 64, count=many, slots=many)
        taken = bench.in_turn(
            {
                "many": lambda: bench.load(daemon, request("c-{slot}"), 64, slots=many),
                "one": lambda: bench.load(daemon, request("c-0"), 64),
            }
        )
    rates = {name: [load.rate for load in loads] for name, loads in taken.items()}
    return table.ratio_row(
        f"changes in {many:,} conversations, 64 clients",
        f"{table.count(middle(rates['many']))}/s",
        f"in one {table.count(middle(rates['one']))}/s",
        ratio(rates["one"], rates["many"]),
        "≤ 1.1 ×",
    )
