"""Builds the OpenAPI 3.1 document from the route table and the method table."""

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
_PATH_NAMES = re.compile(r"\{(\w+)\}")

_MATCH = 'A version in quotes: of the list ("12"), or of the task that changes ("t12")'
_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_DEFAULT_RESPONSE = {"default": {"$ref": "#/components/responses/Problem"}}

_STREAMS = {
    f"{API}/feed": (
        "The board, one list's rows and its followers, and what happened in all lists, as they change. `id` is "
        "EPOCH.BOARD.ROWS or, with happened, EPOCH.BOARD.ROWS.EVENTS; send it as Last-Event-ID to resume.",
        ("board", "rows", "presence", "happened", "once", "after"),
    ),
    f"{API}/events": ("Every event, of one list or of all.", ("conversation", "after")),
    f"{API}/conversations/{{conversation}}/events/stream": ("Every event of one list.", ("after",)),
}

_SEED_TASK: dict[str, Any] = {
    "type": "object",
    "required": ["id", "description", "status", "sequence", "createdAt", "updatedAt", "resultSummary", "failReason"],
    "properties": {
        "id": {"type": "string"},
        "description": {"type": "string", "description": "The title, then the description on further lines."},
        "status": {"enum": ["pending", "in_progress", "completed", "failed"]},
        "sequence": {"type": "integer", "description": "The place in the list, from 1; moving and deleting change it."},
        "createdAt": {"type": "integer"},
        "updatedAt": {"type": "integer"},
        "resultSummary": _TEXT_OR_NULL,
        "failReason": _TEXT_OR_NULL,
        "waitsFor": {"enum": ["check", "yes"], "description": "What the task waits for at its gate."},
    },
}


@cache
def encode_document() -> bytes:
    """Return the document as compact JSON."""
    return msgspec.json.encode(build_document())


def build_document() -> dict[str, Any]:
    params = {METHODS[name].params for row in ROUTES for name in (row.method, row.many) if name}
    results = {METHODS[name].result for row in ROUTES for name in (row.method, row.many) if name}
    kinds = sorted([*params, *results, EventsPush, PresencePush, RowsPush, BoardPush], key=lambda kind: kind.__name__)
    schemas = definitions(kinds, _SCHEMAS)
    # Required parameters may come from the path, so each route states which ones its body requires.
    needed: dict[str, list[str]] = {kind.__name__: schemas[kind.__name__].pop("required", []) for kind in params}
    paths: dict[str, Any] = {}
    for row in ROUTES:
        paths.setdefault(row.path, {})[row.verb.lower()] = _build_operation(row, schemas, needed)
    for path, (summary, names) in _STREAMS.items():
        paths[path] = {"get": _build_stream(path, summary, names)}
    paths |= _build_extras()
    parameters = _extract_parameters(paths)
    schemas["AgentTask"] = _SEED_TASK
    schemas["Problem"] = _build_problem()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "punchlist",
            "version": f"{PROTOCOL}.0.0",
            "description": "Task lists of this machine's user, over HTTP on the loopback. Results are those of the "
            "methods in openrpc.json, unchanged.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "http://127.0.0.1:8322"}],
        "security": [{"get_bearer_token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "parameters": dict(sorted(parameters.items())),
            "securitySchemes": {"get_bearer_token": {"type": "http", "scheme": "get_bearer_token"}},
            "responses": {
                "Problem": _build_response("An error.", {"$ref": _SCHEMAS + "Problem"}, "application/problem+json")
            },
        },
    }


def _extract_parameters(paths: dict[str, Any]) -> dict[str, Any]:
    """Replace parameters that several operations share with references, and return these parameters by name."""
    parameter_lists = [
        operation["parameters"] for path in paths.values() for operation in path.values() if "parameters" in operation
    ]
    uses = Counter(msgspec.json.encode(parameter) for parameters in parameter_lists for parameter in parameters)
    shared: dict[str, Any] = {}
    names: dict[bytes, str] = {}
    variants = Counter[str]()
    for parameters in parameter_lists:
        for index, parameter in enumerate(parameters):
            if uses[text := msgspec.json.encode(parameter)] == 1:
                continue
            if text not in names:
                name = f"{parameter['in']}.{parameter['name']}"
                variants[name] += 1
                names[text] = name if variants[name] == 1 else f"{name}.{variants[name]}"
                shared[names[text]] = parameter
            parameters[index] = {"$ref": _PARAMETERS + names[text]}
    return shared


def _build_operation(row: Route, schemas: dict[str, Any], needed: dict[str, list[str]]) -> dict[str, Any]:
    method = METHODS[row.method]
    properties: dict[str, Any] = schemas[method.params.__name__]["properties"]
    in_path = _PATH_NAMES.findall(row.path)
    operation: dict[str, Any] = {
        "operationId": f"{row.verb.lower()}:{row.path}",
        "summary": method.summary,
        "description": schemas[method.params.__name__].get("description", ""),
        "tags": [row.method.partition(".")[0]],
        "parameters": [_build_parameter("path", name, properties[name]) for name in in_path],
        "responses": {
            str(row.status): _build_response("The result.", _build_result(row)),
            **_DEFAULT_RESPONSE,
        },
    }
    if row.verb in ("GET", "DELETE"):
        in_query = (name for name in properties if name not in in_path)
        required = needed[method.params.__name__]
        operation["parameters"] += [
            _build_parameter("query", name, properties[name], required=name in required) for name in in_query
        ]
    else:
        description = {"description": "Without the parameters in the path."}
        operation["requestBody"] = description | _build_request_body(_build_body(row, needed))
    if method.kind == "write":
        operation["parameters"] += [
            _build_parameter("header", "Idempotency-Key", _TEXT),
            _build_parameter("header", "If-Match", {"type": "string", "description": _MATCH}),
            _build_parameter("header", "X-Punchlist-Actor", _TEXT),
        ]
    return operation


