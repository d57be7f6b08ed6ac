"""The core, tested case by case without sockets and clocks."""

import functools
from typing import Any

import msgspec
import pytest

from punchlist.connection.core import PAUSES_S, Request, Retry, Wire, build_releases, is_transient, result_of
from punchlist.connection.launch import Target
from punchlist.errors import (
    Blocked,
    ConnectionLost,
    DaemonUnavailable,
    InvalidParams,
    LimitExceeded,
    NotFound,
    OutcomeUnknown,
    ProtocolError,
    PunchlistError,
    RequestRefused,
    ShuttingDown,
    TimedOut,
)
from punchlist_schemas import params as p
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_schemas.methods import METHODS, PROTOCOL
from punchlist_schemas.results import HelloResult, Limits, Stopping
from punchlistd.net import jsonrpc

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"stopping":true}}\n'
REFUSAL = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no","data":{"kind":"not_found","id":"9"}}}\n'
PUSH = b'{"jsonrpc":"2.0","method":"events","params":{"subscription":"s1","events":[]}}\n'


def request() -> Request:
    return Request.of("daemon.shutdown", p.NoParams())


def test_request_is_one_valid_line() -> None:
    request_id, data = Wire().send(Request.of("task.add", p.TaskAdd(conversation="c", title="a\nb", key="k")))
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    call = jsonrpc.decode(data[:-1], Limits())
    assert isinstance(call, jsonrpc.Call)
    assert (call.id, call.method) == (str(request_id).encode(), "task.add")


def test_request_ids_are_unique_per_connection() -> None:
    wire = Wire()
    assert len({wire.send(request())[0] for _ in range(100)}) == 100


def greet(wire: Wire, frame_bytes: int = 1 << 20, protocol: int = PROTOCOL) -> None:
    limits = Limits(frame_bytes=frame_bytes)
    hello = HelloResult(name="d", version="9", protocol=protocol, epoch="e", pid=1, limits=limits, features=())
    wire.greet(Target("/s"), Reply(id=1, result=msgspec.Raw(msgspec.json.encode(hello))))


def test_too_long_request_is_rejected_before_sending() -> None:
    def adding(title: str) -> Request:
        return Request.of("task.add", p.TaskAdd(conversation="c", title=title, key="k"))

    longest = len(Wire().send(adding(""))[1]) - 1 + 100
    wire = Wire()
    greet(wire, longest)
    assert len(wire.send(adding("x" * 100))[1]) == longest + 1
    with pytest.raises(LimitExceeded, match="Split the call") as caught:
        wire.send(adding("x" * 101))
    refused = caught.value
    assert (refused.limit, refused.value, refused.maximum) == ("frame_bytes", longest + 1, longest)
    assert refused.code == ERRORS["limit_exceeded"].code


DEEP: Any = functools.reduce(lambda inner, _: [inner], range(40), 1)
UNREADABLE: list[tuple[type[RequestRefused], Any, str]] = [
    (InvalidParams, 2**53 + 1, "beyond"),
    (InvalidParams, 2**70, "beyond"),
    (InvalidParams, float("nan"), "number nan"),
    (InvalidParams, [None, {"a": (1.5, float("inf"))}], "number inf"),
    (InvalidParams, "half \ud800", "lone surrogate"),
    (InvalidParams, {1: "a", "1": "b"}, "same name twice"),
    (LimitExceeded, DEEP, "at most 32 levels"),
    (LimitExceeded, functools.reduce(lambda inner, _: [inner], range(100_000), 1), "at most 32 levels"),
]


@pytest.mark.parametrize(("kind", "value", "why"), UNREADABLE)
def test_unreadable_request_is_rejected_before_sending(kind: type[RequestRefused], value: Any, why: str) -> None:
    """The daemon would reject it too, but without an id, so the client couldn't tell which call failed."""
    wire = Wire()
    with pytest.raises(kind, match=f"was not sent.*{why}"):
        wire.send(Request.raw("x.y", {"value": value}))
    assert isinstance(jsonrpc.decode(wire.send(request())[1][:-1], Limits()), jsonrpc.Call), (
        "the next request is accepted"
    )


