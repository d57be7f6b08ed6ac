"""The daemon's side of JSON-RPC 2.0, strictly: bytes of one frame to calls, and answers to bytes.

An id is a string of up to 128 characters or an integer within ±2^53. Members that the specification does not know are
refused. Nothing here raises on what a peer sent.
"""

from collections.abc import Generator
from typing import Any, cast, final

import msgspec

from punchlist_schemas import strict_json
from punchlist_schemas.errors import Rejection, error_object
from punchlist_schemas.methods import Method
from punchlist_schemas.results import Limits
from punchlist_schemas.things import MAX_INTEGER

MAX_ID_CHARACTERS = 128
NULL = b"null"
"""The id of an answer to something whose id is not known."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A request, or with `id` None a notification, which is executed and never answered.

    `id` is JSON, `params` a decoded object; only an array that is not empty comes through as a list, for
    `parse_params` to refuse.
    """

    id: bytes | None
    method: str
    params: dict[str, Any] | list[Any]


@final
class Malformed(msgspec.Struct, frozen=True, gc=False):
    """Something that is no call; it is answered with `rejection`. `id` is `NULL` where it can't be known."""

    id: bytes
    rejection: Rejection


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_PLAIN = frozenset({str, bool})
"""What a member of params may be whatever its value is; of numbers some are not read alike by all."""
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
_MEMBERS_OF_A_CALL = len(_MEMBERS)
_NOT_GIVEN: dict[str, Any] = {}


def decode(frame: bytes, limits: Limits) -> Call | Malformed | list[Call | Malformed]:
    """Decode one frame. A list is a batch, which one array answers."""
    return plain_call(frame) or decode_strictly(frame, limits)


def plain_call(frame: bytes) -> Call | None:
    """Decode a frame that all JSON readers understand alike, as nearly all are. None means: decode it strictly.

    As many colons as members means that no name stands twice and that no object stands in `params`.
    """
    try:
        value = _decode(frame)
        id, method, params = value["id"], value["method"], value["params"]
        if (
            frame.count(b":") != _MEMBERS_OF_A_CALL + len(params)
            or len(value) != _MEMBERS_OF_A_CALL
            or value["jsonrpc"] != "2.0"
            or method.__class__ is not str
            or params.__class__ is not dict
            or id.__class__ is not int
            or not -MAX_INTEGER <= id <= MAX_INTEGER
        ):
            return None
        if not _PLAIN.issuperset(map(type, params.values())):
            for member in params.values():
                if type(member) not in _PLAIN and (type(member) is not int or abs(member) > MAX_INTEGER):
                    return None
        return Call(b"%d" % id, method, params) if frame.isascii() or frame.decode() else None
    except Exception:  # noqa: BLE001 - whatever it is, the strict reading says what is wrong
        return None


def decode_strictly(frame: bytes, limits: Limits) -> Call | Malformed | list[Call | Malformed]:
    """Decode any frame by the letter of the specification, or return why it is rejected."""
    try:
        return _calls(strict_json.parse(frame, limits.depth), limits)
    except strict_json.Refused as refused:
        return Malformed(NULL, refused.rejection)


def decoding(frame: bytes, limits: Limits) -> Generator[None, None, Call | Malformed | list[Call | Malformed]]:
    """As `decode_strictly`, with a pause after each part of a frame that has many."""
    try:
        return _calls((yield from strict_json.parsing(frame, limits.depth)), limits)
    except strict_json.Refused as refused:
        return Malformed(NULL, refused.rejection)


def _calls(value: Any, limits: Limits) -> Call | Malformed | list[Call | Malformed]:
    if value.__class__ is dict:
        return _call(value)
    if value.__class__ is list:
        return _batch(value, limits.batch)
    return _invalid("A frame must hold a request object or an array of them.")


def invalid_params(method: Method, error: msgspec.ValidationError) -> Rejection:
    from punchlistd.net import param_errors  # noqa: PLC0415 - slow to import, only refusals need it

    return param_errors.invalid_params(method.params, str(error))


def unknown_method(name: str) -> Rejection:
    from punchlistd.net import param_errors  # noqa: PLC0415 - slow to import, only refusals need it

    return param_errors.unknown_method(name)


def response(id: bytes, outcome: bytes | Rejection) -> bytes:
    """Encode the response to the request with the raw id `id`: a result as JSON, or an error."""
    if type(outcome) is Rejection:
        return failure(id, outcome)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, outcome)


def response_in_pieces(id: bytes, result: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Encode a response in pieces; of a result, only the first and the last piece are copied."""
    first, *rest, last = result
    return (b'{"jsonrpc":"2.0","id":%b,"result":%b' % (id, first), *rest, b"%b}" % last)


def failure(id: bytes, rejection: Rejection) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, _encode(error_object(rejection)))


def _batch(values: list[Any], maximum: int) -> Malformed | list[Call | Malformed]:
    if not values:
        return _invalid("A batch must hold at least one request.")
    if len(values) > maximum:
        data = {"limit": "batch", "value": len(values), "maximum": maximum}
        return Malformed(NULL, Rejection("limit_exceeded", f"A batch may hold at most {maximum} calls.", data))
    return [
        _call(cast(dict[str, Any], value))
        if type(value) is dict
        else _invalid("Each element of a batch must be a request object.")
        for value in values
    ]


def _call(value: dict[str, Any]) -> Call | Malformed:
    method: Any = value.get("method")
    params: Any = value.get("params", _NOT_GIVEN)
    id: Any = value.get("id", _NOT_GIVEN)
    if (
        len(value) != 2 + (params is not _NOT_GIVEN) + (id is not _NOT_GIVEN)
        or value.get("jsonrpc") != "2.0"
        or method.__class__ is not str
        or (params.__class__ is not dict and params.__class__ is not list)
    ):
        return _diagnosed(value)
    if id.__class__ is int:
        return Call(b"%d" % id, method, params or {})
    if id is _NOT_GIVEN:
        return Call(None, method, params or {})
    return Call(_encode(id), method, params or {}) if _is_id(id) else _diagnosed(value)


def _is_id(value: Any) -> bool:
    return type(value) is int or (type(value) is str and len(value) <= MAX_ID_CHARACTERS)


def _invalid(message: str, id: bytes = NULL) -> Malformed:
    return Malformed(id, Rejection("invalid_request", message))


def _diagnosed(value: dict[str, Any]) -> Call | Malformed:
    """Why an object is no request, answered under its id where that is one; one whose params are null may be."""
    if value.get("params", _NOT_GIVEN) is None:
        return _call({name: member for name, member in value.items() if name != "params"})
    identity = value.get("id")
    id = _encode(identity) if _is_id(identity) else NULL
    if "id" in value and id == NULL:
        return _invalid(f"id must be an integer or a string of up to {MAX_ID_CHARACTERS} characters.")
    if not _MEMBERS.issuperset(value):
        return _invalid("A request has no members but jsonrpc, id, method and params.", id)
    if value.get("jsonrpc") != "2.0":
        return _invalid('jsonrpc must be "2.0".', id)
    if type(value.get("method")) is not str:
        return _invalid("method must be a string.", id)
    return _invalid("params must be an object.", id)
