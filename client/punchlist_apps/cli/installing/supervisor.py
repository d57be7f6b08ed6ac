"""Stops and starts the daemon, with or without a service manager."""

import os
import signal
import subprocess
import time

from punchlist.connection.launch import Target, allow_start, find_lock_holder
from punchlist.connection.options import Options
from punchlist.connection.starter import SUPERVISED
from punchlist.errors import DaemonUnavailable, TimedOut
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_apps.cli.installing.systemd_units import SERVICE, SOCKET
from punchlist_schemas.rendezvous import stopped_path
from punchlist_schemas.results import HelloResult
from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import atomic_write

_SYSTEMCTL_TIMEOUT_S = 90
STOP_TIMEOUT_S = 30.0
"""Upper limit for a program to finish its calls and end, in seconds."""

_POLL_S = 0.02
_PROPERTIES = ("LoadState", "ActiveState", "SubState", "MainPID", "NRestarts", "Result", "StatusText", "Listen")


class Manager:
    """systemd's user manager. `error` contains the reason why it can't be used; empty if it can."""

    def __init__(self) -> None:
        self.error = ""
        self.error = self._run("show", "--property=Version")[1]

    def _run(self, *words: str) -> tuple[str, str]:
        try:
            process = subprocess.run(
                ["systemctl", "--user", "--no-pager", *words],
                capture_output=True,
                text=True,
                timeout=_SYSTEMCTL_TIMEOUT_S,
                check=False,
            )
        except FileNotFoundError:
            return "", "systemctl not found"
        except subprocess.TimeoutExpired:
            return "", f"systemctl did not respond within {_SYSTEMCTL_TIMEOUT_S} s"
        error = "" if process.returncode == 0 else process.stderr.strip() or f"exit code {process.returncode}"
        return process.stdout, error

    def run(self, *words: str) -> str:
        """Run systemctl and return its error; empty on success."""
        return self.error or self._run(*words)[1]

    def show(self, unit: str) -> dict[str, str]:
        lines = self._run("show", unit, f"--property={','.join(_PROPERTIES)}")[0].splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}


def holds_socket(manager: Manager, socket: str) -> bool:
    """Return whether the manager listens on this socket. If so, it starts the daemon when a client connects."""
    properties = manager.show(SOCKET)
    return properties.get("ActiveState") == "active" and properties.get("Listen", "").startswith(f"{socket} ")


def stop(target: Target, options: Options) -> int | None:
    """Stop the daemon after it has finished its accepted calls, and wait until it has exited.

    A suspended daemon is resumed first. Programs that were connected don't start the daemon again, but new commands do
    (`Target.dial`).

    Returns:
        The daemon's process id; None if no daemon was running.

    Raises:
        DaemonUnavailable: The socket belongs to another user's daemon, or to a daemon with another data directory.
        TimedOut: The daemon didn't finish its calls in time.
    """
    manager = Manager()
    if (suspended := find_lock_holder(target.data_dir)) and os_calls.is_suspended(suspended):
        os.kill(suspended, signal.SIGCONT)
    try:
        with Caller(target.with_autostart(False), **options) as caller:
            pid = caller.open().pid
            supervised = holds_socket(manager, target.socket)
            atomic_write(stopped_path(target.socket), (SUPERVISED if supervised else "").encode())
            if supervised:
                manager.run("stop", SOCKET, SERVICE)
            else:
                caller.call("daemon.shutdown")
    except DaemonUnavailable as error:
        if not error.temporary:
            raise
        if os.path.isdir(os.path.dirname(target.socket)):
            atomic_write(stopped_path(target.socket), b"")
        return None
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while os.path.exists(target.socket):
        if time.monotonic() > deadline:
            raise TimedOut(f"the daemon (process {pid}) has not finished its calls; try again in a moment")
        time.sleep(_POLL_S)
    return pid


def start(target: Target, options: Options) -> HelloResult:
    """Start a daemon if none is running, even after `stop`, and return its `daemon.hello` result."""
    allow_start(target.socket)
    with Caller(target.with_autostart(True), **options) as caller:
        return caller.open()
