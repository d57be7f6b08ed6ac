"""Cuts a subscriber's stream at any byte, and resumes it after the last complete event. SIZE is the number of cuts.

The cuts are spread over several connections in both framings, and over subscriptions to one conversation or to all,
while a writer works, so that some resume from memory and some from the log.
"""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from punchlist_faults import judge
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import Daemon, running_daemon
from punchlist_schemas.framing import Framer

EVENTS = 400
"""Events before the first subscription."""


def _read_cut(path: str, framing: str, params: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Subscribe, read at most `number` bytes until the stream is silent, and hang up; return the whole messages."""
    request = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "event.subscribe", "params": params})
    data = b""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        lines = framing == "lines"
        sock.sendall(request + b"\n" if lines else b"Content-Length: %d\r\n\r\n%b" % (len(request), request))
        sock.settimeout(0.2)
        with suppress(TimeoutError):
            while len(data) < number and (more := sock.recv(number - len(data))):
                data += more
    return [msgspec.json.decode(frame) for frame in Framer().feed(data)]


def _write(daemon: Daemon, stop: threading.Event, random: Random) -> None:
    link = daemon.connect()
    number = 0
    while not stop.wait(0.01):
        number += 1
        name = f"c{number % 3}"
        if random.random() < 0.3:
            tasks = [{"title": f"{number}.{part}"} for part in range(random.randint(2, 30))]
            link.result("task.add_many", conversation=name, tasks=tasks)
        else:
            link.result("task.add", conversation=name, title="x" * random.randint(1, 400))
    link.close()


def _run_subscriber(daemon: Daemon, random: Random, framing: str, name: str | None, cuts: int) -> list[int]:
    """Return the positions that one subscriber received over all its connections."""
    received: list[int] = []
    for _ in range(cuts):
        if received and random.random() < 0.02:
            received.clear()  # start again from the first event
        params: dict[str, Any] = {"after": received[-1] if received else 0} | ({"conversation": name} if name else {})
        number = random.randint(1, random.choice((300, 3_000, 40_000)))
        for message in _read_cut(daemon.socket, framing, params, number):
            if message.get("id") == 1:
                need(message["result"]["seq"] == params["after"], f"resumed elsewhere: {message}")
            else:
                need(message["method"] == "events", f"unexpected: {message}")
                _check_follows(received, message["params"]["events"], name)
    return received


def _check_follows(received: list[int], events: list[dict[str, Any]], name: str | None) -> None:
    for event in events:
        seq: int = event["seq"]
        if name is None:
            need(seq == (received[-1] + 1 if received else 1), f"after {received[-1:]} came {seq}")
        else:
            need(
                event["conversation"] == name and (not received or seq > received[-1]),
                f"after {received[-1:]} came {seq}",
            )
        received.append(seq)


def run(options: Options) -> Figures:
    kinds = [(framing, name) for framing in ("lines", "headers") for name in (None, "c1")]
    cuts = options.size // len(kinds)
    with running_daemon() as daemon:
        link = daemon.connect()
        for number in range(EVENTS // 50):
            tasks = [{"title": f"{number}.{index}"} for index in range(50)]
            link.result("task.add_many", conversation=f"c{number % 3}", tasks=tasks)
        stop = threading.Event()
        with ThreadPoolExecutor(len(kinds) + 1) as threads:
            writer = threads.submit(_write, daemon, stop, options.random("writer"))
            crowd = [
                threads.submit(_run_subscriber, daemon, options.random(number), *kind, cuts)
                for number, kind in enumerate(kinds)
            ]
            try:
                results = [future.result() for future in crowd]
            finally:
                stop.set()
            writer.result()
        daemon.stop()
        events = judge.stored_events(daemon.log)
    for (_, name), received in zip(kinds, results, strict=True):
        expected = [event.seq for event in events if name in (None, event.conversation)]
        need(
            received == expected[: len(received)],
            f"a subscriber to {name or 'everything'} missed an event or got one twice",
        )
    return {"cuts": cuts * len(kinds), "events": len(events), "told": sum(map(len, results))}
