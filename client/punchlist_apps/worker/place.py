"""What a worker holds and passes to its successor: its lock, its socket, and its service manager's address."""

import fcntl
import os
import signal
import socket
from contextlib import suppress

from punchlist_apps.common.http.sockets import take_systemd_sockets
from punchlist_apps.relay.dialing import MODULE, lock_path, read_lock
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system import os_calls
from punchlist_schemas.system.notify import notify

_BACKLOG = 512
_MANAGER = "NOTIFY_SOCKET"


class Taken(Exception):
    """Another worker holds the lock."""


class Place:
    """The place of a worker.

    Args:
        path: Path of its socket.
        lock: Descriptor of the lock, held until `leave` or the process ends.
        listener: The listening socket if systemd passed it; the worker never removes its file.
        manager: Address of the service manager; empty without one.
    """

    def __init__(self, path: str, lock: int, listener: socket.socket | None = None, manager: str = "") -> None:
        self._path = path
        self._lock = lock
        self._listener = listener
        self._manager = {_MANAGER: manager}
        self._inode = 0

    def listen(self) -> socket.socket:
        """Return the listening socket, which new relays find from now on."""
        os.pwrite(self._lock, b"%-10d" % os.getpid(), 0)
        if self._listener is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            directory, name = os.path.split(self._path)
            os.chdir(directory)  # the address of a socket has a short upper limit
            with suppress(FileNotFoundError):
                os.unlink(f"{name}.new")
            sock.bind(f"{name}.new")
            sock.listen(_BACKLOG)
            # A predecessor's relays stay connected; new ones come here from now on.
            os.rename(f"{name}.new", name)
            os.chdir("/")
        else:
            sock = self._listener
            # Relays get the process that listened last as their peer, and end it if it hangs.
            sock.listen(_BACKLOG)
        self._inode = os.stat(self._path).st_ino
        return sock

    @property
    def is_of_systemd(self) -> bool:
        return self._listener is not None

    @property
    def is_found(self) -> bool:
        """Whether new relays find this worker's socket."""
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def notify(self, *words: str) -> None:
        notify(self._manager, *words)

    def leave(self) -> None:
        """Let the next worker begin."""
        if self.is_found and self._listener is None:
            os.unlink(self._path)
        os.close(self._lock)

    def bequeath(self) -> tuple[list[str], tuple[int, ...]]:
        """Return the options with which a successor inherits this place, and the descriptors among them."""
        options = ["--lock-fd", str(self._lock)]
        if self._listener is None:
            return options, (self._lock,)
        listener = self._listener.fileno()
        options += ["--listener-fd", str(listener), "--manager", self._manager[_MANAGER]]
        return options, (self._lock, listener)


def take(path: str) -> Place:
    """Take the place of a worker, with the socket from systemd if there is one.

    Raises:
        Taken: Another worker holds the lock. A worker of systemd ends it instead, because new relays no longer find it.
        ValueError: systemd passed other sockets than one.
    """
    sockets = take_systemd_sockets()
    if len(sockets) > 1:
        for sock in sockets:
            sock.close()
        raise ValueError(f"the service manager passed {len(sockets)} sockets; exactly one can be served")
    listener = sockets[0] if sockets else None
    make_directories(os.path.dirname(path))
    lock = os.open(lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if listener is None:
            raise Taken from None
        pid = read_lock(lock)
        if MODULE in os_calls.read_command_line(pid):
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
        fcntl.flock(lock, fcntl.LOCK_EX)  # the service manager limits the time
    os.ftruncate(lock, 0)  # the process in it has ended
    return Place(path, lock, listener, os.environ.pop(_MANAGER, ""))
