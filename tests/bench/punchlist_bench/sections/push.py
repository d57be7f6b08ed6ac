"""Time from an acknowledged write to its delivery, and speed of a catch-up."""

import os

from punchlist_bench import table
from punchlist_bench.biglog import EVENTS_EACH
from punchlist_bench.harness import Bench, Push, middle, ratio
from punchlist_bench.requests import TITLE, call, redis, tasks
from punchlist_bench.servers import Client, Daemon
from punchlist_bench.table import Row

SUBSCRIBERS = 1_000
BACKLOG = [{"title": "x", "description": "x" * 50_000}] * 15
"""More data than a socket buffers. A client that subscribes from a position before these tasks and never reads is stuck
immediately."""


def run(bench: Bench) -> list[Row]:
    """Measure pushes to 1 and to 1,000 subscribers, pushes with 1,000 stuck subscribers, and a catch-up."""
    return [*_push(bench), _catch_up(bench)]


def _push(bench: Bench) -> list[Row]:
    daemon = bench.daemon()
    with Client(daemon.socket) as client:
        client.call("task.add_many", conversation="push", tasks=tasks(50))
        client.call("task.add_many", conversation="push", tasks=BACKLOG)
    subscribe = call("event.subscribe", conversation="push")
    behind = call("event.subscribe", conversation="push", after=0)

    def ours(subscribers: int, stuck: int = 0) -> Push:
        # Use a new title each time, because an edit without a change appends no event.
        write = call("task.edit", conversation="push", task="{task}", title=f"{TITLE} {os.urandom(3).hex()}-{{g}}")
        return bench.push(daemon, subscribe, write, subscribers, stuck=stuck, stuck_subscribe=behind)

    table.progress("push to one subscriber")
    alone = [push.middle for push in bench.in_turn({"ours": lambda: ours(1)})["ours"]]
    rows = [
        table.value_row(
            "push to 1 subscriber, response → delivered, p50", table.micros(middle(alone)), middle(alone), "≤ 50 µs"
        )
    ]
    peer = bench.redis(durable=False)
    if peer is None:
        return [*rows, table.skipped_row("push to 1,000 subscribers", "no Redis: apt-get install redis-server")]
    payload = _notification(daemon)
    publish = redis("PUBLISH", "channel", payload)
    table.progress("push to 1,000 subscribers")
    taken = bench.in_turn(
        {
            "ours": lambda: ours(SUBSCRIBERS),
            "redis": lambda: bench.push(peer, redis("SUBSCRIBE", "channel"), publish, SUBSCRIBERS),
            "stuck": lambda: ours(SUBSCRIBERS, SUBSCRIBERS),
        }
    )
    last = {name: [push.last for push in pushes] for name, pushes in taken.items()}
    anchor = f"PUBLISH {table.micros(middle(last['redis']))}"
    for name, what, target in (
        ("ours", "push to 1,000 subscribers, response → last", "≤ 1.1 ×"),
        ("stuck", "the same with 1,000 stalled subscribers in addition", "≤ 1.2 ×"),
    ):
        figure = table.micros(middle(last[name]))
        rows.append(table.ratio_row(what, figure, anchor, ratio(last[name], last["redis"]), target))
    return rows


def _notification(daemon: Daemon) -> str:
    """Return a notification like the daemon's."""
    with Client(daemon.socket) as client:
        seq = client.call("task.edit", conversation="push", task="1", title=TITLE + " 123")["seq"]
        events = client.call("event.read", conversation="push", after=seq - 1)["events"]
    return call("events", subscription="1", events=events).replace("{id}", "")


def _catch_up(bench: Bench) -> Row:
    """Measure how fast one subscriber receives the whole log."""
    events = bench.big_conversations * EVENTS_EACH
    with bench.daemon(bench.big_log) as daemon:
        table.progress(f"catching up with {events:,} events")
        taken = bench.in_turn({"all": lambda: bench.catch_up(daemon, call("event.subscribe", after=0), events)})["all"]
    rate = middle([sample.rate for sample in taken])
    megabytes = middle([sample.bytes / sample.seconds for sample in taken]) / 1e6
    figure = f"{table.count(rate)} events/s ({megabytes:.0f} MB/s)"
    return table.value_row(f"catch-up over {events:,} events, one subscriber", figure, rate, "≥ 300,000 events/s")
