"""One blocking connection to the daemon."""

import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from punchlist.core import Profile, Request, Wire, result_of
from punchlist.errors import ConnectionLost, TimedOut
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_schemas.results import HelloResult

R = TypeVar("R")

FOR_EVER = float("inf")
"""A deadline that never comes."""

_CHUNK = 1 << 18

_HEED_S = 1.0
"""How long one recv() may sleep: a signal that comes just before it does would else wait for the next message."""


class Link:
    """One connection, introduced. Deadlines are on the clock of `time.monotonic`."""

    def __init__(self, profile: Profile, deadline: float) -> None:
        self._socket = socket.socket(fileno=profile.target.dial().detach())
        self._wire = Wire()
        self._inbox: deque[Reply | Notice] = deque()
        self.is_settled = True
        try:
            self.hello = self._wire.greeted(result_of(self.exchange(profile.hello, deadline), HelloResult))
        except BaseException:
            self.close()
            raise

    def exchange(self, request: Request, deadline: float) -> Reply:
        """Send a request and wait for its answer. Until that has come the connection is not settled."""
        request_id, data = self._wire.send(request)
        self.is_settled = False
        try:
            self._bound(deadline, lambda: self._socket.sendall(data))
        except ConnectionLost:
            self._hear_last_words(min(deadline, time.monotonic() + _HEED_S))
            raise
        while True:
            message = self.receive(deadline)
            if isinstance(message, Reply) and message.id == request_id:
                self.is_settled = True
                return message

    def receive(self, deadline: float) -> Reply | Notice:
        """The next message."""
        while not self._inbox:
            data = self._read(deadline)
            if not data:
                raise ConnectionLost("The daemon closed the connection.")
            self._inbox.extend(self._wire.receive(data))
        return self._inbox.popleft()

    def close(self) -> None:
        """End the connection; whoever waits on it is woken."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def _hear_last_words(self, deadline: float) -> None:
        """Raise the refusal of the connection as a whole, if the daemon said one before it hung up."""
        with suppress(ConnectionLost, TimedOut):
            while data := self._read(deadline):
                self._wire.receive(data)

    def _read(self, deadline: float) -> bytes:
        while True:
            heed = time.monotonic() + _HEED_S
            try:
                return self._bound(min(deadline, heed), lambda: self._socket.recv(_CHUNK))
            except TimedOut:
                if deadline <= heed:
                    raise

    def _bound(self, deadline: float, action: Callable[[], R]) -> R:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimedOut("The daemon did not answer in time.")
        try:
            self._socket.settimeout(None if left == FOR_EVER else left)
            return action()
        except TimeoutError as error:
            raise TimedOut("The daemon did not answer in time.") from error
        except OSError as error:
            raise ConnectionLost(f"The connection to the daemon broke: {error.strerror}.") from error
