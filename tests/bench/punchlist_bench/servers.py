"""The measured servers, punchlistd and its anchors, as child processes; and a minimal client."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

START_S = 60.0
"""Timeout for starting a server and for connecting to it, in seconds."""


def installed_env() -> dict[str, str]:
    """Return the environment of an installed program, with bytecode files. Without them, each start would compile its
    modules."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}


class Server:
    """A child process that serves a Unix socket.

    Attributes:
        protocol: Protocol of the load generator: `lines` (of JSON) or `resp` (Redis).
        log: File with the output of the process.
    """

    protocol = "lines"

    def __init__(self, command: Sequence[str | Path], socket: Path, log: Path) -> None:
        """Start the process and wait until it accepts connections.

        Raises:
            RuntimeError: The process ended, or took longer than `START_S`.
        """
        self.socket = socket
        self.log = log
        socket.unlink(missing_ok=True)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=installed_env()
            )
        self.pid = self._process.pid
        try:
            self._await_start()
        except BaseException:
            self.stop()
            raise

    def _await_start(self) -> None:
        end = time.monotonic() + START_S
        while True:
            try:
                connect(self.socket).close()
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the server did not start: {self.log.read_text()[-2000:]}") from None
                time.sleep(0.001)
            else:
                return

    def stop(self) -> None:
        """Terminate the process; kill it after a timeout."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


class Daemon(Server):
    """punchlistd with a data directory; `started_s` is the time from its start to its first response."""

    def __init__(self, data: Path, socket: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.data = data
        begin = time.perf_counter()
        command = [sys.executable, "-m", "punchlistd", "--socket", socket, "--data-dir", data]
        super().__init__([*command, "--log-level", "warning"], socket, data / "said")
        with Client(socket) as client:
            client.call("task.get", conversation="nobody", task="1", refused=True)
        self.started_s = time.perf_counter() - begin


class Redis(Server):
    """Redis, with an fsync before each response or without any file."""

    protocol = "resp"

    def __init__(self, data: Path, socket: Path, *, durable: bool) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise RuntimeError("there is no redis-server")
        data.mkdir(parents=True, exist_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(socket),
            "dir": str(data),
            "save": "",
            "appendonly": "yes" if durable else "no",
            "appendfsync": "always",
            "auto-aof-rewrite-percentage": "0",
            "maxclients": "4000",
        }
        command = [program, *(word for name, value in options.items() for word in (f"--{name}", value))]
        super().__init__(command, socket, data / "said")

    def command(self, *words: str) -> bytes:
        """Send a command and return the first line of the response.

        Raises:
            RuntimeError: Redis returned an error.
        """
        request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in map(str.encode, words))
        with connect(self.socket) as sock, sock.makefile("rb") as answers:
            sock.sendall(request)
            answer = answers.readline()
        if answer.startswith(b"-"):
            raise RuntimeError(f"redis refused {words[0]}: {answer.decode()}")
        return answer

    def load_script(self, text: str) -> str:
        """Load a Lua script; return its digest for EVALSHA."""
        self.command("SCRIPT", "LOAD", text)
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class Client:
    """A minimal blocking client, for setup and single calls."""

    def __init__(self, path: Path) -> None:
        self._sock = connect(path)
        self._answers = self._sock.makefile("rb")
        self._id = 0

    def call(self, method: str, *, refused: bool = False, **params: Any) -> Any:
        """Make a call and return its result.

        Args:
            method: Name of the method.
            refused: Whether the call may be rejected; the error is then returned.
            params: Params of the call.

        Raises:
            RuntimeError: The call was rejected.
        """
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._sock.sendall(msgspec.json.encode(request) + b"\n")
        while True:
            answer = msgspec.json.decode(self._answers.readline())
            if answer.get("id") == self._id:
                break
        if "result" not in answer and not refused:
            raise RuntimeError(f"{method} was refused: {answer}")
        return answer.get("result", answer.get("error"))

    def close(self) -> None:
        self._answers.close()
        self._sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def connect(path: Path) -> socket.socket:
    """Return a connected socket with a timeout; retry while the server's backlog is full."""
    sock = socket.socket(socket.AF_UNIX)
    end = time.monotonic() + START_S
    try:
        sock.settimeout(START_S)
        while True:
            try:
                sock.connect(os.fspath(path))
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.001)
            else:
                return sock
    except BaseException:
        sock.close()
        raise
