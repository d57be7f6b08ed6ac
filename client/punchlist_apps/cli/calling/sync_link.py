"""Makes calls one at a time over a blocking connection, without asyncio, for a single command.

Long-running or threaded programs should use `punchlist.Client`.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from punchlist.connection.core import Profile, Request, Retry, Wire, error_of, is_transient, result_of
from punchlist.connection.launch import Target
from punchlist.connection.options import Options
from punchlist.connection.waiting import Waiting
from punchlist.errors import ConnectionLost, PunchlistError, TimedOut
from punchlist_schemas.jsonrpc import Reply
from punchlist_schemas.results import HelloResult

if TYPE_CHECKING:
    from punchlist.calls.call import Call

R = TypeVar("R")
T = TypeVar("T")

_CHUNK = 1 << 18

_REASON_S = 1.0
"""Longest wait for the daemon's error after the daemon closed the connection, in seconds."""


class Link:
    """One connection after its handshake. Deadlines use `time.monotonic`."""

    def __init__(self, profile: Profile, deadline: float) -> None:
        self._target = profile.target
        self._socket = profile.target.dial(deadline - time.monotonic())
        self._wire = Wire()
        self._greeted = False
        try:
            self.hello = self._wire.greet(profile.target, self.exchange(profile.hello, deadline))
            self._greeted = True
        except BaseException:
            self.close()
            raise

    def exchange(self, request: Request, deadline: float) -> Reply:
        request_id, data = self._wire.send(request)
        on_purpose = request.patience_s > 0
        waiting = Waiting(self._target, deadline, greeted=self._greeted, on_purpose=on_purpose)
        try:
            with _convert_socket_errors():
                waiting.send(self._socket, data)
        except ConnectionLost:
            # If the daemon sent an error before it closed the connection, raise that error.
            with suppress(ConnectionLost, TimedOut):
                self._receive_reply(request_id, Waiting(self._target, min(deadline, time.monotonic() + _REASON_S)))
            raise
        return self._receive_reply(request_id, waiting)

    def close(self) -> None:
        self._socket.close()

    def _receive_reply(self, request_id: int, waiting: Waiting) -> Reply:
        while True:
            with _convert_socket_errors():
                data = waiting.run(self._socket, self._socket.recv, _CHUNK)
            if not data:
                raise ConnectionLost("The daemon closed the connection.")
            for message in self._wire.receive(data):
                if isinstance(message, Reply) and message.id in (request_id, None):
                    return message


@contextmanager
def _convert_socket_errors() -> Generator[None]:
    try:
        yield
    except TimedOut:
        raise
    except OSError as error:
        raise ConnectionLost(f"The connection to the daemon broke: {error.strerror}.") from error


class Caller:
    """Makes calls from one thread, one at a time, and retries like `punchlist.Client`.

    Args:
        target: The daemon's address and timeouts; by default those from the options.
        **options: See `Options`.
    """

    def __init__(self, target: Target | None = None, **options: Unpack[Options]) -> None:
        self._profile = Profile(options)
        self._profile.target = target or self._profile.target
        self._link: Link | None = None

    def open(self) -> HelloResult:
        """Connect now instead of at the first call, and return the result of `daemon.hello`."""
        return self._connect(self._profile.target.deadline(self._profile.timeout_s)).hello

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Call any method by its wire name and return the plain JSON result. Mutations get an idempotency key."""
        return self._send(Request.raw(method, params or {}), object)

    def run(self, call: "Call[T]") -> T:
        return call.pick(self._send(call.request, call.result))

    def _send(self, request: Request, type_: type[R]) -> R:
        deadline = self._profile.target.deadline(self._profile.timeout_s + request.patience_s)
        retry = Retry(deadline, repeatable=request.repeatable)
        while True:
            try:
                return result_of(self._exchange(request, deadline), type_)
            except PunchlistError as error:
                pause_s = retry.pause_s(error, time.monotonic())
            time.sleep(pause_s)

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _connect(self, deadline: float) -> Link:
        if self._link is None:
            self._link = Link(self._profile, min(deadline, time.monotonic() + self._profile.timeout_s))
        return self._link

    def _exchange(self, request: Request, deadline: float) -> Reply:
        try:
            reply = self._connect(deadline).exchange(request, deadline)
        # Close the link on Ctrl-C too, because a late reply must not be taken for the reply to the next call.
        except BaseException:
            self.close()
            raise
        if (error := error_of(reply)) and is_transient(error):
            self.close()
        return reply
