"""What goes out on a connection: answers, and the pushes of its subscriptions, in its framing."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from punchlist_schemas.errors import Rejection
from punchlist_schemas.framing import Framer
from punchlistd.engine.replies import Outcome, Pieces, Reply
from punchlistd.engine.subscriptions import Fanout, Subscription
from punchlistd.net.held import Held

JOINED_BYTES = 64 << 10
"""Up to this size everything is handed to the transport at once."""

PIECE_BYTES = 32 << 10
"""Longer output it gets in pieces of this size, the next one when it has passed on what it had."""

TURN_BYTES = 1 << 20
"""After so many bytes to a peer that takes them at once, the others have their turn."""


class Outgoing:
    """The sending half of a connection, which has a transport only between its beginning and its end.

    What the peer does not take yet waits here, as the bytes objects that were handed in: a long list waits for a
    hundred subscribers as one object. While anything waits, the connection counts as stuck.

    `push_framed` is the transport's own: no answers wait to be sent when a commit is published.
    """

    def __init__(self, frame_bytes: int, fanout: Fanout, held: Held) -> None:
        """A half that waits for its transport; the peer's first frame, of at most `frame_bytes`, decides on framing."""
        self.held = held
        self.taken_at = 0.0
        """When its peer last took bytes of what waits, in seconds of the monotonic clock."""
        self.push_framed: Callable[[bytes], Any] = _to_nobody
        self._framer = Framer(frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._out_bytes: int = 0
        self._unsent: deque[tuple[memoryview, bool]] = deque()  # and whether it stands in the account
        self._full = False
        self._closing = False
        self._turns: asyncio.Lock | None = None
        self._room: asyncio.Future[None] | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self._fanout = fanout
        self._stuck = False
        self._held = 0
        self._next_subscription = 1

    @property
    def framing(self) -> str:
        """The kind of framing."""
        return self._framer.kind or "lines"

    @property
    def unsent_bytes(self) -> int:
        """How many bytes wait for the peer to take them."""
        held = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return held + sum(len(part) for part, _ in self._unsent)

    @property
    def waiting_pieces(self) -> list[bytes]:
        """What waits before the transport."""
        return [_whole(part) for part, _ in self._unsent]

    def framed(self, payload: bytes) -> bytes:
        """A payload in this connection's framing."""
        return self._framer.encode(payload)

    def admit(self, outcome: Outcome) -> Outcome:
        """The answer to a read, or the refusal of a long one that the daemon has no room for."""
        return self.held.admit(outcome)

    def answer_batch(self, pieces: list[bytes]) -> None:
        """Put the reply of a batch into the outgoing bytes."""
        self._put(pieces)

    def push(self, payload: Reply) -> None:
        """Send a notification; a long one that there is no room for ends the connection, which can resume."""
        if type(payload) is Pieces and isinstance(self.held.admit(payload), Rejection):
            self.abort()
            return
        self._put(payload.parts if type(payload) is Pieces else (payload,))
        self._send()

    def _put(self, pieces: Sequence[bytes]) -> None:
        """Put a payload that comes in pieces into the outgoing bytes."""
        framed = self._framer.encode_pieces(pieces)
        self._out += framed
        self._out_bytes += sum(map(len, framed))

    def _send(self) -> None:
        """Hand the outgoing bytes to the system, or let them wait behind those that wait already."""
        out, self._out, size, self._out_bytes = self._out, [], self._out_bytes, 0
        if not out or self._transport is None or self._transport.is_closing():
            return
        if size <= JOINED_BYTES and not self._unsent:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
            return
        unsent = self._unsent
        unsent.extend([(memoryview(piece), False) for piece in out])
        self._feed()
        for place in range(-1, -1 - min(len(out), len(unsent)), -1):
            unsent[place] = (unsent[place][0], True)
            self.held.take((out[place],))

    def _feed(self) -> None:
        """Give the transport of what waits as much as it takes now."""
        transport, unsent, most = self._transport, self._unsent, TURN_BYTES
        while unsent and most > 0 and not self._full and transport is not None:
            (part, is_held), sent = unsent[0], 0
            for sent in range(PIECE_BYTES, len(part) + PIECE_BYTES, PIECE_BYTES):
                transport.write(part[sent - PIECE_BYTES : sent])
                if self._full or sent >= most:
                    break
            most -= sent
            unsent[0] = part[sent:], is_held
            if sent >= len(part):
                unsent.popleft()
                if is_held:
                    self.held.give((_whole(part),))
        if not unsent:
            if self._closing and transport is not None:
                transport.close()
            return
        self._wait_for_peer()
        self.taken_at = time.monotonic()
        if not self._full:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """What could not be sent in this turn of the loop is sent in the next ones."""
        if self._full or self._transport is None or self._transport.is_closing():
            return
        self._feed()
        if not (self._unsent or self._full or self._closing):
            self._stuck = False
            self._note_room()
            self.taken()

    def taken(self) -> None:
        """The peer has taken everything."""

    def abort(self) -> None:
        """End the connection now."""
        self._stop_pushes()
        if self._transport is not None:
            self._transport.abort()

    def _drop_unsent(self) -> None:
        self.held.give(_whole(part) for part, is_held in self._unsent if is_held)
        self._unsent.clear()

    def _note_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait until no other long answer is being made and the peer has taken the last one."""
        if self._turns is None:
            self._turns = asyncio.Lock()
        async with self._turns:
            while self._stuck and self._transport is not None:
                self._room = asyncio.get_running_loop().create_future()
                await self._room
            yield

    def _wait_for_peer(self) -> None:
        """Nothing is pushed, and nothing more is read, until the peer takes bytes."""
        self._stop_pushes()
        if self._transport is not None:
            self._transport.pause_reading()

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


def _whole(part: memoryview) -> bytes:
    """What a part belongs to."""
    assert type(part.obj) is bytes
    return part.obj


def _to_nobody(_framed: bytes) -> None:
    """There is no transport yet."""
