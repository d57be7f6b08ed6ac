"""System calls on Linux. Imports little at the top, because shell prompts load this module."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import subprocess
    from _socket import socket as Socket
    from collections.abc import Callable

MAX_ADDRESS_BYTES = 107
"""Maximum length of an AF_UNIX address, without its terminating zero."""

OPEN_FILES = "/proc/self/fd"
"""Directory of this process's open files, by descriptor."""

_MAX_NAME_BYTES = 80
"""Maximum length of a socket's file name that fits into an address after any descriptor's path."""

_PR_SET_CHILD_SUBREAPER = 36
_MOUNTS = "/proc/self/mountinfo"


def read_peer(sock: "Socket") -> tuple[int, int]:
    """Return process id and user id of the peer of a Unix socket."""
    from _socket import SO_PEERCRED, SOL_SOCKET

    # struct ucred: pid, uid, gid
    credentials = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], sys.byteorder), int.from_bytes(credentials[4:8], sys.byteorder)


def connect(sock: "Socket", path: str) -> None:
    """Connect to a Unix socket, regardless of the length of its path."""
    if len(os.fsencode(path)) <= MAX_ADDRESS_BYTES:
        sock.connect(path)
        return
    folder, name = os.path.split(path)
    if len(os.fsencode(name)) > _MAX_NAME_BYTES:
        import errno

        raise OSError(errno.ENAMETOOLONG, f"the file name of a socket may have at most {_MAX_NAME_BYTES} bytes")
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.connect(f"{OPEN_FILES}/{directory}/{name}")
    finally:
        os.close(directory)


def build_address(directory: int, path: str) -> str:
    """Return the address of a socket at `path`, whose directory is open as `directory`.

    Raises:
        OSError: /proc is not mounted.
    """
    if not os.path.isdir(OPEN_FILES):
        import errno

        raise OSError(errno.ENOENT, f"{OPEN_FILES} is needed. Mount /proc")
    return f"{OPEN_FILES}/{directory}/{os.path.basename(path)}"


def data_home(home: str) -> str:
    """Return the default of XDG_DATA_HOME."""
    return f"{home}/.local/share"


def flush(file: int) -> None:
    """Flush a file, with its metadata, to disk."""
    os.fsync(file)


def flush_data(file: int) -> None:
    """Flush a file's bytes to disk."""
    os.fdatasync(file)


def allocate(file: int, size: int) -> None:
    """Reserve disk space for the first `size` bytes of a file."""
    os.posix_fallocate(file, 0, size)


def open_memory_file() -> int:
    """Open a file without a name. Child programs don't inherit it."""
    return os.memfd_create("punchlist", os.MFD_CLOEXEC)


def watch_child(
    process: "subprocess.Popen[bytes]", loop: "asyncio.AbstractEventLoop", on_end: "Callable[[], None]"
) -> None:
    """Call `on_end` in the loop once a child has ended. The child is not reaped, so its pid can't be reused."""
    descriptor = os.pidfd_open(process.pid)

    def report() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        on_end()

    loop.add_reader(descriptor, report)


def find_file_system(path: str, table: str = _MOUNTS) -> str:
    """Return the kernel's name for the type of a path's file system, or "" if the mount table is missing."""
    import re

    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as lines:
            mounts = [line.split() for line in lines]
    except OSError:
        return ""
    path = os.path.realpath(path)
    best, kind = "", ""
    for fields in mounts:
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later mount on the same mount point hides an earlier one
            best, kind = point, fields[fields.index("-") + 1]
    return kind


def read_process(pid: int) -> tuple[str, str, int] | None:
    """Return a process's program name, start time (compare it only for equality) and parent, or None if unknown."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            head, _, rest = file.read().rpartition(")")
        fields = rest.split()
        return head.partition("(")[2], fields[19], int(fields[1])
    except (OSError, ValueError, IndexError):
        return None


def read_command_line(pid: int) -> list[str]:
    """Return the arguments of a process, including the program; empty if unknown."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []


def is_suspended(pid: int) -> bool:
    """Return whether a process is stopped by a signal or a debugger."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False


def is_running(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def holds_lock(pid: str, inode: int) -> bool:
    """Return whether a process holds the `flock` on a file, without trying to take the lock."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            rows = [line.split() for line in locks]
    except OSError:
        return False
    return any(row[1:2] == ["FLOCK"] and row[4:5] == [pid] and row[5].endswith(f":{inode}") for row in rows)


def adopt_orphans() -> bool:
    """Become the parent of orphaned descendants. Return False if the system doesn't support this."""
    import ctypes

    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def find_by_variable(line: bytes, parent: int | None = None) -> list[int]:
    """Return a parent's child processes whose environment contains this line. Takes about 2 ms on a busy machine."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    if parent is not None:
        pids = [pid for pid in pids if (read_process(pid) or ("", "", 0))[2] == parent]
    return [pid for pid in pids if line in _read_environment(pid)]


def _read_environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def max_descriptors(hard: int) -> int:
    """Return the highest soft limit on open files that this hard limit allows."""
    return hard


SERVICE_MANAGER: str = "systemd"
"""Name of the process that starts a user's services."""

RENAME = ("renameat2", {"no_replace": 1, "exchange": 2})
"""Name and flags of the system call for conditional renaming."""
