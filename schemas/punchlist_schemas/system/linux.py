"""Linux. Light at the top: a shell prompt imports this."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import socket
    import subprocess
    from collections.abc import Callable

MAX_ADDRESS_BYTES = 107
"""What an AF_UNIX address holds besides its closing zero."""

OPEN_FILES = "/proc/self/fd"
"""Directory with the open files of this process by their numbers."""

_MAX_NAME_BYTES = 80
"""What is surely left of an address for the socket's name, behind its directory as a descriptor."""

_PR_SET_CHILD_SUBREAPER = 36
_MOUNTS = "/proc/self/mountinfo"


def peer(sock: "socket.socket") -> tuple[int, int]:
    """Process id and user id at the other end of a Unix socket (struct ucred: pid, uid, gid)."""
    import socket

    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], sys.byteorder), int.from_bytes(credentials[4:8], sys.byteorder)


def connect(sock: "socket.socket", path: str) -> None:
    """Connect to a Unix socket, however long its path is.

    Raises:
        OSError: As the system says.
    """
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


def address(directory: int, path: str) -> str:
    """What to bind, or to connect to, for a socket at `path` in an open directory: whatever its path leads to now.

    Raises:
        OSError: There is no such address; the message says why.
    """
    if not os.path.isdir(OPEN_FILES):
        import errno

        raise OSError(errno.ENOENT, f"{OPEN_FILES} is needed. Mount /proc")
    return f"{OPEN_FILES}/{directory}/{os.path.basename(path)}"


def data_home(home: str) -> str:
    """Where programs keep a user's data, unless XDG_DATA_HOME says so."""
    return f"{home}/.local/share"


def flush(file: int) -> None:
    """Have the disk store a file for good.

    Raises:
        OSError: It could not.
    """
    os.fsync(file)


def flush_data(file: int) -> None:
    """Have the disk store a file's bytes for good.

    Raises:
        OSError: It could not.
    """
    os.fdatasync(file)


def allocate(file: int, size: int) -> None:
    """Take so many bytes of the disk for a file.

    Raises:
        OSError: There is no room.
    """
    os.posix_fallocate(file, 0, size)


def memory_file() -> int:
    """An open file without a name, closed in programs that this one starts."""
    return os.memfd_create("punchlist", os.MFD_CLOEXEC)


def when_ended(
    process: "subprocess.Popen[bytes]", loop: "asyncio.AbstractEventLoop", ended: "Callable[[], None]"
) -> None:
    """Call `ended` in the loop once a child has ended. It is not reaped: its number stays its own."""
    descriptor = os.pidfd_open(process.pid)

    def report() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended()

    loop.add_reader(descriptor, report)


def file_system(path: str, table: str = _MOUNTS) -> str:
    """Type of the file system a path is on, as the kernel names it; "" where there is no table of mounts."""
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
        if inside and len(point) >= len(best):  # a later mount on the same point hides an earlier one
            best, kind = point, fields[fields.index("-") + 1]
    return kind


def process(pid: int) -> tuple[str, str, int] | None:
    """Name of a process's program, when it started (to compare for equality alone), and its parent; None: unknown."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            head, _, rest = file.read().rpartition(")")
        fields = rest.split()
        return head.partition("(")[2], fields[19], int(fields[1])
    except (OSError, ValueError, IndexError):
        return None


def command_line(pid: int) -> list[str]:
    """The words that a process was started with; none if unknown."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []


def is_suspended(pid: int) -> bool:
    """Return whether a process was stopped by a signal or a debugger."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False


def is_running(pid: int) -> bool:
    """Whether there is such a process."""
    return os.path.exists(f"/proc/{pid}")


def holds_lock(pid: str, inode: int) -> bool:
    """Whether a process holds a file locked (`flock`). The lock is read of, never taken."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            rows = [line.split() for line in locks]
    except OSError:
        return False
    return any(row[1:2] == ["FLOCK"] and row[4:5] == [pid] and row[5].endswith(f":{inode}") for row in rows)


def adopt_orphans() -> bool:
    """Become the parent of what our children leave behind; False where that can't be."""
    import ctypes

    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def with_variable(line: bytes, parent: int | None = None) -> list[int]:
    """Processes, or those of one parent, in whose environment this line stands: 2 ms of work on a busy machine."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    if parent is not None:
        pids = [pid for pid in pids if (process(pid) or ("", "", 0))[2] == parent]
    return [pid for pid in pids if line in _environment(pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def most_descriptors(hard: int) -> int:
    """The soft limit of open files that may be set under this hard one."""
    return hard


SERVICE_MANAGER: str = "systemd"
"""What starts a user's programs."""

RENAME = ("renameat2", {"no_replace": 1, "exchange": 2})
"""The call that renames with a condition, and its flags."""
