"""The workers that serve `punch agent mcp` in tests, and hosts that talk to them line by line.

A worker outlives its relays, so each test stops its own.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from punchlist_apps.relay import frames
from punchlist_schemas.system import os_calls
from punchlist_testing.terminal import environment

PATIENCE_S = 60.0
"""Timeout for a reply, and for a process to start or end, in seconds."""

HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}


def stop_workers(folder: Path) -> None:
    """Stop the workers whose sockets are in a directory, and wait until they have ended."""
    for path in folder.glob("mcp-*.sock"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE_S)
            try:
                sock.connect(str(path))
            except ConnectionRefusedError:
                continue
            os.kill(os_calls.read_peer(sock)[0], signal.SIGCONT)  # it may be suspended
            sock.sendall(frames.encode(frames.STOP))
            while sock.recv(1 << 16):
                pass


def find_worker(folder: Path) -> int | None:
    """Return the process of the worker whose socket is in a directory, or None."""
    for path in folder.glob("mcp-*.sock"):
        with socket.socket(socket.AF_UNIX) as sock:
            try:
                sock.connect(str(path))
            except (ConnectionRefusedError, FileNotFoundError):
                continue
            return os_calls.read_peer(sock)[0]
    return None


def signal_worker(folder: Path, number: int = signal.SIGKILL) -> int:
    """Send a signal to the worker, and wait for its end unless the signal only suspends it. Return the process."""
    pid = find_worker(folder)
    assert pid is not None, "a worker listens"
    with ending(pid) if number != signal.SIGSTOP else nullcontext():
        os.kill(pid, number)
    return pid


@contextmanager
def ending(pid: int) -> Generator[None]:
    """Wait at the end of the block until a process has ended."""
    process = os.pidfd_open(pid)
    try:
        yield
        poll = select.poll()
        poll.register(process, select.POLLIN)
        assert poll.poll(PATIENCE_S * 1000), "the process ends"
    finally:
        os.close(process)


class Session:
    """A session of the handshake era: sends hand-written messages to a server and reads its messages."""

    def __init__(self, process: "subprocess.Popen[bytes]", capabilities: dict[str, Any] | None = None) -> None:
        self.process = process
        self._id = 0
        self._data = b""
        self._capabilities = capabilities or {}

    def __enter__(self) -> Self:
        self.ask("initialize", HANDSHAKE | {"capabilities": self._capabilities})
        self.send({"method": "notifications/initialized"})
        self.ask("ping", {})  # after it, no line is under way
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self.process.communicate(timeout=PATIENCE_S)  # so that its coverage is saved
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end(self) -> None:
        """Close the server's input, but not its output."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def send(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")

    def request(self, method: str, params: Any) -> int:
        """Send a request and return its id."""
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params})
        return self._id

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return the text of the reply."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]

    def ask(self, method: str, params: Any) -> Any:
        """Send a request and return its result."""
        return self.wait_for(self.request(method, params))["result"]

    def wait_for(self, id: int) -> Any:
        """Return the response to a request; skip other messages."""
        return next(message for message in self.messages() if message.get("id") == id and "method" not in message)

    def messages(self) -> Iterator[Any]:
        """Yield the messages of the server until it ends."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        while True:
            line, end, rest = self._data.partition(b"\n")
            if end:
                self._data = rest
                yield json.loads(line)
                continue
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError("no message of the server arrived")
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                return
            self._data += data


class Host(Session):
    """A host that talks to `punch agent mcp`.

    Args:
        folder: The directory of the daemon's files, or None for the default places.
        words: More arguments.
        python: The interpreter.
        program: Arguments of the interpreter that run `punch`.
        autostart: Whether the session may start a daemon.
    """

    def __init__(
        self,
        folder: Path | None,
        *words: str,
        python: Sequence[str] = (sys.executable,),
        program: Sequence[str] = ("-m", "punchlist"),
        capabilities: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        autostart: bool = False,
    ) -> None:
        places: list[str] = []
        if folder is not None:
            places = ["--socket", str(folder / "run" / "daemon.sock"), "--data-dir", str(folder / "data")]
        words = words if autostart else (*words, "--no-autostart")
        process = subprocess.Popen(
            [*python, *program, "agent", "mcp", "-c", "work", *places, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env or environment(PUNCHLIST_CONVERSATION=""),
            cwd=folder or "/",
        )
        super().__init__(process, capabilities)
