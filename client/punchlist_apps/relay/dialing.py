"""Finds the worker's socket, connects to it, and starts a worker if none listens."""

import errno
import fcntl
import os
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM
from _socket import socket as Socket

from punchlist_apps.relay.relay import PATIENCE_S, Unavailable
from punchlist_schemas.rendezvous import data_dir, make_directories, socket_path, worker_path
from punchlist_schemas.system import os_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODULE = "punchlist_apps.worker"

_LOST_RACE_S = 0.5
"""Time between two starts of workers that find another one which doesn't listen, in seconds. Other relays wait too."""

_NOT_RUNNING = frozenset({errno.ENOENT, errno.ECONNREFUSED})


class Dialing:
    """The worker that serves one command line.

    Attributes:
        path: The worker's socket.
    """

    def __init__(self, words: "Sequence[str]", env: "Mapping[str, str]") -> None:
        option = find_option(words, "--data-dir")
        daemon = socket_path(env, find_option(words, "--socket"), option)
        self._data_dir = data_dir(env, option)
        self.path = find_path(daemon, self._data_dir)

    def connect(self) -> Socket | None:
        """Return a socket connected to the worker, after starting one if needed; None to try again later.

        Raises:
            Unavailable: No worker can be started or reached.
        """
        if (sock := connect(self.path)) is not None:
            return sock
        try:
            return self._start_and_connect()
        except BlockingIOError:
            return None  # another relay starts the worker
        except OSError as error:
            raise Unavailable(str(error)) from None

    def _start_and_connect(self) -> "Socket | None":
        make_directories(os.path.dirname(self.path))
        lock = os.open(f"{self.path}.start", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # When a worker dies, all of its relays come here, and one starts the next worker.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (sock := connect(self.path)) is None:
                _start(self.path, self._data_dir)
                sock = connect(self.path)
            return sock
        finally:
            os.close(lock)

    def end(self, sock: Socket) -> None:
        """Kill the worker at the other end of a socket, because it hangs. Its sessions continue with the next one."""
        import signal

        pid = os_calls.read_peer(sock)[0]
        # Another program may listen there.
        if MODULE in os_calls.read_command_line(pid):
            os.kill(pid, signal.SIGKILL)

    def log(self, trouble: str) -> None:
        """Write why there is no worker to its log, where `punch doctor` finds it."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(f"{self._data_dir}/mcp.log", flags, 0o600)
        except OSError:
            return
        with open(file, "w", encoding="utf-8", errors="surrogateescape") as log:
            log.write(f"{trouble}\n")


def find_path(socket: str, data_dir: str) -> str:
    """Return the path of the socket of this installation's worker for a daemon."""
    return worker_path(socket, data_dir, f"{sys.prefix}\0{os.path.dirname(__file__)}")


def lock_path(path: str) -> str:
    """Return the path of the file that the worker at `path` locks. It contains the worker's process id."""
    return f"{path}.lock"


def read_lock(lock: int) -> int:
    """Return the process id in a lock file; 0 if no worker has listened yet."""
    text = os.pread(lock, 32, 0).strip()
    return int(text) if text.isdigit() else 0


def connect(path: str) -> "Socket | None":
    """Return a socket connected to the worker at a path, or None if none is running.

    Raises:
        Unavailable: The worker can't be reached.
    """
    sock = Socket(AF_UNIX, SOCK_STREAM)
    try:
        os_calls.connect(sock, path)
        if os_calls.read_peer(sock)[1] != os.getuid():
            raise Unavailable(f"{path} belongs to another user")
    except OSError as error:
        sock.close()
        if error.errno in _NOT_RUNNING:
            return None
        raise Unavailable(f"{path}: {error.strerror}") from None
    return sock


def find_option(words: "Sequence[str]", name: str) -> "str | None":
    """Return the value of an option in a command line. The worker's parser rejects a command line that isn't valid."""
    value = None
    for number, word in enumerate(words):
        if word == name:
            value = words[number + 1] if number + 1 < len(words) else None
        elif word.startswith(f"{name}="):
            value = word.partition("=")[2]
    return value


def _start(path: str, data_dir: str) -> None:
    """Start a worker, and wait until it is ready or another one turns out to be running.

    A child process does it, so that this one doesn't load what starting needs, and stays small.

    Raises:
        Unavailable: The worker ended; says why.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, _try_to_start(path, data_dir).encode("utf-8", "surrogateescape"))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as reasons:
        reason = reasons.read()
    os.waitpid(child, 0)
    if reason:
        raise Unavailable(reason)


def _try_to_start(path: str, data_dir: str) -> str:
    """Return why no worker runs now; empty if one does."""
    try:
        from punchlist.connection.starter import Starting, worker

        starting = Starting(worker(path, data_dir))
        report = starting.wait(PATIENCE_S)
    except BaseException as error:  # noqa: BLE001 - the process of the caller ends without showing it
        return f"{type(error).__name__}: {error}"
    if report is None:
        return str(starting)
    if report.lost_race:
        time.sleep(_LOST_RACE_S)
    return "" if report.ready or report.lost_race else report.reason.splitlines()[-1]
