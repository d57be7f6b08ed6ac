"""`punch web` under attack by a process without a token: the owner is still served."""

import http.client
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from punchlist_apps.common.http.connections import MAX_CONNECTIONS
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.flood import flood
from punchlist_testing.terminal import command, environment

FEW = 320
"""File descriptor limit for a server that accepts 64 connections."""

PATIENCE_S = 20


class Server(NamedTuple):
    """`punch web` in its own process, with the owner's secret."""

    process: subprocess.Popen[bytes]
    port: int
    token: str
    places: int

    @property
    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) << 10

    def ask(self) -> float:
        """Send a request as the owner and return its duration, in seconds."""
        started = time.monotonic()
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        link.request("GET", "/api/v1/conversations", headers={"Authorization": f"Bearer {self.token}"})
        assert link.getresponse().status == 200
        link.close()
        return time.monotonic() - started


@pytest.fixture(scope="module", params=[64, pytest.param(MAX_CONNECTIONS, marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = FEW if request.param < MAX_CONNECTIONS else hard
    with spawned_daemon(tmp_path_factory.mktemp("flood")) as daemon:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        words = ("web", "--socket", daemon.socket, "--data-dir", daemon.data_dir, "--no-autostart", "--port", str(port))
        limited = ["sh", "-c", 'ulimit -n "$0"; exec "$@"', str(limit), *command(*words)]
        with subprocess.Popen(limited, stdout=subprocess.PIPE, env=environment()) as process:
            try:
                assert process.stdout is not None and b"#ticket=" in process.stdout.readline()
                token = Path(daemon.data_dir, "web.token").read_text().strip()
                yield Server(process, port, token, request.param)
            finally:
                process.kill()


PUBLIC = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF_BODY = b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"
ATTACKS = {
    "nothing": b"",
    "half a head": PUBLIC[:-4],
    "public file": PUBLIC * 150,
    "compressed page": b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n" * 150,
    "no such path": PUBLIC.replace(b"openapi", b"nothing") * 150,
    "wrong token": PUBLIC.replace(b"openapi.json", b"feed?board=1").replace(
        b"\r\n\r\n", b"\r\nAuthorization: Bearer x\r\n\r\n"
    )
    * 150,
    "another host": PUBLIC.replace(b"localhost", b"example.org") * 150,
    "much in advance": PUBLIC * 4_000,
    "half a ticket": b"POST /api/session" + HALF_BODY,
    "large ticket": b"POST /api/session" + HALF_BODY + b"x" * 800_000,
    "half a ticket in advance": PUBLIC + b"POST /api/session" + HALF_BODY,
    "half a call": b"POST /api/v1/conversations/plan/tasks" + HALF_BODY,
    "half a run": b"POST /ag-ui" + HALF_BODY,
    "half a message": b"POST /chatkit" + HALF_BODY,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_owner_is_served_during_an_attack(attack: str, server: Server) -> None:
    server.ask()
    before = server.resident_bytes
    with flood(server.port, ATTACKS[attack], server.places * 5 // 4):
        took_s = [server.ask() for _ in range(10)]
        grown = server.resident_bytes - before
    assert max(took_s) < PATIENCE_S
    assert grown < server.places * (256 << 10), "a connection costs its waiting bytes, not the size of the responses"


def test_connections_wait_in_arrival_order(server: Server) -> None:
    server.ask()  # By now, the connections of the earlier attack have been accepted, and the queue is empty.
    server.process.send_signal(signal.SIGSTOP)
    try:
        with ExitStack() as stack:
            for _ in range(300):  # If the queue were full, it would stay full, and connecting would time out.
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S))
    finally:
        server.process.send_signal(signal.SIGCONT)
    server.ask()
