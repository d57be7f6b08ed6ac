"""Callers of long, batched and waiting calls."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

import anyio
import msgspec

from punchlist_schemas.errors import Rejection
from punchlistd.engine.calls import Caller
from punchlistd.engine.replies import REPLY_BYTES, Outcome
from punchlistd.net.connection.protocol import Batch

BATCH_BYTES = REPLY_BYTES
"""Upper limit for the replies to a batch, in bytes. Once it is reached, the batch's remaining reads are rejected."""


class DelegatingCaller:
    """Delegates everything to another caller; subclasses define `answer`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.actor, self.user, self.confirm, self.holder = caller.actor, caller.user, caller.confirm, caller.holder
        self.flush, self.turn, self.admit = caller.flush, caller.turn, caller.admit


class LongCaller(DelegatingCaller):
    """Caller that reports when a long call is answered. A connection limits the bytes of its long calls in flight.

    Args:
        caller: The connection.
        on_answer: Called once, before the call is answered.
    """

    def __init__(self, caller: Caller, on_answer: Callable[[], None]) -> None:
        super().__init__(caller)
        self._on_answer = on_answer

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        self._on_answer()
        self._caller.answer(id, outcome)


class BatchConnection(Caller, Protocol):
    """The part of a connection that `BatchCaller` needs."""

    def answer_in_batch(self, batch: Batch, id: bytes | None, outcome: Outcome) -> None: ...


class BatchCaller(DelegatingCaller):
    """Passes the outcome of one call to the batch that contains it."""

    def __init__(self, connection: BatchConnection, batch: Batch) -> None:
        super().__init__(connection)
        self._connection = connection
        self._batch = batch

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        self._connection.answer_in_batch(self._batch, id, outcome)

    @property
    def size_rejection(self) -> Rejection | None:
        """Rejection of the batch's remaining reads once the replies have reached `BATCH_BYTES`, else None."""
        if self._batch.size < BATCH_BYTES:
            return None
        message = (
            "The replies of this batch are too long in total. Send the remaining calls in further batches, or "
            "one by one."
        )
        facts = {"limit": "batch_bytes", "value": self._batch.size, "maximum": BATCH_BYTES}
        return Rejection("limit_exceeded", message, facts)


class WaitingCall(DelegatingCaller):
    """Caller of a call that may wait for an event.

    Args:
        waiting: The list that contains this call until it is answered.
        caller: The connection or batch caller.
        id: Request ID, or None for a notification.
    """

    def __init__(self, waiting: "WaitingCalls", caller: Caller, id: str | int | None) -> None:
        super().__init__(caller)
        self.id = id
        self._waiting = waiting
        self._scope: anyio.CancelScope | None = None
        self._is_cancelled = False
        self.on_cancel: Callable[[], None] = lambda: None

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        self._waiting.end(self)
        self._caller.answer(id, outcome)

    @contextmanager
    def cancel_scope(self) -> Generator[anyio.CancelScope]:
        """Enter a scope that `cancel` cancels, even if `cancel` was called earlier."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            if self._is_cancelled:
                scope.cancel()
            yield scope

    def cancel(self) -> None:
        """Stop waiting. The call still gets a response."""
        self._is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()
        self.on_cancel()


class WaitingCalls:
    """The waiting calls of one connection, at most `maximum`."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._calls: dict[WaitingCall, None] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def begin(self, caller: Caller, id: bytes | None) -> WaitingCall | Rejection:
        """Add a waiting call, or return a rejection if there are too many. `id` is the raw JSON of its request ID."""
        if len(self._calls) >= self._maximum:
            facts = {"limit": "in_flight", "value": self._maximum + 1, "maximum": self._maximum}
            message = (
                f"A connection may have {self._maximum} waiting calls; cancel one with rpc.cancel, or open "
                "another connection."
            )
            return Rejection("limit_exceeded", message, facts)
        call = WaitingCall(self, caller, None if id is None else msgspec.json.decode(id))
        self._calls[call] = None
        return call

    def end(self, call: WaitingCall) -> None:
        self._calls.pop(call, None)

    def cancel(self, id: str | int) -> bool:
        """Cancel the waiting calls with this request ID. Return False if there are none."""
        matches = [call for call in self._calls if call.id == id]
        for call in matches:
            call.cancel()
        return bool(matches)

    def cancel_all(self) -> None:
        for call in list(self._calls):
            call.cancel()
