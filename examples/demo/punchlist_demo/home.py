"""A private home for a daemon and its clients. Closing it ends its processes and removes its files."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from subprocess import DEVNULL, PIPE
from types import FrameType
from typing import Self

from punchlist.clients.sync import Client
from punchlist_apps.cli.printing.screen import Handler

Process = subprocess.Popen[bytes]
_END_S = 5.0
"""Longest wait for a killed process to exit, in seconds."""

STEP_S = 45.0
"""Upper limit for one step, in seconds. Must exceed the client's timeout of 30 s, because the client's error explains
more.
"""


class DemoFailed(Exception):
    """A step failed, and the demo can't continue."""


class Home:
    """A temporary directory with the socket and the data of a private daemon. Use it in a `with` block."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="punchlist-demo-")
        self.socket = f"{self.path}/run/daemon.sock"
        self.data_dir = f"{self.path}/data"
        self._stack = ExitStack()
        self._handlers: dict[int, Handler] = {}

    def client(self, name: str) -> Client:
        """Return a client that starts a daemon here if none is running. It is closed with the home."""
        return self._stack.enter_context(Client(socket=self.socket, data_dir=self.data_dir, name=name, autostart=True))

    def spawn(self, *arguments: str) -> Process:
        """Run Python with these arguments and this home's socket, with pipes for input and output.

        The process is ended when the home is closed.
        """
        command, env = self._command(arguments), _inherited()
        process = subprocess.Popen(
            command, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=env, start_new_session=True
        )
        self._stack.enter_context(process)
        self._stack.callback(process.kill)
        return process

    def run(self, person: str, conversation: str, *words: str, colour: bool = False) -> str:
        """Run `punch` as a person, and return its output.

        Raises:
            SubprocessError: The command failed, or took too long.
        """
        command = self._command(("-m", "punchlist", *words))
        env = _inherited() | {"USER": person, "PUNCHLIST_CONVERSATION": conversation, "FORCE_COLOR": str(int(colour))}
        done = subprocess.run(command, stdin=DEVNULL, stdout=PIPE, text=True, check=True, timeout=STEP_S, env=env)
        return done.stdout

    def kill_daemon(self, pid: int) -> None:
        """Kill a daemon of this home and wait for it to exit.

        Raises:
            ProcessLookupError: The process is not a daemon of this home.
        """
        if self.socket not in _arguments(pid):
            raise ProcessLookupError(f"process {pid} is not a daemon of {self.path}")
        _kill(pid)

    def daemons(self) -> list[int]:
        """Return the processes that have this home's socket among their arguments."""
        return [pid for pid in _processes() if self.socket in _arguments(pid)]

    def close(self) -> None:
        """End all processes of this home, and remove its directory."""
        self._stack.close()
        # An interrupt may arrive while a process is being started, before the socket is among its arguments.
        is_ended, deadline = False, time.monotonic() + _END_S
        while not is_ended and time.monotonic() < deadline:
            is_ended = not any(map(_is_starting, _processes()))
            for pid in self.daemons():
                _kill(pid)
                is_ended = False
        shutil.rmtree(self.path, ignore_errors=True)

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-P", *arguments, "--socket", self.socket, "--data-dir", self.data_dir]

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, _on_end) for number in (signal.SIGTERM, signal.SIGHUP)}
        return self

    def __exit__(self, *exception: object) -> None:
        # A second Ctrl-C during cleanup must not leave a daemon running.
        self._handlers[signal.SIGINT] = signal.getsignal(signal.SIGINT)
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        try:
            self.close()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)


def read_lines(process: Process, count: int) -> list[bytes]:
    """Return the next lines of a process, at least `count` unless it ends or `STEP_S` passes."""
    assert process.stdout is not None
    output, deadline = b"", time.monotonic() + STEP_S
    while output.count(b"\n") < count:
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        data = os.read(process.stdout.fileno(), 65_536) if readable else b""
        if not data:
            break
        output += data
    return output.split(b"\n")[:-1]


def _inherited() -> dict[str, str]:
    """Return the environment of this process without the variables that select another actor or daemon."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PUNCHLIST_")}


def _on_end(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _arguments(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return []


def _is_starting(pid: int) -> bool:
    """Return whether a process is a child of this one that hasn't called `exec` yet. Its arguments are then those of
    this process, or empty."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, parent, *_ = file.read().rpartition(")")[2].split()
    except OSError:
        return False
    return int(parent) == os.getpid() and state not in "XZ" and _arguments(pid) in ([""], _arguments(os.getpid()))


def _kill(pid: int) -> None:
    """Send SIGKILL to a process, which need not be a child of this one, and wait at most `_END_S` for it to end."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], _END_S)
        finally:
            os.close(handle)
