"""The client's side of the protocol without I/O, shared by all clients.

`Wire` turns requests into bytes and bytes into messages. `Retry` decides whether a failed call is retried.
`calls.cursor` keeps the position of a subscription across reconnects. None of these owns a socket, a clock, a task or a
lock.

Rules:
1. Every change has an idempotency key, and a retry has the same key, so the change is never made twice.
2. A failed call is retried only if a retry is safe, with increasing pauses, until its timeout.
3. A lost connection is replaced by a new one. Replies to abandoned calls are dropped.
4. An event is delivered only if its position is after the last delivered one.
5. A position in another log is an error.
"""

import os
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from punchlist.base import __version__
from punchlist.connection.launch import TIMEOUT_S, Target
from punchlist.connection.options import Options
from punchlist.errors import (
    ConnectionLost,
    DaemonUnavailable,
    InvalidRequest,
    LimitExceeded,
    OutcomeUnknown,
    ParseError,
    ProtocolError,
    PunchlistError,
    RequestRefused,
    ShuttingDown,
    build_error,
)
from punchlist_schemas import jsonrpc, strict_json
from punchlist_schemas.errors import ERRORS, Rejection
from punchlist_schemas.framing import Framer, FramingError
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_schemas.methods import METHODS, PROTOCOL
from punchlist_schemas.params import REACHED_S, ClientInfo, Hello, Mutation, Params, TaskClaim, TaskRelease
from punchlist_schemas.results import ClaimResult, HelloResult, Limits

T = TypeVar("T")

PAUSES_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0)
"""Seconds to wait before the first, second, … retry; the last value repeats."""

MAX_FRAME_BYTES = 1 << 30
"""Longest message accepted from the daemon, in bytes. It is large, because a long list is one message. The daemon is
trusted, because it runs as the same user.
"""

_SLOW = {"daemon.backup": 86_400.0, "space.add": 120.0, "list.share": 86_400.0, "list.join": 86_400.0}
"""Methods whose replies may take a long time -> timeout in seconds. Calls to them are not retried."""

_REPEATABLE_SESSION = frozenset({"daemon.hello", "rpc.discover"})


class Request(msgspec.Struct, frozen=True):
    """A call ready to be sent and retried. A change already has its idempotency key.

    Attributes:
        repeatable: Whether it may be sent again after the connection was lost.
        patience_s: Seconds for which the daemon may deliberately wait before it replies.
    """

    method: str
    params: Params | dict[str, Any]
    repeatable: bool
    patience_s: float = 0.0

    @classmethod
    def of(cls, method: str, params: Params) -> "Request":
        """Return the request for a typed call. A change without a key gets one."""
        if isinstance(params, Mutation) and params.key is None:
            params = msgspec.structs.replace(params, key=new_key(method))
        return cls(method, params, _is_repeatable(method), _patience_s(method, msgspec.structs.asdict(params)))

    @classmethod
    def raw(cls, method: str, params: dict[str, Any]) -> "Request":
        """Return the request for an untyped call. It gets a key if the method table lists it as a change."""
        row = METHODS.get(method)
        if row is not None and row.kind == "write" and params.get("key") is None:
            params = {**params, "key": new_key(method)}
        return cls(method, params, _is_repeatable(method), _patience_s(method, params))


def _patience_s(method: str, params: dict[str, Any]) -> float:
    if params.get("min_version") is not None:
        return REACHED_S
    waiting = params.get("timeout_ms", params.get("wait_ms"))
    return waiting / 1000 if isinstance(waiting, int) else _SLOW.get(method, 0.0)


class _Origin:
    """The request from which keys are derived, and the number of its changes so far, by method."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changes: Counter[str] = Counter()


_origin: ContextVar[_Origin | None] = ContextVar("origin", default=None)


@contextmanager
def derived_keys(name: str) -> Generator[None]:
    """Derive the keys of all changes in this context from a request, so that running it again changes nothing twice.

    A change has the key of the change with the same method and number in the earlier run.

    Args:
        name: Identifies the request; must be unique, and secret if others must not guess the keys.
    """
    token = _origin.set(_Origin(name))
    try:
        yield
    finally:
        _origin.reset(token)


def new_key(method: str = "") -> str:
    """Return a new idempotency key: random, or within `derived_keys` the key of the request's next change."""
    if (origin := _origin.get()) is None:
        return os.urandom(16).hex()
    origin.changes[method] += 1
    return _derive_key(origin, method)


