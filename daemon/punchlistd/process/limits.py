"""Resets process settings that were inherited from the program that started the daemon: limits, priority and umask.

The first client starts the daemon for all clients, so the first client's restrictions must not apply to the others.
Settings that can't be reset without privileges are logged.
"""

import ctypes
import logging
import os
import resource
import threading

from punchlist_schemas.system import os_calls

logger = logging.getLogger(__name__)

SPARE_DESCRIPTORS = 64
"""Number of descriptors reserved for the log, its helper files, and the rejection of excess connections."""

MIN_DESCRIPTORS = 2 * SPARE_DESCRIPTORS
"""Minimum number of descriptors. With fewer, a daemon could serve hardly any connections, so it doesn't start."""

_LIMITS = {
    resource.RLIMIT_NOFILE: "descriptors",
    resource.RLIMIT_CPU: "seconds of processor time",
    resource.RLIMIT_FSIZE: "bytes in a file",
    resource.RLIMIT_AS: "bytes of address space",
    resource.RLIMIT_DATA: "bytes of data",
}


_M_ARENA_MAX = -8
"""Parameter of glibc's mallopt(3)."""

STACK_BYTES = 1 << 20
"""Stack size of each thread except the first, in bytes."""


class TooFewDescriptors(Exception):
    """The hard limit for descriptors is below `MIN_DESCRIPTORS`."""


def detach() -> int:
    """Raise soft limits to the hard ones, and reset priority and umask.

    Remaining restrictions are logged, because they may explain an early exit.

    Returns:
        The maximum number of connections.

    Raises:
        TooFewDescriptors: The hard limit is below MIN_DESCRIPTORS.
    """
    os.umask(0o077)
    for kind, unit in _LIMITS.items():
        hard = resource.getrlimit(kind)[1]
        soft = os_calls.max_descriptors(hard) if kind == resource.RLIMIT_NOFILE else hard
        resource.setrlimit(kind, (soft, hard))
        if hard != resource.RLIM_INFINITY and kind != resource.RLIMIT_NOFILE:
            logger.warning("the program that started this daemon limits it to %d %s", hard, unit)
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors < MIN_DESCRIPTORS:
        raise TooFewDescriptors(
            f"this process may open {descriptors} files and needs {MIN_DESCRIPTORS}: raise the limit (ulimit -Hn), "
            "or let the service manager start the daemon: punch daemon service install --now"
        )
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice > 0:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        except PermissionError:
            logger.warning("the program that started this daemon runs at nice %d, and so does the daemon", nice)
    return descriptors - SPARE_DESCRIPTORS


def reduce_address_space() -> None:
    """Reserve less address space per thread, because address space may be limited. Call before the first thread starts.

    glibc reserves 64 MiB of heap and 8 MiB of stack for each thread. Python threads run one at a time, so one heap is
    enough for all of them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl neither has nor needs it
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
    threading.stack_size(STACK_BYTES)
