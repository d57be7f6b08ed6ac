"""Splits a byte stream into frames and encodes them, without I/O, for both ends of a connection.

The first byte that is not white space selects the framing of the connection: `{` or `[` means one JSON text per line,
`C` (or `c`) means headers with a Content-Length. White space and empty lines before it are skipped. Frames and errors
don't depend on how the stream is split into reads.
"""

import re
from collections.abc import Sequence
from typing import Literal

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import MAX_INTEGER

Kind = Literal["lines", "headers"]

MAX_HEADER_BYTES = 4096
"""Maximum size of a header block, including the empty line at its end."""

_BLANKS = b" \t\r\n"
_HTTP_VERBS = tuple(
    verb + b" "
    for verb in (b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT", b"PRI")
)
_LONGEST_VERB = max(map(len, _HTTP_VERBS))
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)", re.DOTALL)
_LENGTH = re.compile(rb"[0-9]+")

_NOT_HTTP = Rejection(
    "parse_error",
    "This socket speaks punchlist's JSON-RPC 2.0, not HTTP: send one JSON object per line, or use the punch command.",
)
_NOT_A_FRAME = Rejection(
    "parse_error", "A connection begins with a JSON object or array on one line, or with a Content-Length header."
)


class FramingError(Exception):
    """The stream is invalid: send `rejection` once and close the connection.

    `frames` contains the valid frames that precede the error in the same bytes.
    """

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.message)
        self.rejection = rejection
        self.frames: list[bytes] = []


class Framer:
    """Framing of one connection; buffers at most one unfinished frame of `max_frame_bytes` bytes.

    `kind` is set by the first byte received, or by a client before it sends.
    """

    def __init__(self, max_frame_bytes: int = 1 << 20) -> None:
        self.kind: Kind | None = None
        self._maximum = max_frame_bytes
        self._buffer = bytearray()
        self._header_bytes = 0
        self._length: int | None = None
        self._in_body = False

    @property
    def has_unfinished_frame(self) -> bool:
        """Whether an incomplete frame is buffered, so that its time limit is running."""
        return bool(self._buffer) or self._header_bytes > 0

    @property
    def buffered_bytes(self) -> int:
        """Number of buffered bytes of an unfinished frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads of the frames that `data` completes. Empty lines are skipped.

        Raises:
            FramingError: The stream is invalid; frames before the error are in its `frames`.
        """
        if self.kind == "lines" and not self._buffer and data.find(b"\n") == len(data) - 1 < self._maximum:
            frame = data[:-1].lstrip(_BLANKS).removesuffix(b"\r")  # the usual case: one whole line
            return [frame] if frame else []
        frames: list[bytes] = []
        try:
            if self.kind is None:
                data = self._detect(data)
            if self.kind == "lines":
                self._feed_lines(data, frames)
            elif self.kind == "headers":
                self._feed_headers(data, frames)
        except FramingError as error:
            self._reset()
            error.frames = frames
            raise
        return frames

    def encode(self, payload: bytes) -> bytes:
        """Add the connection's framing to `payload`. If the framing is not known yet, use a line."""
        if self.kind == "headers":
            return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)
        return payload + b"\n"

    def encode_pieces(self, pieces: Sequence[bytes]) -> list[bytes]:
        """Add the framing to a payload in pieces; copies only the first or the last piece."""
        first, *rest = pieces
        if self.kind == "headers":
            return [b"Content-Length: %d\r\n\r\n%b" % (sum(map(len, pieces)), first), *rest]
        *rest, last = pieces
        return [*rest, b"%b\n" % last]

    def _reset(self) -> None:
        self._buffer.clear()
        self._header_bytes = 0
        self._length = None
        self._in_body = False

    def _detect(self, data: bytes) -> bytes:
        """Set `kind` according to the first bytes, and return the bytes to process.

        Bytes that don't determine `kind` are buffered.
        """
        head = (bytes(self._buffer) + data).lstrip(_BLANKS)
        self._buffer.clear()
        if head[:1] in (b"{", b"["):
            self.kind = "lines"
        elif head[:1] in (b"C", b"c"):
            self.kind = "headers"
        elif head.startswith(_HTTP_VERBS):
            raise FramingError(_NOT_HTTP)
        elif len(head) < _LONGEST_VERB and any(verb.startswith(head) for verb in _HTTP_VERBS):
            self._buffer += head
        else:
            raise FramingError(_NOT_A_FRAME)
        return head

    def _feed_lines(self, data: bytes, frames: list[bytes]) -> None:
        # The buffer never contains a newline, so each byte is scanned only once, even if the reads are small.
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._buffer:
            lines[0] = bytes(self._buffer) + lines[0]
            self._buffer.clear()
        for line in lines:
            frame = line.lstrip(_BLANKS).removesuffix(b"\r")
            if len(frame) > self._maximum:
                raise self._too_long(self._maximum + 1)
            if frame:
                frames.append(frame)
        if rest:
            self._buffer += rest if self._buffer else rest.lstrip(_BLANKS)
            if len(self._buffer) - self._buffer.endswith(b"\r") > self._maximum:
                raise self._too_long(self._maximum + 1)

    def _feed_headers(self, data: bytes, frames: list[bytes]) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        while True:
            if self._in_body:
                end = start + (self._length or 0)
                if len(buffer) < end:
                    break
                frames.append(bytes(memoryview(buffer)[start:end]))
                self._header_bytes, self._length, self._in_body = 0, None, False
            else:
                end = self._read_header_line(start)
                if end == start:
                    break
            start = end
        del buffer[:start]

    def _read_header_line(self, start: int) -> int:
        """Read the header line at `start` and return its end, or `start` if it is incomplete."""
        if self._buffer.startswith(b"CONNECT ", start):
            self.kind = None
            raise FramingError(_NOT_HTTP)
        newline = self._buffer.find(b"\n", start)
        end = newline + 1 if newline >= 0 else len(self._buffer)
        if self._header_bytes + end - start > MAX_HEADER_BYTES:
            raise FramingError(_reject_size("header_bytes", "A header block", MAX_HEADER_BYTES + 1, MAX_HEADER_BYTES))
        if newline < 0:
            return start
        self._header_bytes += end - start
        line = bytes(memoryview(self._buffer)[start:newline])
        if not line.endswith(b"\r"):
            raise FramingError(Rejection("parse_error", "A header line must end with CR LF."))
        if line == b"\r":
            self._end_headers()
        else:
            self._read_header(line[:-1])
        return end

    def _end_headers(self) -> None:
        if self._length is None:
            raise FramingError(Rejection("parse_error", "The Content-Length header is missing."))
        self._in_body = True

    def _read_header(self, line: bytes) -> None:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise FramingError(Rejection("parse_error", "A header line must have the form `Name: value`."))
        name, value = match.groups()
        if name.lower() != b"content-length":
            return
        if self._length is not None:
            raise FramingError(Rejection("parse_error", "The Content-Length header occurs twice."))
        value = value.strip(b" \t")
        if not _LENGTH.fullmatch(value):
            raise FramingError(Rejection("parse_error", "Content-Length must be a decimal count of bytes."))
        length = min(int(value), MAX_INTEGER)
        if length > self._maximum:
            raise self._too_long(length)
        self._length = length

    def _too_long(self, value: int) -> FramingError:
        return FramingError(_reject_size("frame_bytes", "A frame", value, self._maximum))


def _reject_size(limit: str, what: str, value: int, maximum: int) -> Rejection:
    data = {"limit": limit, "value": value, "maximum": maximum}
    return Rejection("limit_exceeded", f"{what} may have at most {maximum} bytes.", data)