def test_call_with_many_small_tasks_is_sent() -> None:
    tasks = tuple(p.NewTask(title="x", owner="o", labels=("a", "b", "c", "d"), notes=("n",)) for _ in range(10_000))
    _, line = Wire().send(Request.of("list.replace", p.ListReplace(conversation="c", tasks=tasks)))
    assert isinstance(jsonrpc.decode(line, Limits()), jsonrpc.Malformed), (
        "decoded in one piece, the frame has too many values"
    )
    assert line.count(b'"x"') == 10_000


def test_null_is_sent_as_null() -> None:
    sent = Wire().send(Request.raw("x.y", {"value": [None, {"a": "null"}]}))[1]
    assert b'{"value":[null,{"a":"null"}]}' in sent


def test_default_limits_apply_until_daemon_reports_its_own() -> None:
    with pytest.raises(LimitExceeded):
        Wire().send(Request.raw("x.y", {"text": "x" * Limits().frame_bytes}))


def test_messages_are_decoded_in_any_pieces() -> None:
    stream = ANSWER + PUSH + REFUSAL
    whole = Wire().receive(stream)
    wire = Wire()
    piecewise = [message for byte in stream for message in wire.receive(bytes([byte]))]
    assert whole == piecewise
    assert [type(message) for message in whole] == [Reply, Notice, Reply]


def test_incomplete_message_waits_for_its_end() -> None:
    wire = Wire()
    assert wire.receive(ANSWER + PUSH[:-1]) == Wire().receive(ANSWER)
    assert [type(message) for message in wire.receive(b"\n")] == [Notice]


@pytest.mark.parametrize("line", [b"{}\n", b"nonsense\n", b"{not json}\n", b'{"jsonrpc":"1.0","id":1,"result":1}\n'])
def test_invalid_message_is_a_protocol_error(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        Wire().receive(line)


def test_connection_error_is_raised_with_its_kind() -> None:
    line = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32008,"message":"full","data":{"kind":"limit_exceeded"}}}\n'
    with pytest.raises(LimitExceeded, match="full"):
        Wire().receive(line)


def test_error_for_unreadable_frame_needs_no_id() -> None:
    line = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?","data":{"kind":"parse_error"}}}\n'
    (reply,) = Wire().receive(line)
    assert isinstance(reply, Reply)
    assert reply.id is None


def test_result_is_typed_and_error_is_raised() -> None:
    good, bad = Wire().receive(ANSWER + REFUSAL)
    assert isinstance(good, Reply)
    assert isinstance(bad, Reply)
    assert result_of(good, Stopping) == Stopping(stopping=True)
    with pytest.raises(NotFound) as caught:
        result_of(bad, Stopping)
    assert caught.value.id == "9"


def test_malformed_result_is_a_protocol_error() -> None:
    (reply,) = Wire().receive(b'{"jsonrpc":"2.0","id":1,"result":{"stopping":3}}\n')
    assert isinstance(reply, Reply)
    with pytest.raises(ProtocolError, match="Stopping"):
        result_of(reply, Stopping)


def test_cancellation_is_separate_request_with_id() -> None:
    wire = Wire()
    request_id, _ = wire.send(request())
    call = jsonrpc.decode(wire.cancel(request_id)[:-1], Limits())
    assert isinstance(call, jsonrpc.Call)
    assert call.params == {"id": request_id}
    assert call.id != str(request_id).encode()


def test_every_mutation_gets_unique_or_given_key() -> None:
    drawn = [Request.of("task.add", p.TaskAdd(conversation="c", title="t")).params for _ in range(2)]
    assert len({params.key for params in drawn if isinstance(params, p.TaskAdd)}) == 2
    given = Request.of("task.add", p.TaskAdd(conversation="c", title="t", key="mine")).params
    assert isinstance(given, p.TaskAdd)
    assert given.key == "mine"


@pytest.mark.parametrize("name", METHODS)
def test_untyped_call_gets_key_if_it_writes(name: str) -> None:
    raw = Request.raw(name, {}).params
    assert isinstance(raw, dict)
    assert ("key" in raw) == (METHODS[name].kind == "write")
    assert Request.raw(name, {"key": "mine"}).params == {"key": "mine"}


