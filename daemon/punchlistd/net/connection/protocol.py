"""Server side of one connection without I/O: no loop, no clock, no socket.

    receive_data ─▶ frames ─▶ next_call ─▶ (the daemon acts) ─▶ answer, push ─▶ data_to_send

`decode_in_slices` decodes a long frame before `next_call`, so that other work can run in between.

Every call from `next_call` must be answered once, in any order. The response to a batch is one array, sent after its
last call is answered. Invalid requests are returned as `Malformed`, with the rejection to send.
"""

from collections import deque
from collections.abc import Generator, Sequence

from punchlist_schemas import strict_json
from punchlist_schemas.framing import Framer, FramingError
from punchlist_schemas.results import Limits
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces
from punchlistd.net import jsonrpc


class Batch:
    """A batch and its replies, which form one array once the last call is answered.

    Attributes:
        calls: The calls of the batch.
        received: Size of its frame, in bytes.
        replies: The replies so far, each in pieces.
        size: Total size of the replies, in bytes.
    """

    __slots__ = ("_missing", "calls", "received", "replies", "size")

    def __init__(self, calls: Sequence[jsonrpc.Call | jsonrpc.Malformed], received: int = 0) -> None:
        self.calls = calls
        self.received = received
        self.replies: list[tuple[bytes, ...]] = []
        self.size = 0
        self._missing = len(calls)

    @property
    def is_complete(self) -> bool:
        return not self._missing

    def answer(self, id: bytes | None, outcome: Outcome) -> tuple[bytes, ...]:
        """Record the outcome of one call. Return its reply in pieces; empty for a notification."""
        self._missing -= 1
        if id is None:
            return ()
        if type(outcome) is Pieces:
            reply = jsonrpc.response_in_pieces(id, outcome.parts)
        else:
            reply = (jsonrpc.response(id, outcome),)
        self.replies.append(reply)
        self.size += sum(map(len, reply))
        return reply

    @property
    def array(self) -> list[bytes]:
        """The replies as one JSON array, in pieces; empty if all calls are notifications."""
        pieces: list[bytes] = []
        for reply in self.replies:
            pieces += (b"," if pieces else b"[", *reply)
        return [*pieces, b"]"] if pieces else []


