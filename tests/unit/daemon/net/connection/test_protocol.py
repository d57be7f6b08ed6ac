"""The protocol without I/O: bytes in, calls out, and replies back to bytes."""

from typing import Any

import msgspec
import pytest

from punchlist_schemas.errors import Rejection
from punchlist_schemas.results import Limits
from punchlistd.engine.replies import Pieces
from punchlistd.net.connection.protocol import Batch, ServerProtocol
from punchlistd.net.jsonrpc import Call, Malformed

REFUSED = Rejection("not_found", "It is not there.")


def request(id: Any, method: str = "task.get", **params: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if id is None else {**message, "id": id}


def line(message: Any) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def calls(protocol: ServerProtocol) -> list[tuple[Call | Malformed, Batch | None]]:
    found: list[tuple[Call | Malformed, Batch | None]] = []
    while protocol.members or protocol.frames:
        found.append(protocol.next_call())
    return found


def sent(protocol: ServerProtocol) -> list[Any]:
    size = protocol.unsent_bytes
    data = b"".join(protocol.data_to_send())
    assert len(data) == size and protocol.unsent_bytes == 0
    return [msgspec.json.decode(each) for each in data.splitlines()]


def test_protocol_turns_bytes_into_calls_and_back() -> None:
    protocol = ServerProtocol(Limits())
    assert protocol.receive_data(line(request(1, task="7")) + line(request(None)) + b'{"json')
    assert protocol.has_unfinished_frame and protocol.received_bytes > 6
    (one, _), (notice, _) = calls(protocol)
    assert one == Call(b"1", "task.get", {"task": "7"}) and notice == Call(None, "task.get", {})
    assert protocol.in_flight == 2 and protocol.received_bytes == 6
    protocol.answer(None, b"{}")
    protocol.answer(b"1", b'{"a":1}')
    assert sent(protocol) == [{"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}]
    assert sent(protocol) == [] and protocol.in_flight == 0


def test_invalid_call_has_its_rejection() -> None:
    protocol = ServerProtocol(Limits())
    protocol.receive_data(b'{"id":5}\n')
    ((malformed, batch),) = calls(protocol)
    assert isinstance(malformed, Malformed) and (malformed.id, batch) == (b"5", None)
    protocol.answer(malformed.id, malformed.rejection)
    assert sent(protocol)[0]["error"]["data"]["kind"] == "invalid_request"


def test_batch_is_answered_after_its_last_reply() -> None:
    protocol = ServerProtocol(Limits())
    protocol.receive_data(line([request(1), request(None), 5, request(2)]))
    assert not protocol.members
    (one, batch), *_ = calls(protocol)
    assert isinstance(one, Call) and batch is not None and protocol.in_flight == 4
    protocol.answer_in_batch(batch, b"2", Pieces((b'{"tasks":', b"[]", b"}")))
    protocol.answer_in_batch(batch, None, b"{}")
    protocol.answer_in_batch(batch, b"null", REFUSED)
    assert sent(protocol) == [] and not batch.is_complete and batch.size > 0
    protocol.answer_in_batch(batch, b"1", b"{}")
    (replies,) = sent(protocol)
    assert [reply["id"] for reply in replies] == [2, None, 1]
    assert replies[0]["result"] == {"tasks": []} and replies[1]["error"]["data"]["kind"] == "not_found"
    assert protocol.in_flight == 0


def test_notifications_are_not_answered() -> None:
    protocol = ServerProtocol(Limits())
    protocol.receive_data(line([request(None), request(None)]))
    for _, batch in calls(protocol):
        assert batch is not None
        protocol.answer_in_batch(batch, None, b"{}")
    assert protocol.data_to_send() == [] and protocol.in_flight == 0


def test_batch_is_finished_before_the_next_frame() -> None:
    protocol = ServerProtocol(Limits())
    protocol.receive_data(line([request(1), request(2)]) + line(request(3)))
    protocol.next_call()
    assert protocol.members and protocol.frames
    assert [call.id for call, _ in calls(protocol)] == [b"2", b"3"]


def test_frames_before_a_fault_are_valid() -> None:
    protocol = ServerProtocol(Limits(frame_bytes=100))
    protocol.receive_data(line(request(1)) + b"{" * 200)
    assert msgspec.json.decode(protocol.fault)["error"]["data"]["kind"] == "limit_exceeded"
    assert not protocol.receive_data(b"\n" + line(request(2)))
    assert [call.id for call, _ in calls(protocol)] == [b"1"]


@pytest.mark.parametrize("headers", [False, True], ids=["lines", "headers"])
def test_replies_use_the_framing_of_the_first_byte(headers: bool) -> None:
    protocol = ServerProtocol(Limits())
    payload = msgspec.json.encode(request(1))
    protocol.receive_data(b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload) if headers else payload + b"\n")
    assert len(calls(protocol)) == 1 and protocol.framing == ("headers" if headers else "lines")
    protocol.push([b'{"a"', b":1}"])
    assert b"".join(protocol.data_to_send()) == (b'Content-Length: 7\r\n\r\n{"a":1}' if headers else b'{"a":1}\n')
    assert protocol.framed(b"{}") == (b"Content-Length: 2\r\n\r\n{}" if headers else b"{}\n")


def test_connection_ends_once_all_is_answered() -> None:
    protocol = ServerProtocol(Limits())
    protocol.receive_data(line(request(1))[:-1])
    assert not protocol.frames and not protocol.members and protocol.receive_eof() and not protocol.receive_eof()
    assert not protocol.is_idle and len(calls(protocol)) == 1 and not protocol.is_idle
    protocol.answer(b"1", b"{}")
    assert protocol.is_idle


def test_unstarted_calls_can_be_dropped() -> None:
    protocol = ServerProtocol(Limits())
    protocol.receive_data(line([request(1), request(2)]) + line(request(3)))
    protocol.next_call()
    protocol.forget_received()
    assert not protocol.frames and not protocol.members and protocol.received_bytes == 0


def test_single_line_request_takes_the_fast_path() -> None:
    straight, other = ServerProtocol(Limits()), ServerProtocol(Limits())
    for protocol in (straight, other):
        protocol.receive_data(line(request(0)))
        protocol.next_call()
    for data in (line(request(1, task="7")), line(request(None)), b'{"id":5}\n', b'{"jsonrpc":"2.0",\r\n'):
        other.receive_data(data)
        ((expected, _),) = calls(other)
        assert straight.receive_call(data) == expected
    assert straight.in_flight == other.in_flight == 5 and straight.received_bytes == 0


def test_other_input_skips_the_fast_path() -> None:
    one = line(request(1))

    def begun(data: bytes = b"", limits: Limits | None = None) -> ServerProtocol:
        protocol = ServerProtocol(limits or Limits())
        protocol.receive_data(line(request(0)))
        protocol.next_call()
        protocol.receive_data(data)
        return protocol

    assert ServerProtocol(Limits()).receive_call(one) is None, "the first byte selects the framing"
    for data in (one[:-1], one + one, b"[" + one[:-1] + b"]\n", b"\n", b" " + one):
        assert begun().receive_call(data) is None, data
    assert begun(b'{"js').receive_call(one) is None, "the data would end another frame"
    assert begun(one).receive_call(one) is None, "earlier frames start first"
    assert begun(b"[" + one[:-1] + b"," + one[:-1] + b"]\n").receive_call(one) is None
    assert begun(limits=Limits(frame_bytes=64)).receive_call(line(request(1, task="7" * 64))) is None


def test_dropped_long_frame_is_not_decoded() -> None:
    """No client waits for the call, and its bytes no longer count."""
    protocol = ServerProtocol(Limits())
    tasks = [{"title": "x" * 60, "labels": ["a"]} for _ in range(2_000)]
    assert protocol.receive_data(line(request(1, "task.add_many", tasks=tasks))) and protocol.needs_slicing
    reading = protocol.decode_in_slices()
    for _ in range(100):
        next(reading)
    protocol.forget_received()
    assert list(reading) == [] and not calls(protocol)
    assert protocol.receive_data(line(request(2)))
    assert [(call.id, batch) for call, batch in calls(protocol)] == [(b"2", None)]
