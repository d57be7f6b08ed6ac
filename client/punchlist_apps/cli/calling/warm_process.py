"""Starts and stops the warm process. Imports little, because the plain program starts it after a command."""

import os
import signal
import sys
from contextlib import suppress

from punchlist_schemas.rendezvous import make_directories, socket_path
from punchlist_schemas.system import os_calls

VARIABLE = "PUNCHLIST_WARM"
"""Environment variable with the path of the socket on which to start a warm process. 0 turns warm processes off."""

_VARIABLES = ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME")

_CAUTION = os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags with which a file that isn't a plain one fails to open."""


def take_path() -> str:
    """Return the path that `client/punch.c` put into `VARIABLE`, and remove it; empty if there is none."""
    return os.environ.pop(VARIABLE) if os.environ.get(VARIABLE, "").startswith("/") else ""


def start(path: str) -> None:
    """Start a warm process on a socket, unless one has just failed to start. Don't wait for it."""
    import subprocess

    from punchlist.connection.starter import environment
    from punchlist_apps.common.autostart import has_new_error

    log = f"{os.path.dirname(path)}/warm.log"
    with suppress(OSError):
        make_directories(os.path.dirname(path))
        if os.stat(os.path.dirname(path)).st_uid != os.getuid() or has_new_error(log):
            return
        with open(log, "wb", opener=lambda name, flags: os.open(name, flags | _CAUTION, 0o600)) as errors:
            # The process outlives this one. Without a return code, Popen would warn that it still runs.
            subprocess.Popen(
                [sys.executable, "-P", "-m", "punchlist_apps.cli.warm.server", path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/",
                env=environment(),
                start_new_session=True,
            ).returncode = 0


def find_directory() -> str:
    """Return the directory of the sockets, which doesn't depend on the daemon that a command chooses."""
    return os.path.dirname(socket_path({name: os.environ.get(name, "") for name in _VARIABLES}))


def find_processes() -> list[int]:
    """Return this user's warm processes. Remove stale sockets."""
    from glob import escape, glob

    from punchlist.connection.launch import connect
    from punchlist.errors import DaemonUnavailable

    processes: list[int] = []
    for path in glob(f"{escape(find_directory())}/warm-*.sock"):
        try:
            with connect(path) as link:
                pid = os_calls.read_peer(link)[0]
            # If only workers are left, the number may belong to another process.
            if os.path.basename(path) in map(os.path.basename, os_calls.read_command_line(pid)):
                processes.append(pid)
        except ConnectionRefusedError:
            with suppress(OSError):
                os.unlink(path)
        except (OSError, DaemonUnavailable):
            continue
    return processes


def stop() -> None:
    """Stop this user's warm processes. Their running commands continue."""
    for pid in find_processes():
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
