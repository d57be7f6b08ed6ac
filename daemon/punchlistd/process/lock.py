"""The lock that allows only one daemon per data directory.

The lock is a `flock` on a file that is never unlinked. The kernel releases it when the process ends. The file contains
the holder's process id, for people. Its second line is the path of the holder's socket, for clients that expect another
path.
"""

import contextlib
import fcntl
import os
import time

RETRY_S = 0.02
MAX_LOCK_FILE_BYTES = 8_192
"""Maximum number of bytes read from the file."""


class AlreadyRunning(Exception):
    """Another daemon holds the data directory. The message identifies that daemon as far as possible."""


class DataLock:
    """The lock of a data directory, held until closed.

    Args:
        path: The lock file, created if missing.
        patience_s: Maximum time to wait for the current holder to end, in seconds.
        socket: Path of this daemon's socket. A process that finds the lock taken uses the path to find the daemon.

    Raises:
        AlreadyRunning: Another process holds the lock.
        OSError: The file can't be opened.
    """

    def __init__(self, path: str, patience_s: float = 0.0, socket: str = "") -> None:
        self.path = path
        deadline = time.monotonic() + patience_s
        while not self._acquire():
            if time.monotonic() >= deadline:
                raise AlreadyRunning(_describe(path))
            time.sleep(RETRY_S)
        with contextlib.suppress(OSError):  # the disk may be full, and the contents are optional
            os.ftruncate(self._descriptor, 0)
            second_line = b"" if "\n" in socket or not socket else os.fsencode(socket) + b"\n"
            os.pwrite(self._descriptor, b"%d\n" % os.getpid() + second_line, 0)

    def _acquire(self) -> bool:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            return False
        if self.is_in_place():
            return True
        # The file was replaced before it was locked, so the lock on the old file doesn't protect the directory.
        os.close(self._descriptor)
        return False

    def is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path, follow_symlinks=False), os.fstat(self._descriptor))
        except OSError:
            return False

    @property
    def identity(self) -> dict[str, str]:
        """The file's device and inode numbers as decimal strings. They identify the file under any path."""
        status = os.fstat(self._descriptor)
        return {"device": str(status.st_dev), "inode": str(status.st_ino)}

    def close(self) -> None:
        os.close(self._descriptor)


def _describe(path: str) -> str:
    directory = os.path.dirname(path)
    holder, socket = b"", ""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        holder, second_line, *_ = (*file.read(MAX_LOCK_FILE_BYTES).split(b"\n"), b"")
        holder = holder[:32]
        socket = os.fsdecode(second_line)
    process = f"process {int(holder)}" if holder.isdigit() else "another process"
    address = f" (PUNCHLIST_SOCKET={socket})" if socket else ""
    return (
        f"{process} runs the daemon of {directory}. Use that one{address}, stop it first (punch daemon stop), "
        "or pass another --data-dir."
    )
