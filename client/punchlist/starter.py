"""Starting a daemon that outlives us: detached, quiet, and known to be ready by a pipe."""

import os
import select
import subprocess
import sys
import threading
from typing import NamedTuple

from punchlist.atomic import make_directories

IDLE_EXIT_S = 900
"""A daemon nobody asked for by hand stops after this long without a connection, in seconds."""

MAX_LOG_BYTES = 1 << 20
"""The daemon's log is put aside as `daemon.log.1` when it is longer than this at a start."""

_EXIT_LOST_RACE = 75
_LAST_LINES = 10
_READY = b"ready"


class Report(NamedTuple):
    """What came of a start. `reason` holds the last lines of the daemon's own log."""

    ready: bool
    lost_race: bool = False
    reason: str = ""
    exit_code: int | None = None


def start(socket: str, data_dir: str, timeout_s: float) -> Report:
    """Start a daemon and wait until it accepts, fails, or `timeout_s` seconds are over."""
    log_path = f"{data_dir}/daemon.log"
    try:
        make_directories(data_dir)
        log = _open_log(log_path)
    except OSError as error:
        return Report(ready=False, reason=f"{error.filename}: {error.strerror}")
    began = os.fstat(log).st_size
    reading, writing = os.pipe()
    try:
        process = _spawn(socket, data_dir, writing, log)
    except OSError as error:
        os.close(reading)
        return Report(ready=False, reason=f"{sys.executable!r}: {error.strerror}")
    finally:
        os.close(writing)
        os.close(log)
    try:
        said = _read_line(reading, timeout_s)
    finally:
        os.close(reading)
    if said is not None and said.startswith(_READY):
        # Reaps the daemon should it end before we do.
        threading.Thread(target=process.wait, name="punchlistd-reaper", daemon=True).start()
        return Report(ready=True)
    return _failure(process, said is None, timeout_s, _tail(log_path, began))


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
    """Ours, with the module path made absolute: the daemon does not run in our working directory."""
    environment = dict(os.environ)
    if path := environment.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in path.split(os.pathsep) if part)
    return environment


def _failure(process: subprocess.Popen[bytes], hangs: bool, timeout_s: float, lines: str) -> Report:
    if hangs:
        process.kill()
    code = process.wait()
    if code == _EXIT_LOST_RACE:
        return Report(ready=False, lost_race=True, reason=lines, exit_code=code)
    what = f"it was not ready after {timeout_s:g} s" if hangs else f"it ended with exit code {code}"
    return Report(ready=False, reason=f"{what}\n{lines}" if lines else what, exit_code=None if hangs else code)


def _open_log(path: str) -> int:
    try:
        if os.stat(path).st_size > MAX_LOG_BYTES:
            os.replace(path, f"{path}.1")
    except FileNotFoundError:
        pass
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _read_line(pipe: int, timeout_s: float) -> bytes | None:
    """What the daemon wrote: its line, empty if it closed the pipe without one, None if the time is over."""
    readable, _, _ = select.select([pipe], [], [], timeout_s)
    return os.read(pipe, 64) if readable else None


def _tail(path: str, began: int) -> str:
    with open(path, encoding="utf-8", errors="replace") as log:
        log.seek(began)
        return "".join(log.readlines()[-_LAST_LINES:]).strip()
