"""The client without any input or output: what both faces share, so that they can't drift apart.

Bytes go in and come out of `Wire`; `Retry` says when a failed call is worth another try; `calls.cursor` remembers
where a subscription stands, so that it goes on after a reconnect without gap or repeat. None of them owns a socket, a
clock, a task or a lock. Above are `punchlist.clients.sync` and `punchlist.clients.aio`, which only wait.

Rules:
1. Every mutation carries a key, and a repetition carries the same one: a retry never doubles.
2. What failed is tried again only where that is safe, with growing pauses, until the call's time is over.
3. After a lost connection everything begins anew on the next one; answers to forgotten calls are dropped.
4. An event is handed out if its position is behind the last one handed out, else it is dropped as known.
5. Positions of another log are an error, never a jump.
"""

import os
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
"""Seconds before the first, second, … retry; the last one repeats."""

MAX_FRAME_BYTES = 1 << 30
"""Longest message taken from the daemon, in bytes: it is our own user's, and a long list is one line."""

_SLOW = {"daemon.backup": 86_400.0, "space.add": 120.0, "list.share": 86_400.0, "list.join": 86_400.0}
"""Methods that may take long before they answer, and for how many seconds; they are not tried again."""

_REPEATABLE_SESSION = frozenset({"daemon.hello", "rpc.discover"})


class Request(msgspec.Struct, frozen=True):
    """A call ready to be sent, as often as it takes: the key of a mutation is in its parameters.

    `patience_s` is how many seconds the daemon may wait on purpose before it answers.
    """

    method: str
    params: Params | dict[str, Any]
    repeatable: bool
    patience_s: float = 0.0

    @classmethod
    def of(cls, method: str, params: Params) -> "Request":
        """The request for a typed call. A mutation without a key gets a fresh one."""
        if isinstance(params, Mutation) and params.key is None:
            params = msgspec.structs.replace(params, key=new_key())
        return cls(method, params, _is_repeatable(method), _patience_s(method, msgspec.structs.asdict(params)))

    @classmethod
    def raw(cls, method: str, params: dict[str, Any]) -> "Request":
        """The request for an untyped call; it gets a key likewise, if the table knows the method as a mutation."""
        row = METHODS.get(method)
        if row is not None and row.kind == "write" and params.get("key") is None:
            params = {**params, "key": new_key()}
        return cls(method, params, _is_repeatable(method), _patience_s(method, params))


def _patience_s(method: str, params: dict[str, Any]) -> float:
    if params.get("min_version") is not None:
        return REACHED_S
    waiting = params.get("timeout_ms", params.get("wait_ms"))
    return waiting / 1000 if isinstance(waiting, int) else _SLOW.get(method, 0.0)


def new_key() -> str:
    """A fresh idempotency key."""
    return os.urandom(16).hex()


def _is_repeatable(method: str) -> bool:
    row = METHODS.get(method)
    if row is None or method in _SLOW:
        return False
    return row.kind != "session" or method in _REPEATABLE_SESSION


