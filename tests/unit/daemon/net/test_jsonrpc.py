import json
import os
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist_schemas import params as p
from punchlist_schemas.errors import ERRORS, ErrorObject, Rejection
from punchlist_schemas.jsonrpc import Notice, Reply, decode_message, encode_request
from punchlist_schemas.methods import METHODS
from punchlist_schemas.results import Limits
from punchlist_testing.calls import parse_params
from punchlistd.engine.replies import notification
from punchlistd.net import jsonrpc
from punchlistd.net.jsonrpc import Call, Malformed

LIMITS = Limits()


def frame(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def refused(**members: Any) -> Malformed:
    decoded = jsonrpc.decode(frame(**members), LIMITS)
    assert isinstance(decoded, Malformed)
    return decoded


def test_request_becomes_a_call() -> None:
    text = b' { "params" : { "task" : "1" } , "id" : "a\\u0062" , "method" : "task.get" , "jsonrpc" : "2.0" } '
    assert jsonrpc.decode(text, LIMITS) == Call(b'"ab"', "task.get", {"task": "1"})


def test_fast_decoder_agrees_with_the_strict_one() -> None:
    seed = int.from_bytes(os.urandom(4))
    print(f"seed {seed}")
    random = Random(seed)
    beginnings = [
        frame(id=7, method="task.add", params={"conversation": "c", "title": "write: it", "labels": ["a"], "n": 2**53}),
        frame(id=7, method="task.get", params={"conversation": "c", "task": "1", "deep": {"a": [1, {}]}, "x": -0.0}),
        frame(id="7", method="task.get", params={"conversation": "c", "task": "1"}),
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xc3\xa9","b":9007199254740992,"c":true}}',
        b'{"jsonrpc":"2.0","id":1,"method":"task.add","params":{"conversation":"c","title":"buy milk"}}',
    ]
    pieces = [
        b'"',
        b":",
        b",",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\u003a",
        b"\\ud800",
        b"9" * 17,
        b"1e5",
        b"\xff",
        b'"id":1,',
        b"-0",
    ]
    plain = 0
    for _ in range(20_000):
        mutated = bytearray(random.choice(beginnings))
        for _ in range(random.randrange(3)):
            place = random.randrange(len(mutated))
            mutated[place : place + random.randrange(3)] = random.choice(pieces)
        strict = jsonrpc.decode_strictly(bytes(mutated), LIMITS)
        assert jsonrpc.decode(bytes(mutated), LIMITS) == strict, bytes(mutated)
        plain += jsonrpc.decode_plain(bytes(mutated)) is not None
    assert plain > 1_000, "the fast decoder was used"


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":{"a":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"b","a":"c"}}',
        b'{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":{"a":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":9007199254740993}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[9007199254740993]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1.0}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xff"}}',
        b'{"jsonrpc":"2.0","id":true,"method":"m","params":{"a":"b"}}',
        b'{"jsonrpc":"2.1","id":1,"method":"m","params":{"a":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":1,"params":{"a":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":["a"]}',
    ],
)
def test_ambiguous_input_goes_to_the_strict_decoder(text: bytes) -> None:
    assert jsonrpc.decode_plain(text) is None


def test_no_params_and_empty_params_are_the_same() -> None:
    given: tuple[dict[str, Any], ...] = ({}, {"params": {}}, {"params": []})
    for members in given:
        assert jsonrpc.decode(frame(id=1, method="a", **members), LIMITS) == Call(b"1", "a", {})


def test_positional_params_are_rejected() -> None:
    call = jsonrpc.decode(frame(id=1, method="task.get", params=["c", "1"]), LIMITS)
    assert isinstance(call, Call)
    rejection = parse_params(METHODS["task.get"], call.params)
    assert isinstance(rejection, Rejection)
    assert (rejection.kind, rejection.data) == ("invalid_params", {"field": "params", "expected": "object"})


def test_batch_becomes_an_ordered_list() -> None:
    text = b"[%b, 1, %b]" % (frame(id=1, method="a"), frame(method="b", params={"c": [1]}))
    decoded = jsonrpc.decode(text, LIMITS)
    assert isinstance(decoded, list)
    first, second, third = decoded
    assert (first, third) == (Call(b"1", "a", {}), Call(None, "b", {"c": [1]}))
    assert isinstance(second, Malformed)


