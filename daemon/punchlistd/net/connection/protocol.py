"""One connection as its bytes, without I/O: no loop, no clock, no socket.

    receive_data ─▶ frames ─▶ next_call ─▶ (the daemon acts) ─▶ answer, push ─▶ data_to_send

A long frame is read in slices before it comes out (`reading`), so that others go on meanwhile.

Every call that comes out is answered once, in any order; a batch is answered by one array when its last call is. What
is no call comes out as `Malformed`, with the rejection to answer it by.
"""

from collections import deque
from collections.abc import Generator, Sequence

from punchlist_schemas import strict_json
from punchlist_schemas.framing import Framer, FramingError
from punchlist_schemas.results import Limits
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces
from punchlistd.net import jsonrpc


class Batch:
    """The replies to a batch: one array, complete when the last call is answered.

    Attributes:
        calls: What the batch asks for.
        received: How many bytes its frame had.
        replies: The replies so far, each in the pieces that it is made of.
        size: How many bytes they have together.
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
        """Take the answer to one call; its reply in pieces, none for a notification."""
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
        """The replies as one array, in pieces; empty if the batch has notifications alone."""
        pieces: list[bytes] = []
        for reply in self.replies:
            pieces += (b"," if pieces else b"[", *reply)
        return [*pieces, b"]"] if pieces else []


class ServerProtocol:
    """The daemon's end of a connection: bytes in, calls out; answers and pushes in, bytes out.

    Args:
        limits: how long a frame, how deep its JSON and how large a batch may be.

    Attributes:
        in_flight: How many calls have come out, alone or in a batch that has begun to, and are not answered.
        frames: What came in whole, of which nothing has begun.
        members: The calls of the batch that is coming out.
        framed: Puts a payload into this connection's framing.
        has_long_frames: Whether one of `frames` may have more than `LONG_BYTES`.
        has_unfinished_frame: Whether a frame has begun of which more has to come.
        unsent_bytes: How many bytes `data_to_send` has.
        fault: Why the bytes that came in can't be read any further, as the last payload to push; empty while they can.
    """

    __slots__ = (
        "_decoded",
        "_framer",
        "_limits",
        "_most_straight",
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
        self._most_straight = min(limits.frame_bytes, LONG_BYTES)
        self._framer = Framer(limits.frame_bytes)
        self.framed = self._framer.encode
        self.frames: deque[bytes] = deque()
        self.members: deque[tuple[jsonrpc.Call | jsonrpc.Malformed, Batch]] = deque()
        self._out: list[bytes] = []
        self._decoded: jsonrpc.Call | jsonrpc.Malformed | list[jsonrpc.Call | jsonrpc.Malformed] | None = None

    # in

    def receive_data(self, data: bytes) -> bool:
        """Take bytes from the peer; whether they finished a frame."""
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
        self.has_unfinished_frame = self._framer.pending
        return bool(frames)

    def receive_call(self, data: bytes) -> jsonrpc.Call | jsonrpc.Malformed | None:
        """Take bytes that are one whole short request on a line, behind which nothing waits; None: nothing was taken.

        It is what `receive_data` and `next_call` do together, at a third of the price, for what nearly always comes.
        """
        framer = self._framer
        if (
            framer.kind != "lines"
            or self.has_unfinished_frame
            or self.frames
            or self.members
            or not data.startswith(b"{")
            or not data.find(b"\n") == len(data) - 1 < self._most_straight
        ):
            return None
        call = jsonrpc.decode(data, self._limits)
        assert not isinstance(call, list), "a request begins with a brace"
        self.in_flight += 1
        return call

    def receive_eof(self) -> bool:
        """The peer sends no more; whether that finished a frame: its last line may do without a newline."""
        return self._framer.kind == "lines" and self._framer.pending and self.receive_data(b"\n")

    @property
    def received_bytes(self) -> int:
        return self._framer.held + sum(map(len, self.frames))

    @property
    def is_idle(self) -> bool:
        """Whether all that came in is answered."""
        return not (self.in_flight or self.frames)

    def next_call(self) -> tuple[jsonrpc.Call | jsonrpc.Malformed, Batch | None]:
        """The next call and the batch that it belongs to; only while there are `members` or `frames`."""
        if self.members:
            return self.members.popleft()
        frame, decoded, self._decoded = self.frames.popleft(), self._decoded, None
        if decoded is None:
            # A long one may hold so much that it has to be looked at before it is read, and may not be read twice.
            decoded = (jsonrpc.decode_strictly if self.has_long_frames else jsonrpc.decode)(frame, self._limits)
        if isinstance(decoded, list):
            batch = Batch(decoded, len(frame))
            self.in_flight += len(decoded)
            self.members.extend([(each, batch) for each in decoded])
            return self.members.popleft()
        self.in_flight += 1
        return decoded, None

    @property
    def has_to_be_read(self) -> bool:
        """Whether the next call is in a long frame of many values, which was not read in its turn yet."""
        if self._decoded is not None or self.members or len(self.frames[0]) <= LONG_BYTES:
            return False
        return strict_json.has_many_values(self.frames[0])

    @property
    def is_read(self) -> bool:
        return self._decoded is not None

    def reading(self) -> Generator[None, None, None]:
        """Read the next frame, with a pause after each part of it, for as long as it is not forgotten."""
        frame = self.frames[0]
        work = jsonrpc.decoding(frame, self._limits)
        while self.frames and self.frames[0] is frame:
            try:
                next(work)
            except StopIteration as end:
                self._decoded = end.value
                return
            yield

    def forget_read(self) -> None:
        """Keep the next frame as its bytes alone: it has to be read again."""
        self._decoded = None

    def forget_received(self) -> None:
        """Drop what came in and has not begun: its answers could not be sent any more."""
        self._decoded = None
        self.frames.clear()
        self.members.clear()

    # out

    @property
    def framing(self) -> str:
        """The kind of framing; equal kinds frame equally."""
        return self._framer.kind or "lines"

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Answer a call that stands alone, by its raw JSON id; a notification (None) gets no reply."""
        self.in_flight -= 1
        if id is None:
            return
        if type(outcome) is bytes and self._framer.kind == "lines":  # as nearly always, without a copy
            framed = b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, outcome)
        elif type(outcome) is Pieces:
            self.push(jsonrpc.response_in_pieces(id, outcome.parts))
            return
        else:
            framed = self._framer.encode(jsonrpc.response(id, outcome))
        self._out.append(framed)
        self.unsent_bytes += len(framed)

    def answer_in(self, batch: Batch, id: bytes | None, outcome: Outcome) -> tuple[bytes, ...]:
        """Answer a call of a batch; its reply in pieces. With the last one the array is to be sent."""
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
        """The bytes for the peer, each given out once."""
        out, self._out, self.unsent_bytes = self._out, [], 0
        return out
