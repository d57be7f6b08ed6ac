"""Parses the body, query and headers of a request into the parameters of a call."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect
from starlette.requests import ClientDisconnect, Request

from punchlist_apps.common.http.guard import get_values
from punchlist_apps.common.http.problem import Refused
from punchlist_schemas import strict_json
from punchlist_schemas.methods import METHODS

MAX_BODY_BYTES = 1 << 20

_MAX_DEPTH = 30
"""Maximum nesting depth of a body. The call built from it is nested two levels deeper."""

_INTEGER = re.compile(r"-?[0-9]{1,17}")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_QUOTED_VERSION = re.compile(r'(?:W/)?"(t?)([0-9]{1,16})"')
_TASK_CONDITIONS = ("task_version", "version")
"""Parameters of a call that contain the version of its task. A call has at most one of them."""
_HEADERS = {b"idempotency-key": "key", b"if-match": "expect_version", b"x-punchlist-actor": "actor"}


async def read_body(request: Request, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Read the body of a request.

    Raises:
        Refused: The body is too long, or the client has disconnected.
    """
    content = bytearray()
    try:
        async for piece in request.stream():
            content += piece
            if len(content) > max_bytes:
                raise Refused("too_large", f"A body has at most {max_bytes:,} bytes.", limit=max_bytes)
    except ClientDisconnect:
        raise Refused("cancelled", "The client disconnected.") from None
    return bytes(content)


async def parse_body(request: Request, max_bytes: int = MAX_BODY_BYTES) -> dict[str, Any]:
    """Return the JSON object in a request's body, or an empty one if it has no body.

    Raises:
        Refused: The body is too long, has the wrong content type, isn't strict JSON, or isn't an object.
    """
    content = await read_body(request, max_bytes)
    if not content:
        return {}
    types = get_values(request.scope["headers"], b"content-type")
    if len(types) != 1 or types[0].partition(b";")[0].strip().lower() != b"application/json":
        raise Refused("content_type", "Send application/json.")
    try:
        value = strict_json.parse(content, _MAX_DEPTH)
    except strict_json.Refused as refused:
        rejection = refused.rejection
        raise Refused(rejection.kind, rejection.message, **rejection.data) from None
    if not isinstance(value, dict):
        raise Refused("invalid_request", "The body must be a JSON object.")
    return value  # pyright: ignore[reportUnknownVariableType] - the daemon checks the values


def parse_query(request: Request, method: str) -> dict[str, Any]:
    """Return the query's parameters as parameters of a call.

    Integers and booleans are converted where the method expects them; repeated names become an array.

    Raises:
        Refused: A parameter that takes one value is repeated.
    """
    field_types = _get_field_types(method)
    params: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        types = field_types.get(name, set())
        value: Any = text
        if inspect.IntType in types and _INTEGER.fullmatch(text):
            value = int(text)
        elif inspect.BoolType in types and text in _BOOLEANS:
            value = _BOOLEANS[text]
        if inspect.VarTupleType in types:
            params.setdefault(name, []).append(value)
        elif name in params:
            raise Refused("invalid_params", f"{name} may be given once.", field=name)
        else:
            params[name] = value
    return params


def parse_headers(request: Request, method: str) -> dict[str, Any]:
    """Return the parameters from the headers of a mutation: Idempotency-Key, If-Match, X-Punchlist-Actor.

    Raises:
        Refused: A header is repeated or malformed.
    """
    if METHODS[method].kind != "write":
        return {}
    params: dict[str, Any] = {}
    for header, name in _HEADERS.items():
        raw_values = get_values(request.scope["headers"], header)
        if not raw_values:
            continue
        try:
            (text,) = [value.decode() for value in raw_values]
        except ValueError:
            raise Refused("invalid_params", f"{header.decode()} must be one value in UTF-8.", field=name) from None
        if name == "expect_version":
            params |= _parse_condition(text, method)
        else:
            params[name] = text
    return params


def _parse_condition(text: str, method: str) -> dict[str, int]:
    match = _QUOTED_VERSION.fullmatch(text)
    names = _TASK_CONDITIONS if match is not None and match[1] else ("expect_version",)
    name = next((name for name in names if name in METHODS[method].params.__struct_fields__), None)
    if match is None or name is None:
        text = 'If-Match must be a version in quotes: of the list ("12") or of the task that changes ("t12").'
        raise Refused("invalid_params", text, field="If-Match")
    return {name: int(match[2])}


def merge_params(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the parameters from the path, the body or the query, and the headers.

    Raises:
        Refused: The same parameter is in more than one of these.
    """
    params: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            if name in params:
                raise Refused("invalid_params", f"{name} is already set by the path or a header.", field=name)
            params[name] = value
    return params


@cache
def _get_field_types(method: str) -> dict[str, set[type[inspect.Type]]]:
    info = inspect.type_info(METHODS[method].params)
    assert isinstance(info, inspect.StructType)
    return {field.name: _flatten(field.type) for field in info.fields}


def _flatten(type_: inspect.Type) -> set[type[inspect.Type]]:
    if isinstance(type_, inspect.UnionType):
        return set[type[inspect.Type]]().union(*map(_flatten, type_.types))
    if isinstance(type_, inspect.Metadata):
        return _flatten(type_.type)
    return {type(type_)}


def parse_version(result: bytes) -> int | None:
    """Return the `version` member of an encoded result, or None if it has none."""
    try:
        return msgspec.json.decode(result, type=_Versioned).version
    except msgspec.MsgspecError:
        return None


class _Versioned(msgspec.Struct):
    version: int
