"""What a daemon does not take over from the program that started it: limits, priority and umask.

The first caller starts the daemon of all others. What was meant for that caller alone must not decide how they fare.
What can't be taken back it makes do with.
"""

import ctypes
import logging
import os
import resource
import threading

from punchlist_schemas.system import os_calls

logger = logging.getLogger(__name__)

SPARE_DESCRIPTORS = 64
"""Descriptors that connections may not take: for the log, its helpers, and rejecting one connection too many."""

FEWEST_DESCRIPTORS = 2 * SPARE_DESCRIPTORS
"""A daemon that may have fewer refuses to start: it could serve next to nobody."""

_RAISED = {
    resource.RLIMIT_NOFILE: "descriptors",
    resource.RLIMIT_CPU: "seconds of processor time",
    resource.RLIMIT_FSIZE: "bytes in a file",
    resource.RLIMIT_AS: "bytes of address space",
    resource.RLIMIT_DATA: "bytes of data",
}


_M_ARENA_MAX = -8
"""glibc's mallopt(3)."""

STACK_BYTES = 1 << 20
"""Of each thread but the first."""


class TooFewDescriptors(Exception):
    """The hard limit of descriptors is too low to serve anybody."""


def detach() -> int:
    """Raise soft limits to the hard ones, and return to the usual priority.

    What can't be had without privileges goes into the daemon's log, since it explains an early end.

    Returns:
        How many connections there may be.

    Raises:
        TooFewDescriptors: This process may have fewer descriptors than FEWEST_DESCRIPTORS.
    """
    os.umask(0o077)
    for kind, what in _RAISED.items():
        hard = resource.getrlimit(kind)[1]
        soft = os_calls.most_descriptors(hard) if kind == resource.RLIMIT_NOFILE else hard
        resource.setrlimit(kind, (soft, hard))
        if hard != resource.RLIM_INFINITY and kind != resource.RLIMIT_NOFILE:
            logger.warning("the program that started this daemon limits it to %d %s", hard, what)
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors < FEWEST_DESCRIPTORS:
        raise TooFewDescriptors(
            f"this process may open {descriptors} files and needs {FEWEST_DESCRIPTORS}: raise the limit (ulimit -Hn), "
            "or let the service manager start the daemon: punch daemon service install --now"
        )
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice > 0:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        except PermissionError:
            logger.warning("the program that started this daemon runs at nice %d, and so does the daemon", nice)
    return descriptors - SPARE_DESCRIPTORS


def take_little_address_space() -> None:
    """Leave more of a limited address space to the lists; called before the first thread begins.

    glibc sets 64 MiB aside for each thread and 8 MiB for its stack. Ours take turns at the interpreter, so one heap
    does for all.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none, and needs none
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
    threading.stack_size(STACK_BYTES)
