"""A space as a stream of JetStream: its subjects, the settings without which it would lose posts, and how it is made.

Members post to `pl.SPACE.log.LIST`; the server repeats each stored post as `pl.SPACE.new.LIST`, with its position and
that of the list's post before it. `bar` takes the barriers of each member, which vanish after a second; `alive` and
`want` are never stored.
"""

import time
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from punchlistd.shared.nats_link import Connection
from punchlistd.shared.nats_refusals import Refused
from punchlistd.shared.port import Forbidden, OutcomeUnknown, SharedLogError, Unreachable

_NOT_FOUND = 10059
_NO_JETSTREAM = frozenset({10039, 10076})
_TOO_FEW = frozenset({10005, 10074})
_IN_USE = 10058


class Subjects(NamedTuple):
    """The subjects of a space, each to be followed by a word."""

    stream: str
    log: str
    new: str
    bar: str
    alive: str
    want: str

    @classmethod
    def of(cls, space: str) -> "Subjects":
        """Those of a space."""
        return cls(f"punch-{space}", *(f"pl.{space}.{part}." for part in cls._fields[1:]))


def word(list: str) -> str:
    """A list's id as one word of a subject."""
    return list.replace(".", "=")


def list_of(subject: str) -> str:
    """The id of the list that a subject's last word means."""
    return subject.rpartition(".")[2].replace("=", ".")


def settings(space: str, replicas: int) -> dict[str, Any]:
    """The stream of a space: every post for ever, on the disk, and repeated to whoever listens."""
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


_FREE = frozenset({"description", "num_replicas", "duplicate_window"})
"""Settings that an operator may change: no post is lost by it."""


class Found(NamedTuple):
    """A stream that is there, and the server's clock when it said so."""

    config: dict[str, Any]
    state: dict[str, Any]
    created: str
    skew_s: float


async def ask(connection: Connection, what: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Ask JetStream something; its answer, which may be an error.

    Raises:
        Unreachable, OutcomeUnknown, Forbidden: As `Connection.request`.
    """
    answer = await connection.request(f"$JS.API.{what}", b"" if body is None else msgspec.json.encode(body))
    return msgspec.json.decode(answer.data, type=dict[str, Any])


async def stores(connection: Connection, barrier: str) -> bool:
    """Whether the servers take posts: with a full disk they answer everything else. `barrier` is a subject for this.

    Raises:
        Forbidden: This member may not post.
    """
    try:
        answer = await connection.request(barrier, b"", {"Nats-TTL": "1s"})
    except (Unreachable, OutcomeUnknown):
        return False
    return "error" not in msgspec.json.decode(answer.data)


async def find(connection: Connection, space: str) -> Found:
    """The stream of a space, checked.

    Raises:
        Refused: It is not there, is another's, or may lose posts; or the server can't say so now.
    """
    names = Subjects.of(space)
    asked = time.time()
    try:
        answer = await ask(connection, f"STREAM.INFO.{names.stream}")
    except Forbidden:
        raise Refused("no_permission", where=connection.url, space=space) from None
    except OutcomeUnknown:
        raise Refused("no_quorum", where=connection.url) from None
    except SharedLogError:
        raise _nobody(connection) from None
    middle = (asked + time.time()) / 2
    if (error := answer.get("error")) is not None:
        code = error.get("err_code")
        kind = "no_stream" if code == _NOT_FOUND else "no_jetstream" if code in _NO_JETSTREAM else "no_quorum"
        raise Refused(kind, where=connection.url, space=space)
    wrong = differences(answer["config"], space)
    if "subjects" in wrong:
        raise Refused("name_taken", where=connection.url, stream=names.stream, cause=wrong["subjects"])
    if wrong:
        cause = ", ".join(f"{name} {how}" for name, how in sorted(wrong.items()))
        raise Refused("stream_changed", where=connection.url, space=space, stream=names.stream, cause=cause)
    skew = _seconds(answer["ts"]) - middle if "ts" in answer else 0.0
    return Found(answer["config"], answer.get("state", {}), answer.get("created", ""), skew)


async def make(connection: Connection, space: str, replicas: int) -> None:
    """Make the stream of a space; nothing happens where it is already there just so.

    Raises:
        Refused: It can't be made.
    """
    stream = Subjects.of(space).stream
    try:
        answer = await ask(connection, f"STREAM.CREATE.{stream}", settings(space, replicas))
    except Forbidden:
        raise Refused("may_not_make", where=connection.url, space=space) from None
    except OutcomeUnknown:
        raise Refused("no_quorum", where=connection.url) from None
    except SharedLogError:
        raise _nobody(connection) from None
    if (error := answer.get("error")) is None:
        return
    code = error.get("err_code")
    if code in _TOO_FEW:
        raise Refused("too_few_servers", where=connection.url, replicas=replicas)
    if code == _IN_USE:
        raise Refused("name_taken", where=connection.url, stream=stream, cause="it has other settings")
    if code in _NO_JETSTREAM:
        raise Refused("no_jetstream", where=connection.url)
    raise Refused("no_quorum", where=connection.url)


def _nobody(connection: Connection) -> Refused:
    """Why nobody answered: the connection ended, or the server has no JetStream."""
    if connection.ended.is_set():
        return Refused("unreachable", where=connection.url, cause=connection.why)
    return Refused("no_jetstream", where=connection.url)


def differences(config: dict[str, Any], space: str) -> dict[str, str]:
    """What a stream's settings have otherwise than a space needs: name → what stands there."""
    wrong = {
        name: f"is {config.get(name)!r}"
        for name, value in settings(space, 1).items()
        if name not in _FREE and config.get(name) != value
    }
    wrong |= {name: "is set" for name in ("mirror", "sources", "sealed", "subject_transform") if config.get(name)}
    return wrong


def _seconds(stamp: str) -> float:
    """A time as the server writes it, to the microsecond, in seconds since 1970."""
    whole, _, rest = stamp.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{rest or 0}")