class Wire:
    """One connection's side of the protocol: numbers requests, cuts the stream into messages."""

    def __init__(self) -> None:
        self._last_id = 0
        self._framer = Framer(MAX_FRAME_BYTES)
        self._framer.kind = "lines"
        self._limits = Limits()

    def greet(self, target: Target, reply: Reply) -> HelloResult:
        """Take the answer to the introduction, and keep to the limits that it tells. An older daemon tells no lock.

        Raises:
            ProtocolError: The daemon speaks another version of the contract.
            WrongDataDirectory: It keeps its lists elsewhere than this client means them to be.
        """
        hello = result_of(reply, HelloResult)
        if hello.protocol != PROTOCOL:
            raise ProtocolError(
                f"The daemon (punchlistd {hello.version}) speaks version {hello.protocol} of the protocol, "
                f"this library version {PROTOCOL}: restart the older one after an upgrade."
            )
        self._limits = hello.limits
        if hello.lock is not None:
            target.check(hello.lock.device, hello.lock.inode)
        return hello

    def send(self, request: Request) -> tuple[int, bytes]:
        """The id that the answer will carry, and the bytes to send.

        A request that the daemon could not read is refused here, by the daemon's own rules: the daemon would answer
        it without an id, or hang up, and so fail other calls of the connection. Nothing is sent then.

        Raises:
            LimitExceeded: It is longer, or nested deeper, than the daemon takes.
            InvalidParams: An integer lies beyond ±2^53, a number is NaN or infinite, a text holds half of a surrogate
                pair, or a name occurs twice.
        """
        self._last_id += 1
        try:
            payload = jsonrpc.request(self._last_id, request.method, request.params)
            if len(payload) > self._limits.frame_bytes:
                raise _too_long(request.method, len(payload), self._limits.frame_bytes)
            for _ in strict_json.parsing(payload, self._limits.depth):
                pass
            if b"null" in payload:  # NaN, Infinity and None alike
                strict_json.check_numbers(msgspec.to_builtins(request.params))
        except strict_json.Refused as refused:
            raise _unreadable(request.method, refused.rejection) from None
        except UnicodeEncodeError:
            raise _unreadable(
                request.method, Rejection("parse_error", "A text holds half of a surrogate pair.")
            ) from None
        except RecursionError:
            raise _unreadable(request.method, strict_json.too_deep(self._limits.depth)) from None
        return self._last_id, self._framer.encode(payload)

    def cancel(self, request_id: int) -> bytes:
        """The bytes that give up a waiting request. Its answer, if it still comes, belongs to nobody."""
        self._last_id += 1
        return self._framer.encode(jsonrpc.request(self._last_id, "rpc.cancel", {"id": request_id}))

    def receive(self, data: bytes) -> list[Reply | Notice]:
        """What is complete after these bytes.

        An answer without an id is to one of our frames that the daemon could not read.

        Raises:
            ProtocolError: The stream is not the contract's.
            RequestRefused: The daemon refuses the connection as a whole.
        """
        try:
            messages = [jsonrpc.decode_message(frame) for frame in self._framer.feed(data)]
        except (FramingError, ValueError) as error:
            raise ProtocolError(f"The daemon sent something that is no message of this protocol: {error}") from error
        for message in messages:
            if isinstance(message, Reply) and message.id is None:
                error = error_of(message) or ProtocolError("The daemon answered a call that nobody made.")
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
        f"This {method} is {value:,} bytes long and the daemon takes {maximum:,} at once, so nothing was sent: "
        "make several calls of it, or shorten its texts."
    )
    data = {"limit": "frame_bytes", "value": value, "maximum": maximum}
    return build_error(ERRORS["limit_exceeded"].code, message, {"kind": "limit_exceeded", **data})


def error_of(reply: Reply) -> RequestRefused | None:
    """The refusal in an answer, or None if it is a result."""
    if reply.error is UNSET:
        return None
    return build_error(reply.error.code, reply.error.message, reply.error.data)


def decode(raw: msgspec.Raw, type_: type[T]) -> T:
    """A result or a notification's parameters as a typed value.

    Raises:
        ProtocolError: They have another shape.
    """
    try:
        return msgspec.json.decode(raw, type=type_)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"The daemon's {type_.__name__} has an unknown shape: {error}") from error


def result_of(reply: Reply, type_: type[T]) -> T:
    """The typed result in an answer.

    Raises:
        RequestRefused: The daemon said no.
        ProtocolError: The result has another shape.
    """
    if reply.result is UNSET:
        raise error_of(reply) or ProtocolError("The daemon sent an empty answer.")
    return decode(reply.result, type_)


def build_releases(request: Request, result: object) -> list[Request]:
    """The calls that give back what a claim got whose caller waits no more."""
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
    """Says, after each failure of one call, how long to pause before the next try, or raises the failure.

    Args:
        deadline: When to stop trying, on the caller's clock, in seconds.
        repeatable: Whether the call may be sent again after a connection was lost.
    """

    def __init__(self, deadline: float, *, repeatable: bool = True) -> None:
        self._deadline = deadline
        self._repeatable = repeatable
        self._attempt = 0

    def pause_s(self, error: PunchlistError, now: float) -> float:
        """Seconds to wait before the next try.

        Raises:
            PunchlistError: `error` itself, when trying again is not safe, does not help, or comes too late.
        """
        pause = PAUSES_S[min(self._attempt, len(PAUSES_S) - 1)]
        if not self._repeatable or not is_transient(error) or now + pause > self._deadline:
            raise error
        self._attempt += 1
        return pause


def is_transient(error: PunchlistError) -> bool:
    """Whether a new connection may get what this one could not."""
    if isinstance(error, DaemonUnavailable):
        return error.temporary
    if isinstance(error, ConnectionLost):
        return not error.final
    # A daemon whose disk failed ends, and the next one knows; a space that is away may be away for hours.
    return isinstance(error, ShuttingDown) or (isinstance(error, OutcomeUnknown) and "space" not in error.data)


class Profile:
    """What every connection of one client has in common."""

    def __init__(self, options: Options) -> None:
        self.target = Target(options.get("socket"), options.get("data_dir"), autostart=options.get("autostart"))
        self.timeout_s = options.get("timeout_s", TIMEOUT_S)
        info = ClientInfo(name=options.get("name", "python"), version=__version__)
        self.hello = Request.of(
            "daemon.hello", Hello(client=info, user=options.get("user"), confirm=options.get("confirm", False))
        )
