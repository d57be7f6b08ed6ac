"""Reaching the daemon: connect to its socket, and start one if none is running.

Light on purpose (no asyncio, msgspec, socket or subprocess at the top), since the command line uses it too. The
listener must run as our own user or as root. A refusal by permissions never starts a daemon: the one that runs is out
of reach, and so would be a second one.
"""

import _socket
import errno
import os
import sys
import time

from punchlist.errors import DaemonStopped, DaemonUnavailable, TimedOut, WrongDataDirectory
from punchlist_schemas.rendezvous import data_dir, socket_path, stopped_path
from punchlist_schemas.system import os_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from punchlist.options import Options
    from punchlist.starter import Starting

TIMEOUT_S = 30.0
"""How long a call may take unless told otherwise, with connecting, a daemon's start and all retries, in seconds."""

_met: set[str] = set()
"""The sockets where this process has met a daemon."""

_NOT_RUNNING = frozenset({errno.ENOENT, errno.ECONNREFUSED})
_NOT_ALLOWED = frozenset({errno.EPERM, errno.EACCES})
_MOST_LOCK = 8_192
_RACE_PAUSE_S = 0.02
_EXIT_CONFIGURATION = 78
_WINNER_S = 1.0

# Claude Code's settings: allowUnixSockets (a list of paths) works on macOS alone, seccomp can't filter by path.
# Codex blocks connect() of every address family while network access is off, and then sets the variable named here.
_SANDBOX_HELP = """\
If this runs inside an agent's sandbox, allow Unix sockets there:
  Claude Code   settings.json: {{"sandbox": {{"network": {{"allowAllUnixSockets": true}}}}}}
                (on macOS this path is enough: "allowUnixSockets": ["{path}"])
  Codex         config.toml: [sandbox_workspace_write] network_access = true
Otherwise see that {folder} belongs to you with mode 0700. No daemon was started."""


