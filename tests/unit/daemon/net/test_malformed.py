"""Malformed frames: each gets exactly the error that the contract's rules require."""

import gc
import time
import tracemalloc

import msgspec
import pytest

from punchlist_schemas.framing import Framer, FramingError
from punchlist_schemas.results import Limits
from punchlist_schemas.strict_json import MAX_VALUES
from punchlist_testing import malformed
from punchlist_testing.malformed import FINE
from punchlistd.net import jsonrpc
from punchlistd.net.connection.protocol import ServerProtocol
from punchlistd.net.jsonrpc import Call, Malformed

LIMITS = Limits()


def answer(item: Call | Malformed) -> tuple[object, str]:
    return value(item.id), item.rejection.kind if isinstance(item, Malformed) else FINE


def value(id: bytes | None) -> object:
    return None if id is None else msgspec.json.decode(id)


def test_every_malformed_frame_gets_its_error() -> None:
    cases = malformed.all_cases()
    assert sum(case.kind != FINE for case in cases) >= 5_000
    wrong: list[str] = []
    for case in cases:
        decoded = jsonrpc.decode(case.frame, LIMITS)
        if isinstance(decoded, list):
            (decoded,) = decoded
        if answer(decoded) != (value(case.id), case.kind):
            wrong.append(f"{case.name[:200]}: expected {case.id!r} {case.kind}, got {answer(decoded)}")
    assert not wrong, "\n".join(wrong[:20])


def test_every_malformed_batch_gets_its_errors() -> None:
    for name, frame, expected in malformed.batches():
        decoded = jsonrpc.decode(frame, LIMITS)
        if isinstance(decoded, list):
            assert [answer(item)[1] for item in decoded] == expected, name
        else:
            assert answer(decoded) == (None, expected), name


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_broken_headers_are_rejected_in_any_pieces(step: int) -> None:
    for stream, kind in malformed.header_faults():
        assert refusal(stream, step) == kind, stream[:80]


def test_every_other_first_byte_is_rejected() -> None:
    for stream, kind in malformed.openings():
        assert refusal(stream, 1) == refusal(stream, 1 << 20) == kind, stream[:80]


def refusal(stream: bytes, step: int) -> str:
    framer = Framer()
    with pytest.raises(FramingError) as caught:
        for start in range(0, len(stream), step):
            framer.feed(stream[start : start + step])
    assert caught.value.frames == []
    return caught.value.rejection.kind


def test_decoding_takes_linear_time() -> None:
    whole, part = hard_frames(LIMITS.frame_bytes), hard_frames(LIMITS.frame_bytes // 16)
    for name, frame in whole.items():
        taken_s = processor_s(frame)
        # Linear decoding takes 16 times as long as the part, quadratic 256 times. Frames rejected early are too fast to
        # compare.
        assert taken_s < 0.2 or taken_s < 64 * processor_s(part[name]), name


def hard_frames(room: int) -> dict[str, bytes]:
    return {
        "brackets": b"[" * room,
        "pairs": b"[" + b"[]," * (room // 3 - 1) + b"[]]",
        "digits": b"1" * room,
        "digits behind a point": b"[0." + b"1" * (room - 4) + b"]",
        "numbers": b"[" + b"1234567890123456," * (room // 17 - 1) + b"1]",
        "quotes": b'"' * room,
        "backslashes": b'"' + b"\\" * (room - 2) + b'"',
        "escapes": b'{"a":1,"b":"' + b'\\"' * (room // 2 - 20) + b'","a":2}',
        "names": b"{" + b",".join(b'"%06d":1' % number for number in range(room // 12)) + b"}",
        "colons": b'{"a":"' + b":" * (room - 20) + b'\\u003a","a":1}',
    }


def processor_s(frame: bytes) -> float:
    # The collector would scan all objects left by other tests, once for each of the frame's many lists.
    gc.disable()
    try:
        began = time.process_time()
        jsonrpc.decode(frame, LIMITS)
        return time.process_time() - began
    finally:
        gc.enable()


def edited(metadata: bytes) -> bytes:
    call = b'{"jsonrpc":"2.0","id":1,"method":"task.edit","params":{"conversation":"c","task":"1","metadata":%b}}'
    return call % metadata


def repeated(piece: bytes, count: int) -> bytes:
    return edited(b'{"k":[' + b",".join([piece] * count) + b"]}")


@pytest.mark.parametrize("piece", [b"1", b"{}", b"[]", b'""', b'"\\\\"', b'{"a":1}', b"[[[]]]", b'{"a":[{}]}'])
def test_frame_with_too_many_values_is_rejected_undecoded(piece: bytes) -> None:
    frame = repeated(piece, LIMITS.frame_bytes // (len(piece) + 1) - 100)
    protocol = ServerProtocol(LIMITS)
    protocol.receive_data(frame + b"\n")
    tracemalloc.start()
    decoded, _ = protocol.next_call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * LIMITS.frame_bytes, "its objects and arrays alone would take more"
    assert len(frame) <= LIMITS.frame_bytes and isinstance(decoded, Malformed)
    assert decoded.rejection.kind == "limit_exceeded" and decoded.rejection.data["limit"] == "values"


def test_value_limit_is_exact() -> None:
    others = 4 + 3 + 1  # members of the call, of its params and of the metadata
    assert isinstance(jsonrpc.decode(repeated(b'"ab"', MAX_VALUES - others), LIMITS), Call)
    assert isinstance(jsonrpc.decode(repeated(b'"ab"', MAX_VALUES - others + 1), LIMITS), Malformed)


@pytest.mark.parametrize("text", [b",", b"{", b"[1,{", b'\\",', b"\\\\,"])
def test_separators_inside_texts_do_not_count(text: bytes) -> None:
    frame = edited(b'{"k":"' + text * (1_000_000 // len(text)) + b'"}')
    assert isinstance(jsonrpc.decode(frame, LIMITS), Call)
