"""Starts a detached program that outlives this process: the daemon, or the worker that serves agents' hosts.

It has no output, and reports on a pipe when it is ready.
"""

import os
import subprocess
import sys
import threading
import time
from typing import NamedTuple

from punchlist.connection.readable import is_readable
from punchlist_schemas.rendezvous import make_directories, stopped_path

IDLE_EXIT_S = 900
"""Time without connections after which an automatically started program stops, in seconds."""

MAX_LOG_BYTES = 1 << 20
"""Size in bytes above which a program's log is renamed, such as to `daemon.log.1`, when the program starts."""

INHERITED = frozenset({"HOME", "PATH", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH"})
"""Environment variables passed to a process that outlives its starter. Others, such as API keys, are not passed."""

INHERITED_PREFIXES = ("LC_", "XDG_", "PUNCHLIST_", "PYTHON", "COVERAGE_")
"""Prefixes of other environment variables to pass. The last prefix is for coverage measurement."""

SUPERVISED = "systemd"
"""Content of the stop marker if systemd started the daemon and has to start the next one."""

_MANAGER_S = 90
_EXIT_LOST_RACE = 75
_LAST_LINES = 10
_READY = b"ready"


class Program(NamedTuple):
    """A program to start.

    Attributes:
        module: The Python module to run.
        options: Its options, in addition to those for its life.
        data_dir: The data directory, created if needed. It contains the log.
        log: File name of the log.
        passed: Descriptors that the program inherits.
    """

    module: str
    options: tuple[str, ...]
    data_dir: str
    log: str
    passed: tuple[int, ...] = ()

    @property
    def log_path(self) -> str:
        return f"{self.data_dir}/{self.log}"


def daemon(socket: str, data_dir: str) -> Program:
    """Return the daemon that listens on this socket."""
    return Program("punchlistd", ("--socket", socket, "--data-dir", data_dir), data_dir, "daemon.log")


def worker(socket: str, data_dir: str, *inherited: str, passed: tuple[int, ...] = ()) -> Program:
    """Return the worker that listens on this socket.

    Args:
        inherited: Options that give a successor what it inherits.
        passed: The descriptors among them.
    """
    options = ("--socket", socket, "--data-dir", data_dir, *inherited)
    return Program("punchlist_apps.worker", options, data_dir, "mcp.log", passed)


class Report(NamedTuple):
    """The outcome of a start.

    Attributes:
        lost_race: Whether another process holds the program's lock.
        reason: Why the program ended, with the last lines of its log.
    """

    ready: bool
    lost_race: bool = False
    reason: str = ""
    exit_code: int | None = None


class Starting:
    """A program that was started and may not be ready yet.

    It is never killed: a slow one can serve later calls.

    Raises:
        OSError: A file or the interpreter can't be used; `filename` is its path.
    """

    _ready: int | None = None

    def __init__(self, program: Program) -> None:
        self._program = program
        log = open_log(program)
        self._log_offset = os.fstat(log).st_size
        self._started_at = time.monotonic()
        self._lock = threading.Lock()
        self._report: Report | None = None
        reading, writing = os.pipe()
        try:
            self._process = _spawn(program, writing, log)
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
            os.close(log)
        self._ready = reading
        # Reaps the program if it ends before this process.
        self._reaper = threading.Thread(target=self._process.wait, name="punchlist-reaper", daemon=True)
        self._reaper.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, timeout_s: float) -> Report | None:
        """Return the outcome once the program is ready or has ended; None if it is still starting after `timeout_s`."""
        end = time.monotonic() + timeout_s
        if not self._lock.acquire(timeout=max(0.0, timeout_s)):
            return None
        try:
            if self._ready is not None and is_readable(self._ready, end - time.monotonic()):
                self._report = self._build_report(os.read(self._ready, 64))
                os.close(self._ready)
                self._ready = None
            return self._report
        finally:
            self._lock.release()

    def _build_report(self, signal: bytes) -> Report:
        if signal.startswith(_READY):
            return Report(ready=True)
        code = self._process.wait()
        lines = _read_last_lines(self._program.log_path, self._log_offset)
        if code == _EXIT_LOST_RACE:
            return Report(ready=False, lost_race=True, reason=lines, exit_code=code)
        reason = f"it exited with code {code}"
        return Report(ready=False, reason=f"{reason}\n{lines}" if lines else reason, exit_code=code)

    def __del__(self) -> None:
        if self._ready is not None:
            os.close(self._ready)

    def __str__(self) -> str:
        elapsed_s = time.monotonic() - self._started_at
        return (
            f"{self._program.module} (process {self._process.pid}) is not ready {elapsed_s:.0f} s after its "
            f"start and continues in the background: try again in a moment. Its log is {self._program.log_path}."
        )


def start_by_manager(socket: str) -> bool:
    """If systemd ran the stopped daemon, start its socket unit. Return whether the unit was started."""
    try:
        with open(stopped_path(socket), encoding="utf-8") as mark:
            if mark.read(len(SUPERVISED)) != SUPERVISED:
                return False
        command = ("systemctl", "--user", "--no-pager", "start", "punchlistd.socket")
        return subprocess.run(command, capture_output=True, timeout=_MANAGER_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _spawn(program: Program, ready: int, log: int) -> subprocess.Popen[bytes]:
    # -P: modules in the working directory must not shadow the program's. cwd="/": the program must not block the
    # unmounting or removal of the working directory.
    options = [*program.options, "--idle-exit", str(IDLE_EXIT_S), "--ready-fd", str(ready)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", program.module, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        cwd="/",
        env=environment(),
        pass_fds=(ready, *program.passed),
        start_new_session=True,
    )


def environment() -> dict[str, str]:
    """Return the environment for a process that outlives this one."""
    environment = {
        name: value for name, value in os.environ.items() if name in INHERITED or name.startswith(INHERITED_PREFIXES)
    }
    # The process runs in another working directory, so paths in PYTHONPATH must be absolute.
    if path := environment.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in path.split(os.pathsep) if part)
    return environment


def open_log(program: Program) -> int:
    """Return a descriptor of the log of a program. If the former log is large, it is renamed.

    Raises:
        OSError: It can't be used; `filename` is its path.
    """
    make_directories(program.data_dir)
    path = program.log_path
    try:
        if os.stat(path).st_size > MAX_LOG_BYTES:
            os.replace(path, f"{path}.1")
    except FileNotFoundError:
        pass
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _read_last_lines(path: str, offset: int) -> str:
    with open(path, encoding="utf-8", errors="replace") as log:
        log.seek(offset)
        return "".join(log.readlines()[-_LAST_LINES:]).strip()
