"""What commands leave running, also outside of their group: it becomes ours when its parent ends, and is ended.

On Linux a process can adopt the orphans among its descendants (`PR_SET_CHILD_SUBREAPER`). Each command has a mark in
its environment, which what it starts inherits. Elsewhere, the command's group alone is ended.
"""

import contextlib
import os
from collections.abc import Iterable

from punchlist_schemas.system import os_calls

MARK = "PUNCHLIST_RUN"
"""The variable with the mark of a command."""


adopt = os_calls.adopt_orphans
"""Become the parent of what commands leave behind; False where the system can't."""


def find_orphans(mark: str) -> list[int]:
    """The orphans that a command with this mark has left us."""
    return os_calls.with_variable(f"{MARK}={mark}".encode(), parent=os.getpid())


def find_marked(mark: str) -> list[int]:
    """The command with this mark and its descendants, of any parent."""
    return os_calls.with_variable(f"{MARK}={mark}".encode())


def send_signal(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes; a negative number is that of a group."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap(group: int, pids: Iterable[int]) -> None:
    """Let go of orphans that have ended, in a process group or by their ids: as zombies they would count as running."""
    for pid in (-group, *pids):
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG)[0]:
                pass