def test_batch_above_the_limit_is_rejected() -> None:
    limits = Limits(batch=2)
    assert isinstance(jsonrpc.decode(b"[1,2]", limits), list)
    answer = jsonrpc.decode(b"[1,2,3]", limits)
    assert isinstance(answer, Malformed)
    assert answer.rejection.kind == "limit_exceeded"
    assert answer.rejection.data == {"limit": "batch", "value": 3, "maximum": 2}


def test_params_are_converted_to_their_type() -> None:
    given = {"conversation": "c", "title": "a", "priority": "high", "metadata": {"x": [1, None]}}
    parsed = parse_params(METHODS["task.add"], given)
    assert parsed == p.TaskAdd(conversation="c", title="a", priority="high", metadata={"x": [1, None]})
    assert parse_params(METHODS["daemon.status"], {}) == p.NoParams()


def test_unknown_method_suggests_the_nearest() -> None:
    assert jsonrpc.unknown_method("task.ad").data == {"method": "task.ad", "nearest": "task.add"}


def test_replies_and_pushes_are_json_rpc() -> None:
    assert json.loads(jsonrpc.response(b'"a"', b'{"b":1}')) == {"jsonrpc": "2.0", "id": "a", "result": {"b": 1}}
    assert json.loads(notification("events", b'{"b":1}')) == {
        "jsonrpc": "2.0",
        "method": "events",
        "params": {"b": 1},
    }


@pytest.mark.parametrize("kind", ERRORS)
def test_error_has_code_kind_and_data(kind: str) -> None:
    sent = jsonrpc.failure(b"5", Rejection(kind, "Because.", {"field": "a"}))
    assert json.loads(sent) == {
        "jsonrpc": "2.0",
        "id": 5,
        "error": {"code": ERRORS[kind].code, "message": "Because.", "data": {"kind": kind, "field": "a"}},
    }


def test_daemon_reads_what_the_client_encodes() -> None:
    asked = p.TaskEdit(conversation="c", task="1", title="a", owner=None)
    call = jsonrpc.decode(encode_request("id", "task.edit", asked), LIMITS)
    assert isinstance(call, Call)
    assert call.id == b'"id"'
    assert parse_params(METHODS["task.edit"], call.params) == asked
    assert jsonrpc.decode(encode_request(1, "a", {"b": 2}), LIMITS) == Call(b"1", "a", {"b": 2})


def test_client_reads_what_the_daemon_encodes() -> None:
    reply = decode_message(jsonrpc.response(b"1", b'{"a":1}'))
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, msgspec.Raw)
    assert (reply.id, bytes(reply.result), reply.error) == (1, b'{"a":1}', msgspec.UNSET)
    error = decode_message(jsonrpc.failure(b"null", Rejection("not_found", "No.", {"id": "1"})))
    data = {"kind": "not_found", "id": "1"}
    assert error == Reply(None, error=ErrorObject(-32001, "No.", data))
    notice = decode_message(notification("events", b'{"a":1}'))
    assert isinstance(notice, Notice)
    assert (notice.method, bytes(notice.params)) == ("events", b'{"a":1}')


pieces = st.sampled_from(
    [
        b'"jsonrpc":"2.0"',
        b'"id":',
        b'"method":"task.add"',
        b'"params":',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"1",
        b"null",
        b'"',
        b"\\ud800",
        b"\xff",
    ]
)


@given(st.lists(pieces | st.binary(max_size=4), max_size=16))
def test_decoder_never_raises(parts: list[bytes]) -> None:
    decoded = jsonrpc.decode(b"".join(parts), LIMITS)
    for item in decoded if isinstance(decoded, list) else [decoded]:
        if isinstance(item, Malformed):
            json.loads(jsonrpc.failure(item.id, item.rejection))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.data(), st.sampled_from(sorted(METHODS)))
def test_parser_never_raises(data: st.DataObject, method: str) -> None:
    names = st.sampled_from(METHODS[method].params.__struct_fields__ or ("x",)) | st.text(max_size=4)
    params = data.draw(st.dictionaries(names, values, max_size=4) | st.lists(values, max_size=3))
    parsed = parse_params(METHODS[method], params)
    assert isinstance(parsed, METHODS[method].params | Rejection)
