"""Many connections at once: those that stop reading, and those that say nothing. For `stuck` and `connections`."""

import resource
import socket
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from punchlist_bench import native
from punchlist_bench.requests import call
from punchlist_faults.mutants import ROOT
from punchlist_faults.options import Unavailable, Violation
from punchlist_faults.process import Daemon

_SPARE = 200


class Served(NamedTuple):
    """How long calls took."""

    p50_ms: float
    p99_ms: float


def need_descriptors(number: int) -> None:
    """Allow this process so many connections.

    Raises:
        Unavailable: the system does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number + _SPARE:
        raise Unavailable(f"needs {number + _SPARE:,} descriptors, {hard:,} are allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number + _SPARE), hard))


def request(method: str, id: int = 1, **params: Any) -> bytes:
    """A request on a line."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + b"\n"


@contextmanager
def connections(daemon: Daemon, number: int, *first: bytes) -> Generator[list[socket.socket]]:
    """So many connections that have each sent `first` and read one answer to each."""
    opened: list[socket.socket] = []
    try:
        for _ in range(number):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(30)
            sock.connect(daemon.socket)
            opened.append(sock)
            for text in first:
                sock.sendall(text)
                _line(sock)
        yield opened
    finally:
        for sock in opened:
            sock.close()


def _line(sock: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += sock.recv(65536)
    return line


def rss_bytes(daemon: Daemon) -> int:
    """Memory of the daemon that is in use now."""
    status = Path(f"/proc/{daemon.pid()}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def round_trips(daemon: Daemon, number: int, **params: Any) -> list[float]:
    """Seconds that so many task.add calls took, one after the other."""
    link = daemon.connect()
    took: list[float] = []
    for each in range(number):
        began = time.perf_counter()
        link.result("task.add", title=f"{each}", **params)
        took.append(time.perf_counter() - began)
    link.close()
    return took


def driven(daemon: Daemon, clients: int, seconds: float, method: str, **params: Any) -> Served:
    """Let so many clients, all in one small C program, call without a pause (params: see `wire.h` of the benchmark)."""
    programs = ROOT / "build/bench/bin"
    native.build(programs)
    options = ["-s", daemon.socket, "-c", str(clients), "-t", str(seconds), call(method, **params)]
    ran = subprocess.run([programs / "load", *options], capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode:
        raise Violation(f"an active connection failed: {ran.stderr}")
    load = msgspec.json.decode(ran.stdout)
    return Served(load["p50"] / 1000, load["p99"] / 1000)
