"""One connection: bytes through framing, envelopes and typed calls to the engine, and answers and pushes back.

It is a protocol on the bare transport, without a task of its own: a stream per connection costs twice as much for each
small message. This is also the one place where an exception becomes an error on the wire.
"""

import asyncio
import logging
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from punchlist_schemas import jsonrpc
from punchlist_schemas.errors import Rejection
from punchlist_schemas.framing import Framer, FramingError
from punchlist_schemas.methods import METHODS, Method
from punchlist_schemas.params import Mutation, Params
from punchlistd.engine.calls import Caller, Read, Write
from punchlistd.engine.fanout import Subscription
from punchlistd.engine.intake import now_ms, stamp
from punchlistd.net.server import Server
from punchlistd.net.waiting import WAITING, Waiting

logger = logging.getLogger(__name__)

BUFFER_BYTES = 16 << 10
"""Above this many unsent bytes a connection counts as stuck: it is read no more and pushed nothing."""

INTERNAL_ERROR = Rejection("internal_error", "That is a fault of ours; the daemon's log has the details.")


class Session(asyncio.Protocol):
    """A connection and what it asked for.

    `actor`, `user` and `confirm` are what `daemon.hello` set. `paused` means that the peer does not take bytes.
    """

    def __init__(self, server: Server) -> None:
        """A session that waits for its transport."""
        self.server = server
        self.actor = "anonymous"
        self.client = ""
        self.user: str | None = None
        self.confirm = False
        self.paused = False
        self.connected_at = now_ms()
        self.subscriptions: dict[str, Subscription] = {}
        self.waiting = Waiting(server.settings.limits.in_flight)
        self._framer = Framer(server.settings.limits.frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._backlog: deque[bytes] = deque()
        self._in_flight = 0
        self._last_write: Write | None = None
        self._frame_timer: asyncio.TimerHandle | None = None
        self._at_end = False
        self._next_subscription = 1

    # the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Check who is there, and whether there is room."""
        self._transport = cast(asyncio.Transport, transport)
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
        self.paused = True
        self._backlog.clear()
        self._stop_frame_timer()
        for subscription in self.subscriptions.values():
            self.server.fanout.remove(subscription)
        self.subscriptions.clear()
        self.waiting.cancel_all()
        self.server.leave(self)

    def data_received(self, data: bytes) -> None:
        """Take the calls that these bytes complete."""
        try:
            self._backlog.extend(self._framer.feed(data))
        except FramingError as error:
            self._backlog.extend(error.frames)
            self._work()
            self._say(jsonrpc.failure(jsonrpc.NULL, error.rejection))
            self.close()
            return
        self._work()
        if self._framer.pending != (self._frame_timer is not None):
            self._watch_frame()

    def eof_received(self) -> bool:
        """The peer sends no more; what it asked for is answered, then the connection ends."""
        self._at_end = True
        self._end_if_done()
        return True

    def pause_writing(self) -> None:
        """The peer does not take bytes: nothing is pushed, and nothing more is read."""
        self.paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer takes bytes again: lead its subscriptions on."""
        self.paused = False
        self._read_on()
        for subscription in list(self.subscriptions.values()):
            self.server.fanout.lead(subscription)

    # calls

    def _work(self) -> None:
        """Dispatch what has come, as far as the limit of calls in flight allows; then send what was answered."""
        limit = self.server.settings.limits.in_flight
        while self._backlog and self._in_flight < limit and self._transport is not None:
            self._take(self._backlog.popleft())
        if self._backlog and self._transport is not None:
            self._transport.pause_reading()
        self.flush()

    def _read_on(self) -> None:
        if self._transport is not None and not self._backlog and not self.paused and not self._transport.is_closing():
            self._transport.resume_reading()

    def _take(self, frame: bytes) -> None:
        decoded = jsonrpc.decode(frame, self.server.settings.limits)
        if isinstance(decoded, list):
            batch = _BatchReply(self, decoded)
            for each in decoded:
                self._dispatch(each, batch)
        else:
            self._dispatch(decoded, self)

    def _dispatch(self, call: jsonrpc.Call | jsonrpc.Malformed, caller: Caller) -> None:
        self._in_flight += 1
        if isinstance(call, jsonrpc.Malformed):
            caller.answer(call.id, call.rejection)
            return
        try:
            method = METHODS.get(call.method)
            if method is None:
                caller.answer(call.id, jsonrpc.unknown_method(call.method))
                return
            params = jsonrpc.parse_params(method, call.params)
            if isinstance(params, Rejection):
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
        if isinstance(command, Rejection):
            caller.answer(id, command)
        else:
            self._last_write = write = Write(caller, id, method, params, command)
            self.server.writer.submit(write)

    def _read(self, caller: Caller, id: bytes | None, method: Method, params: Params) -> None:
        server = self.server
        behind_write = self._last_write is not None and not self._last_write.done
        if method.kind == "read" and server.reads.of_state(method, params):
            outcome = None if behind_write else server.reads.now(caller, method, params)
            if outcome is None:
                server.writer.submit(Read(caller, id, method, params))
            else:
                caller.answer(id, outcome)
            return
        run = self._runner(caller, id, method, params)
        if behind_write and method.name not in server.immediate:
            server.writer.submit(Read(caller, id, method, params, run))
        else:
            run()

    def _runner(self, caller: Caller, id: bytes | None, method: Method, params: Params) -> Callable[[], None]:
        """What answers a call that is neither a mutation nor a read of the state alone."""
        if (call := self.server.immediate.get(method.name)) is not None:
            return lambda: caller.answer(id, call(self, params))

        def begin() -> None:
            if method.name in WAITING and (refused := self.waiting.refusal()) is not None:
                caller.answer(id, refused)
                caller.flush()
            else:
                self._in_flight -= method.name in WAITING
                self.server.spawn(self._answer_later(caller, id, method, params))

        return begin

    async def _answer_later(self, caller: Caller, id: bytes | None, method: Method, params: Any) -> None:
        outcome: bytes | Rejection = INTERNAL_ERROR
        try:
            with self.waiting.scope(id) as scope:
                outcome = await self.server.later(self, caller, method, params)
            if scope.cancelled_caught:
                outcome = self.server.given_up()
        except Exception as error:
            outcome = self.server.failed(method, error) or INTERNAL_ERROR
        self._in_flight += method.name in WAITING
        caller.answer(id, outcome)
        caller.flush()

    # answers and pushes

    def answer(self, id: bytes | None, outcome: bytes | Rejection) -> None:
        """Put a reply into the outgoing bytes; `flush` sends them."""
        self._in_flight -= 1
        self.server.meters.answered(outcome)
        if id is not None:
            self._out.append(self._framer.encode(_reply(id, outcome)))

    def answer_batch(self, replies: list[bytes]) -> None:
        """Put the replies of a batch into the outgoing bytes."""
        self._out.append(self._framer.encode(jsonrpc.batch(replies)))

    def settle(self, outcome: bytes | Rejection) -> None:
        """One call of a batch is over."""
        self._in_flight -= 1
        self.server.meters.answered(outcome)

    def flush(self) -> None:
        """Send the outgoing bytes, and take up work that waited for room."""
        if self._out:
            out, self._out = self._out, []
            if self._transport is not None:
                self._transport.write(out[0] if len(out) == 1 else b"".join(out))
        if self._backlog and self._in_flight < self.server.settings.limits.in_flight:
            asyncio.get_running_loop().call_soon(self._resume)
        elif self._at_end:
            self._end_if_done()

    def _resume(self) -> None:
        self._work()
        self._read_on()

    def push(self, payload: bytes) -> None:
        """Send a notification."""
        self.push_framed(self._framer.encode(payload))

    def push_framed(self, framed: bytes) -> None:
        """Send a notification that is framed already, behind the answers that wait to be sent."""
        if self._out:
            self._out.append(framed)
            self.flush()
        elif self._transport is not None:
            self._transport.write(framed)

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
        self._out.append(self._framer.encode(payload))
        self.flush()

    def _end_if_done(self) -> None:
        if self._at_end and not self._in_flight and not self._backlog and not self.waiting:
            self.close()

    def close(self) -> None:
        """Send what is left and end the connection."""
        self._backlog.clear()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection now."""
        if self._transport is not None:
            self._transport.abort()

    def _watch_frame(self) -> None:
        """A frame that was begun must be finished in time; a slow sender must not hold memory for ever."""
        if self._frame_timer is not None:
            self._stop_frame_timer()
        elif self._transport is not None:
            seconds = self.server.settings.limits.frame_seconds
            self._frame_timer = asyncio.get_running_loop().call_later(seconds, self._frame_late)

    def _stop_frame_timer(self) -> None:
        if self._frame_timer is not None:
            self._frame_timer.cancel()
            self._frame_timer = None

    def _frame_late(self) -> None:
        self._frame_timer = None
        seconds = self.server.settings.limits.frame_seconds
        facts = {"limit": "frame_seconds", "value": seconds, "maximum": seconds}
        refused = Rejection("limit_exceeded", f"A frame must be finished within {seconds:g} seconds.", facts)
        self._say(jsonrpc.failure(jsonrpc.NULL, refused))
        self.close()


class _BatchReply:
    """Collects the answers of a batch; when the last one is there they go out as one array."""

    def __init__(self, session: Session, calls: list[jsonrpc.Call | jsonrpc.Malformed]) -> None:
        self._session = session
        self._replies: list[bytes] = []
        self._expected = len(calls)

    @property
    def actor(self) -> str:
        return self._session.actor

    @property
    def user(self) -> str | None:
        return self._session.user

    @property
    def confirm(self) -> bool:
        return self._session.confirm

    def answer(self, id: bytes | None, outcome: bytes | Rejection) -> None:
        self._session.settle(outcome)
        self._expected -= 1
        if id is not None:
            self._replies.append(_reply(id, outcome))
        if not self._expected and self._replies:
            self._session.answer_batch(self._replies)

    def flush(self) -> None:
        self._session.flush()


def _reply(id: bytes, outcome: bytes | Rejection) -> bytes:
    return jsonrpc.failure(id, outcome) if isinstance(outcome, Rejection) else jsonrpc.response(id, outcome)


def _peer(sock: socket.socket) -> tuple[int, int]:
    """Process and user id at the other end."""
    pid, uid, _gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid
