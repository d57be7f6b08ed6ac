"""Clients that run in threads and store the error that ended them."""

import socket
import threading
import time
from contextlib import suppress

from punchlist_faults.options import Violation
from punchlist_testing.daemon import Raw

PATIENCE_S = 60.0


class Background(threading.Thread):
    """A client of the daemon at a socket, bound to a user if given.

    Attributes:
        ending: Set when the client is to end.
        link: Its connection; None while it isn't connected.
    """

    def __init__(self, name: str, path: str, user: str | None = None) -> None:
        super().__init__(name=name, daemon=True)
        self.ending = threading.Event()
        self.link: Raw | None = None
        self.failure: BaseException | None = None
        self.failed_at = float("inf")
        self.user = user
        self._path = path

    def work(self) -> None:
        """Run the client; implemented by subclasses."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.failed_at, self.failure = time.monotonic(), error
        finally:
            self.hang_up()

    def connect(self) -> Raw:
        """Return the connection, opening one if needed."""
        if self.link is None:
            self.link = Raw(self._path)
            if self.user:
                self.link.result("daemon.hello", user=self.user)
        return self.link

    def hang_up(self) -> None:
        link, self.link = self.link, None
        if link is not None:
            with suppress(OSError):
                link.close()

    def close(self) -> None:
        """End the client, even if it is waiting for data. Its daemon must have ended or must be able to respond."""
        self.ending.set()
        if (link := self.link) is not None:
            with suppress(OSError):
                link.sock.shutdown(socket.SHUT_RDWR)
        self.join(PATIENCE_S)

    def check(self, doubtful_after: float = float("inf")) -> None:
        """Raise the error that ended the client before `doubtful_after`, or a violation if the client is still
        running."""
        if self.failure is not None and self.failed_at < doubtful_after:
            raise Violation(f"{self.name}: {self.failure!r}") from self.failure
        if self.is_alive() and self.failure is None:
            raise Violation(f"{self.name} hangs")