def release_key(method: str, key: str | None) -> None:
    """Give the last key of a method to its next change, because the daemon rejected the change that had the key.

    Otherwise, the number of a later change would depend on what was tried before it.
    """
    if (origin := _origin.get()) is not None and key == _derive_key(origin, method):
        origin.changes[method] -= 1


def hold_key(method: str, key: str | None) -> None:
    """Take a released key again, because the change that had it is repeated."""
    if (origin := _origin.get()) is not None and key == _derive_key(origin, method, 1):
        origin.changes[method] += 1


def _derive_key(origin: _Origin, method: str, ahead: int = 0) -> str:
    return sha256(f"{origin.name}\0{method}\0{origin.changes[method] + ahead}".encode()).hexdigest()[:32]


def _is_repeatable(method: str) -> bool:
    row = METHODS.get(method)
    if row is None or method in _SLOW:
        return False
    return row.kind != "session" or method in _REPEATABLE_SESSION


class Wire:
    """The client's side of one connection: numbers requests and splits the stream into messages."""

    def __init__(self) -> None:
        self._last_id = 0
        self._framer = Framer(MAX_FRAME_BYTES)
        self._framer.kind = "lines"
        self._limits = Limits()

    def greet(self, target: Target, reply: Reply) -> HelloResult:
        """Process the reply to `daemon.hello` and adopt the daemon's limits.

        Raises:
            ProtocolError: The daemon speaks another version of the protocol.
            WrongDataDirectory: The daemon uses a different data directory than this client requires.
        """
        hello = result_of(reply, HelloResult)
        if hello.protocol != PROTOCOL:
            raise ProtocolError(
                f"The daemon (punchlistd {hello.version}) speaks version {hello.protocol} of the protocol, "
                f"this library version {PROTOCOL}: restart the older one after an upgrade."
            )
        self._limits = hello.limits
        if hello.lock is not None:  # older daemons send none
            target.check(hello.lock.device, hello.lock.inode)
        return hello

    def send(self, request: Request) -> tuple[int, bytes]:
        """Return the id of the request and the bytes to send.

        Requests that the daemon could not decode are rejected here, by the same rules as in the daemon. It would reply
        without an id, or close the connection, so that other calls would fail too.

        Raises:
            LimitExceeded: The request is longer or more deeply nested than the daemon accepts.
            InvalidParams: An integer is beyond ±2^53, a number is NaN or infinite, a string contains half of a
                surrogate pair, or a name occurs twice.
        """
        self._last_id += 1
        try:
            payload = jsonrpc.encode_request(self._last_id, request.method, request.params)
            if len(payload) > self._limits.frame_bytes:
                raise _too_long(request.method, len(payload), self._limits.frame_bytes)
            for _ in strict_json.parse_in_slices(payload, self._limits.depth):
                pass
            if b"null" in payload:  # the encoding of NaN and infinity, as well as of None
                strict_json.check_numbers(msgspec.to_builtins(request.params))
        except strict_json.Refused as refused:
            raise _unreadable(request.method, refused.rejection) from None
        except UnicodeEncodeError:
            raise _unreadable(request.method, Rejection("parse_error", "A text contains a lone surrogate.")) from None
        except RecursionError:
            raise _unreadable(request.method, strict_json.reject_depth(self._limits.depth)) from None
        return self._last_id, self._framer.encode(payload)

    def cancel(self, request_id: int) -> bytes:
        """Return the bytes that cancel a waiting request. Its reply may still arrive."""
        self._last_id += 1
        return self._framer.encode(jsonrpc.encode_request(self._last_id, "rpc.cancel", {"id": request_id}))

    def receive(self, data: bytes) -> list[Reply | Notice]:
        """Return the messages that these bytes complete.

        A reply without an id is the error for a frame that the daemon could not decode.

        Raises:
            ProtocolError: The stream does not follow the protocol.
            RequestRefused: The daemon rejected the whole connection.
        """
        try:
            messages = [jsonrpc.decode_message(frame) for frame in self._framer.feed(data)]
        except (FramingError, ValueError) as error:
            raise ProtocolError(f"The daemon sent an invalid message: {error}") from error
        for message in messages:
            if isinstance(message, Reply) and message.id is None:
                error = error_of(message) or ProtocolError("The daemon replied to an unknown call.")
                if not _is_about_a_frame(error):
                    raise error
        return messages


