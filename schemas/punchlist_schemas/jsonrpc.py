"""JSON-RPC 2.0 envelopes, strictly: bytes of one frame to calls, and answers to bytes.

An id is a string of up to 128 characters or an integer within ±2^53. Members that the specification does not know are
refused. Nothing here raises on what a peer sent, except `decode_message`, which says so.
"""

from typing import Any, Literal, cast, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from punchlist_schemas import guard
from punchlist_schemas.errors import ErrorObject, Rejection, error_object
from punchlist_schemas.methods import Method
from punchlist_schemas.params import Params
from punchlist_schemas.results import Limits

MAX_ID_CHARACTERS = 128
NULL = b"null"
"""The id of an answer to something whose id is not known."""

NO_PARAMS = b"{}"


class Call(msgspec.Struct, frozen=True, gc=False):
    """A request, or with `id` None a notification, which is executed and never answered.

    `id` and `params` are raw JSON. `params` is an object; only an array that is not empty comes through as it is, for
    `parse_params` to refuse.
    """

    id: bytes | None
    method: str
    params: bytes = NO_PARAMS


@final
class Malformed(msgspec.Struct, frozen=True, gc=False):
    """Something that is no call; it is answered with `rejection`. `id` is `NULL` where it can't be known."""

    id: bytes
    rejection: Rejection


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The answer to a request: exactly one of `result` and `error` is set."""

    id: int | str | None
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


class Notice(msgspec.Struct, frozen=True, gc=False):
    """What the daemon sends unasked."""

    method: str
    params: Raw = Raw(NO_PARAMS)


class _Envelope(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: str
    id: Raw = Raw()
    params: Raw = Raw(NO_PARAMS)


class _Request(msgspec.Struct, frozen=True, gc=False):
    jsonrpc: str
    id: int | str
    method: str
    params: Any


class _Message(msgspec.Struct, frozen=True, gc=False):
    jsonrpc: Literal["2.0"]
    id: int | str | None | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw(NO_PARAMS)


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_elements = msgspec.json.Decoder(list[Raw]).decode
_decode_message = msgspec.json.Decoder(_Message).decode
_encode = msgspec.json.Encoder().encode
_decoders: dict[type[Params], msgspec.json.Decoder[Any]] = {}

_STRUCTURED: frozenset[object] = frozenset({dict, list})
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})


# the daemon's side


def decode(frame: bytes, limits: Limits) -> Call | Malformed | list[Call | Malformed]:
    """What one frame asks for; a list means a batch, to be answered by one array."""
    try:
        value = guard.parse(frame, limits.depth)
    except guard.Refused as refused:
        return Malformed(NULL, refused.rejection)
    if value.__class__ is dict:
        return _call(value, frame)
    if value.__class__ is list:
        return _batch(value, frame, limits.batch)
    return _invalid("A frame must hold a request object or an array of them.")


def parse_params(method: Method, raw: bytes) -> Params | Rejection:
    """The typed parameters of a call, or why they are refused: `data.field` is the path to the culprit."""
    decoder = _decoders.get(method.params)
    if decoder is None:
        decoder = _decoders[method.params] = msgspec.json.Decoder(method.params)
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        from punchlist_schemas import explain  # noqa: PLC0415 - slow to import, only refusals need it

        return explain.invalid_params(method.params, str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Rejection("parse_error", "The parameters are not JSON that we accept.")


def unknown_method(name: str) -> Rejection:
    """The refusal of a call to a method that does not exist, with the nearest one that does."""
    from punchlist_schemas import explain  # noqa: PLC0415 - slow to import, only refusals need it

    return explain.unknown_method(name)


def response(id: bytes, result: bytes) -> bytes:
    """The answer to the request with the raw id `id`; `result` is JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result)


def failure(id: bytes, rejection: Rejection) -> bytes:
    """The refusal of the request with the raw id `id`."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, _encode(error_object(rejection)))


def notification(method: str, params: bytes) -> bytes:
    """A push; `params` is a JSON object."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), params)


def batch(responses: list[bytes]) -> bytes:
    """The answer to a batch."""
    return b"[%b]" % b",".join(responses)


def _batch(values: list[Any], frame: bytes, maximum: int) -> Malformed | list[Call | Malformed]:
    if not values:
        return _invalid("A batch must hold at least one request.")
    if len(values) > maximum:
        data = {"limit": "batch", "value": len(values), "maximum": maximum}
        return Malformed(NULL, Rejection("limit_exceeded", f"A batch may hold at most {maximum} calls.", data))
    return [
        _call(cast(dict[str, Any], value), raw)
        if type(value) is dict
        else _invalid("Each element of a batch must be a request object.")
        for value, raw in zip(values, _decode_elements(frame), strict=True)
    ]


def _call(value: dict[str, Any], raw: bytes | Raw) -> Call | Malformed:
    try:
        envelope = _decode_envelope(raw)
    except msgspec.ValidationError:
        return _diagnosed(value)
    params = NO_PARAMS
    if "params" in value:
        if type(value["params"]) not in _STRUCTURED:
            return _diagnosed(value)
        if value["params"]:
            params = bytes(envelope.params)
    if "id" not in value:
        return Call(None, envelope.method, params)
    id: Any = value["id"]
    if type(id) is not int and not _is_id(id):
        return _diagnosed(value)
    return Call(bytes(envelope.id), envelope.method, params)


def _is_id(value: Any) -> bool:
    return type(value) is int or (type(value) is str and len(value) <= MAX_ID_CHARACTERS)


def _invalid(message: str, id: bytes = NULL) -> Malformed:
    return Malformed(id, Rejection("invalid_request", message))


def _diagnosed(value: dict[str, Any]) -> Malformed:
    """Why an object is no request, answered under its id where that is one."""
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


# the client's side


def request(id: int | str, method: str, params: Params | dict[str, Any]) -> bytes:
    """A request as one frame's payload."""
    return _encode(_Request("2.0", id, method, params))


def decode_message(frame: bytes) -> Reply | Notice:
    """What the daemon sent.

    Raises:
        ValueError: it is neither an answer nor a notification.
    """
    try:
        message = _decode_message(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a JSON-RPC message: {error}") from error
    if message.method is not UNSET and message.id is UNSET:
        return Notice(message.method, message.params)
    if message.id is UNSET or (message.result is UNSET) == (message.error is UNSET):
        raise ValueError("neither an answer nor a notification")
    return Reply(message.id, message.result, message.error)
