"""The bytes on their way to one peer, which takes them at its own pace.

What the peer does not take yet waits here, as the bytes objects that were handed in: a long list waits for a hundred
subscribers as one object. While anything waits, the output is blocked.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from punchlistd.net.connection.held import Held

JOINED_BYTES = 64 << 10
"""Up to this size everything is handed to the transport at once."""

PIECE_BYTES = 32 << 10
"""Longer output it gets in pieces of this size, the next one when it has passed on what it had."""

TURN_BYTES = 1 << 20
"""After so many bytes to a peer that takes them at once, the others have their turn."""

BUFFER_BYTES = 16 << 10
"""Above this many bytes in the transport the output is blocked."""


class Output:
    """The sending half of a connection, which has a transport only between its beginning and its end.

    Args:
        held: the account in which stands what waits.
        blocked: called when bytes begin to wait.
        unblocked: called when the peer has taken all of them.

    Attributes:
        is_blocked: Whether bytes wait, or there is no transport any more.
        unsent: What waits for the transport, and whether it stands in the account.
        taken_at: When its peer last took bytes of what waits, in seconds of the monotonic clock.
    """

    __slots__ = (
        "_blocked",
        "_closing",
        "_full",
        "_held",
        "_room",
        "_turns",
        "_unblocked",
        "is_blocked",
        "taken_at",
        "transport",
        "unsent",
    )

    def __init__(self, held: Held, blocked: Callable[[], None], unblocked: Callable[[], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_blocked = False
        self.taken_at = 0.0
        self._held = held
        self._blocked = blocked
        self._unblocked = unblocked
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
        self._held.give(_whole(part) for part, is_held in self.unsent if is_held)
        self.unsent.clear()
        self._note_room()

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
            self._held.take((pieces[place],))

    def _feed(self) -> None:
        transport, unsent, most = self.transport, self.unsent, TURN_BYTES
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
                    self._held.give((_whole(part),))
        if not unsent:
            if self._closing and transport is not None:
                transport.close()
            return
        self.is_blocked = True
        self._blocked()
        self.taken_at = time.monotonic()
        if not self._full:
            asyncio.get_running_loop().call_soon(self._go_on)

    def pause(self) -> None:
        self._full = self.is_blocked = True
        self._blocked()

    def resume(self) -> None:
        self._full = False
        self._go_on()

    def _go_on(self) -> None:
        if self._full or self.transport is None or self.transport.is_closing():
            return
        self._feed()
        if not (self.unsent or self._full or self._closing):
            self.is_blocked = False
            self._note_room()
            self._unblocked()

    def close(self) -> None:
        self._closing = self.is_blocked = True
        if self.transport is not None and not self.unsent:
            self.transport.close()

    def abort(self) -> None:
        self.is_blocked = True
        if self.transport is not None:
            self.transport.abort()

    def _note_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait until no other long answer is being made and the peer has taken the last one."""
        if self._turns is None:
            self._turns = asyncio.Lock()
        async with self._turns:
            while self.is_blocked and self.transport is not None:
                self._room = asyncio.get_running_loop().create_future()
                await self._room
            yield


def _whole(part: memoryview) -> bytes:
    assert type(part.obj) is bytes
    return part.obj
