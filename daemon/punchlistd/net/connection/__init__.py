"""One connection of a peer: its calls on their way to the engine, and answers and pushes on theirs back.

It is a protocol on the bare transport, without a task of its own: a stream per connection costs twice as much for each
small message. What the bytes mean is in `protocol`, which knows no transport, and how they leave in `output`.

A connection is in one stage at a time, and `NEXT` is the table of its life:

    ─▶ NEW ─▶ OPEN ─▶ FINISHING ─▶ CLOSING ─▶ GONE
        │      │          │         ▲          ▲
        └──────┴──────────┴─────────┴──────────┘
"""

import asyncio
import logging
import time
from collections.abc import Callable
from enum import IntEnum, auto
from functools import partial
from itertools import count
from typing import Any, cast

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import ListUndo
from punchlist_schemas.system import os_calls
from punchlist_schemas.vocabulary import MCP_CLIENT
from punchlistd.clock import now_ms
from punchlistd.engine import calls
from punchlistd.engine.calls import ANONYMOUS, Caller, Write
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces, Reply
from punchlistd.engine.watching.subscriptions import Subscription
from punchlistd.net import jsonrpc
from punchlistd.net.connection.callers import BatchCaller, LongCaller, Waiting
from punchlistd.net.connection.connections import Connections
from punchlistd.net.connection.hangup import hung_up
from punchlistd.net.connection.output import BUFFER_BYTES, Output
from punchlistd.net.connection.protocol import Batch, ServerProtocol
from punchlistd.slices import in_slices

logger = logging.getLogger(__name__)

LONG_UNDER_WAY_BYTES = 512 << 10
"""A connection's next call is begun only while those of more than `LONG_BYTES` that are under way have fewer bytes
together: all others wait for what is decided and written before them."""

TURN_BYTES = 256 << 10
"""After so many bytes of one connection all others have their turn: what they ask for can take tens of milliseconds,
and a loop may read 32 times from one socket before it looks at the next one."""

Begin = Callable[["Connection", Caller, jsonrpc.Call], None]
"""Begins a call, whose caller is answered once, now or later."""


class Stage(IntEnum):
    """How far a connection has come."""

    NEW = auto()
    """It has no transport yet."""
    OPEN = auto()
    """Its calls come in and begin, as far as there is room."""
    FINISHING = auto()
    """Nothing more comes in; it closes once all that came in is answered."""
    CLOSING = auto()
    """Nothing more begins; it ends once the peer has taken what waits."""
    GONE = auto()
    """Its transport is lost."""


NEXT: dict[Stage, frozenset[Stage]] = {
    Stage.NEW: frozenset({Stage.OPEN, Stage.CLOSING, Stage.GONE}),
    Stage.OPEN: frozenset({Stage.FINISHING, Stage.CLOSING, Stage.GONE}),
    Stage.FINISHING: frozenset({Stage.CLOSING, Stage.GONE}),
    Stage.CLOSING: frozenset({Stage.GONE}),
    Stage.GONE: frozenset(),
}
"""Where a connection may go from each stage."""


