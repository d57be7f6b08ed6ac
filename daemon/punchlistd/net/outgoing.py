"""What goes out on a connection: answers, and the pushes of its subscriptions, in its framing."""

import asyncio
from collections.abc import Callable
from typing import Any

from punchlist_schemas import jsonrpc
from punchlist_schemas.framing import Framer
from punchlistd.engine.fanout import Fanout, Subscription


class Outgoing:
    """The sending half of a connection, which has a transport only between its beginning and its end.

    `push_framed` is the transport's own: no answers wait to be sent when a commit is published.
    """

    def __init__(self, frame_bytes: int, fanout: Fanout) -> None:
        """A half that waits for its transport; the peer's first frame, of at most `frame_bytes`, decides on framing."""
        self.push_framed: Callable[[bytes], Any] = _to_nobody
        self._framer = Framer(frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._out_bytes: int = 0
        self.subscriptions: dict[str, Subscription] = {}
        self._fanout = fanout
        self._stuck = False
        self._held = 0
        self._next_subscription = 1

    @property
    def framing(self) -> str:
        """The kind of framing."""
        return self._framer.kind or "lines"

    def framed(self, payload: bytes) -> bytes:
        """A payload in this connection's framing."""
        return self._framer.encode(payload)

    def answer_batch(self, replies: list[bytes]) -> None:
        """Put the replies of a batch into the outgoing bytes."""
        framed = self._framer.encode(jsonrpc.batch(replies))
        self._out.append(framed)
        self._out_bytes += len(framed)

    def push(self, payload: bytes) -> None:
        """Send a notification."""
        self._out.append(self._framer.encode(payload))
        self._send()

    def _send(self) -> None:
        """Hand the outgoing bytes to the system."""
        out, self._out, self._out_bytes = self._out, [], 0
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    # subscriptions

    @property
    def paused(self) -> bool:
        """Whether nothing may be pushed: the peer takes no bytes, or has to be answered a batch of changes first."""
        return self._stuck or self._held > 0

    def _stop_pushes(self) -> None:
        self._stuck = True
        for subscription in self.subscriptions.values():
            self._fanout.hold(subscription)

    def lead_on(self) -> None:
        """Take up the subscriptions that were held back."""
        for subscription in list(self.subscriptions.values()):
            self._fanout.lead(subscription)

    def hold(self) -> None:
        """Push nothing until a batch is answered: the answer to a change comes before the push of it."""
        self._held += 1
        for subscription in self.subscriptions.values():
            self._fanout.hold(subscription)

    def release(self) -> None:
        """The batch is answered."""
        self._held -= 1
        asyncio.get_running_loop().call_soon(self.lead_on)

    def ended(self, id: str, payload: bytes) -> None:
        """A subscription is over: forget it, and send the notification that says why."""
        self.subscriptions.pop(id, None)
        self.push(payload)

    def new_subscription_id(self) -> str:
        """An id that this connection did not have before."""
        id = str(self._next_subscription)
        self._next_subscription += 1
        return id

    def _end_subscriptions(self) -> None:
        for subscription in self.subscriptions.values():
            self._fanout.remove(subscription)
        self.subscriptions.clear()


def _to_nobody(_framed: bytes) -> None:
    """There is no transport yet."""
