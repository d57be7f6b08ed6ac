"""Connects to the daemon's socket, and starts a daemon if none is running.

The command line uses it too, so it imports nothing heavy (asyncio, msgspec, subprocess) at the top. The listener must
run as this user or as root. If permissions deny the connection, no daemon is started, because a second one would be
just as unreachable.
"""

import errno
import os
import sys
import time
from socket import AF_UNIX, SO_SNDTIMEO, SOCK_STREAM, SOL_SOCKET
from socket import socket as Socket
from typing import TYPE_CHECKING

from punchlist.connection.waiting import Waiting
from punchlist.errors import DaemonStopped, DaemonUnavailable, TimedOut, WrongDataDirectory
from punchlist_schemas.rendezvous import data_dir, socket_path, stopped_path
from punchlist_schemas.system import os_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from punchlist.connection.options import Options
    from punchlist.connection.starter import Starting

TIMEOUT_S = 30.0
"""Default upper limit for a call, in seconds, including connecting, starting a daemon and all retries."""

_known_sockets: set[str] = set()
"""Paths of the sockets through which this process has been connected to a daemon."""

CHECK_AFTER_S = 1.5
"""Time without a reply after which a command checks the daemon's process, in seconds."""

HOOK_CHECK_AFTER_S = 0.25
"""Time without a reply after which a hook gives up, in seconds. Also the time limit for a shell prompt."""

HOOK_S = 8.0
"""Upper limit for a hook, in seconds. Must be below the timeout that `punch setup` configures for it."""

HOOK_END_S = 2.0
"""Upper limit for the call of a hook at a session's end, in seconds. Codex allows such a hook 3 seconds."""

_NOT_RUNNING = frozenset({errno.ENOENT, errno.ECONNREFUSED})
_NOT_ALLOWED = frozenset({errno.EPERM, errno.EACCES})
_MAX_LOCK_BYTES = 8_192
_RACE_PAUSE_S = 0.02
_EXIT_CONFIGURATION = 78
_WINNER_S = 1.0

# In Claude Code's settings, allowUnixSockets (a list of paths) works only on macOS, because seccomp can't filter by
# path. Codex blocks connect() for all address families while network access is off.
_SANDBOX_HELP = """\
If this runs inside an agent's sandbox, allow Unix sockets there:
  Claude Code   settings.json: {{"sandbox": {{"network": {{"allowAllUnixSockets": true}}}}}}
                (on macOS this path is enough: "allowUnixSockets": ["{path}"])
  Codex         config.toml: [sandbox_workspace_write] network_access = true
Otherwise see that {folder} belongs to you with mode 0700. No daemon was started."""


