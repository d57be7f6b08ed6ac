"""System calls of the warm process. `client/punch.c` is compiled only for Linux."""

import ctypes
import os
from collections.abc import Iterable

_NAMESPACES = ("ns/mnt", "ns/pid", "ns/user", "ns/net", "root")
_LIMITS = ("Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:")
"""Lines of /proc/PID/status."""

_IN_CHANGES = 0x2 | 0x40 | 0x80 | 0x100 | 0x200
"""inotify(7): IN_MODIFY, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE and IN_DELETE."""


def read_confinement(pid: int) -> str:
    """Return what a process may do and see: its ids, capabilities, namespaces, label and restrictions.

    Raises:
        OSError: The process has ended, or it is another user's.
    """
    links = [os.readlink(f"/proc/{pid}/{name}") for name in _NAMESPACES]
    try:
        with open(f"/proc/{pid}/attr/current", "rb") as label:
            links.append(os.fsdecode(label.read()))
    except OSError:  # the kernel has neither AppArmor nor SELinux
        pass
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        return "".join([*links, *(line for line in status if line.startswith(_LIMITS))])


def create_proof() -> tuple[bytes, int]:
    """Open a file with a random name. Return what reading its link in /proc gives, and its descriptor."""
    name = os.urandom(16).hex()
    return f"/memfd:{name} (deleted)".encode(), os.memfd_create(name)


def watch_directories(paths: Iterable[str]) -> int:
    """Return a descriptor that becomes readable when a file in one of these directories changes.

    Raises:
        OSError: The system has too many watches.
    """
    library = ctypes.CDLL(None, use_errno=True)
    watch: int = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    for path in paths:
        if library.inotify_add_watch(watch, os.fsencode(path), _IN_CHANGES) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    return watch
