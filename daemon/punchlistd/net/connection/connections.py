"""All connections: who is connected, and what they share."""

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
from punchlistd.net.connection.callers import Waiting
from punchlistd.net.connection.hangup import HangUps
from punchlistd.net.connection.held import Held
from punchlistd.net.connection.output import Output
from punchlistd.settings import Settings

GIVEN_UP = Rejection("cancelled", "The call was given up by rpc.cancel.")


class Live(Protocol):
    """What they have to know of each."""

    waiting: Waiting
    output: Output

    def abort(self) -> None: ...


C = TypeVar("C", bound=Live)


class Connections(Generic[C]):
    """The connections, and what they share.

    Args:
        settings: limits.
        claims: who has tasks; is told of each connection that is lost.
        subscriptions: serves subscriptions.
        metrics: counts calls.
        passed: waits until the writer is through with what was asked before.
        spawn: runs a coroutine beside everything else.

    Attributes:
        live: Those that are made and not lost.
        left: Given whenever one has gone.
        closing: Whether no more are taken.
        uids: The users of the machine who may connect.
        reading: Whose turn it is to read a long frame of many values, until the writer is through with it.
        held: The account of what waits for all peers together.
        hang_ups: Notices peers that are gone while nothing is read of them.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        claims: Claims,
        subscriptions: Subscriptions,
        metrics: Metrics,
        passed: Callable[[], Awaitable[object]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.spawn = spawn
        self.passed = passed
        self.reading = asyncio.Lock()
        self.settings = settings
        self.claims = claims
        self.subscriptions = subscriptions
        self.metrics = metrics
        self.live: set[C] = set()
        self.left = Signal()
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
        self.left.give()

    @property
    def given_up(self) -> Rejection:
        """The answer of a waiting call that was cancelled."""
        return SHUTTING_DOWN if self.closing else GIVEN_UP

    def close(self) -> None:
        """Take no more connections and give up the calls that wait for something to happen."""
        self.closing = True
        for connection in list(self.live):
            connection.waiting.cancel_all()

    def _end_stuck(self) -> None:
        """End the connections whose peers have taken nothing of a long answer for as long as a frame may take."""
        late = time.monotonic() - self.settings.limits.frame_seconds
        for connection in list(self.live):
            if connection.output.taken_at < late and connection.output.unsent_bytes > LONG_BYTES:
                connection.abort()
