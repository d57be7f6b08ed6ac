"""The listening Unix socket: inherited or bound by the daemon, private, and never taken from a running daemon.

The socket is bound through a descriptor of its directory. Paths of any length therefore work (an AF_UNIX address holds
107 bytes), and replacing the directory with a link while the socket is being bound has no effect. A socket file counts
as stale only if connections to it are refused. If the result is unclear, the file is kept.
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat

from punchlist_schemas.system import os_calls

BACKLOG = 1_024
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class SocketTaken(Exception):
    """Another daemon serves this socket."""


class PlaceUnusable(Exception):
    """The socket's path or a directory can't be used. The message gives the reason and the next step."""


def open_private_directory(path: str) -> int:
    """Open a private directory, creating it with mode 0700 if needed, and return its descriptor.

    An existing directory keeps its mode, because it may be a home directory or root's /tmp.

    Raises:
        PlaceUnusable: It is a link or not a directory, belongs to another user, is writable by other users, or can't be
            created.
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if os.path.islink(path):
            raise PlaceUnusable(f"{path} is a symbolic link. Pass the directory it points to.") from error
        way = "Choose another one." if os.environ.get("HOME") else "HOME is not set: set it, or PUNCHLIST_DATA_DIR."
        raise PlaceUnusable(f"{path} can't be used as a directory: {error.strerror}. {way}") from error
    status = os.fstat(descriptor)
    message = None
    if status.st_uid != os.getuid():
        message = f"belongs to another user (uid {status.st_uid}). Choose a directory of your own."
    elif status.st_mode & OTHERS_WRITE:
        message = "is writable by other users. Choose another directory, or run: chmod go-w"
    if message is not None:
        os.close(descriptor)
        raise PlaceUnusable(f"{path} {message}")
    return descriptor


class ListeningSocket:
    """A listening socket and the path to which it is bound."""

    def __init__(self, path: str, sock: socket.socket) -> None:
        self.path = path
        self.sock = sock
        self._status = os.stat(path, follow_symlinks=False)

    def is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path, follow_symlinks=False), self._status)
        except OSError:
            return False

    def close(self) -> None:
        self.sock.close()


class InheritedSocket(ListeningSocket):
    """A listening socket that the service manager bound and still owns.

    Raises:
        PlaceUnusable: The daemon can't serve it safely.
    """

    def __init__(self, sock: socket.socket) -> None:
        path = _get_path(sock)
        if path is None or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise PlaceUnusable("The inherited descriptor is not a listening Unix socket. Use ListenStream=/a/path.")
        if not _leads_to(path, sock):
            restart = "systemctl --user restart punchlistd.socket"
            raise PlaceUnusable(f"{path} no longer leads to the inherited socket. Bind it again: {restart}")
        directory = os.stat(os.path.dirname(path))
        if directory.st_uid not in (os.getuid(), 0) or directory.st_mode & OTHERS_WRITE:
            raise PlaceUnusable(f"{os.path.dirname(path)} is accessible to other users. Use DirectoryMode=0700.")
        super().__init__(path, sock)
        if self._status.st_mode & OTHERS_WRITE:
            raise PlaceUnusable(f"Other users may connect to {path}. Use SocketMode=0600.")


def _get_path(sock: socket.socket) -> str | None:
    if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
        return None
    name = sock.getsockname()
    return name if isinstance(name, str) and name.startswith("/") else None


def _leads_to(path: str, sock: socket.socket) -> bool:
    """Return True if connecting to `path` reaches `sock`, which means that the same process called listen() on both."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:  # the backlog is full, so a process serves this socket
            return True
        except OSError:
            return False
        return os_calls.read_peer(probe) == os_calls.read_peer(sock)


class OwnSocket(ListeningSocket):
    """A listening socket that the daemon bound itself, with mode 0600 and a lock on its path.

    Raises:
        SocketTaken: Another daemon serves it.
        PlaceUnusable: The path can't be used.
    """

    def __init__(self, path: str) -> None:
        self._name = os.path.basename(path)
        with contextlib.ExitStack() as stack:
            self._directory = open_private_directory(os.path.dirname(path))
            stack.callback(os.close, self._directory)
            lock = self._take_lock(path)
            stack.callback(os.close, lock)
            try:
                sock = self._bind(path)
                stack.callback(sock.close)
                super().__init__(path, sock)
            except OSError as error:
                raise PlaceUnusable(f"{path} can't be bound: {error.strerror or error}.") from error
            self._held = stack.pop_all()
        self._closed = False

    def _take_lock(self, path: str) -> int:
        # Hold the lock until exit: two daemons with different data directories must not take over each other's socket.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            lock = os.open(f"{self._name}.lock", flags, 0o600, dir_fd=self._directory)
        except OSError as error:
            raise PlaceUnusable(f"{path}.lock can't be opened: {error.strerror}. Choose another path.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise SocketTaken(_taken_message(path)) from error
        except OSError as error:
            os.close(lock)
            raise PlaceUnusable(f"{path}.lock can't be locked: {error.strerror}. Choose another path.") from error
        return lock

    def _bind(self, path: str) -> socket.socket:
        address = os_calls.build_address(self._directory, path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        before = os.umask(0o177)
        try:
            try:
                sock.bind(address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                self._clear_stale(path, address)
                sock.bind(address)
            sock.listen(BACKLOG)
        except BaseException:
            sock.close()
            raise
        finally:
            os.umask(before)
        return sock

    def _clear_stale(self, path: str, address: str) -> None:
        status = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        if not stat.S_ISSOCK(status.st_mode):
            raise PlaceUnusable(f"{path} exists and is not a socket. Move it away, or choose another path.")
        if status.st_uid != os.getuid():
            raise PlaceUnusable(f"{path} belongs to another user (uid {status.st_uid}). Choose another path.")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(address)
            except ConnectionRefusedError:
                os.unlink(self._name, dir_fd=self._directory)
                return
            except BlockingIOError:  # the backlog of a running daemon is full
                pass
            except OSError as error:
                message = f"{path} exists, and it is unclear whether a daemon serves it ({error.strerror})."
                raise PlaceUnusable(f"{message} Stop what uses it, or choose another path.") from error
        raise SocketTaken(_taken_message(path))

    def close(self) -> None:
        """Stop listening, and remove the socket file if it hasn't been replaced. The lock file stays."""
        with self._held:
            if not self._closed and self.is_in_place():
                os.unlink(self._name, dir_fd=self._directory)
            self._closed = True  # another socket may get the same inode number


def _taken_message(path: str) -> str:
    return f"Another daemon serves {path}. Use that one, stop it first, or pass another --socket."
