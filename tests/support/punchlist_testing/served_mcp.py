"""`punch agent mcp` in a child process."""

import socket
import subprocess
import sys
import time

from punchlist_testing import terminal
from punchlist_testing.daemon import Spawned


def environment() -> dict[str, str]:
    return terminal.environment(PUNCHLIST_CONVERSATION="")


def arguments(daemon: Spawned, *more: str) -> list[str]:
    common = ["--socket", daemon.socket, "--data-dir", daemon.data_dir, "--no-autostart", "-c", "work"]
    return ["-m", "punchlist", "agent", "mcp", *common, *more]


class Served:
    """`punch agent mcp --http` in a child process, ready for requests."""

    def __init__(self, daemon: Spawned, *more: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.token_file = daemon.directory / "token"
        command = [sys.executable, *arguments(daemon, "--http", "--port", str(self.port))]
        self.process = subprocess.Popen(
            [*command, *(more or ("--token-file", str(self.token_file)))], env=environment(), stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server did not start")

    @property
    def token(self) -> str:
        return self.token_file.read_text().strip()

    def ask(self, *lines: str) -> bytes:
        """Send the lines of a raw request; return the beginning of the response."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as link:
            link.sendall("\r\n".join([*lines, "", ""]).encode())
            return link.recv(65_536)
