"""Half of the subscribers stop reading while events flow. Measures how much memory each stuck subscriber takes,
and whether they slow down the others.

SIZE is the number of subscribers. They receive a hundred times as many events, once without and once with the stuck
half.
"""

import selectors
import socket
import threading
import time
from typing import Any

import msgspec

from punchlist_faults.crowd import connections, need_descriptors, percentile, request
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import Daemon, running_daemon

EVENTS_EACH = 100
IN_CALL = 50
MAX_BYTES = 32 << 10
"""Upper limit for the memory of a stuck subscriber."""

MAX_SLOWER = 1.2
"""Upper limit for the slowdown of a push to a healthy subscriber, which is checked only with a thousand or more
subscribers."""

OWN_BYTES = 12 << 20
"""Upper limit for the memory that events take in the daemon: the cached end of the log, lists, batches."""


class Readers:
    """Healthy subscribers, read by one thread, with the delay of each push and the number of events."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self.lags: list[float] = []
        self._sockets = sockets
        self._rest: dict[int, bytes] = {}
        self.counts: dict[int, int] = dict.fromkeys((sock.fileno() for sock in sockets), 0)
        self._selector = selectors.DefaultSelector()
        for sock in sockets:
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            for key, _ in self._selector.select(0.05):
                self._read(key.fd, key.fileobj)

    def _read(self, number: int, sock: Any) -> None:
        data = self._rest.get(number, b"") + sock.recv(1 << 20)
        *lines, self._rest[number] = data.split(b"\n")
        now = time.time()
        for line in lines:
            self.counts[number] += line.count(b'"seq":')
        if lines:
            last = msgspec.json.decode(lines[-1])["params"]["events"][-1]["event"]
            if "task" in last:
                self.lags.append(now - float(last["task"]["title"]))

    def all_have(self, events: int, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while min(self.counts.values()) < events and time.monotonic() < deadline:
            time.sleep(0.01)
        return min(self.counts.values()) >= events

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        self._selector.close()


def _flow(daemon: Daemon, readers: Readers, name: str, events: int) -> list[float]:
    expected_count = min(readers.counts.values())
    link = daemon.connect()
    took: list[float] = []
    for number in range(1, events // IN_CALL + 1):
        began = time.perf_counter()
        link.result("task.add_many", conversation=name, tasks=[{"title": f"{time.time():.6f}"}] * IN_CALL)
        took.append(time.perf_counter() - began)
        expected_count += IN_CALL
        if number % 10 == 0:  # so that the list stays short
            link.result("list.clear", conversation=name)
            expected_count += 1
        need(readers.all_have(expected_count - 10 * IN_CALL, 60), "a healthy subscriber was left behind")
    need(readers.all_have(expected_count, 60), "a healthy subscriber did not get every event")
    link.close()
    return took


def run(options: Options) -> Figures:
    half = options.size // 2
    events = options.size * EVENTS_EACH // IN_CALL * IN_CALL
    need_descriptors(options.size + 100)
    subscribe = request("event.subscribe")
    with running_daemon() as daemon, connections(daemon, half, subscribe) as healthy:
        readers = Readers(healthy)
        try:
            _flow(daemon, readers, "warm", max(IN_CALL * 4, events // 20))
            readers.lags.clear()
            without = _flow(daemon, readers, "without", events)
            lags_without, readers.lags = readers.lags, []
            before = daemon.memory()
            with connections(daemon, half, subscribe):
                with_stuck = _flow(daemon, readers, "with", events)
                grown = daemon.memory() - before
                lags_with = readers.lags
        finally:
            readers.close()
    need(grown <= MAX_BYTES * half + OWN_BYTES, f"{half} stuck subscribers cost {grown:,} bytes")
    slower = percentile(lags_with, 0.99) / percentile(lags_without, 0.99)
    need(slower <= MAX_SLOWER or options.size < 1_000, f"the p99 of the healthy ones is {slower:.2f} times as long")
    return {
        "subscribers": options.size,
        "of them stuck": half,
        "events each": events,
        "bytes per stuck one": grown // half,
        "push p99 without, ms": round(percentile(lags_without, 0.99) * 1000, 2),
        "push p99 with, ms": round(percentile(lags_with, 0.99) * 1000, 2),
        "p99 ratio": round(slower, 2),
        "call p99 without, ms": round(percentile(without, 0.99) * 1000, 2),
        "call p99 with, ms": round(percentile(with_stuck, 0.99) * 1000, 2),
    }
