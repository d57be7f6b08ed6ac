"""Starting a daemon that outlives us: detached, quiet, and known to be ready by a pipe."""

import os
import subprocess
import sys
import threading
import time
from typing import NamedTuple

from punchlist.connection.readable import is_readable
from punchlist_schemas.rendezvous import make_directories, stopped_path

IDLE_EXIT_S = 900
"""A daemon nobody asked for by hand stops after this long without a connection, in seconds."""

MAX_LOG_BYTES = 1 << 20
"""The daemon's log is put aside as `daemon.log.1` when it is longer than this at a start."""

INHERITED = frozenset({"HOME", "PATH", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH"})
"""Variables that a process which outlives its starter gets. Others, API keys among them, stay with the starter."""

INHERITED_PREFIXES = ("LC_", "XDG_", "PUNCHLIST_", "PYTHON", "COVERAGE_")
"""Variables whose names begin so are passed on as well: the last for runs whose coverage is measured."""

SUPERVISED = "systemd"
"""In the mark of a daemon that was stopped on purpose: systemd started it, and shall start the next one."""

_MANAGER_S = 90
_EXIT_LOST_RACE = 75
_LAST_LINES = 10
_READY = b"ready"


class Report(NamedTuple):
    """What came of a start. `reason` holds the last lines of the daemon's own log."""

    ready: bool
    lost_race: bool = False
    reason: str = ""
    exit_code: int | None = None


class Starting:
    """A daemon that was started and may not be ready yet. Nobody ends it: a slow one serves whoever comes later.

    Args:
        socket: Where it shall listen.
        data_dir: Its data directory, made if need be.

    Raises:
        OSError: A file or the interpreter can't be used; it has `filename`.
    """

    _ready: int | None = None

    def __init__(self, socket: str, data_dir: str) -> None:
        make_directories(data_dir)
        self.log_path = f"{data_dir}/daemon.log"
        log = _open_log(self.log_path)
        self._begin = os.fstat(log).st_size
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._report: Report | None = None
        reading, writing = os.pipe()
        try:
            self._process = _spawn(socket, data_dir, writing, log)
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
            os.close(log)
        self._ready = reading
        # Reaps the daemon should it end before we do.
        self._reaper = threading.Thread(target=self._process.wait, name="punchlistd-reaper", daemon=True)
        self._reaper.start()

    def wait(self, timeout_s: float) -> Report | None:
        """What came of it, once it accepts or has ended; None if it still starts after `timeout_s` seconds."""
        end = time.monotonic() + timeout_s
        if not self._lock.acquire(timeout=max(0.0, timeout_s)):
            return None
        try:
            if self._ready is not None and is_readable(self._ready, end - time.monotonic()):
                self._report = self._outcome(os.read(self._ready, 64))
                os.close(self._ready)
                self._ready = None
            return self._report
        finally:
            self._lock.release()

    def _outcome(self, said: bytes) -> Report:
        if said.startswith(_READY):
            return Report(ready=True)
        code = self._process.wait()
        lines = _last_lines(self.log_path, self._begin)
        if code == _EXIT_LOST_RACE:
            return Report(ready=False, lost_race=True, reason=lines, exit_code=code)
        what = f"it ended with exit code {code}"
        return Report(ready=False, reason=f"{what}\n{lines}" if lines else what, exit_code=code)

    def __del__(self) -> None:
        if self._ready is not None:
            os.close(self._ready)

    def __str__(self) -> str:
        return (
            f"punchlistd (process {self._process.pid}) is not ready {time.monotonic() - self._began:.0f} s after its "
            f"start and was left alone to go on with it: try again in a moment. Its log is {self.log_path}."
        )


def start_by_manager(socket: str) -> bool:
    """Have systemd listen again, if it did before somebody stopped the daemon. Whether it does."""
    try:
        with open(stopped_path(socket), encoding="utf-8") as mark:
            if mark.read(len(SUPERVISED)) != SUPERVISED:
                return False
        command = ("systemctl", "--user", "--no-pager", "start", "punchlistd.socket")
        return subprocess.run(command, capture_output=True, timeout=_MANAGER_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _spawn(socket: str, data_dir: str, ready: int, log: int) -> subprocess.Popen[bytes]:
    # -P and the root directory: neither may the working directory shadow our modules, nor do we keep it busy.
    options = ["--socket", socket, "--data-dir", data_dir, "--idle-exit", str(IDLE_EXIT_S), "--ready-fd", str(ready)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "punchlistd", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        cwd="/",
        env=environment(),
        pass_fds=(ready,),
        start_new_session=True,
    )


def environment() -> dict[str, str]:
    """What a daemon needs of ours, with the module path made absolute: it does not run in our working directory."""
    environment = {
        name: value for name, value in os.environ.items() if name in INHERITED or name.startswith(INHERITED_PREFIXES)
    }
    if path := environment.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in path.split(os.pathsep) if part)
    return environment


def _open_log(path: str) -> int:
    try:
        if os.stat(path).st_size > MAX_LOG_BYTES:
            os.replace(path, f"{path}.1")
    except FileNotFoundError:
        pass
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _last_lines(path: str, began: int) -> str:
    with open(path, encoding="utf-8", errors="replace") as log:
        log.seek(began)
        return "".join(log.readlines()[-_LAST_LINES:]).strip()
