"""Where a server listens: on this machine's loopback, on a Unix socket, or on what systemd has opened for it."""

import os
import socket
import stat

_FIRST_FD = 3


def loopback_sockets(port: int) -> list[socket.socket]:
    """Sockets on 127.0.0.1 and, where there is one, on ::1; never on another address. Port 0 takes a free one."""
    first = _listening(socket.AF_INET, "127.0.0.1", port)
    try:
        return [first, _listening(socket.AF_INET6, "::1", first.getsockname()[1])]
    except OSError:
        return [first]


def _listening(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def given_sockets() -> list[socket.socket]:
    """The sockets that systemd has opened for us, if it has.

    Raises:
        ValueError: One of them can be reached from other machines.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = int(os.environ.get("LISTEN_FDS", "0"))
    sockets = [socket.socket(fileno=_FIRST_FD + number) for number in range(count)]
    if all(one.family == socket.AF_UNIX or one.getsockname()[0] in ("127.0.0.1", "::1") for one in sockets):
        return sockets
    for one in sockets:
        one.close()
    raise ValueError("the sockets from systemd must be on 127.0.0.1, ::1 or of a path")


def unix_socket(path: str) -> socket.socket:
    """A listening socket at a path, for its owner alone. One that nobody listens on any more is replaced.

    Raises:
        OSError: Something else is there, or somebody listens on it.
    """
    if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(path):
                os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.listen(128)
    return listener
