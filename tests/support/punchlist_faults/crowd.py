"""Opens many connections and measures the latency of calls."""

import resource
import socket
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from punchlist_bench import native
from punchlist_faults.options import ROOT, Unavailable, Violation
from punchlist_faults.process import Daemon

_SPARE = 200


class Served(NamedTuple):
    """Latency of calls."""

    p50_ms: float
    p99_ms: float


def need_descriptors(number: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number + _SPARE:
        raise Unavailable(f"needs {number + _SPARE:,} descriptors, {hard:,} are allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number + _SPARE), hard))


def request(method: str, id: int = 1, **params: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + b"\n"


@contextmanager
def connections(daemon: Daemon, number: int, first: bytes) -> Generator[list[socket.socket]]:
    """Open connections, send `first` on each, and read the response."""
    opened: list[socket.socket] = []
    try:
        for _ in range(number):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(30)
            sock.connect(daemon.socket)
            opened.append(sock)
            sock.sendall(first)
            line = b""
            while not line.endswith(b"\n"):
                line += sock.recv(65536)
        yield opened
    finally:
        for sock in opened:
            sock.close()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@contextmanager
def driver(daemon: Daemon, *options: object) -> Generator[subprocess.Popen[str]]:
    """Run the benchmark's load generator (see `load.c`) against a daemon; kill it at the end."""
    if native.compiler() is None:
        raise Unavailable("needs a C compiler, for the load")
    programs = ROOT / "build/bench/bin"
    native.build(programs)
    command = [str(programs / "load"), "-s", daemon.socket, *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def load(daemon: Daemon, *options: object) -> Served:
    with driver(daemon, *options) as process:
        measured, errors = process.communicate(timeout=300)
    if process.returncode:
        raise Violation(f"an active connection failed: {errors}")
    figures = msgspec.json.decode(measured)
    return Served(figures["p50"] / 1000, figures["p99"] / 1000)
