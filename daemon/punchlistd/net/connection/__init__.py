"""One client connection: passes calls to the engine and sends replies and pushes.

An `asyncio.Protocol` without a task of its own, because streams cost twice as much for each small message. `protocol`
parses and encodes bytes without I/O; `output` buffers outgoing bytes.

A connection is in one stage at a time. `NEXT` lists the transitions:

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
from punchlistd.net.connection.callers import BatchCaller, LongCaller, WaitingCalls
from punchlistd.net.connection.connections import Connections
from punchlistd.net.connection.hangup import has_hung_up
from punchlistd.net.connection.output import BUFFER_BYTES, Output
from punchlistd.net.connection.protocol import Batch, ServerProtocol
from punchlistd.slices import in_slices

logger = logging.getLogger(__name__)

LONG_IN_FLIGHT_BYTES = 512 << 10
"""Upper limit for the bytes of a connection's long calls in flight. The connection's next call waits until they are
below the limit. Calls above `LONG_BYTES` are long: all other connections wait until they are decided and written."""

TURN_BYTES = 256 << 10
"""Bytes read from one connection before it yields to the others. The calls in these bytes can take tens of
milliseconds, and an event loop may read from one socket 32 times before it polls the next one."""

Begin = Callable[["Connection", Caller, jsonrpc.Call], None]
"""Starts a call. The caller is answered once, immediately or later."""


class Stage(IntEnum):
    """Lifecycle stage of a connection."""

    NEW = auto()
    """No transport yet."""
    OPEN = auto()
    """Accepts calls within the limits."""
    FINISHING = auto()
    """Accepts no more calls; closes once all received calls are answered."""
    CLOSING = auto()
    """Starts no more calls; ends once the peer has read the buffered output."""
    GONE = auto()
    """The transport is lost."""


NEXT: dict[Stage, frozenset[Stage]] = {
    Stage.NEW: frozenset({Stage.OPEN, Stage.CLOSING, Stage.GONE}),
    Stage.OPEN: frozenset({Stage.FINISHING, Stage.CLOSING, Stage.GONE}),
    Stage.FINISHING: frozenset({Stage.CLOSING, Stage.GONE}),
    Stage.CLOSING: frozenset({Stage.GONE}),
    Stage.GONE: frozenset(),
}
"""Stage -> allowed next stages."""


class Connection(asyncio.Protocol):
    """A client connection with its waiting calls and subscriptions.

    Args:
        connections: All connections of the daemon.
        begin: Starts a call.

    Attributes:
        actor, user, confirm, client: Set by `daemon.hello`.
        pid: Process ID of the peer.
        connected_at: Time of connection, in milliseconds since 1970.
        last_seen_at: Monotonic time of the last received bytes, in seconds.
        waiting: Calls that wait for an event.
        subscriptions: Subscriptions by ID.
        last_write: Latest write that is not answered yet. Later reads wait for it. After an undo, all later calls wait,
            because the undo reads history outside the writer.
        frame_timer: Runs while a frame is incomplete, so that a slow sender can't hold memory forever.
        push_framed: The transport's own `write`, because no replies are queued when a commit is published.
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
        self.last_seen_at = time.monotonic()
        self.waiting: WaitingCalls = WaitingCalls(limits.in_flight)
        self.subscriptions: dict[str, Subscription] = {}
        self.last_write: Write | None = None
        self.frame_timer: asyncio.TimerHandle | None = None
        self.push_framed: Callable[[bytes], Any] = _discard
        self.protocol = ServerProtocol(limits)
        self.framed = self.protocol.framed
        self.output: Output = Output(connections.held, self._on_blocked, self._on_unblocked)
        self.turn = self.output.turn
        self.admit = connections.held.admit
        self.subscription_ids = map(str, count(1))
        self._begin = begin
        self._received = 0  # bytes of calls that haven't started, as counted in `connections.held`
        self._received_this_turn = 0  # bytes
        self._long_in_flight = 0  # bytes
        self._is_decoding_long = False
        self._open_batches = 0  # batches whose response must precede any push
        self._end_watch: Callable[[], None] | None = None

    def _set_stage(self, stage: Stage) -> None:
        assert stage in NEXT[self.stage], f"a connection can't go from {self.stage.name} to {stage.name}"
        self.stage = stage

    # transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Check the peer's user and the limits, then accept the connection or close it."""
        self.output.begin(cast(asyncio.Transport, transport))
        self.push_framed = cast(asyncio.Transport, transport).write
        self.pid, uid = os_calls.read_peer(transport.get_extra_info("socket"))
        if uid not in self.connections.uids:
            logger.warning("refused a connection of uid %d", uid)
            self.abort()
        elif (rejection := self.connections.enter(self)) is not None:
            self.push(jsonrpc.failure(jsonrpc.NULL, rejection))
            self.close()
        else:
            self._set_stage(Stage.OPEN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection. Calls already accepted are still executed."""
        self._set_stage(Stage.GONE)
        self.output.end()
        self.protocol.forget_received()
        self._account_received()
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
        """Start the calls completed by these bytes."""
        self.last_seen_at = time.monotonic()
        if self.stage is not Stage.OPEN:
            return
        if self._may_begin() and (call := self.protocol.receive_call(data)) is not None:
            if type(call) is jsonrpc.Malformed:
                self.answer(call.id, call.rejection)
            else:
                self._begin(self, self, call)
            if self.protocol.unsent_bytes:  # writes are answered after their commit
                self.flush()
            return
        finished = self.protocol.receive_data(data)
        if self._received_this_turn < TURN_BYTES <= self._received_this_turn + len(data):
            # Resume two loop iterations later, so that the loop polls all sockets in between.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._begin_turn)
        self._received_this_turn += len(data)
        self._begin_calls()
        if self.protocol.fault:
            self._end_with(self.protocol.fault)
        elif self.protocol.has_unfinished_frame or self.frame_timer is not None:
            self._watch_frame(finished=finished)
            self._limit_received()
        elif self._received or self.protocol.frames:
            self._limit_received()

    def eof_received(self) -> bool:
        """Answer the calls received so far, then close the connection."""
        transport = self.output.transport
        if transport is None or has_hung_up(transport.get_extra_info("socket")):
            return False
        if self.stage is Stage.OPEN:
            if self.protocol.receive_eof():
                self._begin_calls()
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

    def _on_blocked(self) -> None:
        self._pause_pushes()
        self._pause_reading()

    def _on_unblocked(self) -> None:
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

    def _begin_calls(self) -> None:
        """Start as many received calls as the limits allow, then send their replies."""
        protocol = self.protocol
        while (protocol.members or protocol.frames) and self._may_begin():
            if protocol.has_long_frames and not self._is_decoding_long and protocol.needs_slicing:
                self._is_decoding_long = True
                self.connections.spawn(self._decode_long())
            if self._is_decoding_long:
                break
            size = 0 if protocol.members or not protocol.has_long_frames else len(protocol.frames[0])
            call, batch = protocol.next_call()
            caller = self if batch is None else self._build_batch_caller(batch, call)
            if size > LONG_BYTES:
                self._long_in_flight += size
                caller = LongCaller(self, partial(self._finish_long_call, size)) if batch is None else caller
            if type(call) is jsonrpc.Malformed:
                caller.answer(call.id, call.rejection)
            else:
                self._begin(self, caller, call)
            if protocol.unsent_bytes > BUFFER_BYTES:
                self.output.send(protocol.unsent_bytes, protocol.data_to_send())
        if protocol.frames or self._received_this_turn >= TURN_BYTES:
            self._pause_reading()
        if self._received and not (protocol.members or protocol.frames):
            self._account_received()
        self.flush()

    async def _decode_long(self) -> None:
        """Decode the next frame in slices, and wait until the writer has processed its calls.

        Only one connection at a time does this, because decoded values may need many times the memory of the frame, and
        only the frame's bytes are counted in `connections.held`.
        """
        async with self.connections.reading:
            if self.protocol.frames and not self.output.is_blocked:
                await in_slices(self.protocol.decode_in_slices())
                await asyncio.sleep(0)  # yield once more before the calls are built
            if self.output.is_blocked:
                # The peer might never read its output, so don't keep the decoded values while waiting for that.
                self.protocol.forget_decoded()
            self._is_decoding_long = False
            self._resume()
            await self.connections.wait_for_writer()

    def _finish_long_call(self, size: int) -> None:
        if size > LONG_BYTES:
            self._long_in_flight -= size

    def _build_batch_caller(self, batch: Batch, call: jsonrpc.Call | jsonrpc.Malformed) -> BatchCaller:
        # Pushes are paused from the first call of a batch until its response.
        if call is batch.calls[0] and _may_cause_pushes(batch):
            self._open_batches += 1
            self._pause_pushes()
        return BatchCaller(self, batch)

    def _limit_received(self) -> None:
        """Close the connection if its peer sends long frames while the daemon's memory limit is exceeded."""
        if self._account_received() > LONG_BYTES and (rejection := self.connections.held.check_room()) is not None:
            self.protocol.forget_received()
            self.push(jsonrpc.failure(jsonrpc.NULL, rejection))
            self.finish()

    def _account_received(self) -> int:
        """Update `connections.held` with the received bytes of calls that haven't started, and return their number."""
        size = 0 if self.is_gone else self.protocol.received_bytes
        self.connections.held.add(size - self._received)
        self._received = size
        return size

    def _may_begin(self) -> bool:
        """Return True if the next call may start."""
        protocol, write = self.protocol, self.last_write
        if self.stage >= Stage.CLOSING or (write is not None and type(write.params) is ListUndo):
            return False
        # A started batch always runs to its end. Waiting for the peer would keep all decoded values of the batch in
        # memory.
        if protocol.members:
            return True
        if self.output.is_blocked:
            return False
        in_flight, maximum = protocol.in_flight, self.connections.settings.limits.in_flight
        return (
            self._received_this_turn < TURN_BYTES
            and self._long_in_flight < LONG_IN_FLIGHT_BYTES
            and (in_flight < maximum or in_flight - len(self.waiting) < maximum)
        ) or protocol.is_decoded

    # replies

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Queue a reply; `flush` sends it."""
        self.connections.metrics.count_answer(outcome)
        self.protocol.answer(id, outcome)

    def answer_in_batch(self, batch: Batch, id: bytes | None, outcome: Outcome) -> None:
        """Answer one call of a batch. The last answer sends the response, after which pushes resume."""
        self.connections.metrics.count_answer(outcome)
        self.connections.held.hold(self.protocol.answer_in_batch(batch, id, outcome))
        if not batch.is_complete:
            return
        self._finish_long_call(batch.received)
        for reply in batch.replies:
            self.connections.held.release(reply)
        if _may_cause_pushes(batch):
            self._open_batches -= 1
            asyncio.get_running_loop().call_soon(self.resume_pushes)

    def flush(self) -> None:
        """Send queued replies, then start calls that were waiting for buffer space."""
        protocol, write = self.protocol, self.last_write
        if write is not None and write.stage is calls.Stage.ANSWERED:
            self.last_write = None  # release its memory even if the connection stays idle
        if protocol.unsent_bytes:
            self.output.send(protocol.unsent_bytes, protocol.data_to_send())
        if (protocol.members or protocol.frames) and self._may_begin():
            asyncio.get_running_loop().call_soon(self._resume)
        elif self.stage is Stage.FINISHING and protocol.is_idle:
            self.close()

    def _begin_turn(self) -> None:
        self._received_this_turn = 0
        self._resume()

    def _resume(self) -> None:
        self._begin_calls()
        output, waits = self.output, self.protocol.frames or self._received_this_turn >= TURN_BYTES
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
        """Whether pushes have to wait for the peer to read, or for the response to a batch."""
        return self.output.is_blocked or self._open_batches > 0

    def push(self, payload: Reply) -> None:
        """Send a notification. If it is long and exceeds the memory limit, abort the connection. Clients can resume."""
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
        """Resume the paused subscriptions."""
        for subscription in list(self.subscriptions.values()):
            self.connections.subscriptions.catch_up(subscription)

    # closing

    def finish(self) -> None:
        """Accept no more calls, and close the connection once all accepted calls are answered."""
        if self.stage is not Stage.OPEN:
            return
        self._set_stage(Stage.FINISHING)
        self._stop_frame_timer()
        self._pause_reading()
        if self.protocol.is_idle:
            self.close()

    def close(self) -> None:
        """Send the queued output, then close the connection."""
        if self.stage < Stage.CLOSING:
            self._set_stage(Stage.CLOSING)
        self.protocol.forget_received()
        self._pause_pushes()
        self.output.close()

    def abort(self) -> None:
        """Close the connection immediately, dropping queued output."""
        if self.stage < Stage.CLOSING:
            self._set_stage(Stage.CLOSING)
        self._pause_pushes()
        self.output.abort()

    def _end_with(self, fault: bytes) -> None:
        """Send an error that ends the stream, then close the connection."""
        self.push(fault)
        self.waiting.cancel_all()
        self.finish()

    # frame timeout

    def _watch_frame(self, *, finished: bool) -> None:
        """Start or stop the frame timer after receiving bytes. `finished` means that they completed a frame."""
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
        """Reject a frame that took too long to arrive. If the daemon itself had paused reading, restart the timer
        instead."""
        self._stop_frame_timer()
        transport, seconds = self.output.transport, self.connections.settings.limits.frame_seconds
        if transport is None or not transport.is_reading():
            self._watch_frame(finished=False)
            return
        facts = {"limit": "frame_seconds", "value": seconds, "maximum": seconds}
        late = Rejection("limit_exceeded", f"A frame must be finished within {seconds:g} seconds.", facts)
        self._end_with(jsonrpc.failure(jsonrpc.NULL, late))


def _may_cause_pushes(batch: Batch) -> bool:
    """Return True if one of the calls writes or subscribes."""
    rows = [METHODS.get(call.method) for call in batch.calls if isinstance(call, jsonrpc.Call)]
    return any(row is not None and (row.kind == "write" or row.name == "event.subscribe") for row in rows)


def _discard(_framed: bytes) -> None:
    """Drop a push made before the transport exists."""
