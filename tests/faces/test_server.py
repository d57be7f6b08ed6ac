"""Costs of `punch web` compared with the daemon: processor time, memory, and time per call."""

import http.client
import json
import os
import select
import socket
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from punchlist_testing.daemon import Raw
from punchlist_testing.figures import keep
from punchlist_testing.stage import Stage

PER_SECOND = 100
SECONDS = 4.0
STALLED = 50


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_kib(pid: int) -> int:
    """Return the private memory of a process, in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@contextmanager
def stream(stage: Stage, name: str, buffer: int | None = None) -> Generator[socket.socket]:
    """Open a stream of a list's rows.

    With a small receive buffer, an unread stream soon blocks the server.
    """
    with closing(socket.socket()) as sock:
        if buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.connect(("127.0.0.1", stage.port))
        token = f"Authorization: Bearer {stage.secret}\r\n"
        sock.sendall(f"GET /api/v1/feed?rows={name} HTTP/1.1\r\nHost: localhost\r\n{token}\r\n".encode())
        yield sock


def measure_changes(stage: Stage, name: str, readers: list[socket.socket]) -> tuple[float, float]:
    """Make changes that all readers receive; return the processor time of the server and of the daemon, in seconds."""
    assert stage.process is not None
    assert stage.daemon.process is not None
    web, daemon = stage.process.pid, stage.daemon.process.pid
    plan = stage.by("codex").conversation(name)
    before = cpu_s(web), cpu_s(daemon)
    started, count = time.monotonic(), 0
    while (now := time.monotonic() - started) < SECONDS:
        if count < now * PER_SECOND:
            plan.edit(str(1 + count % 30), title=f"changed {count}")
            count += 1
        for sock in select.select(readers, [], [], 0.002)[0]:
            sock.recv(1 << 20)
    assert count > SECONDS * PER_SECOND * 0.7, f"only {count} changes were made"
    return cpu_s(web) - before[0], cpu_s(daemon) - before[1]


def test_streams_cost_less_than_the_daemon(empty: Stage) -> None:
    empty.by("codex").conversation("costs").add_many([f"Task {number}" for number in range(500)])
    ratios: dict[int, float] = {}
    for count in (1, 50):
        with ExitStack() as stack:
            readers = [stack.enter_context(stream(empty, "costs")) for _ in range(count)]
            for sock in readers:
                assert sock.recv(15) == b"HTTP/1.1 200 OK"
            web, daemon = measure_changes(empty, "costs", readers)
            ratios[count] = web / daemon
    keep(web_to_daemon_one=ratios[1], web_to_daemon_fifty=ratios[50])
    assert ratios[1] <= 0.7
    assert ratios[50] <= 3


def test_unread_stream_costs_little(empty: Stage) -> None:
    many = empty.by("codex").conversation("stuck")
    for _ in range(5):
        many.add_many([f"Task {number} " + "x" * 200 for number in range(2_000)])
    assert empty.process is not None
    pid = empty.process.pid
    with ExitStack() as stack:

        def open_unread(count: int) -> int:
            for _ in range(count):
                sock = stack.enter_context(stream(empty, "stuck", 4096))
                assert sock.recv(15) == b"HTTP/1.1 200 OK"
            wait_until_steady(lambda: memory_kib(pid))
            return memory_kib(pid)

        before = open_unread(10)  # excludes the fixed cost of the first streams
        per_stream_kib = (open_unread(STALLED) - before) / STALLED
        keep(stuck_stream_kib=per_stream_kib)
    assert per_stream_kib <= 64


def wait_until_steady(measure: Callable[[], int]) -> None:
    """Wait until a value has stayed the same for a second, for at most 20 seconds."""
    last, since, started = measure(), time.monotonic(), time.monotonic()
    while time.monotonic() - since < 1 and time.monotonic() - started < 20:
        time.sleep(0.1)
        if (now := measure()) != last:
            last, since = now, time.monotonic()


def test_http_call_costs_few_socket_calls(empty: Stage) -> None:
    empty.by("codex").conversation("calls").add_many([f"Task {number}" for number in range(12)])
    over_http: list[float] = []
    bare: list[float] = []
    headers = {"Authorization": f"Bearer {empty.secret}"}
    raw = Raw(empty.daemon.socket)
    with closing(http.client.HTTPConnection("127.0.0.1", empty.port)) as connection:
        for _ in range(300):
            started = time.perf_counter()
            connection.request("GET", "/api/v1/conversations/calls/tasks", headers=headers)
            assert len(json.loads(connection.getresponse().read())["tasks"]) == 12
            over_http.append(time.perf_counter() - started)
            started = time.perf_counter()
            assert len(raw.result("task.list", conversation="calls")["tasks"]) == 12
            bare.append(time.perf_counter() - started)
    raw.close()
    ratio = statistics.median(over_http) / statistics.median(bare)
    keep(call_http_ms=statistics.median(over_http) * 1000, call_ratio=ratio)
