"""The JetStream stream of a space: its subjects, required settings, and creation.

Members post to `pl.SPACE.log.LIST`. The server republishes each stored post as `pl.SPACE.new.LIST`, with the post's
position and that of the list's previous post. Barriers are stored under `bar` and expire after a second. Heartbeats
(`alive`) and requests for turns (`want`) are not stored.
"""

import time
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from punchlistd.replication.adapters.nats.link import Answer, Connection
from punchlistd.replication.adapters.nats.refusals import Refused
from punchlistd.replication.port import Forbidden, Garbled, OutcomeUnknown, Posted, SharedLogError, Unreachable
from punchlistd.replication.posts.foreign import MAX_NONCE, decode, number

_NOT_FOUND = 10059
_NO_JETSTREAM = frozenset({10039, 10076})
_TOO_FEW = frozenset({10005, 10074})
_IN_USE = 10058


class Subjects(NamedTuple):
    """Prefixes of a space's subjects, and the name of its stream."""

    stream: str
    log: str
    new: str
    bar: str
    alive: str
    want: str

    @classmethod
    def of(cls, space: str) -> "Subjects":
        return cls(f"punch-{space}", *(f"pl.{space}.{part}." for part in cls._fields[1:]))


def encode_name(list: str) -> str:
    return list.replace(".", "=")


def parse_list(subject: str, part: str) -> str:
    """Return the id of the list whose messages have this subject, which consists of `part` and one word.

    Raises:
        Garbled: The subject has another form. Members can publish to it, but it belongs to no list.
    """
    name = subject.removeprefix(part)
    if name == subject or not name or "." in name:
        raise Garbled(f"{subject[:200]!r} is not a subject of a list.")
    return name.replace("=", ".")


EXPECTED = "Nats-Expected-Last-Subject-Sequence"


def read_post(list: str, answer: Answer) -> Posted:
    """Read a stored message. Members can omit or forge any header except those that the server adds.

    Raises:
        Garbled: The message has no position.
    """
    headers = answer.headers
    position, before = number(headers.get("Nats-Sequence")), number(headers.get(EXPECTED))
    if not position:
        raise Garbled("The server sent a post without a position.")
    fault = ""
    if before is None:
        fault = f"its header {EXPECTED} is " + ("not a position" if EXPECTED in headers else "missing")
    elif before >= position:
        fault = f"its header {EXPECTED} names a later position, {before}"
    nonce = headers.get("Nats-Msg-Id", "")[:MAX_NONCE]
    at = round((parse_time(headers.get("Nats-Time-Stamp", "")) or 0) * 1000)
    return Posted(list, position, 0 if fault else before or 0, nonce, b"" if fault else answer.data, at, fault)


class Error(msgspec.Struct, frozen=True):
    """Error in a JetStream reply."""

    err_code: int = 0
    description: str = ""


class Reply(msgspec.Struct, frozen=True):
    """A JetStream reply, with either an error or the members of a subclass."""

    error: Error | None = None


class Stored(Reply, frozen=True):
    """Reply to a message that JetStream should store."""

    seq: int = 0


class Removed(Reply, frozen=True):
    """Reply to a request to remove a message."""

    success: bool = False


class _Message(msgspec.Struct, frozen=True):
    seq: int


class Got(Reply, frozen=True):
    """Reply to a request for a message."""

    message: _Message | None = None


class _State(msgspec.Struct, frozen=True):
    subjects: dict[str, int] | None = None


class Info(Reply, frozen=True):
    """Reply to a request for the stream's state. `total` is the number of the stream's subjects."""

    config: dict[str, Any] = {}
    state: _State = _State()
    created: str = ""
    ts: str = ""
    total: int = 0


R = TypeVar("R", bound=Reply)


def build_settings(space: str, replicas: int) -> dict[str, Any]:
    names = Subjects.of(space)
    return {
        "name": names.stream,
        "description": f"punchlist: the shared lists of the space {space}",
        "subjects": [f"{names.log}>", f"{names.bar}>"],
        "retention": "limits",
        "discard": "new",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msg_size": -1,
        "max_msgs_per_subject": -1,
        "allow_direct": True,
        "allow_msg_ttl": True,
        "duplicate_window": 120_000_000_000,
        "republish": {"src": f"{names.log}>", "dest": f"{names.new}>"},
    }


_ADJUSTABLE = frozenset({"description", "num_replicas", "duplicate_window"})
"""Settings that an operator may change without losing posts."""


class Found(NamedTuple):
    """An existing stream. `replicas` is 0 if unknown. `skew_s` is how far the server's clock is ahead, in seconds."""

    replicas: int
    created: str
    skew_s: float


