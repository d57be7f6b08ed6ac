"""On whose behalf a connection asks: alone, in a batch, or with a call that may wait."""

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
"""A read of a batch is begun only while the replies of the batch have fewer bytes together."""


class OnBehalf:
    """A caller with the rights and the room of another one, which is answered in a way of its own."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.actor, self.user, self.confirm, self.holder = caller.actor, caller.user, caller.confirm, caller.holder
        self.flush, self.turn, self.admit = caller.flush, caller.turn, caller.admit


class LongCaller(OnBehalf):
    """The caller of a call of many bytes, of which a connection may have few under way.

    Args:
        caller: who asked.
        answered: called at the call's end, once.
    """

    def __init__(self, caller: Caller, answered: Callable[[], None]) -> None:
        super().__init__(caller)
        self._answered = answered

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        self._answered()
        self._caller.answer(id, outcome)


class BatchConnection(Caller, Protocol):
    """What the caller of a batch needs to know of its connection."""

    def answer_in(self, batch: Batch, id: bytes | None, outcome: Outcome) -> None:
        """Answer one call of a batch."""
        ...


class BatchCaller(OnBehalf):
    """The caller of a call of a batch."""

    def __init__(self, connection: BatchConnection, batch: Batch) -> None:
        super().__init__(connection)
        self._connection = connection
        self._batch = batch

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        self._connection.answer_in(self._batch, id, outcome)

    @property
    def full(self) -> Rejection | None:
        """The refusal of a read that would add to replies which take too much room already; None while they do not."""
        if self._batch.size < BATCH_BYTES:
            return None
        message = "The replies of this batch are too long together. Ask for the rest in further batches, or one by one."
        facts = {"limit": "batch_bytes", "value": self._batch.size, "maximum": BATCH_BYTES}
        return Rejection("limit_exceeded", message, facts)


class WaitingCall(OnBehalf):
    """A call that waits for something to happen, from its arrival to its answer.

    Args:
        waiting: where it is listed until it is answered.
        caller: who asked.
        id: the request's id, None for a notification.
    """

    def __init__(self, waiting: "Waiting", caller: Caller, id: str | int | None) -> None:
        super().__init__(caller)
        self.id = id
        self._waiting = waiting
        self._scope: anyio.CancelScope | None = None
        self._given_up = False
        self.on_give_up: Callable[[], None] = lambda: None

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        self._waiting.end(self)
        self._caller.answer(id, outcome)

    @contextmanager
    def running(self) -> Generator[anyio.CancelScope]:
        """The scope of the waiting itself, cancelled when the call is given up, also if it was before it began."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            if self._given_up:
                scope.cancel()
            yield scope

    def give_up(self) -> None:
        """Stop waiting; the call is answered all the same."""
        self._given_up = True
        if self._scope is not None:
            self._scope.cancel()
        self.on_give_up()


class Waiting:
    """At most `maximum` waiting calls of one connection."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._calls: dict[WaitingCall, None] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def begin(self, caller: Caller, id: bytes | None) -> WaitingCall | Rejection:
        """One more waiting call, by the raw JSON of its request id; or why it can't wait."""
        if len(self._calls) >= self._maximum:
            facts = {"limit": "in_flight", "value": self._maximum + 1, "maximum": self._maximum}
            message = (
                f"A connection may have {self._maximum} calls waiting; give one up with rpc.cancel or open another."
            )
            return Rejection("limit_exceeded", message, facts)
        call = WaitingCall(self, caller, None if id is None else msgspec.json.decode(id))
        self._calls[call] = None
        return call

    def end(self, call: WaitingCall) -> None:
        self._calls.pop(call, None)

    def cancel(self, id: str | int) -> bool:
        """Give up what waits under this request id; False if nothing does."""
        found = [call for call in self._calls if call.id == id]
        for call in found:
            call.give_up()
        return bool(found)

    def cancel_all(self) -> None:
        for call in list(self._calls):
            call.give_up()
