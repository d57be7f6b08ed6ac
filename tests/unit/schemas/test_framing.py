import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist_schemas.framing import MAX_HEADER_BYTES, Framer, FramingError, Kind
from punchlist_schemas.things import MAX_INTEGER

VERBS = ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE")


def pieces(stream: bytes, step: int) -> list[bytes]:
    return [stream[start : start + step] for start in range(0, len(stream), step)]


def run(parts: list[bytes], maximum: int = 64) -> tuple[list[bytes], str | None, Kind | None]:
    """Return the frames of a stream, the message of the error that ends it, and the framing."""
    framer = Framer(maximum)
    frames: list[bytes] = []
    for part in parts:
        try:
            frames += framer.feed(part)
        except FramingError as error:
            return frames + error.frames, error.rejection.message, framer.kind
    return frames, None, framer.kind


def headers(payload: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)


STREAMS: dict[str, tuple[bytes, list[bytes]]] = {
    "one line": (b"{}\n", [b"{}"]),
    "several lines": (b'{"a":1}\n[2]\n{}\n', [b'{"a":1}', b"[2]", b"{}"]),
    "carriage returns": (b"{}\r\n[]\r\n", [b"{}", b"[]"]),
    "empty lines": (b"\n\r\n  \n{}\n\n \t \r\n\n[]\n\n", [b"{}", b"[]"]),
    "indented": (b"  {}\n\t[]\n", [b"{}", b"[]"]),
    "anything may follow on later lines": (
        b"{}\nGET / HTTP/1.1\nContent-Length: 3\n",
        [b"{}", b"GET / HTTP/1.1", b"Content-Length: 3"],
    ),
    "headers": (headers(b"{}") + headers(b'{"a":1}'), [b"{}", b'{"a":1}']),
    "headers behind blanks": (b"\r\n" + headers(b"{}"), [b"{}"]),
    "a body with newlines": (headers(b"{\n\r\n}") + headers(b"[]"), [b"{\n\r\n}", b"[]"]),
    "an empty body": (headers(b"") + headers(b"[]"), [b"", b"[]"]),
    "names of headers in any case": (b"content-LENGTH:2\r\n\r\n{}cONTENT-length: \t2 \t\r\n\r\n[]", [b"{}", b"[]"]),
    "other headers": (b"Content-Type: a; b=c\r\nContent-Length: 2\r\nX-Y: Content-Length: 9\r\n\r\n{}", [b"{}"]),
    "leading zeros": (b"Content-Length: 0002\r\n\r\n{}", [b"{}"]),
}


@pytest.mark.parametrize("step", [1, 2, 3, 1000])
@pytest.mark.parametrize("name", STREAMS)
def test_frames_do_not_depend_on_the_pieces(name: str, step: int) -> None:
    stream, frames = STREAMS[name]
    assert run(pieces(stream, step))[:2] == (frames, None)


@pytest.mark.parametrize(
    "begun",
    [
        b"{",
        b'{"a"',
        headers(b"{}")[:1],
        headers(b"{}")[:-1],
        headers(b"{}")[:-2],
        b"Content-Length: 2\r\n",
        b"G",
        b"{}\n{",
    ],
)
def test_frame_is_unfinished_until_complete(begun: bytes) -> None:
    framer = Framer()
    framer.feed(begun)
    assert framer.has_unfinished_frame


@pytest.mark.parametrize("whole", [b"", b" \r\n", b"{}\n", b"{}\n \t", b"{}\r\n", headers(b"{}"), headers(b"")])
def test_no_frame_is_unfinished_between_frames(whole: bytes) -> None:
    framer = Framer()
    for part in pieces(whole, 1):
        framer.feed(part)
    assert not framer.has_unfinished_frame


def test_bytes_after_a_frame_start_the_next() -> None:
    framer = Framer()
    assert framer.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert framer.feed(b':2}\n{"c"') == [b'{"b":2}']
    assert framer.feed(b":3}\n") == [b'{"c":3}']
    framer = Framer()
    assert framer.feed(headers(b"[1]") + b"Content-Le") == [b"[1]"]
    assert framer.feed(b"ngth: 3\r\n\r\n[2") == []
    assert framer.feed(b"]" + headers(b"[3]")) == [b"[2]", b"[3]"]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("step", [1, 5, 1000])
