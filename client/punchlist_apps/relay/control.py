"""Asks the worker for its status, or to end. Starts none, even where systemd would start it at a connection."""

import fcntl
import json
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

from punchlist_apps.relay import frames
from punchlist_apps.relay.dialing import MODULE, connect, lock_path, read_lock
from punchlist_apps.relay.relay import Unavailable
from punchlist_schemas.system import os_calls

if TYPE_CHECKING:
    from _socket import socket as Socket

STATUS_S = 2.0
"""Upper limit for the worker's reply to a status request, in seconds."""

_CHUNK = 1 << 12


class Status(NamedTuple):
    """The status of a worker.

    Attributes:
        state: `running`, `suspended`, or `silent` if it doesn't reply in time.
        sessions: Number of sessions; None unless it is running.
        since: When it started, in ms since 1970.
    """

    pid: int
    state: str
    sessions: int | None = None
    since: int | None = None
    build: str | None = None


def find_process(path: str) -> int | None:
    """Return the process of the worker with this socket, or None if none is running.

    Raises:
        Unavailable: The lock's file can't be read.
    """
    try:
        lock = os.open(lock_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{lock_path(path)}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return read_lock(lock) or _find_listener(path)
    else:
        return None
    finally:
        os.close(lock)


def _find_listener(path: str) -> int | None:
    """Return the worker that listens. Earlier versions don't write their process id."""
    if (sock := connect(path)) is None:
        return None
    try:
        pid = os_calls.read_peer(sock)[0]
    finally:
        sock.close()
    # Until a worker that systemd starts has written its id, systemd is the peer.
    return pid if MODULE in os_calls.read_command_line(pid) else None


def read_status(path: str, timeout_s: float = STATUS_S) -> Status | None:
    """Return the status of the worker, or None if none is running.

    Raises:
        Unavailable: The worker can't be reached.
    """
    if (pid := find_process(path)) is None:
        return None
    if os_calls.is_suspended(pid):
        return Status(pid, "suspended")
    if (sock := connect(path)) is None:
        return None
    try:
        decoder, reply = frames.Decoder(), _ask(sock, frames.STATUS, timeout_s)
        while not (found := decoder.feed(reply)):
            if not (reply := sock.recv(_CHUNK)):
                return None  # it has just ended
        members = dict(json.loads(found[0][2]))  # of another version perhaps
        return Status(pid, "running", *map(members.get, Status._fields[2:]))
    except (TimeoutError, frames.InvalidFrame, ValueError, TypeError):
        return Status(pid, "silent")
    except ConnectionError:
        return None
    finally:
        sock.close()


def stop(path: str, timeout_s: float) -> int | None:
    """Stop the worker after its running calls. Return its process, or None if none is running.

    Its sessions continue with another one when their hosts send something.

    Raises:
        Unavailable: The worker can't be reached, or hangs.
    """
    if (pid := find_process(path)) is None or (sock := connect(path)) is None:
        return None
    try:
        if os_calls.is_suspended(pid):
            os.kill(pid, signal.SIGCONT)
        _ask(sock, frames.STOP, timeout_s)  # the end of the connection
    except TimeoutError:
        raise Unavailable(f"the worker (process {pid}) has not ended; to end it: kill -9 {pid}") from None
    except OSError:
        pass
    finally:
        sock.close()
    return pid


def _ask(sock: "Socket", op: bytes, timeout_s: float) -> bytes:
    sock.settimeout(timeout_s)
    sock.send(frames.encode(op))
    return sock.recv(_CHUNK)
