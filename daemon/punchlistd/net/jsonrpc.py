"""Strict JSON-RPC 2.0, server side: decodes frames into calls and encodes responses.

An ID is a string of up to 128 characters or an integer within ±2^53. Members outside the specification are rejected.
No function in this module raises an exception because of a peer's data.
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
"""ID of a response to a request whose ID is unknown."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A request, or a notification if `id` is None. A notification is executed and never answered.

    `id` is raw JSON, `params` a decoded object. A non-empty array is kept as a list, and is rejected later, when it is
    converted to the method's params.
    """

    id: bytes | None
    method: str
    params: dict[str, Any] | list[Any]


@final
class Malformed(msgspec.Struct, frozen=True, gc=False):
    """An invalid request and the rejection to send. `id` is `NULL` if unknown."""

    id: bytes
    rejection: Rejection


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_PLAIN = frozenset({str, bool})
"""Types whose values all JSON parsers read in the same way. Numbers are checked individually."""
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
_CALL_MEMBERS = len(_MEMBERS)
_ABSENT: dict[str, Any] = {}


def decode(frame: bytes, limits: Limits) -> Call | Malformed | list[Call | Malformed]:
    """Decode one frame. A list is a batch, which gets one array as its response."""
    return decode_plain(frame) or decode_strictly(frame, limits)


def decode_plain(frame: bytes) -> Call | None:
    """Decode a frame that all JSON parsers read in the same way, which is true of nearly all frames; else return None.

    The caller must then use `decode_strictly`. If the frame has exactly as many colons as members, no name occurs twice
    and `params` contains no object.
    """
    try:
        value = _decode(frame)
        id, method, params = value["id"], value["method"], value["params"]
        if (
            frame.count(b":") != _CALL_MEMBERS + len(params)
            or len(value) != _CALL_MEMBERS
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
    except Exception:  # noqa: BLE001 - decode_strictly reports any error
        return None


def decode_strictly(frame: bytes, limits: Limits) -> Call | Malformed | list[Call | Malformed]:
    """Decode any frame, strictly following the specification."""
    try:
        return _parse_frame(strict_json.parse(frame, limits.depth), limits)
    except strict_json.Refused as refused:
        return Malformed(NULL, refused.rejection)


def decode_in_slices(frame: bytes, limits: Limits) -> Generator[None, None, Call | Malformed | list[Call | Malformed]]:
    """Generator form of `decode_strictly`: yields after each part of a long frame."""
    try:
        return _parse_frame((yield from strict_json.parse_in_slices(frame, limits.depth)), limits)
    except strict_json.Refused as refused:
        return Malformed(NULL, refused.rejection)


def _parse_frame(value: Any, limits: Limits) -> Call | Malformed | list[Call | Malformed]:
    if value.__class__ is dict:
        return _parse_call(value)
    if value.__class__ is list:
        return _parse_batch(value, limits.batch)
    return _invalid("A frame must hold a request object or an array of them.")


def invalid_params(method: Method, error: msgspec.ValidationError) -> Rejection:
    from punchlistd.net import param_errors  # noqa: PLC0415 - slow to import, only rejections need it

    return param_errors.invalid_params(method.params, str(error))


def unknown_method(name: str) -> Rejection:
    from punchlistd.net import param_errors  # noqa: PLC0415 - slow to import, only rejections need it

    return param_errors.unknown_method(name)


def response(id: bytes, outcome: bytes | Rejection) -> bytes:
    """Encode the response to a request: a result as JSON, or an error. `id` is the request's raw JSON ID."""
    if type(outcome) is Rejection:
        return failure(id, outcome)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, outcome)


def response_in_pieces(id: bytes, result: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Encode a response in pieces. Only the first and last pieces of the result are copied."""
    first, *rest, last = result
    return (b'{"jsonrpc":"2.0","id":%b,"result":%b' % (id, first), *rest, b"%b}" % last)


def failure(id: bytes, rejection: Rejection) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, _encode(error_object(rejection)))


def _parse_batch(values: list[Any], maximum: int) -> Malformed | list[Call | Malformed]:
    if not values:
        return _invalid("A batch must hold at least one request.")
    if len(values) > maximum:
        data = {"limit": "batch", "value": len(values), "maximum": maximum}
        return Malformed(NULL, Rejection("limit_exceeded", f"A batch may hold at most {maximum} calls.", data))
    return [
        _parse_call(cast(dict[str, Any], value))
        if type(value) is dict
        else _invalid("Each element of a batch must be a request object.")
        for value in values
    ]


def _parse_call(value: dict[str, Any]) -> Call | Malformed:
    method: Any = value.get("method")
    params: Any = value.get("params", _ABSENT)
    id: Any = value.get("id", _ABSENT)
    if (
        len(value) != 2 + (params is not _ABSENT) + (id is not _ABSENT)
        or value.get("jsonrpc") != "2.0"
        or method.__class__ is not str
        or (params.__class__ is not dict and params.__class__ is not list)
    ):
        return _diagnose(value)
    if id.__class__ is int:
        return Call(b"%d" % id, method, params or {})
    if id is _ABSENT:
        return Call(None, method, params or {})
    return Call(_encode(id), method, params or {}) if _is_id(id) else _diagnose(value)


def _is_id(value: Any) -> bool:
    return type(value) is int or (type(value) is str and len(value) <= MAX_ID_CHARACTERS)


def _invalid(message: str, id: bytes = NULL) -> Malformed:
    return Malformed(id, Rejection("invalid_request", message))


def _diagnose(value: dict[str, Any]) -> Call | Malformed:
    """Return a Malformed with the reason why an object is not a valid request. An object with null `params` may still
    be a call."""
    if value.get("params", _ABSENT) is None:
        return _parse_call({name: member for name, member in value.items() if name != "params"})
    identity = value.get("id")
    id = _encode(identity) if _is_id(identity) else NULL
    if "id" in value and id == NULL:
        return _invalid(f"id must be an integer or a string of up to {MAX_ID_CHARACTERS} characters.")
    if not _MEMBERS.issuperset(value):
        return _invalid("A request has only the members jsonrpc, id, method and params.", id)
    if value.get("jsonrpc") != "2.0":
        return _invalid('jsonrpc must be "2.0".', id)
    if type(value.get("method")) is not str:
        return _invalid("method must be a string.", id)
    return _invalid("params must be an object.", id)
