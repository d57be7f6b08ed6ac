"""What commands leave running, also outside of their group: it becomes ours when its parent ends, and is ended.

On Linux a process can adopt the orphans among its descendants (`PR_SET_CHILD_SUBREAPER`). Each command has a mark in
its environment, which what it starts inherits. Elsewhere, the command's group alone is ended.
"""

import contextlib
import os
import sys
from collections.abc import Iterable

MARK = "PUNCHLIST_RUN"
"""The variable with the mark of a command."""

_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> bool:
    """Become the parent of what commands leave behind; False where the system can't."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def left_by(mark: str) -> list[int]:
    """The orphans that a command with this mark has left us."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _children() if wanted in _environment(pid).split(b"\0")]


def end(pids: Iterable[int], number: int) -> None:
    """Send a signal to orphans."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def bury(group: int, pids: Iterable[int]) -> None:
    """Let go of orphans that have ended, in a process group or by their ids: as zombies they would count as running."""
    for pid in (-group, *pids):
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG)[0]:
                pass


def _children() -> list[int]:
    """Our children by the process table, which is 2 ms of work on a busy machine; none where there is no such table."""
    parent = os.getpid()
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdecimal() and _parent(name) == parent]


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""