@pytest.mark.parametrize(("kind", "end"), [("lines", b"\n"), ("lines", b"\r\n"), ("headers", b"")])
def test_frame_can_have_the_maximum_length(kind: str, end: bytes, step: int, first: bool) -> None:
    def stream(size: int) -> bytes:
        payload = b"[" + b"1" * (size - 2) + b"]"
        return payload + end if kind == "lines" else headers(payload)

    known = b"{}\n" if kind == "lines" else headers(b"{}")
    before = b"" if first else known
    assert run([before, *pieces(stream(64), step)])[1] is None
    framer = Framer(64)
    framer.feed(before)
    with pytest.raises(FramingError) as caught:
        for part in pieces(stream(65), step):
            framer.feed(part)
    assert caught.value.rejection.data == {"limit": "frame_bytes", "value": 65, "maximum": 64}
    assert caught.value.rejection.kind == "limit_exceeded"


@pytest.mark.parametrize("step", [1, 9, 100])
def test_frames_before_an_error_are_returned(step: int) -> None:
    for stream in (b"{}\n[]\n" + b"1" * 65, headers(b"{}") + headers(b"[]") + b"Content-Length: x\r\n"):
        frames, message, _ = run(pieces(stream, step))
        assert frames == [b"{}", b"[]"]
        assert message


def test_huge_length_is_reported_within_integer_range() -> None:
    with pytest.raises(FramingError) as caught:
        Framer().feed(b"Content-Length: " + b"9" * 100 + b"\r\n")
    assert caught.value.rejection.data["value"] == MAX_INTEGER


def test_header_block_can_have_the_maximum_length() -> None:
    start, end = b"Content-Length: 2\r\nX: ", b"\r\n\r\n"
    fill = MAX_HEADER_BYTES - len(start) - len(end)
    assert Framer().feed(start + b"y" * fill + end + b"{}") == [b"{}"]
    with pytest.raises(FramingError) as caught:
        Framer().feed(start + b"y" * (fill + 1) + end + b"{}")
    assert caught.value.rejection.data["limit"] == "header_bytes"


@pytest.mark.parametrize("step", [1, 4, 1000])
@pytest.mark.parametrize("verb", VERBS)
def test_http_gets_one_readable_line(verb: str, step: int) -> None:
    frames, message, kind = run(pieces(f"{verb} /x HTTP/1.1\r\nHost: a\r\n\r\n".encode(), step))
    assert frames == []
    assert message
    assert "HTTP" in message
    assert "\n" not in message
    assert kind is None  # so that the response is sent as a line


@pytest.mark.parametrize(
    "word", [b"GETS", b"Hello ", b"PUTT", b"get /", b"get", b"POS\n", b"\xef\xbb\xbf{}\n", b'"a"\n', b"1\n"]
)
def test_other_lines_are_not_http(word: bytes) -> None:
    for step in (1, 1000):
        _, message, _ = run(pieces(word, step))
        assert message
        assert "HTTP" not in message


def test_rejected_stream_frees_its_buffer() -> None:
    framer = Framer(64)
    with pytest.raises(FramingError):
        framer.feed(b"{" * 100)
    assert not framer.has_unfinished_frame


def test_replies_use_the_framing_of_the_connection() -> None:
    framer = Framer()
    assert framer.encode(b"{}") == b"{}\n"
    framer.feed(b"{}\n")
    assert framer.encode(b"[1]") == b"[1]\n"
    framer = Framer()
    framer.feed(b"c")
    assert framer.encode(b"[1]") == b"Content-Length: 3\r\n\r\n[1]"


@pytest.mark.parametrize("kind", ["lines", "headers"])
def test_client_can_set_the_framing_first(kind: Kind) -> None:
    ours, theirs = Framer(), Framer()
    ours.kind = kind
    assert theirs.feed(ours.encode(b"[1]")) == [b"[1]"]
    assert theirs.kind == kind
    assert ours.feed(theirs.encode(b"[2]")) == [b"[2]"]


def test_a_mebibyte_byte_by_byte_takes_linear_time() -> None:
    framer = Framer()
    payload = b"[" + b" " * ((1 << 18) - 2) + b"]"
    for part in pieces(payload, 1):
        framer.feed(part)
    assert framer.feed(b"\n") == [payload]


FRAGMENTS = st.sampled_from(
    [*b"{ } [1] C Content-Length: 3 99".split(), b"\n", b"\r", b"\r\n", b" ", b": ", b"Content-Length: 2", b"GET "]
)


@given(st.lists(FRAGMENTS | st.binary(max_size=6), max_size=30), st.integers(1, 9))
def test_any_bytes_give_frames_or_a_framing_error(parts: list[bytes], step: int) -> None:
    stream = b"".join(parts)
    assert run([stream], 32) == run(pieces(stream, step), 32) == run(parts, 32)


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_payload_with_headers_round_trips(payloads: list[bytes], step: int) -> None:
    stream = b"".join(headers(payload) for payload in payloads)
    assert run(pieces(stream, step))[:2] == (payloads, None)
