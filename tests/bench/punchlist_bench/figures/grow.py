"""Growth with events, lists, tasks of one list and subscribers, each measured at a tenth of SIZE and at SIZE (10,000).

The daemon's processor time is the sum of its threads' clocks, which other programs hardly affect; wall time is shown
with it. SIZE is the number of lists, of tasks in one list, and a tenth of the events. There are at most 10,000
subscribers, since a daemon can't have many more connections.
"""

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from punchlist_bench import process, table
from punchlist_bench.biglog import EVENTS_EACH, STATUSES, TASKS
from punchlist_bench.harness import Bench, running
from punchlist_bench.requests import TITLE, call, tasks
from punchlist_bench.servers import Client, Daemon

STARTS = 3
CHANGES = 2_000
READS = 100
TASKS_PER_CALL = 2_000
"""Tasks of one call: more would exceed the maximum frame size."""

Figures = dict[str, str]


def measure(*, quick: bool) -> str:
    size, parts = int(os.environ.get("SIZE") or 10_000), list[str]()
    with running(quick=True) as bench:
        for name, scenario in SCENARIOS.items():
            sizes = [count for count in (size // 10, size) if count > 0]
            columns = [scenario(bench, count) for count in sizes]
            rows = [(what, *(figures[what] for figures in columns)) for what in columns[0]]
            parts.append(table.grid((name, *(f"{count:,}" for count in sizes)), rows))
    return "\n".join(parts)


# logs


def events(bench: Bench, size: int) -> Figures:
    """Measure a log of ten times SIZE events, a hundred for each list, spread over the log."""
    lists = max(10, size // 10)
    return _measure_log(bench, f"{lists * EVENTS_EACH:,} events", lists, _spread(lists))


def lists(bench: Bench, size: int) -> Figures:
    """Measure a log of lists with five tasks each."""
    return _measure_log(bench, f"{size:,} lists", size, lambda: iter([(_add_many("c-{slot}", 5), size)]))


def one_list(bench: Bench, size: int) -> Figures:
    """Measure a log of one list with SIZE tasks."""
    each = min(size, TASKS_PER_CALL)
    return _measure_log(bench, f"a list of {size:,}", 1, lambda: iter([(_add_many("c-0", each), size // each)]))


def _spread(lists: int) -> Callable[[], Iterator[tuple[str, int]]]:
    def calls() -> Iterator[tuple[str, int]]:
        yield _add_many("c-{slot}", TASKS), lists
        for index in range(EVENTS_EACH - TASKS - 1):
            task, status = str(index % TASKS + 1), STATUSES[index // TASKS]
            yield call("task.set_status", conversation="c-{slot}", task=task, status=status), lists

    return calls


def _add_many(conversation: str, count: int) -> str:
    return call("task.add_many", conversation=conversation, tasks=tasks(count))


def _measure_log(bench: Bench, title: str, lists: int, calls: Callable[[], Iterator[tuple[str, int]]]) -> Figures:
    table.progress(f"a log of {title}")
    data, empty = bench.fresh("grow"), bench.fresh("empty")
    with bench.daemon(data) as daemon:
        for request, count in calls():
            bench.load(daemon, [request], 64 if lists > 1 else 1, count=count, slots=lists)
    disk = process.directory_bytes(data) - process.directory_bytes(empty)
    starts, began = _measure_starts(bench, data), _measure_starts(bench, empty)
    figures: Figures = {"what": title, "disk": f"{disk / 2**20:,.0f} MiB"}
    figures["start, processor time × an empty log's"] = f"{starts / began:.2f}"
    with bench.daemon(data) as daemon, Client(daemon.socket) as client:
        figures["memory after the start"] = _resident(daemon)
        figures["first read of a list"] = _time_calls(
            daemon,
            lambda: [client.call("task.get", conversation=f"c-{number}", task="1") for number in _sample_lists(lists)],
        )
        figures["page of 50 lists"] = _time_calls(daemon, lambda: [client.call("conversation.list", limit=50)])
        figures["list of 50 tasks"] = _time_calls(
            daemon, lambda: [client.call("task.list", conversation="c-0", limit=50) for _ in range(READS)]
        )
        figures["whole list"] = _time_calls(daemon, lambda: [client.call("task.list", conversation="c-0")])
        figures["task.add"] = _measure_changes(
            bench, daemon, call("task.add", conversation="c-{slot}", title=TITLE), lists
        )
        change, again = _status("completed"), _status("pending")
        figures["task.set_status"] = _measure_changes(bench, daemon, change, _round_to_odd(lists), again)
        figures["with a subscriber"] = _measure_push(bench, daemon, "c-0")
        figures["memory at the end"] = _resident(daemon)
    return figures


def _measure_starts(bench: Bench, data: Path) -> float:
    """Return the processor seconds from exec to the first response, the minimum of a few starts."""
    times: list[float] = []
    for _ in range(STARTS):
        with bench.daemon(data) as daemon:
            times.append(processor_s(daemon.pid))
    return min(times)


def _sample_lists(lists: int) -> Iterator[int]:
    return iter(range(0, lists, max(1, lists // READS)))


def _measure_changes(bench: Bench, daemon: Daemon, request: str, lists: int, *more: str) -> str:
    """Make changes in sequence; return the processor time of each, and the median and longest latency."""
    before = processor_s(daemon.pid)
    loaded = bench.load(daemon, [request, *more], count=CHANGES, slots=lists)
    spent = (processor_s(daemon.pid) - before) / CHANGES
    return f"{spent * 1e6:,.0f} µs, p50 {loaded.p50:,.0f}, longest {loaded.max / 1e3:,.1f} ms"


def _measure_push(bench: Bench, daemon: Daemon, conversation: str) -> str:
    subscribe = call("event.subscribe", conversation=conversation, view="rows")
    write = call("task.edit", conversation=conversation, task="1", title=f"{TITLE} {os.urandom(3).hex()}-{{g}}")
    pushed = bench.push(daemon, subscribe, write, 1)
    return f"rows {pushed.middle:,.0f} µs behind the answer"


# subscribers


def of_one_list(bench: Bench, size: int) -> Figures:
    """Measure pushes to subscribers of one list."""
    size = min(size, 10_000)
    figures: Figures = {}
    for view in ("events", "rows", "list", "board"):
        table.progress(f"{size:,} subscribers, {view}")
        with bench.daemon() as daemon, Client(daemon.socket) as client:
            client.call("task.add_many", conversation="all", tasks=tasks(50))
            place = {} if view == "board" else {"conversation": "all"}
            subscribe = call("event.subscribe", **place, **({} if view == "events" else {"view": view}))
            write = call("task.edit", conversation="all", task="{task}", title=f"{TITLE} {os.urandom(3).hex()}-{{g}}")
            before, memory = processor_s(daemon.pid), process.resident_bytes(daemon.pid)
            pushed = bench.push(daemon, subscribe, write, size)
            each = (processor_s(daemon.pid) - before) / size / 21 * 1e6
            held = (process.resident_bytes(daemon.pid) - memory) / size / 1024
            figures[f"{view}: response → last, processor time of each push, held after"] = (
                f"{pushed.last / 1e3:,.1f} ms, {each:.1f} µs, {held:.1f} KiB"
            )
    return figures


def of_many_lists(bench: Bench, size: int) -> Figures:
    """Measure changes of many lists, without subscribers and with one for each list."""
    size = min(size, 10_000)
    figures: Figures = {}
    change, again = _status("completed"), _status("pending")
    with bench.daemon() as daemon:
        bench.load(daemon, [_add_many("c-{slot}", 5)], 64, count=size, slots=size)
        figures["nobody follows"] = _measure_changes(bench, daemon, change, _round_to_odd(size), again)
        for view in ("events", "rows"):
            table.progress(f"{size:,} subscribers of as many lists, {view}")
            memory = process.resident_bytes(daemon.pid)
            with _followers(daemon, size, view):
                held = (process.resident_bytes(daemon.pid) - memory) / size / 1024
                figures[f"{view}: a change, and what a follower holds"] = (
                    f"{_measure_changes(bench, daemon, change, _round_to_odd(size), again)}, {held:.1f} KiB"
                )
    return figures


@contextmanager
def _followers(daemon: Daemon, count: int, view: str) -> Generator[None]:
    with ExitStack() as stack:
        for number in range(count):
            client = stack.enter_context(Client(daemon.socket))
            client.call("event.subscribe", conversation=f"c-{number}", view=view)
        yield


# measuring


def _status(status: str) -> str:
    return call("task.set_status", conversation="c-{slot}", task="1", status=status)


def _round_to_odd(lists: int) -> int:
    """Return an odd number of lists, so that alternating requests give each list both statuses, and no request is a
    no-op."""
    return (lists - 1) | 1


def processor_s(pid: int) -> float:
    """Return the processor seconds of all threads of a process."""
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e9


def _time_calls(daemon: Daemon, ask: Callable[[], list[object]]) -> str:
    before, begin = processor_s(daemon.pid), time.perf_counter()
    count = len(ask())
    waited = (time.perf_counter() - begin) / count
    return f"{(processor_s(daemon.pid) - before) / count * 1e3:,.2f} ms, waited {waited * 1e3:,.2f}"


def _resident(daemon: Daemon) -> str:
    return f"{process.resident_bytes(daemon.pid) / 2**20:,.1f} MiB"


SCENARIOS: dict[str, Callable[[Bench, int], Figures]] = {
    "events": events,
    "lists": lists,
    "tasks of one list": one_list,
    "subscribers of one list": of_one_list,
    "subscribers of as many lists": of_many_lists,
}