class Target:
    """The daemon to connect to, and whether one may be started.

    Args:
        socket: Path of the socket; by default determined by the rules in docs/protocol.md.
        data_dir_option: Data directory for a daemon that is started; by default determined by the same rules.
        autostart: Whether to start a daemon if none is running; by default yes, unless PUNCHLIST_AUTOSTART=0.
        env: Environment variables; by default those of this process.

    Attributes:
        check_after_s: Seconds without a reply after which a call checks the daemon's process, and fails if the process
            is suspended. None for programs that wait until the daemon continues.
        note: Called to print that the daemon has not replied yet. If None, calls give up instead, unless the daemon is
            still starting.
        until: Deadline for all calls (`time.monotonic`).
    """

    check_after_s: "float | None" = None
    note: "Callable[[str], None] | None" = None
    until: float = float("inf")

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
        self._requires_data_dir = self._names_data_dir or not self._names_socket
        self._socket = socket_path(env, socket, data_dir_option)
        self.data_dir = data_dir(env, data_dir_option)
        self.autostart = env.get("PUNCHLIST_AUTOSTART") != "0" if autostart is None else autostart
        self._starting: Starting | None = None
        self._pid = 0
        self._is_noted = False

    def with_autostart(self, autostart: bool) -> "Target":  # noqa: FBT001 - named in the method
        """Return this target, or a copy with another `autostart`."""
        if autostart == self.autostart:
            return self
        other = object.__new__(Target)
        vars(other).update(vars(self))
        other.autostart = autostart
        return other

    def report_delays(self, note: "Callable[[str], None]") -> None:
        """After `CHECK_AFTER_S` without a reply, fail if the daemon is suspended; otherwise, call `note` once."""
        self.check_after_s, self.note = CHECK_AFTER_S, note

    def fail_fast(self) -> None:
        """Give up quickly if the daemon does not reply, because a hook must not delay its host."""
        self.check_after_s, self.note = HOOK_CHECK_AFTER_S, None
        self.until = time.monotonic() + HOOK_S

    def deadline(self, timeout_s: float) -> float:
        """Return the deadline for a call that may take `timeout_s` seconds."""
        return min(self.until, time.monotonic() + timeout_s)

    def dial(self, timeout_s: float = TIMEOUT_S) -> Socket:
        """Return a connected blocking socket, after starting a daemon if needed.

        After `punch daemon stop`, processes that were connected don't start the daemon again, but new processes do.

        Raises:
            DaemonStopped: The daemon was stopped on purpose, and this process had been connected to it.
            DaemonUnavailable: No daemon responds; the message says what to change. A daemon that is not ready after
                `timeout_s` seconds continues to start.
            TimedOut: The daemon is running but did not accept the connection in time.
        """
        deadline = self.deadline(timeout_s)
        try:
            return self.connect_running(deadline)
        except TimedOut:
            raise
        except OSError as error:
            if error.errno not in _NOT_RUNNING:
                raise build_unavailable(self.socket, error) from error
        if self.socket in _known_sockets and is_stopped(self.socket):
            raise DaemonStopped(
                f"The daemon on {self.socket} was stopped by `punch daemon stop`. To start it: punch daemon start",
                temporary=True,
            )
        if not self.autostart:
            raise DaemonUnavailable(
                f"No daemon listens on {self.socket}, and starting one is turned off. "
                f"Start it: punchlistd --socket {self.socket} --data-dir {self.data_dir}",
                temporary=True,
            )
        return self._start(deadline)

    def check(self, device: str = "", inode: str = "") -> None:
        """Check, by the device and inode of its lock, that the daemon serves this target's data directory.

        Raises:
            WrongDataDirectory: The lock in the data directory is missing, or is a different file than the daemon's
                lock.
        """
        # If only a socket was named, any data directory is accepted. Older daemons send no device and inode.
        if not self._requires_data_dir or not inode:
            return
        try:
            seen = os.stat(f"{self.data_dir}/lock")
        except FileNotFoundError:
            seen = None
        except OSError as error:
            if self._names_data_dir:
                raise WrongDataDirectory(
                    f"{self.data_dir} can't be read ({error.strerror}), so it is unknown whether the daemon on "
                    f"{self.socket} serves it. Pass a data directory that you may read, or none.",
                    exit_code=_EXIT_CONFIGURATION,
                ) from error
            return  # the default directory, which a sandbox may hide
        if seen is None or (str(seen.st_dev), str(seen.st_ino)) != (device, inode):
            raise WrongDataDirectory(
                f"The daemon on {self.socket} (process {self._pid}) serves another data directory, not {self.data_dir} "
                "as it is seen from here: it was started with other settings, or in a sandbox with its own files. "
                f"To use its lists, set PUNCHLIST_SOCKET={self.socket} and no PUNCHLIST_DATA_DIR. For a daemon of "
                "your own, set PUNCHLIST_SOCKET to another path.",
                exit_code=_EXIT_CONFIGURATION,
            )

    def build_timeout_error(self) -> "DaemonUnavailable | TimedOut":
        if self._starting is not None:
            return DaemonUnavailable(str(self._starting), temporary=True)
        if (pid := self.pid()) and os_calls.is_suspended(pid):
            return TimedOut(f"The daemon (pid {pid}) is suspended. To continue it: kill -CONT {pid}")
        return TimedOut(
            f"No reply from {self._describe_daemon()} in time; it may be overloaded. For its state: punch doctor"
        )

    def pid(self) -> int:
        """Return the daemon's process id; 0 if it is unknown, or if the service manager has yet to start the daemon."""
        if self._requires_data_dir and (pid := find_lock_holder(self.data_dir)):
            return pid
        peer = os_calls.read_process(self._pid) if self._pid else None
        return self._pid if peer and peer[0] != os_calls.SERVICE_MANAGER else 0

    def check_process(self, *, greeted: bool, on_purpose: bool) -> None:
        """Check a daemon that does not reply.

        Args:
            greeted: Whether the daemon has replied on this connection.
            on_purpose: Whether this call may take a long time.

        Raises:
            TimedOut: The daemon is suspended, or it hangs and `note` is None.
        """
        pid = self.pid()
        if pid and os_calls.is_suspended(pid):
            raise self.build_timeout_error()
        if self._is_noted or on_purpose:
            return
        if self.note is None and pid and not greeted:
            raise self.build_timeout_error()
        self._is_noted = self.note is not None or not pid  # no process was found, so the daemon is still starting
        if self.note is not None:
            self.note(f"punch: no reply from {self._describe_daemon()} yet, still waiting")

    def _describe_daemon(self) -> str:
        return f"the daemon (pid {pid})" if (pid := self.pid()) else f"the daemon on {self.socket}"

    def connect_running(self, deadline: float) -> Socket:
        """Return a socket connected to the running daemon, without starting one.

        Args:
            deadline: Deadline on the clock of `time.monotonic`.

        Raises:
            OSError: The connection failed.
            DaemonUnavailable: The listener belongs to another user.
            TimedOut: The daemon did not accept the connection in time.
        """
        path = self.socket
        waiting = Waiting(self, deadline)
        while True:
            try:
                sock = connect(path, waiting.left_s)
                break
            except OSError as error:
                if error.errno != errno.EAGAIN or (self.check_after_s is None and waiting.is_over):
                    raise
                waiting.proceed()
        self._pid = os_calls.read_peer(sock)[0]
        _known_sockets.add(path)
        return sock

    @property
    def socket(self) -> str:
        """Path of the socket."""
        # Under cron, sudo and in containers, XDG_RUNTIME_DIR differs or is unset, so the default socket may not exist.
        # The lock file contains the path on which the daemon then listens.
        if self._names_socket or os.path.lexists(self._socket):
            return self._socket
        return self._find_other_socket() or self._socket

    def _find_other_socket(self) -> str:
        """Return another socket on which the data directory's daemon listens or was stopped; "" if there isn't one."""
        recorded = self._read_recorded_socket()
        return recorded if recorded and (os.path.lexists(recorded) or is_stopped(recorded)) else ""

    def _read_recorded_socket(self) -> str:
        """Return the socket recorded in the data directory's lock; "" if it is `self._socket` or unknown."""
        try:
            with open(f"{self.data_dir}/lock", "rb") as lock:
                (_pid, path, *_) = (*lock.read(_MAX_LOCK_BYTES).split(b"\n"), b"")
        except OSError:
            return ""
        recorded = os.fsdecode(path)
        return recorded if recorded.startswith("/") and "\0" not in recorded and recorded != self._socket else ""

    def _start(self, deadline: float) -> Socket:
        from punchlist.connection.starter import Starting, daemon, start_by_manager

        if start_by_manager(self.socket):
            return self._connect_to_winner(deadline)
        while True:
            try:
                starting = self._starting = self._starting or Starting(daemon(self.socket, self.data_dir))
            except OSError as error:
                raise DaemonUnavailable(
                    f"punchlistd could not be started: {error.filename!r}: {error.strerror}"
                ) from error
            report = starting.wait(deadline - time.monotonic())
            if report is None:
                raise self.build_timeout_error()
            self._starting = None
            try:
                if report.lost_race:
                    if not self._names_socket:  # the file at the default path may be left over from a killed daemon
                        self._socket = self._find_other_socket() or self._socket
                    return self._connect_to_winner(min(deadline, time.monotonic() + _WINNER_S))
                if report.ready:
                    return self.connect_running(deadline)
            except OSError as error:
                served = report.lost_race and self._serves_elsewhere()
                if report.lost_race and error.errno in _NOT_RUNNING and not served and time.monotonic() < deadline:
                    continue  # the daemon that held the data directory was stopping and won't listen again
                unavailable = build_unavailable(self.socket, error)
                text = f"{unavailable}\n{report.reason}" if report.reason else str(unavailable)
                temporary = unavailable.temporary and not served
                raise DaemonUnavailable(text, temporary=temporary, exit_code=report.exit_code) from error
            break
        text = f"punchlistd could not be started: {report.reason}"
        raise DaemonUnavailable(text, temporary=report.lost_race, exit_code=report.exit_code)

    def _serves_elsewhere(self) -> bool:
        """Return whether the data directory's daemon listens on another socket, even if this process can't reach it."""
        recorded = self._read_recorded_socket()
        if not recorded:
            return False
        try:
            connect(recorded, _WINNER_S).close()
        except OSError as error:
            return error.errno not in _NOT_RUNNING
        except DaemonUnavailable:
            return True
        return True

    def _connect_to_winner(self, deadline: float) -> Socket:
        """Connect to the daemon that won the race to start, retrying until it accepts connections."""
        while True:
            try:
                return self.connect_running(deadline)
            except OSError as error:
                if error.errno not in _NOT_RUNNING or time.monotonic() > deadline:
                    raise
            time.sleep(_RACE_PAUSE_S)


