"""Starts `punch mirror run` in the background, if files are mirrored and none runs.

Hooks, `punch agent mcp` and commands do so: a restart of the machine ends mirrors, and nobody has to think of that.
"""

import fcntl
import json
import os
import sys
import time
from typing import Any

from punchlist_schemas.system.atomic import PRIVATE

IDLE_S = 3_600
"""A mirror that imports Claude Code's tasks alone ends after this long without a change, in seconds."""


RETRY_S = 60.0
"""How long no other mirror is started after one that reported an error, in seconds."""


def is_running(data_dir: str) -> bool:
    """Whether a process keeps the mirrors of a data directory up to date. The lock is held only for a moment."""
    try:
        with open(os.path.join(data_dir, "mirror", "lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def ensure(socket: str, data_dir: str, *, retry: bool = False) -> bool:
    """Start a mirror if files are to be mirrored and none is running. Returns whether it started one.

    Args:
        retry: Start one also within `RETRY_S` after an error of the last one.
    """
    wanted = _configured(data_dir)
    path = os.path.join(data_dir, "mirror", "run.log")
    if not wanted or is_running(data_dir) or (not retry and _has_new_error(path)):
        return False
    import subprocess

    from punchlist.connection.starter import environment

    words = ["mirror", "run", "--socket", socket, "--data-dir", data_dir]
    if wanted == {"inbound"}:
        words += ["--idle", str(IDLE_S)]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        log = os.open(path, flags, PRIVATE)
    except OSError:
        return False  # in a sandbox that may not write there: whatever started this goes on without
    try:
        subprocess.Popen(
            [sys.executable, "-m", "punchlist", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=environment(),
            start_new_session=True,
        ).returncode = 0  # it outlives us: nobody waits for it
    finally:
        os.close(log)
    return True


def _has_new_error(log: str) -> bool:
    try:
        found = os.stat(log)
    except OSError:
        return False
    return found.st_size > 0 and time.time() < found.st_mtime + RETRY_S


def _configured(data_dir: str) -> set[str]:
    try:
        with open(os.path.join(data_dir, "mirror", "config.json"), "rb") as file:
            found: Any = json.loads(file.read().decode())
        return {kind for kind in ("mirrors", "plans", "inbound") if found.get(kind)}
    except (OSError, ValueError, RecursionError, AttributeError):
        return set()
