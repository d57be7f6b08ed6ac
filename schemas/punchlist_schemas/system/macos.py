"""macOS. Nobody of us had one: what can't run on Linux is written by Apple's manual pages and headers alone."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import socket
    import subprocess
    from collections.abc import Callable

MAX_ADDRESS_BYTES = 103
"""What an AF_UNIX address holds besides its closing zero."""

OPEN_FILES = ""
"""There is no directory with the open files of a process."""

_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2
_XUCRED_BYTES = 76
"""struct xucred: cr_version, cr_uid, cr_ngroups, 16 groups (unix(4), sys/ucred.h)."""

_F_FULLFSYNC = 51
_OPEN_MAX = 10_240
"""A soft limit of descriptors above this is refused where the hard one is infinite (setrlimit(2))."""

_STATFS_BYTES = 2168
_STATFS_TYPE = slice(72, 88)
"""f_fstypename of struct statfs with 64-bit inodes (sys/mount.h)."""


def peer(sock: "socket.socket") -> tuple[int, int]:
    """Process id and user id at the other end of a Unix socket."""
    pid = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4)
    return int.from_bytes(pid, sys.byteorder), user_of(sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES))


def user_of(xucred: bytes) -> int:
    """The user id in what the system tells of a peer.

    Raises:
        OSError: It is of a form that this version does not know.
    """
    if int.from_bytes(xucred[:4], sys.byteorder) != 0:
        raise OSError("the system tells who is at the other end in an unknown form")
    return int.from_bytes(xucred[4:8], sys.byteorder)


def connect(sock: "socket.socket", path: str) -> None:
    """Connect to a Unix socket.

    Raises:
        OSError: As the system says, or the path is too long.
    """
    sock.connect(_checked(path))


def address(_directory: int, path: str) -> str:
    """What to bind, or to connect to, for a socket at `path` in an open directory: the path.

    Raises:
        OSError: It is too long.
    """
    return _checked(path)


def _checked(path: str) -> str:
    if len(os.fsencode(path)) > MAX_ADDRESS_BYTES:
        import errno

        text = f"the path of a socket may have at most {MAX_ADDRESS_BYTES} bytes here: set PUNCHLIST_SOCKET"
        raise OSError(errno.ENAMETOOLONG, text)
    return path


def data_home(home: str) -> str:
    """Where programs keep a user's data, unless XDG_DATA_HOME says so."""
    return f"{home}/Library/Application Support"


def flush(file: int) -> None:
    """Have the disk store a file for good: fsync() leaves it in the disk's own memory.

    Raises:
        OSError: It could not.
    """
    import fcntl

    try:
        fcntl.fcntl(file, _F_FULLFSYNC)
    except OSError:  # a file system that has no such call
        os.fsync(file)


flush_data = flush
"""There is no fdatasync()."""


def allocate(file: int, size: int) -> None:
    """Take so many bytes of the disk for a file, by writing zeros behind its end.

    Raises:
        OSError: There is no room.
    """
    end = os.lseek(file, 0, os.SEEK_END)
    while end < size:
        end += os.pwrite(file, bytes(min(size - end, 1 << 20)), end)


def memory_file() -> int:
    """An open file without a name, closed in programs that this one starts."""
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix="punchlist-")
    os.unlink(path)
    return descriptor


def when_ended(
    process: "subprocess.Popen[bytes]", loop: "asyncio.AbstractEventLoop", ended: "Callable[[], None]"
) -> None:
    """Call `ended` in the loop once a child has ended and was reaped, by a thread that waits for it."""
    import contextlib
    import threading

    def wait() -> None:
        process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended)

    threading.Thread(target=wait, name="punchlist-child", daemon=True).start()


def file_system(path: str) -> str:
    """Type of the file system a path is on, as the kernel names it; "" if unknown."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    statfs = getattr(library, "statfs$INODE64", None) or library.statfs
    found = ctypes.create_string_buffer(_STATFS_BYTES)
    while statfs(os.fsencode(path), found) != 0:
        if path in ("", "/"):
            return ""
        path = os.path.dirname(path)
    return found.raw[_STATFS_TYPE].rstrip(b"\0").decode("ascii", "replace")


def process(pid: int) -> tuple[str, str, int] | None:
    """Name of a process's program, when it started (to compare for equality alone), and its parent; None: unknown."""
    words = _ps(pid, "ppid=,lstart=,comm=").split(None, 6)
    if len(words) != 7:  # noqa: PLR2004 - the parent, five words of a time, the name
        return None
    return os.path.basename(words[6].strip()), "-".join(words[1:6]), int(words[0])


def command_line(pid: int) -> list[str]:
    """The words that a process was started with; none if unknown."""
    return _ps(pid, "args=").split()


def is_suspended(pid: int) -> bool:
    """Return whether a process was stopped by a signal or a debugger."""
    return _ps(pid, "state=").startswith("T")


def is_running(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def holds_lock(pid: str, _inode: int) -> bool:
    """Whether a process that noted itself in a lock's file still runs: who holds a lock is told nobody here."""
    return pid.isdecimal() and is_running(int(pid))


def adopt_orphans() -> bool:
    """Nobody can become the parent of what children leave behind."""
    return False


def with_variable(_line: bytes, parent: int | None = None) -> list[int]:  # noqa: ARG001
    """None: the environment of another process can't be read here."""
    return []


def most_descriptors(hard: int) -> int:
    """The soft limit of open files that may be set under this hard one."""
    return min(hard, _OPEN_MAX) if hard > 0 else _OPEN_MAX


SERVICE_MANAGER: str = "launchd"
"""What starts a user's programs."""

RENAME = ("renameatx_np", {"no_replace": 4, "exchange": 2})
"""The call that renames with a condition, and its flags."""


def _ps(pid: int, columns: str) -> str:
    import subprocess

    command = ["ps", "-ww", "-o", columns, "-p", str(pid)]
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False).stdout.strip()
    except OSError:
        return ""