class Connection(asyncio.Protocol):
    """A connection and what it asked for.

    Args:
        connections: all of them.
        begin: begins a call.

    Attributes:
        actor, user, confirm, client: What `daemon.hello` set.
        pid: The process at the other end.
        connected_at: When it was made, in milliseconds since 1970.
        heard_at: When it was heard of last, in seconds of the monotonic clock.
        waiting: Its calls that wait for something to happen.
        subscriptions: Its subscriptions by their ids.
        last_write: Its last change until that is answered. A read behind it waits for it, and behind an undo all else
            does, since its history is read beside the writer.
        frame_timer: Runs while a frame is unfinished: a slow sender must not hold memory for ever.
        push_framed: The transport's own: no answers wait to be sent when a commit is published.
    """

    def __init__(self, connections: "Connections[Connection]", begin: Begin) -> None:
        limits = connections.settings.limits
        self.stage = Stage.NEW
        self.connections = connections
        self.actor = ANONYMOUS
        self.client = ""
        self.user: str | None = None
        self.confirm = False
        self.pid = 0
        self.connected_at = now_ms()
        self.heard_at = time.monotonic()
        self.waiting: Waiting = Waiting(limits.in_flight)
        self.subscriptions: dict[str, Subscription] = {}
        self.last_write: Write | None = None
        self.frame_timer: asyncio.TimerHandle | None = None
        self.push_framed: Callable[[bytes], Any] = _to_nobody
        self.protocol = ServerProtocol(limits)
        self.framed = self.protocol.framed
        self.output: Output = Output(connections.held, self._blocked, self._unblocked)
        self.turn = self.output.turn
        self.admit = connections.held.admit
        self.subscription_ids = map(str, count(1))
        self._begin = begin
        self._received = 0  # bytes that came in and have not begun, as they stand in the account
        self._received_now = 0  # bytes that came in in this turn
        self._long_under_way = 0  # bytes
        self._is_reading_long = False
        self._pauses = 0  # batches whose answer has to come before any push
        self._end_watch: Callable[[], None] | None = None

    def _to(self, stage: Stage) -> None:
        assert stage in NEXT[self.stage], f"a connection can't go from {self.stage.name} to {stage.name}"
        self.stage = stage

    # the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Check the peer's user and the limits, then accept the connection or close it."""
        self.output.begin(cast(asyncio.Transport, transport))
        self.push_framed = cast(asyncio.Transport, transport).write
        self.pid, uid = os_calls.peer(transport.get_extra_info("socket"))
        if uid not in self.connections.uids:
            logger.warning("refused a connection of uid %d", uid)
            self.abort()
        elif (refused := self.connections.enter(self)) is not None:
            self.push(jsonrpc.failure(jsonrpc.NULL, refused))
            self.close()
        else:
            self._to(Stage.OPEN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection. Calls that were accepted are still carried out."""
        self._to(Stage.GONE)
        self.output.end()
        self.protocol.forget_received()
        self._note_received()
        self._stop_frame_timer()
        if self._end_watch is not None:
            self._end_watch()
        for subscription in self.subscriptions.values():
            self.connections.subscriptions.remove(subscription)
        self.subscriptions.clear()
        self.waiting.cancel_all()
        self.connections.claims.on_connection_closed(self)
        self.connections.claims.agents.on_closed(self)
        self.connections.leave(self)

    def data_received(self, data: bytes) -> None:
        """Begin the calls that these bytes complete."""
        self.heard_at = time.monotonic()
        if self.stage is not Stage.OPEN:
            return
        if self._has_room() and (call := self.protocol.receive_call(data)) is not None:
            if type(call) is jsonrpc.Malformed:
                self.answer(call.id, call.rejection)
            else:
                self._begin(self, self, call)
            if self.protocol.unsent_bytes:  # a change is answered behind its commit
                self.flush()
            return
        finished = self.protocol.receive_data(data)
        if self._received_now < TURN_BYTES <= self._received_now + len(data):
            # In the turn of the loop after the next one: it looks at all sockets in between.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._begin_turn)
        self._received_now += len(data)
        self._work()
        if self.protocol.fault:
            self._end_with(self.protocol.fault)
        elif self.protocol.has_unfinished_frame or self.frame_timer is not None:
            self._watch_frame(finished=finished)
            self._bound_received()
        elif self._received or self.protocol.frames:
            self._bound_received()

    def eof_received(self) -> bool:
        """The peer will send nothing more: answer its calls, then close the connection."""
        transport = self.output.transport
        if transport is None or hung_up(transport.get_extra_info("socket")):
            return False
        if self.stage is Stage.OPEN:
            if self.protocol.receive_eof():
                self._work()
            if self.protocol.fault:
                self._end_with(self.protocol.fault)
            self.finish()
        if len(self.waiting) and self._end_watch is None:
            self._end_watch = self.connections.hang_ups.watch(transport.get_extra_info("socket"), self.abort)
        return True

    def pause_writing(self) -> None:
        self.output.pause()

    def resume_writing(self) -> None:
        self.output.resume()

    def _blocked(self) -> None:
        self._pause_pushes()
        self._pause_reading()

    def _unblocked(self) -> None:
        self._resume()
        self.resume_pushes()

    @property
    def is_gone(self) -> bool:
        return self.stage is Stage.GONE

    @property
    def is_agents(self) -> bool:
        return self.client == MCP_CLIENT

    @property
    def holder(self) -> "Connection":
        return self

    @property
    def unsent_bytes(self) -> int:
        return self.output.unsent_bytes

    # calls

    def _work(self) -> None:
        """Begin received calls as far as the limits allow, then send their answers."""
        protocol = self.protocol
        while (protocol.members or protocol.frames) and self._has_room():
            if protocol.has_long_frames and not self._is_reading_long and protocol.has_to_be_read:
                self._is_reading_long = True
                self.connections.spawn(self._read_long())
            if self._is_reading_long:
                break
            size = 0 if protocol.members or not protocol.has_long_frames else len(protocol.frames[0])
            call, batch = protocol.next_call()
            caller = self if batch is None else self._caller_in(batch, call)
            if size > LONG_BYTES:
                self._long_under_way += size
                caller = LongCaller(self, partial(self._end_long, size)) if batch is None else caller
            if type(call) is jsonrpc.Malformed:
                caller.answer(call.id, call.rejection)
            else:
                self._begin(self, caller, call)
            if protocol.unsent_bytes > BUFFER_BYTES:
                self.output.send(protocol.unsent_bytes, protocol.data_to_send())
        if protocol.frames or self._received_now >= TURN_BYTES:
            self._pause_reading()
        if self._received and not (protocol.members or protocol.frames):
            self._note_received()
        self.flush()

    async def _read_long(self) -> None:
        """Read the next frame in slices, and wait until the writer is through with it.

        Of all connections together one does: the values of a frame may take many times its bytes, and as bytes it
        stands in the account.
        """
        async with self.connections.reading:
            if self.protocol.frames and not self.output.is_blocked:
                await in_slices(self.protocol.reading())
                await asyncio.sleep(0)  # before what it says is made into a call
            if self.output.is_blocked:
                self.protocol.forget_read()  # its peer might never take what waits for it
            self._is_reading_long = False
            self._resume()
            await self.connections.passed()

    def _end_long(self, size: int) -> None:
        """A long call, or a batch of them, is answered."""
        if size > LONG_BYTES:
            self._long_under_way -= size

    def _caller_in(self, batch: Batch, call: jsonrpc.Call | jsonrpc.Malformed) -> BatchCaller:
        # From its first call on nothing is pushed until the batch is answered.
        if call is batch.calls[0] and _is_pushed(batch):
            self._pauses += 1
            self._pause_pushes()
        return BatchCaller(self, batch)

    def _bound_received(self) -> None:
        """Close the connection if the daemon has no room for what it sends."""
        if self._note_received() > LONG_BYTES and (refused := self.connections.held.refusal()) is not None:
            self.protocol.forget_received()
            self.push(jsonrpc.failure(jsonrpc.NULL, refused))
            self.finish()

    def _note_received(self) -> int:
        """Enter in the account what was received and is not begun; how much that is."""
        size = 0 if self.is_gone else self.protocol.received_bytes
        self.connections.held.add(size - self._received)
        self._received = size
        return size

    def _has_room(self) -> bool:
        """Whether the next call may begin."""
        protocol, write = self.protocol, self.last_write
        if self.stage >= Stage.CLOSING or (write is not None and type(write.params) is ListUndo):
            return False
        if protocol.members:  # the batch is under way as a whole: it waits for no peer with all its values
            return True
        if self.output.is_blocked:
            return False
        in_flight, maximum = protocol.in_flight, self.connections.settings.limits.in_flight
        return (
            self._received_now < TURN_BYTES
            and self._long_under_way < LONG_UNDER_WAY_BYTES
            and (in_flight < maximum or in_flight - len(self.waiting) < maximum)
        ) or protocol.is_read

    # answers

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Queue a reply; `flush` sends it."""
        self.connections.metrics.count_answer(outcome)
        self.protocol.answer(id, outcome)

    def answer_in(self, batch: Batch, id: bytes | None, outcome: Outcome) -> None:
        """Answer one call of a batch: with the last one the batch is, and then what follows from it is pushed."""
        self.connections.metrics.count_answer(outcome)
        self.connections.held.take(self.protocol.answer_in(batch, id, outcome))
        if not batch.is_complete:
            return
        self._end_long(batch.received)
        for reply in batch.replies:
            self.connections.held.give(reply)
        if _is_pushed(batch):
            self._pauses -= 1
            asyncio.get_running_loop().call_soon(self.resume_pushes)

    def flush(self) -> None:
        """Send queued replies, then begin work that waited for room."""
        protocol, write = self.protocol, self.last_write
        if write is not None and write.stage is calls.Stage.ANSWERED:
            self.last_write = None  # what it held is let go, however long the connection then does nothing
        if protocol.unsent_bytes:
            self.output.send(protocol.unsent_bytes, protocol.data_to_send())
        if (protocol.members or protocol.frames) and self._has_room():
            asyncio.get_running_loop().call_soon(self._resume)
        elif self.stage is Stage.FINISHING and protocol.is_idle:
            self.close()

    def _begin_turn(self) -> None:
        self._received_now = 0
        self._resume()

    def _resume(self) -> None:
        self._work()
        output, waits = self.output, self.protocol.frames or self._received_now >= TURN_BYTES
        if self.stage is Stage.OPEN and output.transport is not None and not (waits or output.is_blocked):
            output.transport.resume_reading()

    def _pause_reading(self) -> None:
        if self.output.transport is not None:
            self.output.transport.pause_reading()

    # pushes

    @property
    def framing(self) -> str:
        return self.protocol.framing

    @property
    def paused(self) -> bool:
        """True while nothing may be pushed: the peer takes no bytes, or waits for the answer to a batch of changes."""
        return self.output.is_blocked or self._pauses > 0

    def push(self, payload: Reply) -> None:
        """Send a notification. Close the connection if it is long and there is no room; the client can resume."""
        if type(payload) is Pieces and isinstance(self.admit(payload), Rejection):
            self.abort()
            return
        protocol = self.protocol
        protocol.push(payload.parts if type(payload) is Pieces else (payload,))
        self.output.send(protocol.unsent_bytes, protocol.data_to_send())

    def ended(self, id: str, payload: bytes) -> None:
        self.subscriptions.pop(id, None)
        self.push(payload)

    def _pause_pushes(self) -> None:
        for subscription in self.subscriptions.values():
            self.connections.subscriptions.pause(subscription)

    def resume_pushes(self) -> None:
        """Resume the subscriptions that were held back."""
        for subscription in list(self.subscriptions.values()):
            self.connections.subscriptions.catch_up(subscription)

    # ends

    def finish(self) -> None:
        """Accept no more calls; close the connection once all accepted ones are answered."""
        if self.stage is not Stage.OPEN:
            return
        self._to(Stage.FINISHING)
        self._stop_frame_timer()
        self._pause_reading()
        if self.protocol.is_idle:
            self.close()

    def close(self) -> None:
        """Send what is queued, then close the connection."""
        if self.stage < Stage.CLOSING:
            self._to(Stage.CLOSING)
        self.protocol.forget_received()
        self._pause_pushes()
        self.output.close()

    def abort(self) -> None:
        """Close the connection now."""
        if self.stage < Stage.CLOSING:
            self._to(Stage.CLOSING)
        self._pause_pushes()
        self.output.abort()

    def _end_with(self, fault: bytes) -> None:
        """Answer that the stream is unreadable, then close the connection."""
        self.push(fault)
        self.waiting.cancel_all()
        self.finish()

    # the time of a frame

    def _watch_frame(self, *, finished: bool) -> None:
        """Bytes came: they finished frames, or left one unfinished, or both."""
        pending = self.protocol.has_unfinished_frame and self.stage is Stage.OPEN
        if finished or not pending:
            self._stop_frame_timer()
        if pending and self.frame_timer is None:
            seconds = self.connections.settings.limits.frame_seconds
            self.frame_timer = asyncio.get_running_loop().call_later(seconds, self.end_frame)

    def _stop_frame_timer(self) -> None:
        if self.frame_timer is not None:
            self.frame_timer.cancel()
            self.frame_timer = None

    def end_frame(self) -> None:
        """Reject a frame that took too long; restart its time if the daemon itself had stopped reading."""
        self._stop_frame_timer()
        transport, seconds = self.output.transport, self.connections.settings.limits.frame_seconds
        if transport is None or not transport.is_reading():
            self._watch_frame(finished=False)
            return
        facts = {"limit": "frame_seconds", "value": seconds, "maximum": seconds}
        late = Rejection("limit_exceeded", f"A frame must be finished within {seconds:g} seconds.", facts)
        self._end_with(jsonrpc.failure(jsonrpc.NULL, late))


def _is_pushed(batch: Batch) -> bool:
    """Return True if a batch may cause pushes: one of its calls changes something or subscribes."""
    rows = [METHODS.get(call.method) for call in batch.calls if isinstance(call, jsonrpc.Call)]
    return any(row is not None and (row.kind == "write" or row.name == "event.subscribe") for row in rows)


def _to_nobody(_framed: bytes) -> None:
    """There is no transport yet."""