def find_lock_holder(data_dir: str) -> "int | None":
    """Return the id of the process that holds a data directory's lock, or None. Does not try to take the lock."""
    try:
        with open(f"{data_dir}/lock", encoding="ascii", errors="replace") as file:
            pid, inode = file.read(32).split("\n")[0], os.fstat(file.fileno()).st_ino
    except OSError:
        return None
    return int(pid) if os_calls.holds_lock(pid, inode) else None


def note_connected(socket: str) -> None:
    """Act as if this process had been connected to the daemon, because it continues the work of a process that was."""
    _known_sockets.add(socket)


def allow_start(socket: str) -> None:
    """Allow this process to start the daemon again, even if it was connected to the stopped one."""
    _known_sockets.discard(socket)


def forget_connections() -> None:
    """Treat this process as one that has not been connected to any daemon."""
    _known_sockets.clear()


def is_stopped(socket: str) -> bool:
    """Return whether the daemon on this socket was stopped on purpose and hasn't been started since."""
    return os.path.lexists(stopped_path(socket))


def connect(path: str, timeout_s: float = TIMEOUT_S) -> Socket:
    """Connect to the socket at `path`, which may have any length, and check the listener's user.

    Raises:
        OSError: The connection failed; EAGAIN if the listener did not accept it within `timeout_s` seconds.
        DaemonUnavailable: The listener belongs to another user.
    """
    sock = Socket(AF_UNIX, SOCK_STREAM)
    try:
        # connect() to a suspended daemon whose backlog is full would block forever.
        sock.setsockopt(SOL_SOCKET, SO_SNDTIMEO, _timeval(timeout_s))
        os_calls.connect(sock, path)
        sock.setsockopt(SOL_SOCKET, SO_SNDTIMEO, _timeval(0))
        uid = os_calls.read_peer(sock)[1]
        if uid not in (os.getuid(), 0):
            raise DaemonUnavailable(
                f"{path} is served by another user (uid {uid}), not by you; punchlist does not talk to it."
            )
    except BaseException:
        sock.close()
        raise
    return sock


def build_unavailable(path: str, error: OSError) -> DaemonUnavailable:
    if error.errno in _NOT_ALLOWED:
        advice = _SANDBOX_HELP.format(path=path, folder=os.path.dirname(path))
        return DaemonUnavailable(f"Connecting to {path} is not permitted ({error.strerror}).\n{advice}")
    if error.errno == errno.EAGAIN:
        text = f"The daemon on {path} accepts no connection; it may be suspended or overloaded."
        return DaemonUnavailable(text, temporary=True)
    return DaemonUnavailable(
        f"Connecting to {path} failed: {error.strerror or error}.", temporary=error.errno in _NOT_RUNNING
    )


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return whole.to_bytes(8, sys.byteorder) + int((seconds - whole) * 1e6).to_bytes(8, sys.byteorder)
