"""The calls of a connection that wait for something to happen, and can be given up by `rpc.cancel`."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from punchlist_schemas.errors import Rejection

WAITING = frozenset({"event.wait"})
"""Methods that may wait for long; they do not hold up the other calls of their connection."""


class Waiting:
    """At most `maximum` waiting calls, by their raw JSON request id."""

    def __init__(self, maximum: int) -> None:
        """No call waits yet."""
        self._maximum = maximum
        self._scopes: dict[bytes, anyio.CancelScope] = {}

    def __len__(self) -> int:
        """How many calls wait."""
        return len(self._scopes)

    def refusal(self) -> Rejection | None:
        """Why one more call can't wait, or None."""
        if len(self._scopes) < self._maximum:
            return None
        facts = {"limit": "in_flight", "value": self._maximum + 1, "maximum": self._maximum}
        said = f"A connection may have {self._maximum} calls waiting; give one up with rpc.cancel or open another."
        return Rejection("limit_exceeded", said, facts)

    @contextmanager
    def scope(self, id: bytes | None) -> Generator[anyio.CancelScope]:
        """A scope that `cancel` with the same id cancels."""
        with anyio.CancelScope() as scope:
            name = id if id is not None else b"notification %d" % len(self._scopes)
            self._scopes[name] = scope
            try:
                yield scope
            finally:
                if self._scopes.get(name) is scope:
                    del self._scopes[name]

    def cancel(self, id: bytes) -> bool:
        """Give up the call with this id; False if there is none."""
        scope = self._scopes.get(id)
        if scope is not None:
            scope.cancel()
        return scope is not None

    def cancel_all(self) -> None:
        """Give up all of them."""
        for scope in list(self._scopes.values()):
            scope.cancel()
