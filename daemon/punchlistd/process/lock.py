"""The lock that makes a daemon the only one of its data directory.

The lock is `flock` on a file that is never unlinked: it goes with its holder, however that dies. The file tells the
holder's process id, for people, and in a second line the path of its socket, for clients that look for it elsewhere.
"""

import contextlib
import fcntl
import os
import time

RETRY_S = 0.02
MOST_TOLD = 8_192
"""So many bytes of the file are read at most."""


class AlreadyRunning(Exception):
    """Another daemon holds the data directory; the message names it as well as can be known."""


class DataLock:
    """Holds the lock of a data directory until closed.

    Args:
        path: the lock's file, made if need be.
        patience_s: how long to wait, in seconds, for a holder that is about to leave.
        socket: where the daemon listens that holds it; who finds the lock taken finds the daemon by it.

    Raises:
        AlreadyRunning: another process holds it.
        OSError: the file can't be opened.
    """

    def __init__(self, path: str, patience_s: float = 0.0, socket: str = "") -> None:
        self.path = path
        deadline = time.monotonic() + patience_s
        while not self._take():
            if time.monotonic() >= deadline:
                raise AlreadyRunning(_describe(path))
            time.sleep(RETRY_S)
        with contextlib.suppress(OSError):  # a full disk: the text is a convenience
            os.ftruncate(self._descriptor, 0)
            where = b"" if "\n" in socket or not socket else os.fsencode(socket) + b"\n"
            os.pwrite(self._descriptor, b"%d\n" % os.getpid() + where, 0)

    def _take(self) -> bool:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            return False
        if self.is_in_place():
            return True
        os.close(self._descriptor)  # somebody replaced the file meanwhile: the lock of the old one says nothing
        return False

    def is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path, follow_symlinks=False), os.fstat(self._descriptor))
        except OSError:
            return False

    @property
    def identity(self) -> dict[str, str]:
        """Numbers of the file's device and inode, as decimal texts: by them it is known whatever path leads to it."""
        status = os.fstat(self._descriptor)
        return {"device": str(status.st_dev), "inode": str(status.st_ino)}

    def close(self) -> None:
        os.close(self._descriptor)


def _describe(path: str) -> str:
    directory = os.path.dirname(path)
    holder, socket = b"", ""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        holder, found, *_ = (*file.read(MOST_TOLD).split(b"\n"), b"")
        holder = holder[:32]
        socket = os.fsdecode(found)
    who = f"process {int(holder)}" if holder.isdigit() else "another process"
    where = f" (PUNCHLIST_SOCKET={socket})" if socket else ""
    return (
        f"{who} runs the daemon of {directory}. Use that one{where}, end it first (punch daemon stop), "
        "or give this one a --data-dir of its own."
    )
