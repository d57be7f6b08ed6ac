"""A batch of calls: its answers go out together, and no push of what it changes comes before them."""

from typing import Protocol

from punchlist_schemas import jsonrpc
from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS
from punchlistd.engine.calls import Caller, Holder


class BatchSession(Caller, Protocol):
    """What the replies of a batch need to know of its connection."""

    def hold(self) -> None:
        """Push nothing until `release`: the answer to a change comes before the push of it."""
        ...

    def release(self) -> None:
        """The batch is answered."""
        ...

    def settle(self, outcome: bytes | Rejection) -> None:
        """One call of the batch is over."""
        ...

    def answer_batch(self, replies: list[bytes]) -> None:
        """Put the replies of the batch into the outgoing bytes."""
        ...


class BatchReply:
    """Collects the answers of a batch; when the last one is there they go out as one array."""

    def __init__(self, session: BatchSession, calls: list[jsonrpc.Call | jsonrpc.Malformed]) -> None:
        """The answers to `calls`, none of which is there yet."""
        self._session = session
        self._replies: list[bytes] = []
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

    def answer(self, id: bytes | None, outcome: bytes | Rejection) -> None:
        """Take the answer of one call; a notification has none."""
        self._session.settle(outcome)
        self._expected -= 1
        if id is not None:
            self._replies.append(jsonrpc.response(id, outcome))
        if self._expected:
            return
        if self._replies:
            self._session.answer_batch(self._replies)
        if self._held:
            self._session.release()

    def flush(self) -> None:
        """Send the outgoing bytes."""
        self._session.flush()


def _is_pushed(call: jsonrpc.Call | jsonrpc.Malformed) -> bool:
    """Whether pushes follow from a call: it changes something, or subscribes."""
    method = METHODS.get(call.method) if isinstance(call, jsonrpc.Call) else None
    return method is not None and (method.kind == "write" or method.name == "event.subscribe")
