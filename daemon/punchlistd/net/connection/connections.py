"""The set of open connections, and the objects they share."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from punchlist_schemas.errors import Rejection
from punchlistd.engine.claims import Claims
from punchlistd.engine.replies import LONG_BYTES, SHUTTING_DOWN
from punchlistd.engine.watching.subscriptions import Subscriptions
from punchlistd.engine.writing.inbox import Signal
from punchlistd.metrics import Metrics
from punchlistd.net.connection.callers import WaitingCalls
from punchlistd.net.connection.hangup import HangUps
from punchlistd.net.connection.held import Held
from punchlistd.net.connection.output import Output
from punchlistd.settings import Settings

CANCELLED = Rejection("cancelled", "The call was cancelled by rpc.cancel.")


class AbortableConnection(Protocol):
    """The parts of a connection that `Connections` needs."""

    waiting: WaitingCalls
    output: Output

    def abort(self) -> None: ...


C = TypeVar("C", bound=AbortableConnection)


class Connections(Generic[C]):
    """The open connections and the objects they share.

    Args:
        settings: Limits.
        claims: Claims of tasks. Lost connections are reported to it.
        subscriptions: Serves subscriptions.
        metrics: Counts calls.
        wait_for_writer: Waits until the writer has processed all earlier calls.
        spawn: Runs a coroutine in the background.

    Attributes:
        live: Open connections.
        left_signal: Set whenever a connection is lost.
        closing: Whether new connections and waiting calls are rejected.
        uids: IDs of the users of this machine who may connect.
        reading: Lock held by the connection that decodes a long frame in slices, until the writer has processed its
            calls.
        held: Memory account of all connections.
        hang_ups: Detects peers that hang up while the daemon isn't reading from them.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        claims: Claims,
        subscriptions: Subscriptions,
        metrics: Metrics,
        wait_for_writer: Callable[[], Awaitable[object]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.spawn = spawn
        self.wait_for_writer = wait_for_writer
        self.reading = asyncio.Lock()
        self.settings = settings
        self.claims = claims
        self.subscriptions = subscriptions
        self.metrics = metrics
        self.live: set[C] = set()
        self.left_signal = Signal()
        self.closing = False
        self.uids = frozenset({os.getuid(), 0})
        self.held = Held(settings.held_bytes, self._end_stuck)
        self.hang_ups = HangUps()

    def enter(self, connection: C) -> Rejection | None:
        if self.closing:
            return SHUTTING_DOWN
        maximum = self.settings.limits.connections
        if len(self.live) >= maximum:
            facts = {"limit": "connections", "value": len(self.live) + 1, "maximum": maximum}
            message = f"The daemon has {maximum} connections, which is its limit. Close some and try again."
            return Rejection("limit_exceeded", message, facts)
        self.live.add(connection)
        return None

    def leave(self, connection: C) -> None:
        self.live.discard(connection)
        self.left_signal.give()

    @property
    def cancelled_rejection(self) -> Rejection:
        """Response to a waiting call that was cancelled."""
        return SHUTTING_DOWN if self.closing else CANCELLED

    def close(self) -> None:
        """Reject new connections and cancel all waiting calls."""
        self.closing = True
        for connection in list(self.live):
            connection.waiting.cancel_all()

    def _end_stuck(self) -> None:
        """Abort connections whose peers haven't read any of a long reply for `frame_seconds`."""
        deadline = time.monotonic() - self.settings.limits.frame_seconds
        for connection in list(self.live):
            if connection.output.taken_at < deadline and connection.output.unsent_bytes > LONG_BYTES:
                connection.abort()