class ServerProtocol:
    """Protocol state of a connection: bytes in, calls out; outcomes and pushes in, bytes out.

    Args:
        limits: Maximum frame size, JSON depth and batch size.

    Attributes:
        in_flight: Number of calls started but not answered. All calls of a started batch count.
        frames: Complete frames that haven't been started.
        members: Remaining calls of the started batch.
        framed: Encodes a payload in this connection's framing.
        has_long_frames: Whether one of `frames` may have more than `LONG_BYTES`.
        has_unfinished_frame: Whether an incomplete frame was received.
        unsent_bytes: Number of bytes that `data_to_send` will return.
        fault: Error response if the received bytes can no longer be parsed, else empty.
    """

    __slots__ = (
        "_decoded",
        "_framer",
        "_limits",
        "_max_fast_bytes",
        "_out",
        "fault",
        "framed",
        "has_long_frames",
        "has_unfinished_frame",
        "frames",
        "in_flight",
        "members",
        "unsent_bytes",
    )

    def __init__(self, limits: Limits) -> None:
        self.in_flight = 0
        self.fault: bytes = b""
        self.unsent_bytes = 0
        self.has_long_frames = False
        self.has_unfinished_frame = False
        self._limits = limits
        self._max_fast_bytes = min(limits.frame_bytes, LONG_BYTES)
        self._framer = Framer(limits.frame_bytes)
        self.framed = self._framer.encode
        self.frames: deque[bytes] = deque()
        self.members: deque[tuple[jsonrpc.Call | jsonrpc.Malformed, Batch]] = deque()
        self._out: list[bytes] = []
        self._decoded: jsonrpc.Call | jsonrpc.Malformed | list[jsonrpc.Call | jsonrpc.Malformed] | None = None

    # receiving

    def receive_data(self, data: bytes) -> bool:
        """Parse bytes from the peer. Return True if they completed a frame."""
        if self.fault:
            return False
        try:
            frames = self._framer.feed(data)
        except FramingError as error:
            frames = error.frames
            self.fault = jsonrpc.failure(jsonrpc.NULL, error.rejection)
        if frames:
            self.has_long_frames = (self.has_long_frames and bool(self.frames)) or max(map(len, frames)) > LONG_BYTES
        self.frames += frames
        self.has_unfinished_frame = self._framer.has_unfinished_frame
        return bool(frames)

    def receive_call(self, data: bytes) -> jsonrpc.Call | jsonrpc.Malformed | None:
        """Parse bytes that are exactly one short request line, with no other frame pending; else return None.

        This is a fast path for the usual case: `receive_data` and `next_call` together take three times as long. If the
        result is None, no bytes were consumed.
        """
        framer = self._framer
        if (
            framer.kind != "lines"
            or self.has_unfinished_frame
            or self.frames
            or self.members
            or not data.startswith(b"{")
            or not data.find(b"\n") == len(data) - 1 < self._max_fast_bytes
        ):
            return None
        call = jsonrpc.decode(data, self._limits)
        assert not isinstance(call, list), "a request begins with a brace"
        self.in_flight += 1
        return call

    def receive_eof(self) -> bool:
        """Process EOF. Return True if this completed a frame: the last line may lack a newline."""
        return self._framer.kind == "lines" and self._framer.has_unfinished_frame and self.receive_data(b"\n")

    @property
    def received_bytes(self) -> int:
        return self._framer.buffered_bytes + sum(map(len, self.frames))

    @property
    def is_idle(self) -> bool:
        """Whether all received calls are answered."""
        return not (self.in_flight or self.frames)

    def next_call(self) -> tuple[jsonrpc.Call | jsonrpc.Malformed, Batch | None]:
        """Return the next call and its batch, if any. Requires `members` or `frames`."""
        if self.members:
            return self.members.popleft()
        frame, decoded, self._decoded = self.frames.popleft(), self._decoded, None
        if decoded is None:
            # Check a long frame before decoding it, because it may contain very many values. `decode` could also decode
            # it twice.
            decoded = (jsonrpc.decode_strictly if self.has_long_frames else jsonrpc.decode)(frame, self._limits)
        if isinstance(decoded, list):
            batch = Batch(decoded, len(frame))
            self.in_flight += len(decoded)
            self.members.extend([(call, batch) for call in decoded])
            return self.members.popleft()
        self.in_flight += 1
        return decoded, None

    @property
    def needs_slicing(self) -> bool:
        """Whether the next frame is long, has many values and is not decoded yet."""
        if self._decoded is not None or self.members or len(self.frames[0]) <= LONG_BYTES:
            return False
        return strict_json.has_many_values(self.frames[0])

    @property
    def is_decoded(self) -> bool:
        return self._decoded is not None

    def decode_in_slices(self) -> Generator[None, None, None]:
        """Decode the next frame, and yield after each part. Stop if the frame is dropped."""
        frame = self.frames[0]
        work = jsonrpc.decode_in_slices(frame, self._limits)
        while self.frames and self.frames[0] is frame:
            try:
                next(work)
            except StopIteration as end:
                self._decoded = end.value
                return
            yield

    def forget_decoded(self) -> None:
        """Drop the decoded values of the next frame. Its bytes are kept and decoded again later."""
        self._decoded = None

    def forget_received(self) -> None:
        """Drop received calls that haven't started, because their responses couldn't be sent."""
        self._decoded = None
        self.frames.clear()
        self.members.clear()

    # sending

    @property
    def framing(self) -> str:
        """Kind of framing. Connections with the same kind encode payloads identically."""
        return self._framer.kind or "lines"

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Answer a single call, identified by its raw JSON ID. A notification (None) gets no reply."""
        self.in_flight -= 1
        if id is None:
            return
        if type(outcome) is bytes and self._framer.kind == "lines":  # the usual case, without another copy
            framed = b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, outcome)
        elif type(outcome) is Pieces:
            self.push(jsonrpc.response_in_pieces(id, outcome.parts))
            return
        else:
            framed = self._framer.encode(jsonrpc.response(id, outcome))
        self._out.append(framed)
        self.unsent_bytes += len(framed)

    def answer_in_batch(self, batch: Batch, id: bytes | None, outcome: Outcome) -> tuple[bytes, ...]:
        """Answer one call of a batch and return its reply in pieces. The last answer queues the array."""
        self.in_flight -= 1
        reply = batch.answer(id, outcome)
        if batch.is_complete and (array := batch.array):
            self.push(array)
        return reply

    def push(self, payload: Sequence[bytes]) -> None:
        framed = self._framer.encode_pieces(payload)
        self._out += framed
        self.unsent_bytes += sum(map(len, framed))

    def data_to_send(self) -> list[bytes]:
        """Return the queued bytes for the peer, and clear the queue."""
        out, self._out, self.unsent_bytes = self._out, [], 0
        return out
