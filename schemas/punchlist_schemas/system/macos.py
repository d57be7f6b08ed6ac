"""System calls on macOS. Code that can't run on Linux is untested. It follows Apple's manual pages and headers."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import subprocess
    from _socket import socket as Socket
    from collections.abc import Callable

MAX_ADDRESS_BYTES = 103
"""Maximum length of an AF_UNIX address, without its terminating zero."""

OPEN_FILES = ""
"""macOS has no directory of a process's open files."""

_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2
_XUCRED_BYTES = 76
"""struct xucred: cr_version, cr_uid, cr_ngroups, 16 groups (unix(4), sys/ucred.h)."""

_F_FULLFSYNC = 51
_OPEN_MAX = 10_240
"""Maximum soft limit on descriptors if the hard limit is infinite (setrlimit(2))."""

_STATFS_BYTES = 2168
_STATFS_TYPE = slice(72, 88)
"""f_fstypename of struct statfs with 64-bit inodes (sys/mount.h)."""


def read_peer(sock: "Socket") -> tuple[int, int]:
    """Return process id and user id of the peer of a Unix socket."""
    pid = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4)
    return int.from_bytes(pid, sys.byteorder), parse_user_id(
        sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
    )


def parse_user_id(xucred: bytes) -> int:
    """Return the user id in a struct xucred.

    Raises:
        OSError: The version of the struct is unknown.
    """
    if int.from_bytes(xucred[:4], sys.byteorder) != 0:
        raise OSError("unknown version of struct xucred")
    return int.from_bytes(xucred[4:8], sys.byteorder)


def connect(sock: "Socket", path: str) -> None:
    """Connect to a Unix socket.

    Raises:
        OSError: The connection failed, or the path is too long.
    """
    sock.connect(_check_length(path))


def build_address(_directory: int, path: str) -> str:
    """Return the address of a socket: its path.

    Raises:
        OSError: The path is too long.
    """
    return _check_length(path)


def _check_length(path: str) -> str:
    if len(os.fsencode(path)) > MAX_ADDRESS_BYTES:
        import errno

        text = f"the path of a socket may have at most {MAX_ADDRESS_BYTES} bytes here: set PUNCHLIST_SOCKET"
        raise OSError(errno.ENAMETOOLONG, text)
    return path


def data_home(home: str) -> str:
    """Return the default of XDG_DATA_HOME."""
    return f"{home}/Library/Application Support"


def flush(file: int) -> None:
    """Flush a file to disk. fsync() alone leaves it in the disk's cache."""
    import fcntl

    try:
        fcntl.fcntl(file, _F_FULLFSYNC)
    except OSError:  # the file system does not support this call
        os.fsync(file)


flush_data = flush
"""macOS has no fdatasync()."""


def allocate(file: int, size: int) -> None:
    """Reserve disk space for the first `size` bytes of a file, by writing zeros after its end."""
    end = os.lseek(file, 0, os.SEEK_END)
    while end < size:
        end += os.pwrite(file, bytes(min(size - end, 1 << 20)), end)


def open_memory_file() -> int:
    """Open a file without a name. Child programs don't inherit it."""
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix="punchlist-")
    os.unlink(path)
    return descriptor


def watch_child(
    process: "subprocess.Popen[bytes]", loop: "asyncio.AbstractEventLoop", on_end: "Callable[[], None]"
) -> None:
    """Call `on_end` in the loop once a child has ended. A thread waits for the child and reaps it."""
    import contextlib
    import threading

    def wait() -> None:
        process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_end)

    threading.Thread(target=wait, name="punchlist-child", daemon=True).start()


def find_file_system(path: str) -> str:
    """Return the kernel's name for the type of a path's file system, or "" if unknown."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    statfs = getattr(library, "statfs$INODE64", None) or library.statfs
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    while statfs(os.fsencode(path), buffer) != 0:
        if path in ("", "/"):
            return ""
        path = os.path.dirname(path)
    return buffer.raw[_STATFS_TYPE].rstrip(b"\0").decode("ascii", "replace")


def read_process(pid: int) -> tuple[str, str, int] | None:
    """Return a process's program name, start time (compare it only for equality) and parent, or None if unknown."""
    words = _run_ps(pid, "ppid=,lstart=,comm=").split(None, 6)
    if len(words) != 7:  # noqa: PLR2004 - the parent, five words of a time, the name
        return None
    return os.path.basename(words[6].strip()), "-".join(words[1:6]), int(words[0])


def read_command_line(pid: int) -> list[str]:
    """Return the arguments of a process, including the program; empty if unknown."""
    return _run_ps(pid, "args=").split()


def is_suspended(pid: int) -> bool:
    """Return whether a process is stopped by a signal or a debugger."""
    return _run_ps(pid, "state=").startswith("T")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def holds_lock(pid: str, _inode: int) -> bool:
    """Return whether the process named in a lock file is running. macOS does not report who holds a lock."""
    return pid.isdecimal() and is_running(int(pid))


def adopt_orphans() -> bool:
    """Return False, because macOS doesn't support this."""
    return False


def find_by_variable(_line: bytes, parent: int | None = None) -> list[int]:  # noqa: ARG001
    """Return an empty list, because macOS does not let a process read the environment of other processes."""
    return []


def max_descriptors(hard: int) -> int:
    """Return the highest soft limit on open files that this hard limit allows."""
    return min(hard, _OPEN_MAX) if hard > 0 else _OPEN_MAX


SERVICE_MANAGER: str = "launchd"
"""Name of the process that starts a user's services."""

RENAME = ("renameatx_np", {"no_replace": 4, "exchange": 2})
"""Name and flags of the system call for conditional renaming."""


def _run_ps(pid: int, columns: str) -> str:
    import subprocess

    command = ["ps", "-ww", "-o", columns, "-p", str(pid)]
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False).stdout.strip()
    except OSError:
        return ""