@pytest.mark.parametrize(
    ("method", "repeatable"),
    [
        ("task.add", True),
        ("task.list", True),
        ("daemon.shutdown", False),
        ("daemon.backup", False),
        ("event.subscribe", False),
        ("no.such", False),
    ],
)
def test_only_safe_calls_are_retried(method: str, repeatable: bool) -> None:
    assert Request.raw(method, {}).repeatable is repeatable


def test_waiting_call_gets_its_requested_time() -> None:
    assert Request.of("event.wait", p.EventWait(after=0, timeout_ms=2_500)).patience_s == 2.5
    assert Request.raw("event.wait", {"after": 0, "timeout_ms": 2_500}).patience_s == 2.5
    assert Request.raw("event.wait", {"timeout_ms": "soon"}).patience_s == 0


def test_read_of_later_version_may_wait() -> None:
    later = p.TaskGet(conversation="c", task="1", min_version=7)
    assert Request.of("task.get", later).patience_s == p.REACHED_S
    assert Request.raw("task.get", {"conversation": "c", "task": "1", "min_version": 7}).patience_s == p.REACHED_S
    assert Request.of("task.get", p.TaskGet(conversation="c", task="1")).patience_s == 0


def test_copying_long_log_does_not_time_out() -> None:
    assert Request.of("daemon.backup", p.Backup(path="/b")).patience_s > 3_600
    assert Request.raw("daemon.backup", {"path": "/b"}).patience_s > 3_600


PASSING = [
    (ConnectionLost("gone"), True),
    (ConnectionLost("closed by us", final=True), False),
    (ShuttingDown("shutting_down", -32012, "bye"), True),
    (OutcomeUnknown("outcome_unknown", -32010, "who knows"), True),
    (OutcomeUnknown("outcome_unknown", -32010, "who knows", {"space": "team"}), False),
    (DaemonUnavailable("not there", temporary=True), True),
    (DaemonUnavailable("forbidden"), False),
    (Blocked("blocked", -32004, "no"), False),
    (TimedOut("late"), False),
    (ProtocolError("what"), False),
]


@pytest.mark.parametrize(("error", "passing"), PASSING, ids=lambda value: type(value).__name__)
def test_temporary_failures_are_recognized(error: PunchlistError, passing: bool) -> None:
    assert is_transient(error) is passing
    retry = Retry(deadline=10.0)
    if passing:
        assert retry.pause_s(error, now=0.0) == PAUSES_S[0]
    else:
        with pytest.raises(type(error)):
            retry.pause_s(error, now=0.0)


def test_pauses_grow_until_deadline() -> None:
    retry, now, pauses = Retry(deadline=5.0), 0.0, list[float]()
    with pytest.raises(ConnectionLost):
        while True:
            pauses.append(retry.pause_s(ConnectionLost("gone"), now))
            now += pauses[-1]
    assert pauses == sorted(pauses)
    assert tuple(pauses[: len(PAUSES_S)]) == PAUSES_S
    assert sum(pauses) <= 5.0


def test_unsafe_call_is_not_retried() -> None:
    with pytest.raises(ConnectionLost):
        Retry(deadline=10.0, repeatable=False).pause_s(ConnectionLost("gone"), now=0.0)


def test_other_protocol_version_is_rejected_with_advice() -> None:
    with pytest.raises(ProtocolError, match="restart the older one"):
        greet(Wire(), protocol=2)


def test_unawaited_claim_is_released() -> None:
    request = Request.of("task.claim", p.TaskClaim(conversation="c", owner="ann", count=2))
    made = {"id": "1", "title": "t", "status": "in_progress", "priority": "normal", "created_at": 1, "updated_at": 1}
    task = {**made, "status_changed_at": 1, "version": 1}
    result = {"version": 1, "seq": 9, "task": task, "fence": 8, "tasks": [task, {**task, "id": "2"}], "fences": [8, 9]}
    releases = build_releases(request, result)
    told = [msgspec.to_builtins(release.params) for release in releases]
    assert [(one["conversation"], one["task"], one["owner"], one["fence"]) for one in told] == [
        ("c", "1", "ann", 8),
        ("c", "2", "ann", 9),
    ]
    nothing = {"version": 1, "seq": 9, "task": None}
    assert build_releases(request, nothing) == []
    assert build_releases(Request.of("task.get", p.TaskGet(conversation="c", task="1")), nothing) == []
