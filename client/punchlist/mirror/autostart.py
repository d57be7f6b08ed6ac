"""Starts `punch mirror run` from a hook, if it is needed and not running, so that nobody has to."""

import fcntl
import os
import sys

from punchlist import plain_json
from punchlist_schemas.system.atomic import PRIVATE

IDLE_S = 3_600
"""A mirror that a hook started ends when nothing has changed for this many seconds. The next hook starts another."""


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


def ensure(socket: str, data_dir: str) -> bool:
    """Start a mirror if Claude Code's tasks are to be imported and none is running. Returns whether it started one."""
    if not _has_inbound(data_dir) or is_running(data_dir):
        return False
    import subprocess

    from punchlist.starter import environment

    words = ["mirror", "run", "--idle", str(IDLE_S), "--socket", socket, "--data-dir", data_dir]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(os.path.join(data_dir, "mirror", "run.log"), flags, PRIVATE)
    try:
        subprocess.Popen(
            [sys.executable, "-m", "punchlist.cli", *words],
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


def _has_inbound(data_dir: str) -> bool:
    try:
        with open(os.path.join(data_dir, "mirror", "config.json"), "rb") as file:
            return bool(plain_json.members(file.read(), {"inbound": ()})["inbound"])
    except OSError:
        return False
