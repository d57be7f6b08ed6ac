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


@contextmanager
def driver(daemon: Daemon, *options: object) -> Generator[subprocess.Popen[str]]:
    """The benchmark's load generator (see `load.c`) against a daemon; killed at the end if it still runs.

    Raises:
        RuntimeError: there is no C compiler.
    """
    programs = Path(__file__).resolve().parents[3] / "build/bench/bin"
    native.build(programs)
    command = [str(programs / "load"), "-s", daemon.socket, *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def load(daemon: Daemon, *options: object) -> Served:
    """Let the load generator run to its end.

    Raises:
        Violation: a call failed.
    """
    with driver(daemon, *options) as process:
        measured, said = process.communicate(timeout=300)
    if process.returncode:
        raise Violation(f"an active connection failed: {said}")
    figures = msgspec.json.decode(measured)
    return Served(figures["p50"] / 1000, figures["p99"] / 1000)
