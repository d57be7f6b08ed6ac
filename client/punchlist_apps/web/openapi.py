"""The OpenAPI 3.1 document, made from the table of routes and the method table."""

import re
from collections import Counter
from functools import cache
from typing import Any

import msgspec

from punchlist_apps.common.http.problem import OWN, STATUS
from punchlist_apps.web.routes import API, ROUTES, WHO, Route
from punchlist_schemas.discover import definitions
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.methods import METHODS, PROTOCOL
from punchlist_schemas.results import BoardPush, EventsPush, PresencePush, RowsPush

_SCHEMAS = "#/components/schemas/"
_PARAMETERS = "#/components/parameters/"
_PLACED = re.compile(r"\{(\w+)\}")

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
        "resultSummary": {"type": ["string", "null"]},
        "failReason": {"type": ["string", "null"]},
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
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }
    if row.verb in ("GET", "DELETE"):
        asked = (name for name in properties if name not in placed)
        required = needed[method.params.__name__]
        operation["parameters"] += [
            _parameter("query", name, properties[name], required=name in required) for name in asked
        ]
    else:
        operation["requestBody"] = {
            "description": "Without the members that the path gives.",
            "required": False,
            "content": {"application/json": {"schema": _body(row, needed)}},
        }
    if method.kind == "write":
        operation["parameters"] += [
            _parameter("header", "Idempotency-Key", {"type": "string"}),
            _parameter("header", "If-Match", {"type": "string", "description": 'A version in quotes: "12"'}),
            _parameter("header", "X-Punchlist-Actor", {"type": "string"}),
        ]
    return operation


def _answer(row: Route) -> dict[str, Any]:
    names = [METHODS[name].result.__name__ for name in (row.method, row.many) if name]
    found = [{"$ref": _SCHEMAS + name} for name in dict.fromkeys(names)]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _body(row: Route, needed: dict[str, list[str]]) -> dict[str, Any]:
    """The parameters of a call as a body: what the path gives may not be in it, the rest is needed as ever."""
    placed = _PLACED.findall(row.path)
    found: list[dict[str, Any]] = []
    for kind in _kinds(row):
        also = [name for name in needed[kind] if name not in placed]
        found.append(
            {
                "$ref": _SCHEMAS + kind,
                **({"properties": dict.fromkeys(placed, False)} if placed else {}),
                **({"required": also} if also else {}),
            }
        )
    return found[0] if len(found) == 1 else {"anyOf": found}


def _kinds(row: Route) -> list[str]:
    return list(dict.fromkeys(METHODS[name].params.__name__ for name in (row.method, row.many) if name))


def _parameter(place: str, name: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required or place == "path", "schema": schema}


def _content(description: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _stream(path: str, summary: str, names: tuple[str, ...]) -> dict[str, Any]:
    placed = [_parameter("path", name, {"type": "string"}) for name in _PLACED.findall(path)]
    return {
        "operationId": f"get:{path}",
        "summary": summary,
        "tags": ["stream"],
        "parameters": [
            *placed,
            *(_parameter("query", name, {"type": "string"}) for name in names),
            _parameter("header", "Last-Event-ID", {"type": "string"}),
        ],
        "responses": {
            "200": _content("Server-sent events.", {"type": "string"}, "text/event-stream"),
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }


def _who() -> dict[str, Any]:
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    task = {
        "conversation": text,
        "list": {"type": "string", "description": "The short name of its list."},
        "id": text,
        "title": {"type": "string", "description": "After the titles of its parents."},
        "lease_expires_at": {"type": ["integer", "null"], "description": "When it is free, if the agent is gone."},
    }
    agent = {
        "name": text,
        "is_here": {"type": "boolean"},
        "facts": {**texts, "description": "When it came or left, its last call, where it works."},
        "tasks": {"type": "array", "items": _whole(task)},
    }
    counted = {"type": "string", "description": "How many left with nothing, in words."}
    return _whole({"agents": {"type": "array", "items": _whole(agent)}, "others": counted})


def _whole(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [*properties], "properties": properties}


def _others() -> dict[str, Any]:
    refused = {"$ref": "#/components/responses/Problem"}
    which = _parameter("query", "conversation", {"type": "string"})
    task = _parameter("path", "taskId", {"type": "string"})
    done = {"type": "object", "required": ["success"], "properties": {"success": {"const": True}}}
    shown = {"$ref": _SCHEMAS + "AgentTask"}
    completed: dict[str, Any] = {
        "type": "object",
        "required": ["success", "task", "nextTaskId"],
        "properties": {
            "success": {"const": True},
            "task": shown,
            "nextTaskId": {"type": ["string", "null"]},
            "note": {"type": "string", "description": "What the completion still waits for."},
        },
    }
    summary = {"type": "object", "properties": {"resultSummary": {"type": ["string", "null"]}}}
    return {
        "/api/agent/tasks": {
            "get": {
                "operationId": "getAgentTasks",
                "summary": "All tasks of a list.",
                "tags": ["agent"],
                "parameters": [which],
                "responses": {"200": _content("The tasks.", {"type": "array", "items": shown}), "default": refused},
            }
        },
        "/api/agent/tasks/{taskId}": {
            "delete": {
                "operationId": "deleteAgentTask",
                "summary": "Deletes a task.",
                "tags": ["agent"],
                "parameters": [task, which],
                "responses": {"200": _content("It is gone.", done), "default": refused},
            }
        },
        "/api/agent/tasks/{taskId}/complete": {
            "post": {
                "operationId": "completeAgentTask",
                "summary": "Completes a task; in a serial list the next one starts.",
                "tags": ["agent"],
                "parameters": [task, which],
                "requestBody": {"required": False, "content": {"application/json": {"schema": summary}}},
                "responses": {"200": _content("It is complete.", completed), "default": refused},
            }
        },
        WHO: {
            "get": {
                "operationId": "getAgents",
                "summary": "Who is there, or left lately: everywhere, or in one list.",
                "description": "A token for one list is shown who works in that list, without their directories.",
                "tags": ["agent"],
                "parameters": [which],
                "responses": {"200": _content("Who is there.", _who()), "default": refused},
            }
        },
        "/api/session": {
            "post": {
                "operationId": "postSession",
                "summary": "Gives a session token for a ticket, once.",
                "tags": ["session"],
                "security": [],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["ticket"],
                                "properties": {"ticket": {"type": "string"}},
                                "additionalProperties": False,
                            }
                        }
                    },
                },
                "responses": {"200": _content("The session.", {"type": "object"}), "default": refused},
            }
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
            "status": {"enum": sorted({*STATUS.values(), *(status for status, _ in OWN.values())})},
            "detail": {"type": "string"},
            "kind": {"enum": sorted([*ERRORS, *OWN])},
        },
    }
