"""NATS servers on loopback for tests, which can kill, pause and restart them."""

import os
import random
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from punchlist_testing.optional import find_program, needs

ROOT = Path(__file__).resolve().parents[3]
FETCHED = ROOT / "build/nats-server/bin/nats-server"
"""The server that `make optional` downloads."""

FLOOR = (2, 14)
READY_S = 30.0
PORT = 24222
"""Don't use the default port 4222, because another server may listen there on all addresses."""


@cache
def program() -> str | None:
    """Return the path of a server that is new enough: the downloaded server, else the one in PATH."""
    for path in (str(FETCHED), find_program("nats-server")):
        if path is None or not os.path.exists(path):
            continue
        version = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
        numbers = re.search(r"v(\d+)\.(\d+)\.", version)
        if numbers is not None and (int(numbers[1]), int(numbers[2])) >= FLOOR:
            return path
    return None


needs_server = needs("nats-server", program() is not None)


def own_address() -> str:
    """Return a random loopback address, so that a restarted server finds its port free."""
    return "127.{}.{}.{}".format(*(random.SystemRandom().randrange(1, 255) for _ in range(3)))


class NatsServer:
    """A server, not started yet.

    Args:
        directory: Directory of its files.
        extra: Additional lines of its configuration.
        host: Address that it listens on.
        sync: Its `sync_interval`; "": the server's default, which can lose acknowledged posts.
        whole: Whether `extra` is the whole configuration.
        wrap: Command prefix, such as one that enters a network namespace.
    """

    def __init__(  # noqa: PLR0913 - settings of a server
        self,
        directory: Path,
        extra: str = "",
        *,
        host: str = "",
        sync: str = "always",
        whole: bool = False,
        wrap: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.host = host or own_address()
        self.wrap = tuple(wrap)
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        store = f'store_dir: "{directory}/js", max_mem: 64MB, max_file: 1GB'
        interval = f", sync_interval: {sync}" if sync else ""
        base = f"host: {self.host}\nport: {PORT}\njetstream {{ {store}{interval} }}\n"
        self.config = directory / "nats.conf"
        self.config.write_text(extra if whole else base + extra)

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{PORT}"

    @property
    def monitor(self) -> str:
        """URL of the monitor, if the configuration has `http: HOST:8222`."""
        return f"http://{self.host}:8222"

    def start(self) -> None:
        """Start the server and wait until it accepts connections.

        Raises:
            RuntimeError: It ended, or took longer than `READY_S`; the message is its log.
        """
        path = program()
        assert path is not None, "needs_server comes first"
        process = subprocess.Popen(
            [*self.wrap, path, "-c", str(self.config)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.process = process
        assert process.stderr is not None
        guard = threading.Timer(READY_S, process.kill)
        guard.start()
        written: list[bytes] = []
        for line in process.stderr:
            written.append(line)
            if b"Server is ready" in line:
                break
        else:
            process.wait()
            raise RuntimeError(b"".join(written).decode())
        guard.cancel()
        threading.Thread(target=self._drain, args=(process, written), daemon=True).start()

    def _drain(self, process: subprocess.Popen[bytes], written: list[bytes]) -> None:
        assert process.stderr is not None
        with process.stderr, open(self.directory / "nats.log", "ab") as log:
            log.writelines(written)
            for line in process.stderr:
                log.write(line)
                log.flush()

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """Stop all its threads with SIGSTOP and wait until they have stopped; connections stay open without
        responses."""
        self._signal(signal.SIGSTOP)
        assert self.process is not None, "it was sent a signal"
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self.process is not None, "start it first"
        os.kill(self.process.pid, number)

    def forget(self) -> None:
        """Remove its stored data. The server must not be running."""
        shutil.rmtree(self.directory / "js", ignore_errors=True)

    def log(self) -> str:
        return (self.directory / "nats.log").read_text("utf-8")


@contextmanager
def running_server(directory: Path, extra: str = "", **options: str) -> Generator[NatsServer]:
    """Run a server until the end of the block."""
    server = NatsServer(directory, extra, host=options.get("host", ""), sync=options.get("sync", "always"))
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def running_cluster(directory: Path, extra: str = "", size: int = 3) -> Generator[list[NatsServer]]:
    """Run a cluster of `size` servers until the end of the block."""
    hosts = [own_address() for _ in range(size)]
    routes = ", ".join(f'"nats://{host}:6222"' for host in hosts)
    servers = [
        NatsServer(
            directory / f"n{number}",
            f'server_name: n{number}\ncluster {{ name: c, listen: "{host}:6222", routes: [{routes}] }}\n{extra}',
            host=host,
        )
        for number, host in enumerate(hosts)
    ]
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.kill()
