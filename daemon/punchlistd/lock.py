"""The lock that makes a daemon the only one of its data directory.

The lock is `flock` on a file that is never unlinked: it goes with its holder, however that dies, and a process id in
the file is for people only.
"""

import fcntl
import os


class AlreadyRunning(Exception):
    """Another daemon holds the data directory; the message names it as well as can be known."""


class DataLock:
    """Holds the lock of a data directory for as long as it lives.

    Raises:
        AlreadyRunning: another process holds it.
        OSError: the file can't be opened.
    """

    def __init__(self, path: str) -> None:
        """Take the lock at `path` without waiting."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).split(b"\n")[0].decode("ascii", "replace")
            os.close(self._descriptor)
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise AlreadyRunning(f"{who} runs the daemon of {os.path.dirname(path)}.") from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)

    def close(self) -> None:
        """Let the lock go; the file stays."""
        os.close(self._descriptor)
