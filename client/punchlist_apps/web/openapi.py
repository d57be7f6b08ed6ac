"""The OpenAPI 3.1 document, made from the table of routes and the method table."""

import re
from collections import Counter
from functools import cache
from typing import Any

import msgspec

from punchlist_apps.common.http.problem import HTTP_ERRORS, STATUS
from punchlist_apps.web.routes import API, ROUTES, WHO, Route
from punchlist_schemas.discover import definitions
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.methods import METHODS, PROTOCOL
from punchlist_schemas.results import BoardPush, EventsPush, PresencePush, RowsPush

_SCHEMAS = "#/components/schemas/"
_PARAMETERS = "#/components/parameters/"
_PLACED = re.compile(r"\{(\w+)\}")

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_REFUSED = {"default": {"$ref": "#/components/responses/Problem"}}

_STREAMS = {
    f"{API}/feed": (
        "The board, one list's rows and who follows it, as they change. `id` is EPOCH.BOARD.ROWS; send it as "
        "Last-Event-ID to go on.",
        ("board", "rows", "presence", "once", "after"),
    ),
    f"{API}/events": ("Every event, of one list or of all.", ("conversation", "after")),
    f"{API}/conversations/{{conversation}}/events/stream": ("Every event of one list.", ("after",)),
}

_SEED_TASK: dict[str, Any] = {
    "type": "object",
    "required": ["id", "description", "status", "sequence", "createdAt", "updatedAt", "resultSummary", "failReason"],
    "properties": {
        "id": {"type": "string"},
        "description": {"type": "string", "description": "The title, and below it the description."},
        "status": {"enum": ["pending", "in_progress", "completed", "failed"]},
        "sequence": {"type": "integer", "description": "The place in the list, from 1; moving and deleting change it."},
        "createdAt": {"type": "integer"},
        "updatedAt": {"type": "integer"},
        "resultSummary": _TEXT_OR_NULL,
        "failReason": _TEXT_OR_NULL,
        "waitsFor": {"enum": ["check", "yes"], "description": "What it waits for at its gate."},
    },
}


@cache
def document() -> bytes:
    """The document as compact JSON."""
    return msgspec.json.encode(openapi())


def openapi() -> dict[str, Any]:
    """The document as a value."""
    params = {METHODS[name].params for row in ROUTES for name in (row.method, row.many) if name}
    results = {METHODS[name].result for row in ROUTES for name in (row.method, row.many) if name}
    kinds = sorted([*params, *results, EventsPush, PresencePush, RowsPush, BoardPush], key=lambda kind: kind.__name__)
    schemas = definitions(kinds, _SCHEMAS)
    # What a call needs may come from the path, so each route says itself what its body needs.
    needed: dict[str, list[str]] = {kind.__name__: schemas[kind.__name__].pop("required", []) for kind in params}
    paths: dict[str, Any] = {}
    for row in ROUTES:
        paths.setdefault(row.path, {})[row.verb.lower()] = _operation(row, schemas, needed)
    for path, (summary, names) in _STREAMS.items():
        paths[path] = {"get": _stream(path, summary, names)}
    paths |= _others()
    parameters = _shared(paths)
    schemas["AgentTask"] = _SEED_TASK
    schemas["Problem"] = _problem()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "punchlist",
            "version": f"{PROTOCOL}.0.0",
            "description": "Task lists of this machine's user, over HTTP on the loopback. Answers are those of the "
            "contract in openrpc.json, unchanged.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "http://127.0.0.1:8322"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "parameters": dict(sorted(parameters.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": _content("A refusal.", {"$ref": _SCHEMAS + "Problem"}, "application/problem+json")
            },
        },
    }


def _shared(paths: dict[str, Any]) -> dict[str, Any]:
    """The parameters that several operations take, by name; in the operations a reference is left of each."""
    taken = [
        operation["parameters"] for path in paths.values() for operation in path.values() if "parameters" in operation
    ]
    uses = Counter(msgspec.json.encode(each) for parameters in taken for each in parameters)
    shared: dict[str, Any] = {}
    names: dict[bytes, str] = {}
    alike = Counter[str]()
    for parameters in taken:
        for place, each in enumerate(parameters):
            if uses[text := msgspec.json.encode(each)] == 1:
                continue
            if text not in names:
                like = f"{each['in']}.{each['name']}"
                alike[like] += 1
                names[text] = like if alike[like] == 1 else f"{like}.{alike[like]}"
                shared[names[text]] = each
            parameters[place] = {"$ref": _PARAMETERS + names[text]}
    return shared


def _operation(row: Route, schemas: dict[str, Any], needed: dict[str, list[str]]) -> dict[str, Any]:
    method = METHODS[row.method]
    properties: dict[str, Any] = schemas[method.params.__name__]["properties"]
    placed = _PLACED.findall(row.path)
    operation: dict[str, Any] = {
        "operationId": f"{row.verb.lower()}:{row.path}",
        "summary": method.summary,
        "description": schemas[method.params.__name__].get("description", ""),
        "tags": [row.method.partition(".")[0]],
        "parameters": [_parameter("path", name, properties[name]) for name in placed],
        "responses": {
            str(row.status): _content("The answer.", _answer(row)),
            **_REFUSED,
        },
    }
    if row.verb in ("GET", "DELETE"):
        asked = (name for name in properties if name not in placed)
        required = needed[method.params.__name__]
        operation["parameters"] += [
            _parameter("query", name, properties[name], required=name in required) for name in asked
        ]
    else:
        described = {"description": "Without the members that the path gives."}
        operation["requestBody"] = described | _json_body(_body(row, needed))
    if method.kind == "write":
        operation["parameters"] += [
            _parameter("header", "Idempotency-Key", _TEXT),
            _parameter("header", "If-Match", {"type": "string", "description": 'A version in quotes: "12"'}),
            _parameter("header", "X-Punchlist-Actor", _TEXT),
        ]
    return operation