class Target:
    """Where to meet a daemon, and whether one may be started there.

    Args:
        socket: Path of the socket; by default found by the rules of docs/protocol.md.
        data_dir: Data directory for a daemon that is started; by default found by the same rules.
        autostart: Whether to start a daemon if none runs; by default yes, unless PUNCHLIST_AUTOSTART=0.
        env: The environment variables; by default those of this process.
    """

    def __init__(
        self,
        socket: str | None = None,
        data_dir_option: str | None = None,
        *,
        autostart: bool | None = None,
        env: "Mapping[str, str] | None" = None,
    ) -> None:
        env = os.environ if env is None else env
        self.options: Options = {}
        if socket:
            self.options["socket"] = socket
        if data_dir_option:
            self.options["data_dir"] = data_dir_option
        self._names_data_dir = bool(data_dir_option or env.get("PUNCHLIST_DATA_DIR"))
        self._names_socket = bool(socket or env.get("PUNCHLIST_SOCKET"))
        self._means_data_dir = self._names_data_dir or not self._names_socket
        self._socket = socket_path(env, socket, data_dir_option)
        self.data_dir = data_dir(env, data_dir_option)
        self.autostart = env.get("PUNCHLIST_AUTOSTART") != "0" if autostart is None else autostart
        self._starting: Starting | None = None
        self._pid = 0

    def dial(self, timeout_s: float = TIMEOUT_S) -> _socket.socket:
        """A connected blocking socket, after starting a daemon if need be.

        A daemon that was stopped on purpose is started by a process that has not met it yet: somebody wants one now.
        Those that were connected to it wait until somebody does.

        Raises:
            DaemonStopped: It was stopped on purpose, and this process had been connected to it.
            DaemonUnavailable: No daemon answers; the message says what to change. A daemon that was started and is not
                ready after `timeout_s` seconds keeps starting.
        """
        deadline = time.monotonic() + timeout_s
        try:
            return self.connected(deadline)
        except OSError as error:
            if error.errno not in _NOT_RUNNING:
                raise unavailable(self.socket, error) from error
        if self.socket in _met and is_stopped(self.socket):
            raise DaemonStopped(
                f"The daemon on {self.socket} was stopped by `punch daemon stop`. To start it: punch daemon start",
                temporary=True,
            )
        if not self.autostart:
            raise DaemonUnavailable(
                f"No daemon listens on {self.socket}, and starting one is switched off. "
                f"Start it: punchlistd --socket {self.socket} --data-dir {self.data_dir}",
                temporary=True,
            )
        return self._start(deadline)

    def check(self, device: str = "", inode: str = "") -> None:
        """Check that the daemon serves our data directory: that its lock has these numbers.

        An older daemon sends no numbers. Nothing is checked if only a socket was named: any directory will do then.

        Raises:
            WrongDataDirectory: The lock in our data directory is another file, or missing.
        """
        if not self._means_data_dir or not inode:
            return
        try:
            seen = os.stat(f"{self.data_dir}/lock")
        except FileNotFoundError:
            seen = None
        except OSError as error:
            if self._names_data_dir:
                raise WrongDataDirectory(
                    f"{self.data_dir} can't be read ({error.strerror}), so nobody can tell whether the daemon on "
                    f"{self.socket} serves it. Name a data directory that you may read, or none.",
                    exit_code=_EXIT_CONFIGURATION,
                ) from error
            return  # that of everybody's: it may not be looked at from inside a sandbox
        if seen is None or (str(seen.st_dev), str(seen.st_ino)) != (device, inode):
            raise WrongDataDirectory(
                f"The daemon on {self.socket} (process {self._pid}) serves another data directory, not {self.data_dir} "
                "as it is seen from here: it was started with other settings, or in a sandbox with files of its own. "
                f"To use its lists, set PUNCHLIST_SOCKET={self.socket} and no PUNCHLIST_DATA_DIR. For a daemon of "
                "your own, set PUNCHLIST_SOCKET to another path.",
                exit_code=_EXIT_CONFIGURATION,
            )

    def too_late(self) -> "DaemonUnavailable | TimedOut":
        """The error for a call that ran out of time; it says where to look."""
        if self._starting is not None:
            return DaemonUnavailable(str(self._starting), temporary=True)
        who = f"The daemon (process {self._pid})" if self._pid else f"The daemon on {self.socket}"
        return TimedOut(f"{who} did not answer in time. It may be stopped or busy: punch doctor says more.")

    def connected(self, deadline: float) -> _socket.socket:
        """A connected blocking socket, if a daemon listens; `deadline` is a time of `time.monotonic`.

        Raises:
            OSError: As the system says.
            DaemonUnavailable: The listener belongs to another user.
        """
        path = self.socket
        sock = connect(path, max(0.001, deadline - time.monotonic()))
        self._pid = os_calls.peer(sock)[0]
        _met.add(path)
        return sock

    @property
    def socket(self) -> str:
        """Path of the socket.

        Where nobody named one and none is at its place, it is where the daemon of the data directory listens: cron,
        sudo and containers have another XDG_RUNTIME_DIR, or none.
        """
        if self._names_socket or os.path.lexists(self._socket):
            return self._socket
        return self._elsewhere() or self._socket

    def _elsewhere(self) -> str:
        """Another socket, at which the daemon of our data directory listens, or was stopped; "" if there is none."""
        recorded = self._recorded()
        return recorded if recorded and (os.path.lexists(recorded) or is_stopped(recorded)) else ""

    def _recorded(self) -> str:
        """Where else the newest daemon of our data directory has listened; "" if it was here, or does not say."""
        try:
            with open(f"{self.data_dir}/lock", "rb") as lock:
                (_pid, path, *_) = (*lock.read(_MOST_LOCK).split(b"\n"), b"")
        except OSError:
            return ""
        found = os.fsdecode(path)
        return found if found.startswith("/") and "\0" not in found and found != self._socket else ""

    def _start(self, deadline: float) -> _socket.socket:
        from punchlist.starter import Starting, by_manager

        if by_manager(self.socket):
            return self._insist(deadline)
        while True:
            try:
                starting = self._starting = self._starting or Starting(self.socket, self.data_dir)
            except OSError as error:
                raise DaemonUnavailable(
                    f"punchlistd could not be started: {error.filename!r}: {error.strerror}"
                ) from error
            report = starting.wait(deadline - time.monotonic())
            if report is None:
                raise self.too_late()
            self._starting = None
            try:
                if report.lost_race:
                    if not self._names_socket:  # ours may be what a killed daemon has left
                        self._socket = self._elsewhere() or self._socket
                    return self._insist(min(deadline, time.monotonic() + _WINNER_S))
                if report.ready:
                    return self.connected(deadline)
            except OSError as error:
                served = report.lost_race and self._serves_elsewhere()
                if report.lost_race and error.errno in _NOT_RUNNING and not served and time.monotonic() < deadline:
                    continue  # the daemon that had the data directory was stopping, and will not listen again
                refused = unavailable(self.socket, error)
                text = f"{refused}\n{report.reason}" if report.reason else str(refused)
                temporary = refused.temporary and not served
                raise DaemonUnavailable(text, temporary=temporary, exit_code=report.exit_code) from error
            break
        text = f"punchlistd could not be started: {report.reason}"
        raise DaemonUnavailable(text, temporary=report.lost_race, exit_code=report.exit_code)

    def _serves_elsewhere(self) -> bool:
        """Whether the daemon of our data directory listens at another socket, within our reach or not."""
        recorded = self._recorded()
        if not recorded:
            return False
        try:
            connect(recorded, _WINNER_S).close()
        except OSError as error:
            return error.errno not in _NOT_RUNNING
        except DaemonUnavailable:
            return True
        return True

    def _insist(self, deadline: float) -> _socket.socket:
        """Connect to the daemon that won the race to start; it may be a moment away from accepting."""
        while True:
            try:
                return self.connected(deadline)
            except OSError as error:
                if error.errno not in _NOT_RUNNING or time.monotonic() > deadline:
                    raise
            time.sleep(_RACE_PAUSE_S)


