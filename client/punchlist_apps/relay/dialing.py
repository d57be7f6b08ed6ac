"""Finds the worker's socket, connects to it, and starts a worker if none listens."""

import errno
import fcntl
import os
import sys
from _socket import AF_UNIX, SOCK_STREAM
from _socket import socket as Socket

from punchlist_apps.relay.relay import PATIENCE_S, Unavailable
from punchlist_schemas.rendezvous import data_dir, make_directories, socket_path, worker_path
from punchlist_schemas.system import os_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODULE = "punchlist_apps.worker"

_NOT_RUNNING = frozenset({errno.ENOENT, errno.ECONNREFUSED})
_SIGKILL = 9


class Dialing:
    """The worker that serves one command line.

    Attributes:
        path: The worker's socket.
    """

    def __init__(self, words: "Sequence[str]", env: "Mapping[str, str]") -> None:
        option = find_option(words, "--data-dir")
        daemon = socket_path(env, find_option(words, "--socket"), option)
        self._data_dir = data_dir(env, option)
        self.path = worker_path(daemon, self._data_dir, f"{sys.prefix}\0{os.path.dirname(__file__)}")

    def connect(self) -> Socket | None:
        """Return a socket connected to the worker, after starting one if needed; None to try again later.

        Raises:
            Unavailable: No worker can be started or reached.
        """
        if (sock := self._connect()) is not None:
            return sock
        make_directories(os.path.dirname(self.path))
        lock = os.open(f"{self.path}.start", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # When a worker dies, all of its relays come here, and one starts the next worker.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (sock := self._connect()) is None:
                _start(self.path, self._data_dir)
                sock = self._connect()
        except BlockingIOError:
            return None
        finally:
            os.close(lock)
        return sock

    def _connect(self) -> Socket | None:
        sock = Socket(AF_UNIX, SOCK_STREAM)
        try:
            os_calls.connect(sock, self.path)
            if os_calls.read_peer(sock)[1] != os.getuid():
                raise Unavailable(f"{self.path} belongs to another user")
        except OSError as error:
            sock.close()
            if error.errno in _NOT_RUNNING:
                return None
            raise Unavailable(str(error)) from None
        return sock

    def end(self, sock: Socket) -> None:
        """Kill the worker at the other end of a socket, because it hangs. Its sessions continue with the next one."""
        pid = os_calls.read_peer(sock)[0]
        # The listener may have been the service manager, whose process must not be killed.
        if MODULE in os_calls.read_command_line(pid):
            os.kill(pid, _SIGKILL)


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
        Unavailable: The worker ended.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            from punchlist.connection.starter import Starting, worker

            report = Starting(worker(path, data_dir)).wait(PATIENCE_S)
            code = 0 if report is not None and (report.ready or report.lost_race) else 1
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise Unavailable(f"the worker did not start; its log is {data_dir}/mcp.log")
