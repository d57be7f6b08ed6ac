"""The calls of a connection that wait for something to happen, and can be given up by `rpc.cancel`."""

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager

import anyio
import msgspec

from punchlist_schemas.errors import Rejection
from punchlistd.engine.calls import Caller, Holder
from punchlistd.engine.replies import Outcome

WAITING = frozenset({"event.wait"})
"""Methods that may wait for long; they do not hold up the other calls of their connection."""


class WaitingCall:
    """A call from its arrival to its answer; the caller that the engine answers.

    Args:
        waiting: where it is listed until it is answered.
        caller: who asked.
        id: the request's id, None for a notification.
    """

    def __init__(self, waiting: "Waiting", caller: Caller, id: str | int | None) -> None:
        """A call that nobody has given up yet."""
        self.id = id
        self._waiting = waiting
        self._caller = caller
        self._scope: anyio.CancelScope | None = None
        self._given_up = False
        self.on_give_up: Callable[[], None] = lambda: None

    @property
    def actor(self) -> str:
        """Who is recorded where a call names nobody."""
        return self._caller.actor

    @property
    def user(self) -> str | None:
        """The user that the connection is bound to."""
        return self._caller.user

    @property
    def confirm(self) -> bool:
        """Whether destructive calls are two-step."""
        return self._caller.confirm

    @property
    def holder(self) -> Holder | None:
        """The connection."""
        return self._caller.holder

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Answer, and wait no more."""
        self._waiting.end(self)
        self._caller.answer(id, outcome)

    def flush(self) -> None:
        """Hand the outgoing bytes to the system."""
        self._caller.flush()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """The turns are those of the connection."""
        return self._caller.turn()

    def admit(self, outcome: Outcome) -> Outcome:
        """The room is that of the connection."""
        return self._caller.admit(outcome)

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
        """No call waits yet."""
        self._maximum = maximum
        self._calls: dict[WaitingCall, None] = {}

    def __len__(self) -> int:
        """How many calls wait."""
        return len(self._calls)

    def begin(self, caller: Caller, id: bytes | None) -> WaitingCall | Rejection:
        """One more waiting call, by the raw JSON of its request id; or why it can't wait."""
        if len(self._calls) >= self._maximum:
            facts = {"limit": "in_flight", "value": self._maximum + 1, "maximum": self._maximum}
            said = f"A connection may have {self._maximum} calls waiting; give one up with rpc.cancel or open another."
            return Rejection("limit_exceeded", said, facts)
        call = WaitingCall(self, caller, None if id is None else msgspec.json.decode(id))
        self._calls[call] = None
        return call

    def end(self, call: WaitingCall) -> None:
        """The call is answered."""
        self._calls.pop(call, None)

    def cancel(self, id: str | int) -> bool:
        """Give up what waits under this request id; False if nothing does."""
        found = [call for call in self._calls if call.id == id]
        for call in found:
            call.give_up()
        return bool(found)

    def cancel_all(self) -> None:
        """Give up all of them."""
        for call in list(self._calls):
            call.give_up()
