"""A batch of calls: its answers go out together, and no push of what it changes comes before them."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS
from punchlistd.engine.calls import Caller, Holder
from punchlistd.engine.replies import REPLY_BYTES, Outcome, Pieces
from punchlistd.net import jsonrpc
from punchlistd.net.held import Held

BATCH_BYTES = REPLY_BYTES
"""A read of a batch is begun only while the replies of the batch have fewer bytes together."""


class BatchSession(Caller, Protocol):
    """What the replies of a batch need to know of its connection."""

    @property
    def held(self) -> Held:
        """The account of what waits."""
        ...

    def hold(self) -> None:
        """Push nothing until `release`: the answer to a change comes before the push of it."""
        ...

    def release(self) -> None:
        """The batch is answered."""
        ...

    def settle(self, outcome: Outcome) -> None:
        """One call of the batch is over."""
        ...

    def answer_batch(self, pieces: list[bytes]) -> None:
        """Put the reply of the batch into the outgoing bytes."""
        ...


class BatchReply:
    """Collects the answers of a batch; when the last one is there they go out as one array."""

    def __init__(self, session: BatchSession, calls: list[jsonrpc.Call | jsonrpc.Malformed]) -> None:
        """The answers to `calls`, none of which is there yet."""
        self._session = session
        self._replies: list[tuple[bytes, ...]] = []
        self._size = 0
        self._expected = len(calls)
        self._held = any(map(_is_pushed, calls))
        if self._held:
            session.hold()

    @property
    def actor(self) -> str:
        """Who is recorded where a call names nobody."""
        return self._session.actor

    @property
    def user(self) -> str | None:
        """The user that the connection is bound to."""
        return self._session.user

    @property
    def confirm(self) -> bool:
        """Whether destructive calls are two-step."""
        return self._session.confirm

    @property
    def holder(self) -> Holder | None:
        """Who holds what is claimed."""
        return self._session.holder

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Take the answer of one call; a notification has none."""
        self._session.settle(outcome)
        self._expected -= 1
        if id is not None:
            if type(outcome) is Pieces:
                reply = jsonrpc.response_in_pieces(id, outcome.parts)
            else:
                reply = (jsonrpc.response(id, outcome),)
            self._session.held.take(reply)
            self._replies.append(reply)
            self._size += sum(map(len, reply))
        if self._expected:
            return
        if self._replies:
            pieces: list[bytes] = []
            for reply in self._replies:
                self._session.held.give(reply)
                pieces += (b"," if pieces else b"[", *reply)
            self._session.answer_batch([*pieces, b"]"])
        if self._held:
            self._session.release()

    def flush(self) -> None:
        """Send the outgoing bytes."""
        self._session.flush()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """The turns are those of the connection."""
        return self._session.turn()

    def admit(self, outcome: Outcome) -> Outcome:
        """The room is that of the connection."""
        return self._session.admit(outcome)

    @property
    def full(self) -> Rejection | None:
        """The refusal of a read that would add to replies which take too much room already; None while they do not."""
        if self._size < BATCH_BYTES:
            return None
        said = "The replies of this batch are too long together. Ask for the rest in further batches, or one by one."
        return Rejection("limit_exceeded", said, {"limit": "batch_bytes", "value": self._size, "maximum": BATCH_BYTES})


def _is_pushed(call: jsonrpc.Call | jsonrpc.Malformed) -> bool:
    """Whether pushes follow from a call: it changes something, or subscribes."""
    method = METHODS.get(call.method) if isinstance(call, jsonrpc.Call) else None
    return method is not None and (method.kind == "write" or method.name == "event.subscribe")