def _is_about_a_frame(error: PunchlistError) -> bool:
    if isinstance(error, LimitExceeded):
        return error.limit in ("depth", "batch")
    return isinstance(error, ParseError | InvalidRequest)


def _unreadable(method: str, rejection: Rejection) -> RequestRefused:
    kind = "invalid_params" if rejection.kind == "parse_error" else rejection.kind
    message = f"This {method} was not sent, because the daemon can't read it. {rejection.message}"
    return build_error(ERRORS[kind].code, message, {"kind": kind, **(rejection.data or {})})


def _too_long(method: str, value: int, maximum: int) -> RequestRefused:
    message = (
        f"This {method} is {value:,} bytes long, and the daemon takes at most {maximum:,}; nothing was sent. "
        "Split the call, or shorten its texts."
    )
    data = {"limit": "frame_bytes", "value": value, "maximum": maximum}
    return build_error(ERRORS["limit_exceeded"].code, message, {"kind": "limit_exceeded", **data})


def error_of(reply: Reply) -> RequestRefused | None:
    """Return the error in a reply, or None if the reply has a result."""
    if reply.error is UNSET:
        return None
    return build_error(reply.error.code, reply.error.message, reply.error.data)


def decode(raw: msgspec.Raw, type_: type[T]) -> T:
    """Decode a result or a notification's parameters.

    Raises:
        ProtocolError: The data doesn't match the type.
    """
    try:
        return msgspec.json.decode(raw, type=type_)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"The daemon's {type_.__name__} has an unknown shape: {error}") from error


def result_of(reply: Reply, type_: type[T]) -> T:
    """Return the typed result in a reply.

    Raises:
        RequestRefused: The daemon rejected the call.
        ProtocolError: The result does not match the type.
    """
    if reply.result is UNSET:
        raise error_of(reply) or ProtocolError("The daemon sent an empty reply.")
    return decode(reply.result, type_)


def build_releases(request: Request, result: object) -> list[Request]:
    """Return the requests that release the tasks of a claim whose caller no longer waits for it."""
    if request.method != "task.claim":
        return []
    claim = msgspec.convert(msgspec.to_builtins(request.params), TaskClaim)
    result = msgspec.convert(result, ClaimResult)
    tasks = result.tasks or (() if result.task is None else (result.task,))
    fences = result.fences or (result.fence,)
    return [
        Request.of(
            "task.release",
            TaskRelease(conversation=claim.conversation, task=task.id, owner=claim.owner, fence=fence),
        )
        for task, fence in zip(tasks, fences, strict=False)
    ]


class Retry:
    """Retry policy of one call.

    Args:
        deadline: When to stop retrying, in seconds on the caller's clock.
        repeatable: Whether the call may be sent again after the connection was lost.
    """

    def __init__(self, deadline: float, *, repeatable: bool = True) -> None:
        self._deadline = deadline
        self._repeatable = repeatable
        self._attempt = 0

    def pause_s(self, error: PunchlistError, now: float) -> float:
        """Return the seconds to wait before the next retry.

        Raises:
            PunchlistError: `error` itself, if a retry is unsafe, pointless or too late.
        """
        pause = PAUSES_S[min(self._attempt, len(PAUSES_S) - 1)]
        if not self._repeatable or not is_transient(error) or now + pause > self._deadline:
            raise error
        self._attempt += 1
        return pause


def is_transient(error: PunchlistError) -> bool:
    """Return whether a retry on a new connection may succeed."""
    if isinstance(error, DaemonUnavailable):
        return error.temporary
    if isinstance(error, ConnectionLost):
        return not error.final
    # After a disk failure the daemon exits, and the next one can report the outcome. A space, however, may be
    # unreachable for hours.
    return isinstance(error, ShuttingDown) or (isinstance(error, OutcomeUnknown) and "space" not in error.data)


class Profile:
    """Settings shared by all connections of one client."""

    def __init__(self, options: Options) -> None:
        self.target = Target(options.get("socket"), options.get("data_dir"), autostart=options.get("autostart"))
        self.timeout_s = options.get("timeout_s", TIMEOUT_S)
        info = ClientInfo(name=options.get("name", "python"), version=__version__)
        self.hello = Request.of(
            "daemon.hello", Hello(client=info, user=options.get("user"), confirm=options.get("confirm", False))
        )
