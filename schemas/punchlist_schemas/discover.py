"""Builds the OpenRPC document that `rpc.discover` returns, from the tables that drive the daemon."""

import inspect
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import msgspec

from punchlist_schemas.errors import ERRORS
from punchlist_schemas.events import KnownEvent
from punchlist_schemas.framing import MAX_HEADER_BYTES
from punchlist_schemas.methods import METHODS, NOTIFICATIONS, PROTOCOL, Method
from punchlist_schemas.results import Limits

_DESCRIPTION = """\
Task lists for AI agents over JSON-RPC 2.0 on a Unix socket. Parameters are passed by name; unknown \
names are rejected. Every error has `data.kind`. Times are milliseconds since 1970 UTC. A result of a \
mutation means that the change is durable.\
"""

_FRAMING = {
    "lines": "First byte { or [: one JSON text per line, ended by LF; a CR before it is tolerated.",
    "headers": (
        "First byte C: Content-Length: N, CR LF, CR LF and N bytes of JSON. Names of headers are case-insensitive. "
        f"Other headers are ignored. A header block has at most {MAX_HEADER_BYTES} bytes."
    ),
    "json": (
        "Rejected with parse_error: invalid UTF-8, a byte order mark, lone surrogates, NaN, Infinity, numbers that are "
        "not finite, integers beyond 2^53 in magnitude, duplicate names in an object."
    ),
    "ids": "A string of up to 128 characters, or an integer within 2^53 in magnitude.",
    "params": "An object; an empty array and null count as no parameters.",
}

_PUSHES = {
    "events": "To subscribers with view `events`: the events of whole calls, in order.",
    "list": "To subscribers with view `list`: the newest list.",
    "rows": "To subscribers with view `rows`: the changed tasks, in pieces.",
    "board": "To subscribers with view `board`: summary of a changed conversation.",
    "presence": "To subscribers with view `presence`: the conversation's current subscribers.",
    "end": "A subscription ended, and why.",
}


@cache
def encode_openrpc() -> bytes:
    """Return the OpenRPC document as compact JSON."""
    return msgspec.json.encode(build_openrpc())


def build_openrpc() -> dict[str, Any]:
    """Return the OpenRPC document."""
    inlined = [*(method.params for method in METHODS.values()), *NOTIFICATIONS.values()]
    results = [method.result for method in METHODS.values()]
    schemas = definitions([*inlined, *results], "#/components/schemas/")
    params = {kind: schemas.pop(kind.__name__) for kind in dict.fromkeys(inlined)}
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "punchlist",
            "version": f"{PROTOCOL}.0.0",
            "description": _DESCRIPTION,
            "license": {"name": "MIT"},
        },
        "methods": [_build_method(method, params[method.params]) for method in METHODS.values()],
        "components": {
            "schemas": schemas,
            "errors": {row.kind: {"code": row.code, "message": row.meaning} for row in ERRORS.values()},
        },
        "x-notifications": [
            {"name": name, "summary": _PUSHES[name], "paramStructure": "by-name", "params": _build_params(params[kind])}
            for name, kind in NOTIFICATIONS.items()
        ],
        "x-errors": error_table(),
        "x-framing": _FRAMING,
        "x-limits": msgspec.to_builtins(Limits()),
    }


def error_table() -> list[dict[str, Any]]:
    """Return the error table.

    `data` contains the names of the optional members of an error's data, in addition to `kind`.
    """
    return [msgspec.to_builtins(row) for row in ERRORS.values()]


def definitions(types: Iterable[Any], prefix: str) -> dict[str, Any]:
    """Return JSON Schemas (2020-12) of `types` and all types they refer to, by name; references begin with `prefix`."""
    _, schemas = msgspec.json.schema_components(types, ref_template=prefix + "{name}")
    if "Recorded" in schemas:
        _, events = msgspec.json.schema_components([KnownEvent], ref_template=prefix + "{name}")
        schemas |= events
        schemas["Recorded"]["properties"]["event"] = _build_event_schema(sorted(events), prefix)
    return {name: _clean(schemas[name]) for name in sorted(schemas)}


def _build_event_schema(names: list[str], prefix: str) -> dict[str, Any]:
    tags = [name for name in names if name in _TAGS]
    unknown = {
        "description": "An event of a later version of this contract: store and show it unchanged.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "not": {"enum": tags}}},
    }
    return {"anyOf": [{"$ref": prefix + tag} for tag in tags] + [unknown]}


_TAGS = frozenset(kind.__name__ for kind in KnownEvent.__args__)


def _clean(schema: Any) -> Any:
    """Remove the indentation of docstrings, and `discriminator`, which only OpenAPI defines."""
    if isinstance(schema, list):
        return [_clean(item) for item in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast(dict[str, Any], schema)
    if isinstance(members.get("description"), str):
        members["description"] = inspect.cleandoc(members["description"])
    return {name: _clean(value) for name, value in members.items() if name != "discriminator"}


def _build_method(method: Method, params: dict[str, Any]) -> dict[str, Any]:
    result = method.result.__name__
    return {
        "name": method.name,
        "summary": method.summary,
        "description": params["description"],
        "tags": [{"name": method.kind}],
        "paramStructure": "by-name",
        "params": _build_params(params),
        "result": {"name": result, "schema": {"$ref": f"#/components/schemas/{result}"}},
    }


def _build_params(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    # The specification requires this order, for callers that pass parameters by position.
    names = sorted(schema["properties"], key=lambda name: name not in required)
    return [{"name": name, "required": name in required, "schema": schema["properties"][name]} for name in names]
