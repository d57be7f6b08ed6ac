"""Daemons for tests, in this process or in a child process that can be killed."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from blockbuster import blockbuster_ctx

from punchlist_testing.unmeasured import unmeasured
from punchlist_testing.workers import stop_workers
from punchlistd.app.app import App
from punchlistd.settings import Settings

MAY_BLOCK = {
    "coverage/collector.py": {"lock_data"},
    "punchlistd/process/lock.py": {"__init__", "is_in_place", "close"},
    "punchlistd/net/listener.py": {"open_private_directory", "__init__", "is_in_place", "close"},
    "punchlistd/store/sqlite.py": {"append_now"},
}
"""File -> functions that may block the event loop, because they only access local directory entries or commit to a fast
disk."""

READY_S = 20.0
"""Timeout for a daemon to start or end, in seconds."""


class Running:
    """A running daemon in this process."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.socket = app.settings.socket
        self.data_dir = app.settings.data_dir


@contextmanager
def guarded_loop() -> Generator[None]:
    """Make file, socket, sleep and SQLite calls of the daemon on the event loop raise `BlockingError`."""
    with blockbuster_ctx("punchlistd") as guard:
        for function in guard.functions.values():
            for file, names in MAY_BLOCK.items():
                function.can_block_in(file, names)
        yield


@asynccontextmanager
async def running_daemon(directory: Path, **settings: Any) -> AsyncGenerator[Running]:
    """Run a daemon in this process with its files below `directory`; blocking calls on its loop raise.

    `reserve_bytes` is 0 by default: reserving disk space takes a third of the work of a start.
    """
    defaults = Settings(
        socket=str(directory / "run" / "daemon.sock"), data_dir=str(directory / "data"), reserve_bytes=0
    )
    app = App(msgspec.structs.replace(defaults, **settings))
    with guarded_loop():
        async with anyio.create_task_group() as group:
            group.start_soon(app.run, False)
            with anyio.fail_after(READY_S):
                await app.ready.wait()
            try:
                yield Running(app)
            finally:
                app.stop()


class Spawned:
    """A daemon in a child process, not started yet.

    Args:
        directory: Parent of its socket and data.
        arguments: Additional arguments of the daemon.
        env: Additional environment variables.
        measured: Whether to measure its coverage if this process is measured. Its start then takes twice as long, and
            only a daemon that isn't killed writes its data.
        program: Interpreter arguments that run a daemon.
    """

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        measured: bool = False,
        program: Sequence[str] = ("-m", "punchlistd"),
    ) -> None:
        self.directory = directory
        self.socket = str(directory / "run" / "daemon.sock")
        self.data_dir = str(directory / "data")
        self.process: subprocess.Popen[bytes] | None = None
        self._arguments = arguments
        self._env = env or {}
        self._measured = measured
        self._program = program

    def start(self) -> None:
        """Start the daemon and wait until it is ready.

        Raises:
            RuntimeError: The daemon ended; the message contains its log.
        """
        read, write = os.pipe()
        command = [sys.executable, *self._program, "--socket", self.socket, "--data-dir", self.data_dir]
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / "daemon.log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, "--ready-fd", str(write), *self._arguments],
                pass_fds=(write,),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **(os.environ if self._measured else unmeasured()),
                    **self._env,
                    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                },
            )
        os.close(write)
        with open(read, "rb") as ready:
            if not ready.readline():
                self.process.wait(READY_S)
                raise RuntimeError(f"the daemon did not start: {self.log()}")

    def kill(self) -> None:
        """Send SIGKILL and wait for the process to end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(READY_S)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        # Read `self.process` once, because another thread may start the next process while this one waits.
        process = self.process
        assert process is not None, "start it first"
        process.send_signal(signal.SIGTERM)
        return process.wait(READY_S)

    def restart(self) -> None:
        self.kill()
        self.start()

    def log(self) -> str:
        return (self.directory / "daemon.log").read_text(errors="replace")


@contextmanager
def spawned_daemon(
    directory: Path, *arguments: str, env: dict[str, str] | None = None, measured: bool = False
) -> Generator[Spawned]:
    """Run a daemon in a child process and kill it at the end of the block; takes the arguments of `Spawned`.

    The workers of its sessions are stopped too.
    """
    daemon = Spawned(directory, *arguments, env=env, measured=measured)
    daemon.start()
    try:
        yield daemon
    finally:
        stop_workers(Path(daemon.socket).parent)
        daemon.kill()


class Raw:
    """A minimal blocking client."""

    def __init__(self, path: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        try:
            self.sock.connect(path)
        except OSError:
            self.sock.close()
            raise
        self._file = self.sock.makefile("rb")
        self._next = 0

    def send(self, method: str, params: Any = None, *, id: Any = 0) -> None:
        """Send a request, or a notification if `id` is None."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if id is not None:
            message["id"] = id
        self.sock.sendall(msgspec.json.encode(message) + b"\n")

    def receive(self) -> Any:
        """Return the next message, or None at the end of the stream, which may cut off a message."""
        line = self._file.readline()
        return msgspec.json.decode(line) if line.endswith(b"\n") else None

    def call(self, method: str, **params: Any) -> Any:
        """Send a request and return the whole response; discard pushes before it."""
        self._next += 1
        self.send(method, params, id=self._next)
        while (message := self.receive()) is not None:
            if message.get("id") == self._next:
                return message
        raise EOFError("the daemon closed the connection")

    def result(self, method: str, **params: Any) -> Any:
        answer = self.call(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def close(self) -> None:
        self._file.close()
        self.sock.close()
