"""One connection: bytes through framing, envelopes and typed calls to the engine, and answers and pushes back.

It is a protocol on the bare transport, without a task of its own: a stream per connection costs twice as much for each
small message.
"""

import asyncio
import logging
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from punchlist_schemas.framing import FramingError
from punchlistd.clock import now_ms
from punchlistd.engine.calls import Stage
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces
from punchlistd.net import jsonrpc
from punchlistd.net.batch import BatchReply
from punchlistd.net.dispatch import Dispatch
from punchlistd.net.frame_time import FrameTime
from punchlistd.net.hangup import hung_up
from punchlistd.net.outgoing import Outgoing
from punchlistd.net.server import Server
from punchlistd.net.waiting import Waiting

logger = logging.getLogger(__name__)

BUFFER_BYTES = 16 << 10
"""Above this many unsent bytes a connection counts as stuck: it is read no more and pushed nothing."""


class Session(Outgoing, asyncio.Protocol):
    """A connection and what it asked for. `actor`, `user` and `confirm` are what `daemon.hello` set."""

    def __init__(self, server: Server) -> None:
        """A session that waits for its transport."""
        limits = server.settings.limits
        super().__init__(limits.frame_bytes, server.fanout, server.held)
        self.server = server
        self.actor = "anonymous"
        self.client = ""
        self.user: str | None = None
        self.confirm = False
        self.pid = 0
        self.connected_at = now_ms()
        self.heard_at = time.monotonic()
        self.waiting = Waiting(limits.in_flight)
        self.frame_time = FrameTime(limits.frame_seconds, self._frame_late)
        self._metrics = server.metrics
        self._most_in_flight = limits.in_flight
        self._dispatch = Dispatch(server, self, self.waiting)
        self._backlog: deque[bytes] = deque()
        self._members: deque[tuple[jsonrpc.Call | jsonrpc.Malformed, BatchReply]] = deque()
        self._in_flight = 0
        self._received = 0
        self._at_end = False
        self._end_watch: Callable[[], None] | None = None

    # the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Check who is there, and whether there is room."""
        self._transport = cast(asyncio.Transport, transport)
        self.push_framed = self._transport.write
        self._transport.set_write_buffer_limits(high=BUFFER_BYTES, low=BUFFER_BYTES // 4)
        self.pid, uid = peer_of(transport.get_extra_info("socket"))
        if uid not in self.server.uids:
            logger.warning("refused a connection of uid %d", uid)
            self._transport.abort()
        elif (refused := self.server.enter(self)) is not None:
            self.push(jsonrpc.failure(jsonrpc.NULL, refused))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; what it asked for and was taken is done all the same."""
        self._transport = None
        self._stuck = True
        self._drop_unsent()
        self._note_room()
        self._backlog.clear()
        self._members.clear()
        self._note_received()
        self.frame_time.stop()
        if self._end_watch is not None:
            self._end_watch()
        self._end_subscriptions()
        self.waiting.cancel_all()
        self.server.claims.connection_closed(self)
        self.server.leave(self)

    def data_received(self, data: bytes) -> None:
        """Take the calls that these bytes complete."""
        self.heard_at = time.monotonic()
        try:
            frames = self._framer.feed(data)
        except FramingError as error:
            self._backlog.extend(error.frames)
            self._work()
            self.push(jsonrpc.failure(jsonrpc.NULL, error.rejection))
            self.waiting.cancel_all()
            self.finish()
            return
        self._backlog.extend(frames)
        self._work()
        if self._framer.pending or self.frame_time.timer is not None:
            self._watch_frame(finished=bool(frames))
            self._bound_received()
        elif self._backlog or self._received:
            self._bound_received()

    def eof_received(self) -> bool:
        """The peer sends no more; what it asked for is answered, then the connection ends."""
        transport = self._transport
        if transport is None or hung_up(transport.get_extra_info("socket")):
            return False
        if self._framer.kind == "lines" and self._framer.pending:
            self.data_received(b"\n")  # the last line may do without
        self.finish()
        if len(self.waiting) and self._end_watch is None:
            self._end_watch = self.server.hang_ups.watch(transport.get_extra_info("socket"), self.abort)
        return True

    def pause_writing(self) -> None:
        """The peer does not take bytes: nothing is pushed, and nothing more is read."""
        self._full = True
        self._wait_for_peer()

    def resume_writing(self) -> None:
        """The peer takes bytes again: send what waits, then go on."""
        self._full = False
        self._go_on()

    def taken(self) -> None:
        """Go on with the peer's calls, and lead its subscriptions on."""
        self._resume()
        self.lead_on()

    @property
    def is_gone(self) -> bool:
        """Whether the connection is closed."""
        return self._transport is None

    @property
    def holder(self) -> "Session":
        """What is claimed here, this connection holds."""
        return self

    # calls

    def _work(self) -> None:
        """Dispatch what has come, as far as the limits allow; then send what was answered."""
        limits = self.server.settings.limits
        while (self._members or self._backlog) and self._has_room():
            if self._members:
                self._dispatch.take(*self._members.popleft())
            elif isinstance(decoded := jsonrpc.decode(self._backlog.popleft(), limits), list):
                batch = BatchReply(self, decoded)
                self._in_flight += len(decoded)
                self._members.extend((each, batch) for each in decoded)
            else:
                self._in_flight += 1
                self._dispatch.take(decoded, self)
            if self._out_bytes > BUFFER_BYTES:
                self._send()
        if self._backlog and self._transport is not None:
            self._transport.pause_reading()
        if self._received and not (self._backlog or self._members):
            self._note_received()
        self.flush()

    def _bound_received(self) -> None:
        """End the connection if there is no room for what it sends."""
        if self._note_received() > LONG_BYTES and (refused := self.held.refusal()) is not None:
            self._backlog.clear()
            self.push(jsonrpc.failure(jsonrpc.NULL, refused))
            self.finish()

    def _note_received(self) -> int:
        """Enter in the account what was received and is not begun; how much that is."""
        gone = self._transport is None
        size = 0 if gone else self._framer.held + sum(map(len, self._backlog))
        self.held.add(size - self._received)
        self._received = size
        return size

    def _has_room(self) -> bool:
        undo = self._dispatch.undo
        if self._stuck or self._transport is None or (undo is not None and undo.stage is not Stage.ANSWERED):
            return False
        if self._members:
            return True
        return self._in_flight < self._most_in_flight or self._in_flight - len(self.waiting) < self._most_in_flight

    def _read_on(self) -> None:
        if self._transport is not None and not (self._backlog or self._stuck or self._at_end):
            self._transport.resume_reading()

    # answers and pushes

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Put a reply into the outgoing bytes; `flush` sends them."""
        self.settle(outcome)
        if type(outcome) is Pieces:
            if id is not None:
                self._put(jsonrpc.response_in_pieces(id, outcome.parts))
        elif id is not None:
            framed = self._framer.encode(jsonrpc.response(id, outcome))
            self._out.append(framed)
            self._out_bytes += len(framed)

    def settle(self, outcome: Outcome) -> None:
        """One call is over."""
        self._in_flight -= 1
        self._metrics.answered(outcome)

    def flush(self) -> None:
        """Send the outgoing bytes, and take up work that waited for room."""
        if self._out:
            self._send()
        if (self._members or self._backlog) and self._has_room():
            asyncio.get_running_loop().call_soon(self._resume)
        elif self._at_end:
            self._end_if_done()

    def _resume(self) -> None:
        self._work()
        self._read_on()

    # ends

    def finish(self) -> None:
        """Take no more; end the connection once everything that was taken is answered."""
        self._at_end = True
        self.frame_time.stop()
        if self._transport is not None:
            self._transport.pause_reading()
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._at_end and not (self._in_flight or self._backlog):
            self.close()

    def close(self) -> None:
        """Send what is left and end the connection."""
        self._backlog.clear()
        self._members.clear()
        self._stop_pushes()
        self._closing = True
        if self._transport is not None and not self._unsent:
            self._transport.close()

    def _watch_frame(self, *, finished: bool) -> None:
        self.frame_time.note(finished=finished, pending=self._framer.pending and not self._at_end)

    def _frame_late(self) -> None:
        if self._transport is None or not self._transport.is_reading():
            self._watch_frame(finished=False)  # it is we who do not read
            return
        self.push(jsonrpc.failure(jsonrpc.NULL, self.frame_time.refusal))
        self.waiting.cancel_all()
        self.finish()


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """Process and user id at the other end."""
    pid, uid, _gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid
