"""Starts `punch mirror run` in the background if mirrors are configured and it isn't running.

Hooks, `punch agent mcp` and commands call this, so that mirrors continue after the machine restarts.
"""

import fcntl
import json
import os
import sys
import time
from typing import Any

from punchlist.connection.launch import Target
from punchlist_schemas.system.atomic import PRIVATE

IDLE_S = 3_600
"""Idle timeout for a process that only imports Claude Code's tasks, in seconds."""

RETRY_S = 60.0
"""Minimum time between an error and the next start of mirrors, in seconds."""


def is_running(data_dir: str) -> bool:
    """Return whether a process is running the mirrors of a data directory, by trying to lock its lock file."""
    try:
        with open(os.path.join(data_dir, "mirror", "lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def ensure_mirrors_run(target: Target) -> None:
    """Start `punch mirror run` if mirrors are configured, it isn't running, and `target` may start programs."""
    if target.autostart and os.path.lexists(f"{target.data_dir}/mirror/config.json"):
        ensure_running(target.socket, target.data_dir)


def ensure_running(socket: str, data_dir: str, *, retry: bool = False) -> bool:
    """Start `punch mirror run` if mirrors are configured and it isn't running. Return whether it was started.

    Args:
        retry: Start mirrors even if the last error was less than `RETRY_S` ago.
    """
    kinds = _read_kinds(data_dir)
    path = os.path.join(data_dir, "mirror", "run.log")
    if not kinds or is_running(data_dir) or (not retry and has_new_error(path)):
        return False
    import subprocess

    from punchlist.connection.starter import environment

    words = ["mirror", "run", "--socket", socket, "--data-dir", data_dir]
    if kinds == {"inbound"}:
        words += ["--idle", str(IDLE_S)]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        log = os.open(path, flags, PRIVATE)
    except OSError:
        # A sandbox may forbid writing to the data directory. The caller continues without mirrors.
        return False
    try:
        subprocess.Popen(
            [sys.executable, "-m", "punchlist", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=environment(),
            start_new_session=True,
        ).returncode = 0  # The process outlives this one. Without a return code, Popen would warn that it still runs.
    finally:
        os.close(log)
    return True


def has_new_error(log: str) -> bool:
    """Return whether a process wrote an error to its log less than `RETRY_S` ago."""
    try:
        status = os.stat(log)
    except OSError:
        return False
    return status.st_size > 0 and time.time() < status.st_mtime + RETRY_S


def _read_kinds(data_dir: str) -> set[str]:
    try:
        with open(os.path.join(data_dir, "mirror", "config.json"), "rb") as file:
            config: Any = json.loads(file.read().decode())
        return {kind for kind in ("mirrors", "plans", "inbound") if config.get(kind)}
    except (OSError, ValueError, RecursionError, AttributeError):
        return set()
