"""The socket: inherited, or bound by us, private, and never taken from a daemon that lives.

Binding goes through a descriptor of the directory, so that a path of any length works (an AF_UNIX address holds 107
bytes) and a directory swapped for a link meanwhile leads nowhere. A socket file is stale if, and only if, connecting to
it is refused; anything else unclear is left alone.
"""

import errno
import fcntl
import os
import socket
import stat

BACKLOG = 1_024


class SocketTaken(Exception):
    """Another daemon serves this socket."""


class SocketUnusable(Exception):
    """The socket's place can't be used; the message says why and what to do."""


def private_directory(path: str) -> int:
    """Open a directory of ours, made if need be, that nobody else may enter; a descriptor of it.

    Raises:
        SocketUnusable: it is somebody else's, not a directory, or can't be made.
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SocketUnusable(f"{path} can't be used as a directory: {error.strerror}. Choose another one.") from error
    status = os.fstat(descriptor)
    if status.st_uid != os.getuid():
        os.close(descriptor)
        raise SocketUnusable(f"{path} belongs to another user (uid {status.st_uid}). Choose a directory of your own.")
    if stat.S_IMODE(status.st_mode) & 0o077:
        os.fchmod(descriptor, 0o700)
    return descriptor


class OwnSocket:
    """A listening socket that we bound ourselves, with the lock that guards its place.

    Raises:
        SocketTaken: a daemon serves it already.
        SocketUnusable: the place can't be used.
    """

    def __init__(self, path: str) -> None:
        """Bind and listen at `path`, mode 0600."""
        self.path = path
        self._name = os.path.basename(path)
        self._directory = private_directory(os.path.dirname(path))
        try:
            self._lock = self._take_lock()
            self.sock = self._bind()
        except BaseException:
            os.close(self._directory)
            raise
        status = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        self.identity = (status.st_dev, status.st_ino)

    def _take_lock(self) -> int:
        # Held while we live: two daemons with different data directories must not take one socket from each other.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            lock = os.open(f"{self._name}.lock", flags, 0o600, dir_fd=self._directory)
        except OSError as error:
            raise SocketUnusable(f"{self.path}.lock can't be opened: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise SocketTaken(f"Another daemon serves {self.path}.") from error
        return lock

    def _bind(self) -> socket.socket:
        address = f"/proc/self/fd/{self._directory}/{self._name}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        before = os.umask(0o177)
        try:
            try:
                sock.bind(address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                self._clear_stale(address)
                sock.bind(address)
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            raise SocketUnusable(f"{self.path} can't be bound: {error.strerror}.") from error
        except BaseException:
            sock.close()
            raise
        finally:
            os.umask(before)
        return sock

    def _clear_stale(self, address: str) -> None:
        mode = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False).st_mode
        if not stat.S_ISSOCK(mode):
            raise SocketUnusable(f"{self.path} exists and is no socket. Move it away, or choose another path.")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
            try:
                probe.connect(address)
            except ConnectionRefusedError:
                os.unlink(self._name, dir_fd=self._directory)
                return
            except OSError as error:
                said = f"{self.path} exists, and whether a daemon lives there is unclear ({error.strerror})."
                raise SocketUnusable(f"{said} Stop what uses it, or choose another path.") from error
        raise SocketTaken(f"Another daemon serves {self.path}.")

    def still_ours(self) -> bool:
        """Whether the path still leads to this socket."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def close(self) -> None:
        """Stop listening and take the socket away, if it is still ours; the lock file stays for ever."""
        self.sock.close()
        if self.still_ours():
            os.unlink(self._name, dir_fd=self._directory)
        os.close(self._lock)
        os.close(self._directory)
