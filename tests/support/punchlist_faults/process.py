"""A daemon in a process of its own, as a harness wants it: under strace, with a planted fault, and never left."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from punchlist_bench.servers import installed
from punchlist_faults.options import Violation
from punchlist_testing.daemon import Raw

PATIENCE_S = 30.0
"""How long anything may take before the harness gives up: far more than it ever needs."""

DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""A harness that is killed takes its daemons with it."""


class Ended(Exception):
    """The daemon ended instead of serving; the code says how, the message what it said."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"exit code {code}: {said[-2000:]}")
        self.code = code


class Daemon:
    """Everything of it is below `directory`; `data` may put the log elsewhere.

    `tracer` is put before the command and stays its parent, `host` becomes it; `plant` are arguments of
    `punchlist_faults.launch`, `options` and `env` the daemon's own.
    """

    def __init__(self, directory: Path, data: Path | None = None) -> None:
        self.directory = directory
        self.socket = str(directory / "s")
        self.data = data or directory / "data"
        self.tracer: Sequence[str] = ()
        self.plant: Sequence[str] = ()
        self.options: Sequence[str] = ()
        self.host: Sequence[str] = ()
        self.env: Mapping[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self._links: list[Raw] = []

    @property
    def log(self) -> Path:
        """The database."""
        return self.data / "log.db"

    def start(self) -> float:
        """Start it and wait until it serves; the seconds that took.

        Raises:
            Ended: it ended instead.
        """
        began = time.monotonic()
        read, write = os.pipe()
        module = ["punchlist_faults.launch", *self.plant, "--"] if self.plant else ["punchlistd"]
        command = [*self.host, *self.tracer, *DIE_WITH_US, sys.executable, "-m", *module]
        options = ["--socket", self.socket, "--data-dir", str(self.data), "--ready-fd", str(write), *self.options]
        path = os.pathsep.join(entry for entry in (self.env.get("PYTHONPATH", ""), *sys.path) if entry)
        with open(self.directory / "said", "wb") as said:
            self.process = subprocess.Popen(
                [*command, *options],
                pass_fds=(write,),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={
                    **installed(),
                    **self.env,
                    "PYTHONPATH": path,
                    "COVERAGE_PROCESS_START": "",
                    "PUNCHLIST_SOCKET": self.socket,
                },
            )
        os.close(write)
        with open(read, "rb") as ready:
            if not ready.readline():
                raise Ended(self.wait(), self.said())
        return time.monotonic() - began

    def pid(self) -> int:
        """Of the daemon itself, also where a tracer stands before it."""
        assert self.process is not None
        if not self.tracer:
            return self.process.pid
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def said(self) -> str:
        """What it wrote since its start."""
        return (self.directory / "said").read_text(errors="replace")

    def wait(self, seconds: float = PATIENCE_S) -> int:
        """Its exit code, once it has ended by itself.

        Raises:
            Violation: it hangs.
        """
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Violation(f"the daemon did not end within {seconds:g} s: {self.said()[-2000:]}") from None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL at once, wherever it is."""
        if self.process is not None:
            with suppress(ProcessLookupError, IndexError, FileNotFoundError, AssertionError):
                os.kill(self.pid(), signal.SIGKILL)
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        with suppress(ProcessLookupError, IndexError, FileNotFoundError):
            os.kill(self.pid(), signal.SIGTERM)
        return self.wait()

    def connect(self) -> Raw:
        """A connection; `hang_up` closes those that are left."""
        link = Raw(self.socket)
        self._links.append(link)
        return link

    def hang_up(self) -> None:
        """Close every connection."""
        while self._links:
            with suppress(OSError):
                self._links.pop().close()


@contextmanager
def daemon_in(directory: Path, data: Path | None = None) -> Generator[Daemon]:
    """A daemon that is not started yet, and killed at the end whatever happens."""
    directory.mkdir(parents=True, exist_ok=True)
    daemon = Daemon(directory, data)
    try:
        yield daemon
    finally:
        daemon.kill()
        daemon.hang_up()


def eventually(holds: Callable[[], object], seconds: float, said: str) -> float:
    """Wait until something holds; the seconds that took.

    Raises:
        Violation: it never did.
    """
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise Violation(f"not within {seconds:g} s: {said}")
        time.sleep(0.002)
    return time.monotonic() - began