def _build_result(row: Route) -> dict[str, Any]:
    names = [METHODS[name].result.__name__ for name in (row.method, row.many) if name]
    return _any_of([{"$ref": _SCHEMAS + name} for name in dict.fromkeys(names)])


def _build_body(row: Route, needed: dict[str, list[str]]) -> dict[str, Any]:
    """Return the schema of a body, which has the params of the call except those in the path."""
    in_path = _PATH_NAMES.findall(row.path)
    schemas: list[dict[str, Any]] = []
    for kind in dict.fromkeys(METHODS[name].params.__name__ for name in (row.method, row.many) if name):
        required = [name for name in needed[kind] if name not in in_path]
        excluded = {"properties": dict.fromkeys(in_path, False)} if in_path else {}
        schemas.append({"$ref": _SCHEMAS + kind, **excluded, **({"required": required} if required else {})})
    return _any_of(schemas)


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _build_parameter(place: str, name: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required or place == "path", "schema": schema}


def _build_response(description: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _build_request_body(schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _build_extra(name: str, summary: str, tag: str, response: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return an operation that has no method in the method table."""
    responses = {"200": response, **_DEFAULT_RESPONSE}
    return {"operationId": name, "summary": summary, "tags": [tag], **members, "responses": responses}


def _build_stream(path: str, summary: str, names: tuple[str, ...]) -> dict[str, Any]:
    parameters = [
        *(_build_parameter("path", name, _TEXT) for name in _PATH_NAMES.findall(path)),
        *(_build_parameter("query", name, _TEXT) for name in names),
        _build_parameter("header", "Last-Event-ID", _TEXT),
    ]
    response = _build_response("Server-sent events.", _TEXT, "text/event-stream")
    return _build_extra(f"get:{path}", summary, "stream", response, parameters=parameters)


def _build_roster() -> dict[str, Any]:
    texts = {"type": "array", "items": _TEXT}
    task = {
        "conversation": _TEXT,
        "list": {"type": "string", "description": "The short name of its list."},
        "id": _TEXT,
        "title": {"type": "string", "description": "After the titles of its parents."},
        "lease_expires_at": {
            "type": ["integer", "null"],
            "description": "When the task becomes free, if the agent has left.",
        },
    }
    agent = {
        "name": _TEXT,
        "is_here": {"type": "boolean"},
        "facts": {**texts, "description": "When the agent connected or left, its last call, directory and host."},
        "tasks": {"type": "array", "items": _build_object(task)},
    }
    others = {"type": "string", "description": "Number of agents that left without tasks, as a sentence."}
    return _build_object({"agents": {"type": "array", "items": _build_object(agent)}, "others": others})


def _build_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [*properties], "properties": properties}


def _build_extras() -> dict[str, Any]:
    list_name = _build_parameter("query", "conversation", _TEXT)
    task = _build_parameter("path", "taskId", _TEXT)
    agent_task = {"$ref": _SCHEMAS + "AgentTask"}
    tasks = {"type": "array", "items": agent_task}
    success = _build_object({"success": {"const": True}})
    completed = _build_object({**success["properties"], "task": agent_task, "nextTaskId": _TEXT_OR_NULL})
    completed["properties"]["note"] = {
        "type": "string",
        "description": "What the task still waits for before it counts as completed.",
    }
    summary = _build_request_body({"type": "object", "properties": {"resultSummary": _TEXT_OR_NULL}})
    ticket = _build_request_body({**_build_object({"ticket": _TEXT}), "additionalProperties": False}, required=True)
    return {
        "/api/agent/tasks": {
            "get": _build_extra(
                "getAgentTasks",
                "All tasks of a list.",
                "agent",
                _build_response("The tasks.", tasks),
                parameters=[list_name],
            )
        },
        "/api/agent/tasks/{taskId}": {
            "delete": _build_extra(
                "deleteAgentTask",
                "Deletes a task.",
                "agent",
                _build_response("The task was deleted.", success),
                parameters=[task, list_name],
            )
        },
        "/api/agent/tasks/{taskId}/complete": {
            "post": _build_extra(
                "completeAgentTask",
                "Completes a task; in a serial list the next one starts.",
                "agent",
                _build_response("The task was completed.", completed),
                parameters=[task, list_name],
                requestBody=summary,
            )
        },
        WHO: {
            "get": _build_extra(
                "getAgents",
                "Lists agents and people who are connected or left recently, in all lists or in one.",
                "agent",
                _build_response("Connected and recent agents and people.", _build_roster()),
                description="A token limited to one list sees only those who work in it, without their directories.",
                parameters=[list_name],
            )
        },
        "/api/session": {
            "post": _build_extra(
                "postSession",
                "Exchanges a ticket, which works once, for a session token.",
                "session",
                _build_response("The session.", {"type": "object"}),
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
                "responses": {"200": _build_response("The document.", {"type": "object"})},
            }
        },
    }


def _build_problem() -> dict[str, Any]:
    return {
        "description": "An error (RFC 9457), with the data of its kind as further members.",
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
