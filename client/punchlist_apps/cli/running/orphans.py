"""Finds and ends processes that commands leave running, even outside their process group.

On Linux, a process can adopt the orphans among its descendants (`PR_SET_CHILD_SUBREAPER`). Each command has a marker in
its environment, which its descendants inherit. On other systems, only the command's process group is ended.
"""

import contextlib
import os
from collections.abc import Iterable

from punchlist_schemas.system import os_calls

MARK = "PUNCHLIST_RUN"
"""Environment variable with the marker of a command."""


adopt = os_calls.adopt_orphans
"""Make this process the parent of orphaned descendants. Return False if the system doesn't support it."""


def find_orphans(mark: str) -> list[int]:
    """Return the orphaned descendants of the command with this marker that this process has adopted."""
    return os_calls.find_by_variable(f"{MARK}={mark}".encode(), parent=os.getpid())


def find_marked(mark: str) -> list[int]:
    """Return the command with this marker and its descendants, regardless of their parent."""
    return os_calls.find_by_variable(f"{MARK}={mark}".encode())


def send_signal(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes. A negative id refers to a process group."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap(group: int, pids: Iterable[int]) -> None:
    """Reap orphans that have ended, selected by process group or by id. Zombies would count as running."""
    for pid in (-group, *pids):
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG)[0]:
                pass