def want(socket: str) -> None:
    """This process wants a daemon there after all, though it may have met the one that was stopped."""
    _met.discard(socket)


def is_stopped(socket: str) -> bool:
    """Whether the daemon of this socket was stopped on purpose, and none was started since."""
    return os.path.lexists(stopped_path(socket))


def connect(path: str, timeout_s: float = TIMEOUT_S) -> _socket.socket:
    """Connect to the socket at `path`, however long the path is, and check who listens.

    Raises:
        OSError: As the system says; EAGAIN if the listener accepted nobody for `timeout_s` seconds.
        DaemonUnavailable: The listener belongs to another user.
    """
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        # A stopped daemon whose backlog is full would hold connect() for ever.
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _timeval(timeout_s))
        os_calls.connect(sock, path)
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _timeval(0))
        uid = os_calls.peer(sock)[1]
        if uid not in (os.getuid(), 0):
            raise DaemonUnavailable(
                f"{path} is served by another user (uid {uid}), not by you; punchlist does not talk to it."
            )
    except BaseException:
        sock.close()
        raise
    return sock


def unavailable(path: str, error: OSError) -> DaemonUnavailable:
    """The error for a failed connect; it says what would help."""
    if error.errno in _NOT_ALLOWED:
        advice = _SANDBOX_HELP.format(path=path, folder=os.path.dirname(path))
        return DaemonUnavailable(f"Connecting to {path} is not permitted ({error.strerror}).\n{advice}")
    if error.errno == errno.EAGAIN:
        text = f"The daemon on {path} accepts no connection: it may be stopped or busy. punch doctor says more."
        return DaemonUnavailable(text, temporary=True)
    return DaemonUnavailable(
        f"Connecting to {path} failed: {error.strerror or error}.", temporary=error.errno in _NOT_RUNNING
    )


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return whole.to_bytes(8, sys.byteorder) + int((seconds - whole) * 1e6).to_bytes(8, sys.byteorder)
