"""A subscriber's stream cut at any byte, and taken up again behind the last event that was read whole.

SIZE counts cuts. They are spread over several connections in both framings and over one conversation or all of them,
while a writer goes on, so that some resume out of memory and some out of the log.
"""

import re
import socket
import threading
from random import Random
from typing import Any

import msgspec

from punchlist_faults import judge
from punchlist_faults.options import Figures, Options, Violation, main, need, workplace
from punchlist_faults.process import Daemon, daemon_in

EVENTS = 400
"""How many events there are at least."""

_HEADERS = re.compile(rb"Content-Length: (\d+)\r\n\r\n")


class Stream:
    """A subscriber that reads a number of bytes and hangs up, and knows which whole messages those were."""

    def __init__(self, path: str, framing: str, params: dict[str, Any]) -> None:
        self.bytes = b""
        self._framing = framing
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(path)
        request = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "event.subscribe", "params": params})
        lines = framing == "lines"
        self._socket.sendall(request + b"\n" if lines else b"Content-Length: %d\r\n\r\n%b" % (len(request), request))

    def read(self, number: int) -> None:
        """Read so many bytes, or as many as there are until the stream is silent for a moment."""
        self._socket.settimeout(0.2)
        try:
            while len(self.bytes) < number and (more := self._socket.recv(number - len(self.bytes))):
                self.bytes += more
        except TimeoutError:
            pass

    def messages(self) -> list[dict[str, Any]]:
        """What came whole."""
        if self._framing == "lines":
            return [msgspec.json.decode(line) for line in self.bytes.split(b"\n")[:-1]]
        found: list[dict[str, Any]] = []
        place = 0
        while (head := _HEADERS.match(self.bytes, place)) and len(self.bytes) >= head.end() + int(head[1]):
            place = head.end() + int(head[1])
            found.append(msgspec.json.decode(self.bytes[head.end() : place]))
        return found

    def close(self) -> None:
        """Hang up in the middle of whatever comes."""
        self._socket.close()


def _write(daemon: Daemon, stop: threading.Event, random: Random) -> None:
    """Keep writing, single tasks and groups, until told to stop."""
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


def _subscriber(daemon: Daemon, random: Random, framing: str, name: str | None, cuts: int) -> list[int]:
    """The positions that one subscriber was told over all its connections."""
    told: list[int] = []
    for _ in range(cuts):
        if told and random.random() < 0.02:
            told.clear()  # once more from the beginning
        params: dict[str, Any] = {"after": told[-1] if told else 0} | ({"conversation": name} if name else {})
        stream = Stream(daemon.socket, framing, params)
        stream.read(random.randint(1, random.choice((300, 3_000, 40_000))))
        stream.close()
        for message in stream.messages():
            if message.get("id") == 1:
                need(message["result"]["seq"] == params["after"], f"resumed elsewhere: {message}")
            else:
                need(message["method"] == "events", f"unexpected: {message}")
                _follows(told, message["params"]["events"], name)
    return told


def _follows(told: list[int], events: list[dict[str, Any]], name: str | None) -> None:
    for event in events:
        seq: int = event["seq"]
        if name is None:
            need(seq == (told[-1] + 1 if told else 1), f"after {told[-1:]} came {seq}")
        else:
            need(event["conversation"] == name and (not told or seq > told[-1]), f"after {told[-1:]} came {seq}")
        told.append(seq)


def run(options: Options) -> Figures:
    """Cut as often as SIZE says."""
    results: list[tuple[str | None, list[int]]] = []
    failures: list[BaseException] = []
    kinds = [(framing, name) for framing in ("lines", "content-length") for name in (None, "c1")]

    def subscribe(daemon: Daemon, number: int, framing: str, name: str | None) -> None:
        try:
            cuts = options.size // len(kinds)
            results.append((name, _subscriber(daemon, options.random(number), framing, name, cuts)))
        except BaseException as error:
            failures.append(error)

    with workplace() as place, daemon_in(place) as daemon:
        daemon.start()
        link = daemon.connect()
        for number in range(EVENTS // 50):
            tasks = [{"title": f"{number}.{each}"} for each in range(50)]
            link.result("task.add_many", conversation=f"c{number % 3}", tasks=tasks)
        stop = threading.Event()
        writer = threading.Thread(target=_write, args=(daemon, stop, options.random("writer")))
        crowd = [threading.Thread(target=subscribe, args=(daemon, n, *kind)) for n, kind in enumerate(kinds)]
        for thread in (writer, *crowd):
            thread.start()
        for thread in crowd:
            thread.join()
        stop.set()
        writer.join()
        if failures:
            raise Violation(str(failures[0])) from failures[0]
        daemon.stop()
        events = judge.stored_events(daemon.log)
    for name, told in results:
        its = [event.seq for event in events if name in (None, event.conversation)]
        need(told == its[: len(told)], f"a subscriber to {name or 'everything'} missed an event or got one twice")
    return {
        "cuts": options.size // len(kinds) * len(kinds),
        "events": len(events),
        "told": sum(len(told) for _, told in results),
        "gaps": 0,
        "repeats": 0,
    }


if __name__ == "__main__":
    main("resume", run, 20_000)
