"""One session of a relay: its frames on one side, a server of the SDK on the other."""

import asyncio
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.stdio import stdio_server
from msgspec import UNSET

from punchlist.connection.core import derived_keys
from punchlist_apps.mcp.event_types import SUBSCRIPTION_KEY
from punchlist_apps.relay import frames
from punchlist_apps.worker import envelopes
from punchlist_apps.worker.envelopes import Envelope

if TYPE_CHECKING:
    from anyio import AsyncFile

MAX_OPEN = 64
"""Number of open requests above which a session's lines aren't read while its host doesn't read replies."""

LEAVE_S = 5.0
"""Upper limit for the time that running calls get to end when the worker leaves, in seconds."""

ALONE_S = 1.0
"""Upper limit for the time for which a line that may break the worker keeps others like it from beginning, in
seconds. It is long enough for a call that doesn't wait."""

_SIGN_S = 2.0
"""Time after which a session whose line waits for others shows its relay that the worker is alive, in seconds."""

_TAG = secrets.token_hex(3)
"""Distinguishes this worker's questions from those of its predecessors."""

_LINES = frozenset({frames.LINE, frames.ANSWERED, frames.AGAIN, frames.ALONE, frames.BROKEN})
_CHUNK = 1 << 16


class FrameReader:
    """The frames that arrive on a stream. Raises `InvalidFrame`."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self._decoder = frames.Decoder()
        self._frames: deque[tuple[bytes, int, bytes]] = deque()

    def __aiter__(self) -> "FrameReader":
        return self

    async def __anext__(self) -> tuple[bytes, int, bytes]:
        while not self._frames:
            data = await self._stream.read(_CHUNK)
            if not data:
                raise StopAsyncIteration
            self._frames += self._decoder.feed(data)
        return self._frames.popleft()


class _Request:
    """A request that isn't answered.

    Attributes:
        number: The number of its line.
        is_silent: Whether an earlier worker answered it, so that this answer is dropped.
        has_begun: Whether it may change something.
        stream: The line of a stream, from where the next worker would continue it.
    """

    def __init__(self, number: int, method: str, *, is_silent: bool) -> None:
        self.stream: Envelope | None = None
        self.number = number
        self.method = method
        self.is_silent = is_silent
        self.has_begun = False
        self.done = asyncio.Event()


class Session:
    """A session.

    The SDK reads it and writes to it like standard input and output.

    Args:
        suspects: Held by a line that begins alone (`frames.ALONE`).
    """

    def __init__(self, id: str, reader: "FrameReader", writer: asyncio.StreamWriter, suspects: asyncio.Lock) -> None:
        self.id = id
        self._reader = reader
        self._writer = writer
        self._suspects = suspects
        self._open: dict[Any, _Request] = {}
        self._releases: set[asyncio.Task[None]] = set()
        self._subscriptions: dict[str, int] = {}
        """Address of a subscribed resource -> number of the line."""
        self._scope = anyio.CancelScope()
        self._is_leaving = False
        self._farewell = b""

    async def serve(self, server: Any) -> None:
        """Serve the session until the relay or the worker ends it."""
        server.middleware.append(self._derive_keys)
        file = cast("AsyncFile[str]", self)
        with self._scope:
            async with stdio_server(file, file) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())

    async def leave(self, *, has_successor: bool) -> None:
        """Hand the session over to the next worker, after its running calls have ended."""
        self._is_leaving = True
        with anyio.move_on_after(LEAVE_S):
            while running := [request for request in self._open.values() if request.has_begun]:
                await running[0].done.wait()
        self._farewell = frames.encode(frames.LEAVE, int(has_successor))
        self._scope.cancel()

    def end(self, code: int = 0, text: bytes = b"") -> None:
        """Tell the relay that this worker is done with the session, or that the session has ended."""
        self._writer.write(self._farewell or frames.encode(frames.EXIT, code, text))

    def send(self, op: bytes, number: int = 0, body: bytes = b"") -> None:
        if not self._farewell:  # the next worker continues what was interrupted here
            self._writer.write(frames.encode(op, number, body))

    async def _derive_keys(self, context: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        request = self._open.get(context.request_id)
        if request is None:
            return await call_next(context)
        with derived_keys(f"{self.id}:{request.number}"):
            return await call_next(context)

    def __aiter__(self) -> "Session":
        return self

    async def __anext__(self) -> str:
        """Return the next line that the SDK processes."""
        if len(self._open) > MAX_OPEN:
            await self._writer.drain()
        async for op, number, line in self._reader:
            if op == frames.PING:
                self.send(frames.PING)
            # The relay keeps a line that isn't read for the next worker.
            elif op in _LINES and not self._is_leaving and (text := await self._receive(op, number, line)):
                return text.decode("utf-8", "replace")
        raise StopAsyncIteration

    async def _receive(self, op: bytes, number: int, line: bytes) -> bytes:
        """Report what becomes of a line, and return what the SDK gets; nothing if it is none of its business."""
        envelope = envelopes.decode(line)
        if envelope is None:
            self.send(frames.DONE, number)  # the SDK's response will have no id
            return line
        if envelope.method is UNSET:
            self.send(frames.DONE, number)
            return self._receive_answer(envelope)
        if envelope.id is UNSET:
            self.send(frames.KEEP if envelope.method in envelopes.KEPT else frames.DONE, number)
            if envelope.method == envelopes.CANCELLED:
                self._finish(envelope.find_param("requestId"), frames.DONE)
            return line
        if op == frames.BROKEN:
            self.send(frames.OUTPUT, number, envelopes.encode_broken(envelope.id))
            return b""
        # A repetition's reply belongs to the first line.
        if envelope.id in self._open or not envelope.is_valid:
            self.send(frames.DONE, number)
            return line
        request = self._open[envelope.id] = _Request(number, envelope.method, is_silent=op == frames.ANSWERED)
        if envelope.method == envelopes.CHANGING:
            if op == frames.ALONE:
                await self._hold_suspects()
                release = asyncio.create_task(self._release_after(request))
                self._releases.add(release)
                release.add_done_callback(self._releases.discard)
            request.has_begun = True
            self.send(frames.BEGIN, number)
        elif envelope.method == envelopes.STREAM:
            request.stream = envelope
        elif envelope.method == envelopes.SUBSCRIBE:
            self._subscriptions[str(envelope.find_param("uri"))] = number
        elif envelope.method == envelopes.UNSUBSCRIBE:
            self.send(frames.DONE, self._subscriptions.pop(str(envelope.find_param("uri")), 0))
        return line

    async def _hold_suspects(self) -> None:
        # The relay ends a worker from which it hears nothing, and this session's pings aren't read meanwhile.
        while True:
            with anyio.move_on_after(_SIGN_S):
                await self._suspects.acquire()
                return
            self.send(frames.PING)

    async def _release_after(self, request: _Request) -> None:
        with anyio.move_on_after(ALONE_S):
            await request.done.wait()
        self._suspects.release()

    def _receive_answer(self, answer: Envelope) -> bytes:
        """Return the host's answer to a question of this worker; nothing if an earlier one asked."""
        tag, _, id = str(answer.id).partition("-")
        if tag != _TAG:
            return b""
        answer.id = int(id)
        self.send(frames.VOID, answer.id)
        return envelopes.encode(answer)

    def _finish(self, id: Any, op: bytes, body: bytes = b"") -> None:
        """Report the end of a request. Without a request, only write the body."""
        request = self._open.pop(id, None)
        if request is not None:
            request.done.set()
        if request is None or not request.is_silent:
            self.send(op, request.number if request is not None else 0, body)

    async def write(self, text: str) -> None:
        """Pass on a message of the SDK."""
        message = text.encode()
        envelope = envelopes.decode(message)
        assert envelope is not None, "the SDK writes messages"
        if envelope.is_request:
            self._ask(envelope)
        elif envelope.method is UNSET:
            request = self._open.get(envelope.id)
            is_kept = request is not None and request.method in envelopes.KEPT and envelope.result is not UNSET
            self._finish(envelope.id, frames.KEEP if is_kept else frames.OUTPUT, message)
        elif envelope.method == envelopes.CANCELLED:
            self.send(frames.VOID, int(envelope.find_param("requestId")))
            self.send(frames.OUTPUT, 0, envelopes.encode_cancellation(f"{_TAG}-{envelope.find_param('requestId')}"))
        else:
            self._advance_stream(envelope)
            self.send(frames.OUTPUT, 0, message)

    def _advance_stream(self, notification: Envelope) -> None:
        """Let the next worker continue a stream after this notification, once the relay has it."""
        frame = envelopes.decode_stream_frame(notification)
        request = frame and self._open.get(frame.meta.get(SUBSCRIPTION_KEY))
        if frame and request and request.stream is not None and frame.cursor:
            request.stream = envelopes.advance(request.stream, frame)
            self.send(frames.BEGIN, request.number, envelopes.encode(request.stream))

    def _ask(self, question: Envelope) -> None:
        """Send a question to the host. If this worker ends before the answer, the relay withdraws the question."""
        number = int(str(question.id))
        question.id = f"{_TAG}-{number}"
        self.send(frames.WILL, number, envelopes.encode_cancellation(question.id))
        self.send(frames.OUTPUT, 0, envelopes.encode(question))

    async def flush(self) -> None:
        await self._writer.drain()