async def send_request(connection: Connection, what: str, reply: type[R], body: dict[str, Any] | None = None) -> R:
    """Send a request to the JetStream API. The reply may contain an error.

    Raises:
        Unreachable, OutcomeUnknown, Forbidden: Like `Connection.request`.
        Garbled: The reply can't be parsed.
    """
    answer = await connection.request(f"$JS.API.{what}", b"" if body is None else msgspec.json.encode(body))
    return decode(answer.data, reply)


def decode_stored(data: bytes) -> Stored:
    """Decode the reply to a message that JetStream should store.

    Raises:
        Garbled: The reply contains neither an error nor a position.
    """
    reply = decode(data, Stored)
    if reply.error is None and reply.seq < 1:
        raise Garbled("The server of the space did not report whether it stored a message.")
    return reply


async def accepts_posts(connection: Connection, barrier: str) -> bool:
    """Return True if the servers accept posts. Servers with a full disk still answer all other requests.

    `barrier` is the subject of the message to store as a test.

    Raises:
        Forbidden: This member may not post.
    """
    try:
        return decode_stored((await connection.request(barrier, b"", {"Nats-TTL": "1s"})).data).error is None
    except (Unreachable, OutcomeUnknown):
        return False


async def find_stream(connection: Connection, space: str) -> Found:
    """Find the stream of a space and check its settings.

    Raises:
        Refused: The stream doesn't exist, belongs to another program, may lose posts, or can't be checked now.
    """
    names = Subjects.of(space)
    sent_at = time.time()
    try:
        answer = await send_request(connection, f"STREAM.INFO.{names.stream}", Info)
    except Forbidden:
        raise Refused("no_permission", where=connection.url, space=space) from None
    except OutcomeUnknown:
        raise Refused("no_quorum", where=connection.url) from None
    except Garbled as error:
        raise Refused("unreachable", where=connection.url, cause=str(error).rstrip(".")) from None
    except SharedLogError:
        raise _build_no_reply(connection) from None
    middle = (sent_at + time.time()) / 2
    if answer.error is not None:
        code = answer.error.err_code
        kind = "no_stream" if code == _NOT_FOUND else "no_jetstream" if code in _NO_JETSTREAM else "no_quorum"
        raise Refused(kind, where=connection.url, space=space)
    wrong = find_differences(answer.config, space)
    if "subjects" in wrong:
        raise Refused("name_taken", where=connection.url, stream=names.stream, cause=wrong["subjects"])
    if wrong:
        cause = ", ".join(f"{name} {how}" for name, how in sorted(wrong.items()))
        raise Refused("stream_changed", where=connection.url, space=space, stream=names.stream, cause=cause)
    replicas, now = answer.config.get("num_replicas"), parse_time(answer.ts)
    return Found(replicas if isinstance(replicas, int) else 0, answer.created, 0.0 if now is None else now - middle)


async def create_stream(connection: Connection, space: str, replicas: int) -> None:
    """Create the stream of a space. Does nothing if it exists with the same settings.

    Raises:
        Refused: The stream can't be created.
    """
    stream = Subjects.of(space).stream
    try:
        answer = await send_request(connection, f"STREAM.CREATE.{stream}", Reply, build_settings(space, replicas))
    except Forbidden:
        raise Refused("may_not_make", where=connection.url, space=space) from None
    except OutcomeUnknown:
        raise Refused("no_quorum", where=connection.url) from None
    except SharedLogError:
        raise _build_no_reply(connection) from None
    if answer.error is None:
        return
    code = answer.error.err_code
    if code in _TOO_FEW:
        raise Refused("too_few_servers", where=connection.url, replicas=replicas)
    if code == _IN_USE:
        raise Refused("name_taken", where=connection.url, stream=stream, cause="it has other settings")
    if code in _NO_JETSTREAM:
        raise Refused("no_jetstream", where=connection.url)
    raise Refused("no_quorum", where=connection.url)


def _build_no_reply(connection: Connection) -> Refused:
    if connection.ended.is_set():
        return Refused("unreachable", where=connection.url, cause=connection.why)
    return Refused("no_jetstream", where=connection.url)


def find_differences(config: dict[str, Any], space: str) -> dict[str, str]:
    wrong = {
        name: f"is {config.get(name)!r}"
        for name, value in build_settings(space, 1).items()
        if name not in _ADJUSTABLE and config.get(name) != value
    }
    wrong |= {name: "is set" for name in ("mirror", "sources", "sealed", "subject_transform") if config.get(name)}
    return wrong


def parse_time(stamp: str) -> float | None:
    """Convert a server timestamp to seconds since 1970, with microseconds. Return None if it is invalid."""
    whole, _, rest = stamp.removesuffix("Z").partition(".")
    try:
        return datetime.fromisoformat(f"{whole}+00:00").timestamp() + int(f"{rest:0<6}"[:6]) / 1_000_000
    except (ValueError, OverflowError):
        return None
