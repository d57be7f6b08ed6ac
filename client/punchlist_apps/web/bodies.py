"""What a request says: its body, query and headers, as the parameters of a call."""

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

MOST_BYTES = 1 << 20
"""How long a body may be, in bytes."""

_DEPTH = 30
"""How deep a body may be nested: the call that it becomes is two deeper."""

_WHOLE = re.compile(r"-?[0-9]{1,17}")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_QUOTED = re.compile(r'(?:W/)?"([0-9]{1,16})"')


async def data(request: Request, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a request's body.

    Raises:
        Refused: It is too long.
    """
    found = bytearray()
    try:
        async for piece in request.stream():
            found += piece
            if len(found) > most_bytes:
                raise Refused("too_large", f"A body has at most {most_bytes:,} bytes.", limit=most_bytes)
    except ClientDisconnect:
        raise Refused("cancelled", "The request was given up.") from None
    return bytes(found)


async def body(request: Request, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The JSON object that a request brings; without a body an empty one.

    Raises:
        Refused: It is too long, of another type, no JSON that every reader takes for the same, or no object.
    """
    found = await data(request, most_bytes)
    if not found:
        return {}
    kinds = get_values(request.scope["headers"], b"content-type")
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
        raise Refused("content_type", "Send application/json.")
    try:
        value = strict_json.parse(found, _DEPTH)
    except strict_json.Refused as refused:
        rejection = refused.rejection
        raise Refused(rejection.kind, rejection.message, **rejection.data) from None
    if not isinstance(value, dict):
        raise Refused("invalid_request", "The body must be a JSON object.")
    return value  # pyright: ignore[reportUnknownVariableType] - whose values the daemon checks


def query(request: Request, method: str) -> dict[str, Any]:
    """The query as parameters of a call: numbers and truths by the types of the call, a name given twice as an array.

    Raises:
        Refused: A name that takes one value is there twice.
    """
    kinds = _kinds(method)
    found: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        kind = kinds.get(name, set())
        value: Any = text
        if inspect.IntType in kind and _WHOLE.fullmatch(text):
            value = int(text)
        elif inspect.BoolType in kind and text in _TRUTH:
            value = _TRUTH[text]
        if inspect.VarTupleType in kind:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise Refused("invalid_params", f"{name} may be given once.", field=name)
        else:
            found[name] = value
    return found


def conditions(request: Request, method: str) -> dict[str, Any]:
    """What the headers of a mutation say: Idempotency-Key, If-Match, X-Punchlist-Actor.

    Raises:
        Refused: One of them is there twice or can't be read.
    """
    if METHODS[method].kind != "write":
        return {}
    headers = request.scope["headers"]
    found: dict[str, Any] = {}
    for header, name in _CONDITIONS.items():
        given = get_values(headers, header)
        if not given:
            continue
        try:
            (text,) = [value.decode() for value in given]
        except ValueError:
            raise Refused("invalid_params", f"{header.decode()} is one text in UTF-8.", field=name) from None
        if name == "expect_version":
            matched = _QUOTED.fullmatch(text)
            if matched is None:
                raise Refused("invalid_params", 'If-Match is the version in quotes: "12".', field=name)
            found[name] = int(matched[1])
        else:
            found[name] = text
    return found


_CONDITIONS = {b"idempotency-key": "key", b"if-match": "expect_version", b"x-punchlist-actor": "actor"}


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from several places of a request.

    Raises:
        Refused: Two of them give the same one.
    """
    params: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            if name in params:
                raise Refused("invalid_params", f"{name} is given by the path or a header already.", field=name)
            params[name] = value
    return params


@cache
def _kinds(method: str) -> dict[str, set[type[inspect.Type]]]:
    info = inspect.type_info(METHODS[method].params)
    assert isinstance(info, inspect.StructType)
    return {field.name: _types(field.type) for field in info.fields}


def _types(kind: inspect.Type) -> set[type[inspect.Type]]:
    if isinstance(kind, inspect.UnionType):
        return set[type[inspect.Type]]().union(*map(_types, kind.types))
    if isinstance(kind, inspect.Metadata):
        return _types(kind.type)
    return {type(kind)}


def version_of(result: bytes) -> int | None:
    """The version that an answer is of, None if it is of none."""
    try:
        return msgspec.json.decode(result, type=_Versioned).version
    except msgspec.MsgspecError:
        return None


class _Versioned(msgspec.Struct):
    version: int
