"""A daemon in a child process, optionally under strace or with an injected fault, which is killed at the end."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from punchlist_faults.options import Violation, need, workplace
from punchlist_testing.daemon import Raw

PATIENCE_S = 30.0
"""Default timeout, in seconds."""

DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""Command prefix that makes the kernel kill the daemon when its parent dies."""

_INSTALLED = Path(sys.executable).with_name("punchlist")
PUNCH = [str(_INSTALLED)] if _INSTALLED.exists() else [sys.executable, "-m", "punchlist"]


class Ended(Exception):
    """The daemon ended before it was ready."""

    def __init__(self, code: int, output: str) -> None:
        super().__init__(f"exit code {code}: {output[-2000:]}")
        self.code = code


class Daemon:
    """A daemon whose files are below `directory`; `data` may put the log elsewhere.

    Attributes:
        tracer: Command prefix of a program that runs the daemon as its child.
        host: Command prefix of a program that executes the daemon in its place.
        plant: Faults of `punchlist_faults.launch` to inject.
        options: The daemon's own options.
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
        return self.data / "log.db"

    def start(self) -> float:
        """Start the daemon and wait until it is ready; return the seconds that it took.

        Raises:
            Ended: The daemon ended before it was ready.
        """
        began = time.monotonic()
        read, write = os.pipe()
        module = ["punchlist_faults.launch", *self.plant, "--"] if self.plant else ["punchlistd"]
        command = [*self.host, *self.tracer, *DIE_WITH_US, sys.executable, "-m", *module]
        options = ["--socket", self.socket, "--data-dir", str(self.data), "--ready-fd", str(write), *self.options]
        with open(self.directory / "said", "wb") as output:
            self.process = subprocess.Popen(
                [*command, *options],
                pass_fds=(write,),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**environment(), **self.env, "PUNCHLIST_SOCKET": self.socket},
            )
        os.close(write)
        with open(read, "rb") as ready:
            if not ready.readline():
                raise Ended(self.wait(), self.output())
        return time.monotonic() - began

    def pid(self) -> int:
        """Return the process id of the daemon, not of its tracer."""
        assert self.process is not None
        if not self.tracer:
            return self.process.pid
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def output(self) -> str:
        return (self.directory / "said").read_text(errors="replace")

    def wait(self, seconds: float = PATIENCE_S) -> int:
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Violation(f"the daemon did not end within {seconds:g} s: {self.output()[-2000:]}") from None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, IndexError, FileNotFoundError):
            os.kill(self.pid(), number)

    def kill(self) -> None:
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        self._signal(signal.SIGTERM)
        code = self.wait()
        need(code == 0, f"the daemon ended with {code}: {self.output()[-2000:]}")

    def connect(self, user: str | None = None) -> Raw:
        link = Raw(self.socket)
        self._links.append(link)
        if user:
            link.result("daemon.hello", user=user)
        return link

    def hang_up(self) -> None:
        while self._links:
            with suppress(OSError):
                self._links.pop().close()

    def memory(self, member: str = "VmRSS") -> int:
        """Return the daemon's memory in bytes: the current size (`VmRSS`) or the peak since `forget_peak` (`VmHWM`)."""
        return int(Path(f"/proc/{self.pid()}/status").read_text().split(f"{member}:")[1].split()[0]) * 1024

    def forget_peak(self) -> None:
        """Reset the peak of the daemon's memory to the current value."""
        Path(f"/proc/{self.pid()}/clear_refs").write_text("5")


@contextmanager
def daemon_in(directory: Path, data: Path | None = None) -> Generator[Daemon]:
    """Yield a daemon that is not started yet, and kill it at the end of the block."""
    directory.mkdir(parents=True, exist_ok=True)
    daemon = Daemon(directory, data)
    try:
        yield daemon
    finally:
        daemon.kill()
        daemon.hang_up()


@contextmanager
def running_daemon() -> Generator[Daemon]:
    """Run a daemon in a new directory. If it is still running at the end of the block, it must stop with exit code
    0."""
    with workplace() as place, daemon_in(place) as daemon:
        daemon.start()
        yield daemon
        if daemon.is_running:
            daemon.stop()


def environment() -> dict[str, str]:
    """Return the environment of child processes: the same modules, bytecode as in an installation, no coverage."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "", "COVERAGE_PROCESS_START": ""}


def eventually(condition: Callable[[], object], seconds: float, message: str) -> float:
    """Wait until a condition is true; return the seconds that it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise Violation(f"not within {seconds:g} s: {message}")
        time.sleep(0.002)
    return time.monotonic() - began
