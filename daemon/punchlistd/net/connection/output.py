"""Outgoing buffer of one connection, with backpressure.

Bytes that the peer has not read yet are buffered without copying. A long list queued for a hundred subscribers is kept
in memory only once. The output is blocked while the buffer is not empty.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from punchlistd.net.connection.held import Held

JOINED_BYTES = 64 << 10
"""Output up to this size, in bytes, is joined and written in one call."""

PIECE_BYTES = 32 << 10
"""Size of the pieces in which longer output is written, in bytes. A piece is written once the transport's buffer has
space for it."""

TURN_BYTES = 1 << 20
"""Bytes written to a fast peer before other work may run."""

BUFFER_BYTES = 16 << 10
"""High-water mark of the transport's own buffer, in bytes. Above it, the output is blocked."""


class Output:
    """The sending half of a connection. It has a transport between `begin` and `end`.

    Args:
        held: Memory account of all connections.
        on_blocked: Called when the first bytes are buffered.
        on_unblocked: Called when the peer has read all buffered bytes.

    Attributes:
        is_blocked: Whether bytes are buffered, or the output is closed.
        unsent: Buffered parts, each with a flag that is True if `held` counts the part.
        taken_at: Monotonic time at which the peer last read buffered bytes, in seconds.
    """

    __slots__ = (
        "_on_blocked",
        "_closing",
        "_full",
        "_held",
        "_room",
        "_turns",
        "_on_unblocked",
        "is_blocked",
        "taken_at",
        "transport",
        "unsent",
    )

    def __init__(self, held: Held, on_blocked: Callable[[], None], on_unblocked: Callable[[], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_blocked = False
        self.taken_at = 0.0
        self._held = held
        self._on_blocked = on_blocked
        self._on_unblocked = on_unblocked
        self.unsent: deque[tuple[memoryview, bool]] = deque()
        self._full = False
        self._closing = False
        self._turns: asyncio.Lock | None = None
        self._room: asyncio.Future[None] | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=BUFFER_BYTES, low=BUFFER_BYTES // 4)

    def end(self) -> None:
        self.transport = None
        self.is_blocked = True
        self._held.release(_buffer_of(part) for part, is_held in self.unsent if is_held)
        self.unsent.clear()
        self._signal_room()

    @property
    def unsent_bytes(self) -> int:
        buffered = 0 if self.transport is None else self.transport.get_write_buffer_size()
        return buffered + sum(len(part) for part, _ in self.unsent)

    def send(self, size: int, pieces: list[bytes]) -> None:
        transport = self.transport
        if not pieces or transport is None or transport.is_closing():
            return
        if size <= JOINED_BYTES and not self.unsent:
            transport.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
            return
        unsent = self.unsent
        unsent.extend([(memoryview(piece), False) for piece in pieces])
        self._feed()
        for place in range(-1, -1 - min(len(pieces), len(unsent)), -1):
            unsent[place] = (unsent[place][0], True)
            self._held.hold((pieces[place],))

    def _feed(self) -> None:
        transport, unsent, budget = self.transport, self.unsent, TURN_BYTES
        while unsent and budget > 0 and not self._full and transport is not None:
            (part, is_held), sent = unsent[0], 0
            for sent in range(PIECE_BYTES, len(part) + PIECE_BYTES, PIECE_BYTES):
                transport.write(part[sent - PIECE_BYTES : sent])
                if self._full or sent >= budget:
                    break
            budget -= sent
            unsent[0] = part[sent:], is_held
            if sent >= len(part):
                unsent.popleft()
                if is_held:
                    self._held.release((_buffer_of(part),))
        if not unsent:
            if self._closing and transport is not None:
                transport.close()
            return
        self.is_blocked = True
        self._on_blocked()
        self.taken_at = time.monotonic()
        if not self._full:
            asyncio.get_running_loop().call_soon(self._continue)

    def pause(self) -> None:
        self._full = self.is_blocked = True
        self._on_blocked()

    def resume(self) -> None:
        self._full = False
        self._continue()

    def _continue(self) -> None:
        if self._full or self.transport is None or self.transport.is_closing():
            return
        self._feed()
        if not (self.unsent or self._full or self._closing):
            self.is_blocked = False
            self._signal_room()
            self._on_unblocked()

    def close(self) -> None:
        self._closing = self.is_blocked = True
        if self.transport is not None and not self.unsent:
            self.transport.close()

    def abort(self) -> None:
        self.is_blocked = True
        if self.transport is not None:
            self.transport.abort()

    def _signal_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait until no other long reply is being built and the peer has read the previous one."""
        if self._turns is None:
            self._turns = asyncio.Lock()
        async with self._turns:
            while self.is_blocked and self.transport is not None:
                self._room = asyncio.get_running_loop().create_future()
                await self._room
            yield


def _buffer_of(part: memoryview) -> bytes:
    assert type(part.obj) is bytes
    return part.obj
