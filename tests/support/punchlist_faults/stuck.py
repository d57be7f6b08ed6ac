"""Half of the subscribers stop reading while events flow: what does each cost, and does it slow the others down?

SIZE counts subscribers; a hundred times as many events flow, once without and once with the stuck half.
"""

import selectors
import socket
import threading
import time
from typing import Any

import msgspec

from punchlist_faults.crowd import connections, need_descriptors, percentile, request, rss_bytes
from punchlist_faults.options import Figures, Options, main, need, workplace
from punchlist_faults.process import Daemon, daemon_in

EVENTS_EACH = 100
IN_CALL = 50
MAX_BYTES = 32 << 10
"""What a stuck subscriber may cost."""

MAX_SLOWER = 1.2
"""How much longer a push to a healthy one may take; looked at where there are a thousand or more."""

OWN_BYTES = 12 << 20
"""What the daemon may need for the events themselves: the end of the log that it keeps, lists, batches."""


class Readers:
    """Healthy subscribers, read by one thread; how long each push was under way, and how many events came."""

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
        """Whether every one got so many events in time."""
        deadline = time.monotonic() + seconds
        while min(self.counts.values()) < events and time.monotonic() < deadline:
            time.sleep(0.01)
        return min(self.counts.values()) >= events

    def close(self) -> None:
        """Stop reading."""
        self._ending.set()
        self._thread.join()
        self._selector.close()


def _flow(daemon: Daemon, readers: Readers, name: str, events: int) -> list[float]:
    """Write events and wait until all healthy ones have them; how long the calls took. The list is kept short."""
    told = min(readers.counts.values())
    link = daemon.connect()
    took: list[float] = []
    for number in range(1, events // IN_CALL + 1):
        began = time.perf_counter()
        link.result("task.add_many", conversation=name, tasks=[{"title": f"{time.time():.6f}"}] * IN_CALL)
        took.append(time.perf_counter() - began)
        told += IN_CALL
        if number % 10 == 0:
            link.result("list.clear", conversation=name)
            told += 1
        need(readers.all_have(told - 10 * IN_CALL, 60), "a healthy subscriber was left behind")
    need(readers.all_have(told, 60), "a healthy subscriber did not get every event")
    link.close()
    return took


def run(options: Options) -> Figures:
    """Let events flow without and with the stuck half."""
    half = options.size // 2
    events = options.size * EVENTS_EACH // IN_CALL * IN_CALL
    need_descriptors(options.size + 100)
    subscribe = request("event.subscribe")
    with workplace() as place, daemon_in(place) as daemon:
        daemon.start()
        with connections(daemon, half, subscribe) as healthy:
            readers = Readers(healthy)
            try:
                warm = _flow(daemon, readers, "warm", max(IN_CALL * 4, events // 20))
                readers.lags.clear()
                without = _flow(daemon, readers, "without", events)
                lags_without, readers.lags = readers.lags, []
                before = rss_bytes(daemon)
                with connections(daemon, half, subscribe):
                    with_stuck = _flow(daemon, readers, "with", events)
                    grown = rss_bytes(daemon) - before
                    lags_with = readers.lags
            finally:
                readers.close()
        need(warm and daemon.is_running, "the daemon ended")
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


if __name__ == "__main__":
    main("stuck", run, 2_000)
