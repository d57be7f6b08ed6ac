"""A private home for a daemon and its clients. When it closes, its processes and files are gone."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from punchlist.cli.screen import Handler
from punchlist.errors import PunchlistError
from punchlist.options import Options
from punchlist.sync import Client

_END_S = 5.0


class Home:
    """A temporary directory with the socket and the data of a private daemon. Use it in a `with`."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="punchlist-demo-")
        self.socket = f"{self.path}/run/daemon.sock"
        self.data_dir = f"{self.path}/data"
        self._clients: list[Client] = []
        self._processes: list[subprocess.Popen[str]] = []
        self._handlers: dict[int, Handler] = {}

    def client(self, name: str) -> Client:
        """Return a client that starts a daemon here if none runs; closed with the home."""
        options: Options = {"socket": self.socket, "data_dir": self.data_dir, "name": name, "autostart": True}
        client = Client(**options)
        self._clients.append(client)
        return client

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        """Run Python with these arguments and our socket, with pipes for input and output; ended with the home."""
        command, pipe = self._command(arguments), subprocess.PIPE
        process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=_inherited(),
        )
        self._processes.append(process)
        return process

    def run(self, person: str, conversation: str, *words: str, colour: bool = False) -> str:
        """Run `punch` as a person, and return what it prints.

        Raises:
            CalledProcessError: It failed.
        """
        command = self._command(("-m", "punchlist.cli", *words))
        env = {"USER": person, "PUNCHLIST_CONVERSATION": conversation, "FORCE_COLOR": str(int(colour))}
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True, env=_inherited() | env
        )
        return done.stdout

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-P", *arguments, "--socket", self.socket, "--data-dir", self.data_dir]

    def kill_daemon(self, pid: int) -> None:
        """Send SIGKILL to a daemon of this home, and wait until it has ended.

        Raises:
            ProcessLookupError: The process is not a daemon of this home.
        """
        if pid not in self.daemons():
            raise ProcessLookupError(f"process {pid} is not a daemon of {self.path}")
        _end(pid, signal.SIGKILL)

    def daemons(self) -> list[int]:
        """Return the processes that have our socket among their arguments."""
        return [pid for pid in _own_processes() if self.socket in _arguments(pid)]

    def close(self) -> None:
        """End all processes of this home, and remove its directory."""
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
        for client in self._clients:
            client.close()
        self._stop_daemon()
        # An interrupt may come while a process is being started: look again until no child is without its program.
        starting, found = True, self.daemons()
        while starting or found:
            for pid in found:
                _end(pid, signal.SIGKILL)
            starting = any(map(_is_starting, _own_processes()))
            found = self.daemons()
        shutil.rmtree(self.path, ignore_errors=True)

    def _stop_daemon(self) -> None:
        running = self.daemons()
        options: Options = {"socket": self.socket, "data_dir": self.data_dir, "autostart": False, "timeout_s": _END_S}
        try:
            with Client(**options) as client:
                client.open()
                client.shutdown()
        except PunchlistError:
            return
        for pid in running:
            _wait(pid)

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, _on_end) for number in (signal.SIGTERM, signal.SIGHUP)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C during the clean-up must not leave a daemon behind.
        self._handlers[signal.SIGINT] = signal.getsignal(signal.SIGINT)
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)
        try:
            self.close()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)


def _inherited() -> dict[str, str]:
    """Return our environment without what would change who acts, and on which daemon."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PUNCHLIST_")}


def _on_end(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


def _own_processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            yield int(name)


def _arguments(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return []


def _is_starting(pid: int) -> bool:
    """Whether this is a child of ours before its `exec`: it then has our arguments, or none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, parent, *_ = file.read().rpartition(")")[2].split()
    except OSError:
        return False
    return int(parent) == os.getpid() and state not in "XZ" and _arguments(pid) in ([""], _arguments(os.getpid()))


def _end(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    _wait(pid)


def _wait(pid: int) -> None:
    """Wait at most `_END_S` until a process has ended, which need not be a child of ours."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([handle], [], [], _END_S)
    finally:
        os.close(handle)