def _answer(row: Route) -> dict[str, Any]:
    names = [METHODS[name].result.__name__ for name in (row.method, row.many) if name]
    return _any_of([{"$ref": _SCHEMAS + name} for name in dict.fromkeys(names)])


def _body(row: Route, needed: dict[str, list[str]]) -> dict[str, Any]:
    """The parameters of a call as a body: what the path gives may not be in it, the rest is needed as ever."""
    placed = _PLACED.findall(row.path)
    found: list[dict[str, Any]] = []
    for kind in dict.fromkeys(METHODS[name].params.__name__ for name in (row.method, row.many) if name):
        also = [name for name in needed[kind] if name not in placed]
        refused = {"properties": dict.fromkeys(placed, False)} if placed else {}
        found.append({"$ref": _SCHEMAS + kind, **refused, **({"required": also} if also else {})})
    return _any_of(found)


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _parameter(place: str, name: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required or place == "path", "schema": schema}


def _content(description: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _json_body(schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _plain(name: str, summary: str, tag: str, answer: dict[str, Any], **members: Any) -> dict[str, Any]:
    """An operation that is no call of the method table, with further members of its own."""
    responses = {"200": answer, **_REFUSED}
    return {"operationId": name, "summary": summary, "tags": [tag], **members, "responses": responses}


def _stream(path: str, summary: str, names: tuple[str, ...]) -> dict[str, Any]:
    parameters = [
        *(_parameter("path", name, _TEXT) for name in _PLACED.findall(path)),
        *(_parameter("query", name, _TEXT) for name in names),
        _parameter("header", "Last-Event-ID", _TEXT),
    ]
    answer = _content("Server-sent events.", _TEXT, "text/event-stream")
    return _plain(f"get:{path}", summary, "stream", answer, parameters=parameters)


def _who() -> dict[str, Any]:
    texts = {"type": "array", "items": _TEXT}
    task = {
        "conversation": _TEXT,
        "list": {"type": "string", "description": "The short name of its list."},
        "id": _TEXT,
        "title": {"type": "string", "description": "After the titles of its parents."},
        "lease_expires_at": {"type": ["integer", "null"], "description": "When it is free, if the agent is gone."},
    }
    agent = {
        "name": _TEXT,
        "is_here": {"type": "boolean"},
        "facts": {**texts, "description": "When it came or left, its last call, where it works."},
        "tasks": {"type": "array", "items": _whole(task)},
    }
    counted = {"type": "string", "description": "How many left with nothing, in words."}
    return _whole({"agents": {"type": "array", "items": _whole(agent)}, "others": counted})


def _whole(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [*properties], "properties": properties}


def _others() -> dict[str, Any]:
    which = _parameter("query", "conversation", _TEXT)
    task = _parameter("path", "taskId", _TEXT)
    shown = {"$ref": _SCHEMAS + "AgentTask"}
    tasks = {"type": "array", "items": shown}
    done = _whole({"success": {"const": True}})
    completed = _whole({**done["properties"], "task": shown, "nextTaskId": _TEXT_OR_NULL})
    completed["properties"]["note"] = {"type": "string", "description": "What the completion still waits for."}
    summary = _json_body({"type": "object", "properties": {"resultSummary": _TEXT_OR_NULL}})
    ticket = _json_body({**_whole({"ticket": _TEXT}), "additionalProperties": False}, required=True)
    return {
        "/api/agent/tasks": {
            "get": _plain(
                "getAgentTasks", "All tasks of a list.", "agent", _content("The tasks.", tasks), parameters=[which]
            )
        },
        "/api/agent/tasks/{taskId}": {
            "delete": _plain(
                "deleteAgentTask", "Deletes a task.", "agent", _content("It is gone.", done), parameters=[task, which]
            )
        },
        "/api/agent/tasks/{taskId}/complete": {
            "post": _plain(
                "completeAgentTask",
                "Completes a task; in a serial list the next one starts.",
                "agent",
                _content("It is complete.", completed),
                parameters=[task, which],
                requestBody=summary,
            )
        },
        WHO: {
            "get": _plain(
                "getAgents",
                "Who is there, or left lately: everywhere, or in one list.",
                "agent",
                _content("Who is there.", _who()),
                description="A token for one list is shown who works in that list, without their directories.",
                parameters=[which],
            )
        },
        "/api/session": {
            "post": _plain(
                "postSession",
                "Gives a session token for a ticket, once.",
                "session",
                _content("The session.", {"type": "object"}),
                security=[],
                requestBody=ticket,
            )
        },
        f"{API}/openapi.json": {
            "get": {
                "operationId": "getDocument",
                "summary": "This document.",
                "tags": ["daemon"],
                "security": [],
                "responses": {"200": _content("The document.", {"type": "object"})},
            }
        },
    }


def _problem() -> dict[str, Any]:
    return {
        "description": "Why a request was refused (RFC 9457), with the facts of its kind as further members.",
        "type": "object",
        "required": ["type", "title", "status", "detail", "kind"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"enum": sorted({*STATUS.values(), *(status for status, _ in HTTP_ERRORS.values())})},
            "detail": {"type": "string"},
            "kind": {"enum": sorted([*ERRORS, *HTTP_ERRORS])},
        },
    }
