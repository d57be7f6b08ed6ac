"""Waits for a daemon's reply, and looks at the daemon's process while none comes."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    A = TypeVar("A")
    R = TypeVar("R")

    class Daemon(Protocol):
        """Whose reply is waited for: `punchlist.connection.launch.Target`."""

        check_after_s: float | None
        until: float

        def build_timeout_error(self) -> Exception:
            """Return the error for a call that ran out of time."""
            ...

        def check_process(self, *, greeted: bool, on_purpose: bool) -> None:
            """Raise if waiting longer is no use."""


_MAX_SLEEP_S = 1.0
"""Longest sleep of one system call, in seconds: a signal that comes just before it is seen only afterwards."""


class Waiting:
    """What one exchange with a daemon does until `deadline`, on the clock of `time.monotonic`.

    Attributes:
        greeted: Whether the daemon has replied on this connection.
        on_purpose: Whether the call may take long, so that nobody is told that there is no reply yet.
    """

    def __init__(self, target: "Daemon", deadline: float, *, greeted: bool = False, on_purpose: bool = False) -> None:
        self._target = target
        self._deadline = min(deadline, target.until)
        self._check_at = deadline if target.check_after_s is None else time.monotonic() + target.check_after_s
        self.greeted = greeted
        self.on_purpose = on_purpose

    @property
    def left_s(self) -> float:
        """How long the next system call may block, in seconds."""
        return max(0.001, min(self._deadline - time.monotonic(), self._check_at - time.monotonic(), _MAX_SLEEP_S))

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def proceed(self) -> None:
        """Continue waiting after `left_s` seconds without a reply.

        Raises:
            TimedOut: The time is up, or waiting longer is no use.
        """
        if self.is_over:
            raise self._target.build_timeout_error()
        if self._target.check_after_s is not None and time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + self._target.check_after_s
            self._target.check_process(greeted=self.greeted, on_purpose=self.on_purpose)

    def run(self, sock: "socket.socket", action: "Callable[[A], R]", argument: "A") -> "R":
        """Call a method of a socket until it succeeds.

        Raises:
            OSError: As the system says.
            TimedOut: See `proceed`.
        """
        while not self.is_over:
            sock.settimeout(self.left_s)
            try:
                return action(argument)
            except TimeoutError:
                self.proceed()
        raise self._target.build_timeout_error()

    def send(self, sock: "socket.socket", data: bytes) -> None:
        """Send all of `data`; as to exceptions see `run`."""
        left = memoryview(data)
        while left:
            left = left[self.run(sock, sock.send, left) :]
