"""Waits for a daemon's reply, and checks the daemon's process if none arrives."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    A = TypeVar("A")
    R = TypeVar("R")

    class Daemon(Protocol):
        """The part of `punchlist.connection.launch.Target` that waiting needs."""

        check_after_s: float | None
        until: float

        def build_timeout_error(self) -> Exception:
            """Return the error for a call that timed out."""
            ...

        def check_process(self, *, greeted: bool, on_purpose: bool) -> None:
            """Raise if waiting longer is pointless."""


_MAX_SLEEP_S = 1.0
"""Longest time that one system call may block, in seconds. A signal that arrives just before the call does not
interrupt it.
"""


class Waiting:
    """The waits of one exchange with a daemon, until `deadline` (`time.monotonic`).

    Attributes:
        greeted: Whether the daemon has replied on this connection.
        on_purpose: Whether the call may take a long time, so that a late reply is not reported.
    """

    def __init__(self, target: "Daemon", deadline: float, *, greeted: bool = False, on_purpose: bool = False) -> None:
        self._target = target
        self._deadline = min(deadline, target.until)
        self._check_at = deadline if target.check_after_s is None else time.monotonic() + target.check_after_s
        self.greeted = greeted
        self.on_purpose = on_purpose

    @property
    def left_s(self) -> float:
        """Longest time the next system call may block, in seconds."""
        return max(0.001, min(self._deadline - time.monotonic(), self._check_at - time.monotonic(), _MAX_SLEEP_S))

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def proceed(self) -> None:
        """Decide whether to continue after `left_s` seconds without a reply.

        Raises:
            TimedOut: The deadline has passed, or waiting longer is pointless.
            DaemonUnavailable: The deadline has passed, and the daemon is still starting.
        """
        if self.is_over:
            raise self._target.build_timeout_error()
        if self._target.check_after_s is not None and time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + self._target.check_after_s
            self._target.check_process(greeted=self.greeted, on_purpose=self.on_purpose)

    def run(self, sock: "socket.socket", action: "Callable[[A], R]", argument: "A") -> "R":
        """Call a method of a socket until it succeeds. Raises its `OSError`, and the errors of `proceed`."""
        while not self.is_over:
            sock.settimeout(self.left_s)
            try:
                return action(argument)
            except TimeoutError:
                self.proceed()
        raise self._target.build_timeout_error()

    def send(self, sock: "socket.socket", data: bytes) -> None:
        """Send all of `data`. Raises the same errors as `run`."""
        left = memoryview(data)
        while left:
            left = left[self.run(sock, sock.send, left) :]
