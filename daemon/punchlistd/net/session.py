"""One connection: bytes through framing, envelopes and typed calls to the engine, and answers and pushes back.

It is a protocol on the bare transport, without a task of its own: a stream per connection costs twice as much for each
small message. This is also the one place where an exception becomes an error on the wire.
"""

import asyncio
import logging
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from punchlist_schemas import jsonrpc
from punchlist_schemas.errors import Rejection
from punchlist_schemas.framing import Framer, FramingError
from punchlist_schemas.methods import METHODS, Method
from punchlist_schemas.params import Mutation, Params, TaskClaim
from punchlistd.engine.calls import INTERNAL_ERROR, Caller, Read, Write
from punchlistd.engine.fanout import Subscription
from punchlistd.engine.intake import now_ms, stamp
from punchlistd.engine.reads import state_read
from punchlistd.engine.writer import SHUTTING_DOWN
from punchlistd.net.batch import BatchReply, encoded
from punchlistd.net.hangup import HangUp
from punchlistd.net.server import Server
from punchlistd.net.waiting import WAITING, Waiting, WaitingCall

logger = logging.getLogger(__name__)

BUFFER_BYTES = 16 << 10
"""Above this many unsent bytes a connection counts as stuck: it is read no more and pushed nothing."""


class Session(asyncio.Protocol):
    """A connection and what it asked for.

    `actor`, `user` and `confirm` are what `daemon.hello` set. `push_framed` is the transport's own: no answers wait to
    be sent when a commit is published.
    """

    def __init__(self, server: Server) -> None:
        """A session that waits for its transport."""
        self.server = server
        self.push_framed: Callable[[bytes], Any] = _to_nobody
        self.actor = "anonymous"
        self.client = ""
        self.user: str | None = None
        self.confirm = False
        self.connected_at = now_ms()
        self.heard_at = time.monotonic()
        self.subscriptions: dict[str, Subscription] = {}
        self._most_in_flight = server.settings.limits.in_flight
        self.waiting = Waiting(self._most_in_flight)
        self._framer = Framer(server.settings.limits.frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._stuck = False
        self._held = 0
        self._backlog: deque[bytes] = deque()
        self._in_flight = 0
        self._last_write: Write | None = None
        self._frame_timer: asyncio.TimerHandle | None = None
        self._at_end = False
        self._hang_up: HangUp | None = None
        self._next_subscription = 1

    # the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Check who is there, and whether there is room."""
        self._transport = cast(asyncio.Transport, transport)
        self.push_framed = self._transport.write
        self._transport.set_write_buffer_limits(high=BUFFER_BYTES, low=BUFFER_BYTES // 4)
        self.pid, uid = _peer(transport.get_extra_info("socket"))
        if uid not in self.server.uids:
            logger.warning("refused a connection of uid %d", uid)
            self._transport.abort()
        elif (refused := self.server.enter(self)) is not None:
            self._say(jsonrpc.failure(jsonrpc.NULL, refused))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; what it asked for and was taken is done all the same."""
        self._transport = None
        self._stuck = True
        self._backlog.clear()
        self._stop_frame_timer()
        if self._hang_up is not None:
            self._hang_up.close()
        for subscription in self.subscriptions.values():
            self.server.fanout.remove(subscription)
        self.subscriptions.clear()
        self.waiting.cancel_all()
        self.server.writer.leases.left(self)
        self.server.leave(self)

    def data_received(self, data: bytes) -> None:
        """Take the calls that these bytes complete."""
        self.heard_at = time.monotonic()
        try:
            frames = self._framer.feed(data)
        except FramingError as error:
            self._backlog.extend(error.frames)
            self._work()
            self._say(jsonrpc.failure(jsonrpc.NULL, error.rejection))
            self.waiting.cancel_all()
            self.finish()
            return
        self._backlog.extend(frames)
        self._work()
        if self._framer.pending or self._frame_timer is not None:
            self._watch_frame(bool(frames))

    def eof_received(self) -> bool:
        """The peer sends no more; what it asked for is answered, then the connection ends."""
        transport = self._transport
        if transport is None or _hung_up(transport.get_extra_info("socket")):
            return False
        if self._framer.kind == "lines" and self._framer.pending:
            self.data_received(b"\n")  # the last line may do without
        self.finish()
        if len(self.waiting) and self._hang_up is None:
            self._hang_up = HangUp(transport.get_extra_info("socket").fileno(), self.abort)
        return True

    def pause_writing(self) -> None:
        """The peer does not take bytes: nothing is pushed, and nothing more is read."""
        self._stop_pushes()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer takes bytes again: go on with its calls, and lead its subscriptions on."""
        if self._transport is not None and not self._transport.is_closing():
            self._stuck = False
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

    @property
    def paused(self) -> bool:
        """Whether nothing may be pushed: the peer takes no bytes, or has to be answered a batch of changes first."""
        return self._stuck or self._held > 0

    def _stop_pushes(self) -> None:
        self._stuck = True
        for subscription in self.subscriptions.values():
            self.server.fanout.hold(subscription)

    def lead_on(self) -> None:
        """Take up the subscriptions that were held back."""
        for subscription in list(self.subscriptions.values()):
            self.server.fanout.lead(subscription)

    # calls

    def _work(self) -> None:
        """Dispatch what has come, as far as the limits allow; then send what was answered."""
        limits = self.server.settings.limits
        while self._backlog and self._has_room():
            decoded = jsonrpc.decode(self._backlog.popleft(), limits)
            if isinstance(decoded, list):
                batch = BatchReply(self, decoded)
                for each in decoded:
                    self._dispatch(each, batch)
            else:
                self._dispatch(decoded, self)
            if self._out_bytes > BUFFER_BYTES:
                self._send()
        if self._backlog and self._transport is not None:
            self._transport.pause_reading()
        self.flush()

    def _has_room(self) -> bool:
        if self._stuck or self._transport is None:
            return False
        return self._in_flight < self._most_in_flight or self._in_flight - len(self.waiting) < self._most_in_flight

    def _read_on(self) -> None:
        if self._transport is not None and not (self._backlog or self._stuck or self._at_end):
            self._transport.resume_reading()

    def _dispatch(self, call: jsonrpc.Call | jsonrpc.Malformed, caller: Caller) -> None:
        self._in_flight += 1
        if type(call) is jsonrpc.Malformed:
            caller.answer(call.id, call.rejection)
            return
        try:
            method = METHODS.get(call.method)
            if method is None:
                caller.answer(call.id, jsonrpc.unknown_method(call.method))
                return
            params = jsonrpc.parse_params(method, call.params)
            if type(params) is Rejection:
                caller.answer(call.id, params)
            elif method.kind == "write":
                self._write(caller, call.id, method, cast(Mutation, params))
            else:
                self._read(caller, call.id, method, params)
        except Exception:
            logger.exception("%s failed", call.method)
            caller.answer(call.id, INTERNAL_ERROR)

    def _write(self, caller: Caller, id: bytes | None, method: Method, params: Mutation) -> None:
        command = stamp(caller, params)
        if type(command) is Rejection:
            caller.answer(id, command)
        elif type(params) is TaskClaim and params.wait_ms > 0:
            self._claim(caller, Write(caller, id, method, params, command))
        else:
            self._submit(Write(caller, id, method, params, command))

    def _claim(self, caller: Caller, write: Write) -> None:
        """A claim that may have to wait."""
        call = self._begin_waiting(caller, write.id)
        if type(call) is Rejection:
            caller.answer(write.id, call)
            return
        write.caller = call
        call.on_give_up = lambda: self.server.writer.waiters.give_up(write, self.server.given_up())
        self._submit(write)

    def _submit(self, write: Write) -> None:
        self._last_write = write
        self.server.writer.submit(write)

    def _begin_waiting(self, caller: Caller, id: bytes | None) -> WaitingCall | Rejection:
        return SHUTTING_DOWN if self.server.closing else self.waiting.begin(caller, id)

    def _read(self, caller: Caller, id: bytes | None, method: Method, params: Params) -> None:
        server = self.server
        behind_write = self._last_write is not None and not self._last_write.done
        if (read := state_read(method, params)) is not None:
            outcome = None if behind_write else server.reads.now(caller, read, params)
            if outcome is None:
                server.writer.submit(Read(caller, id, method, params))
            else:
                caller.answer(id, outcome)
        elif (call := server.immediate.get(method.name)) is not None:
            caller.answer(id, call(self, params))
        else:
            self._read_later(caller, id, method, params, behind_write)

    def _read_later(self, caller: Caller, id: bytes | None, method: Method, params: Params, behind_write: bool) -> None:
        server = self.server
        if method.name in WAITING:
            call = self._begin_waiting(caller, id)
            if isinstance(call, Rejection):
                caller.answer(id, call)
                return
            caller = call

        def begin() -> None:
            server.spawn(self._answer_later(caller, id, method, params))

        if behind_write:
            server.writer.submit(Read(caller, id, method, params, begin))
        else:
            begin()

    async def _answer_later(self, caller: Caller, id: bytes | None, method: Method, params: Any) -> None:
        outcome: bytes | Rejection = INTERNAL_ERROR
        try:
            if isinstance(caller, WaitingCall):
                with caller.running():
                    outcome = self.server.given_up()
                    outcome = await self.server.later(self, caller, method, params)
            else:
                outcome = await self.server.later(self, caller, method, params)
        except Exception as error:
            self.server.failed(method, error)
            outcome = INTERNAL_ERROR
        caller.answer(id, outcome)
        caller.flush()

    # answers and pushes

    def answer(self, id: bytes | None, outcome: bytes | Rejection) -> None:
        """Put a reply into the outgoing bytes; `flush` sends them."""
        self.settle(outcome)
        if id is not None:
            framed = self._framer.encode(encoded(id, outcome))
            self._out.append(framed)
            self._out_bytes += len(framed)

    def answer_batch(self, replies: list[bytes]) -> None:
        """Put the replies of a batch into the outgoing bytes."""
        self._put(jsonrpc.batch(replies))

    def settle(self, outcome: bytes | Rejection) -> None:
        """One call is over."""
        self._in_flight -= 1
        self.server.meters.answered(outcome)

    def hold(self) -> None:
        """Push nothing until a batch is answered: the answer to a change comes before the push of it."""
        self._held += 1
        for subscription in self.subscriptions.values():
            self.server.fanout.hold(subscription)

    def release(self) -> None:
        """The batch is answered."""
        self._held -= 1
        asyncio.get_running_loop().call_soon(self.lead_on)

    def flush(self) -> None:
        """Send the outgoing bytes, and take up work that waited for room."""
        if self._out:
            self._send()
        if self._backlog and self._has_room():
            asyncio.get_running_loop().call_soon(self._resume)
        elif self._at_end:
            self._end_if_done()

    def _put(self, payload: bytes) -> None:
        framed = self._framer.encode(payload)
        self._out.append(framed)
        self._out_bytes += len(framed)

    def _send(self) -> None:
        out, self._out, self._out_bytes = self._out, [], 0
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _resume(self) -> None:
        self._work()
        self._read_on()

    def push(self, payload: bytes) -> None:
        """Send a notification."""
        self._out.append(self._framer.encode(payload))
        self._send()

    def ended(self, id: str, payload: bytes) -> None:
        """A subscription is over: forget it, and send the notification that says why."""
        self.subscriptions.pop(id, None)
        self.push(payload)

    def framed(self, payload: bytes) -> bytes:
        """A payload in this connection's framing."""
        return self._framer.encode(payload)

    @property
    def framing(self) -> str:
        """The kind of framing."""
        return self._framer.kind or "lines"

    def new_subscription_id(self) -> str:
        """An id that this connection did not have before."""
        id = str(self._next_subscription)
        self._next_subscription += 1
        return id

    # ends

    def _say(self, payload: bytes) -> None:
        self._put(payload)
        self._send()

    def finish(self) -> None:
        """Take no more; end the connection once everything that was taken is answered."""
        self._at_end = True
        self._stop_frame_timer()
        if self._transport is not None:
            self._transport.pause_reading()
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._at_end and not self._in_flight and not self._backlog:
            self.close()

    def close(self) -> None:
        """Send what is left and end the connection."""
        self._backlog.clear()
        self._stop_pushes()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection now."""
        self._stop_pushes()
        if self._transport is not None:
            self._transport.abort()

    def _watch_frame(self, finished: bool) -> None:
        """A frame that was begun must be finished in time; a slow sender must not hold memory for ever."""
        if finished or not self._framer.pending:
            self._stop_frame_timer()
        if self._framer.pending and self._frame_timer is None and not self._at_end:
            seconds = self.server.settings.limits.frame_seconds
            self._frame_timer = asyncio.get_running_loop().call_later(seconds, self._frame_late)

    def _stop_frame_timer(self) -> None:
        if self._frame_timer is not None:
            self._frame_timer.cancel()
            self._frame_timer = None

    def _frame_late(self) -> None:
        self._frame_timer = None
        if self._transport is None or not self._transport.is_reading():
            self._watch_frame(finished=False)  # it is we who do not read
            return
        seconds = self.server.settings.limits.frame_seconds
        facts = {"limit": "frame_seconds", "value": seconds, "maximum": seconds}
        refused = Rejection("limit_exceeded", f"A frame must be finished within {seconds:g} seconds.", facts)
        self._say(jsonrpc.failure(jsonrpc.NULL, refused))
        self.waiting.cancel_all()
        self.finish()


def _hung_up(sock: socket.socket) -> bool:
    """Whether the other end is closed altogether, and not only for sending."""
    poll = select.poll()
    poll.register(sock, 0)
    return bool(poll.poll(0))


def _peer(sock: socket.socket) -> tuple[int, int]:
    """Process and user id at the other end."""
    pid, uid, _gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def _to_nobody(_framed: bytes) -> None:
    """There is no transport yet."""
