"""Listening sockets: on loopback, on a Unix socket, or passed by systemd."""

import os
import socket
import stat

_FIRST_FD = 3


def open_loopback_sockets(port: int) -> list[socket.socket]:
    """Listen on 127.0.0.1 and, if available, on ::1; never on another address. Port 0 picks a free port."""
    first = _open_listener(socket.AF_INET, "127.0.0.1", port)
    try:
        return [first, _open_listener(socket.AF_INET6, "::1", first.getsockname()[1])]
    except OSError:
        return [first]


def _open_listener(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def take_systemd_sockets() -> list[socket.socket]:
    """Return the sockets that systemd has passed to this process, if any. Remove its variables.

    Raises:
        ValueError: Other machines can reach one of the sockets.
    """
    pid, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "0")
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        return []
    sockets = [socket.socket(fileno=_FIRST_FD + number) for number in range(int(count))]
    for sock in sockets:
        sock.set_inheritable(False)
    if all(sock.family == socket.AF_UNIX or sock.getsockname()[0] in ("127.0.0.1", "::1") for sock in sockets):
        return sockets
    for sock in sockets:
        sock.close()
    raise ValueError("the sockets from systemd must be on 127.0.0.1, ::1 or of a path")


def open_unix_socket(path: str) -> socket.socket:
    """Listen on a Unix socket that only its owner can open. Replace a stale socket.

    Raises:
        OSError: The path is another kind of file, or another process listens on it.
    """
    if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(path):
                os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(umask)
    listener.listen(128)
    return listener
