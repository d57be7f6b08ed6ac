"""The handler for all rows of the route table. It turns a request into a call and returns the result unchanged."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from punchlist.connection.core import Request as Call
from punchlist_apps.common.http.problem import Refused
from punchlist_apps.web import bodies
from punchlist_apps.web.access import Access, confine, confine_call
from punchlist_apps.web.routes import Route
from punchlist_schemas.methods import METHODS

Handler = Callable[[Request], Awaitable[Response]]

JSON = "application/json"

_SELECTORS = frozenset({"of", "also", "call", "to_version"})
"""Parameters of `list.undo` that select whose calls are undone, as `mine` does."""


def build_handler(route: Route, access: Access) -> Handler:
    has_query = route.verb in ("GET", "DELETE")

    async def handle(request: Request) -> Response:
        scope = access.require_scope(request)
        if not route.narrows:
            confine(scope, request.path_params.get("conversation"))
        if has_query:
            params = {**route.defaults, **bodies.parse_query(request, route.method)}
            if route.narrows:
                confine(scope, params.setdefault("conversation", scope.list))
        elif request.url.query:
            raise Refused("invalid_params", "This path takes no query; send a JSON object.", field="query")
        else:
            params = await bodies.parse_body(request)
        method = route.many if route.many and "tasks" in params else route.method
        from_headers = bodies.parse_headers(request, method)
        is_mine = params.pop("mine", False) if method == "list.undo" else False
        if not isinstance(is_mine, bool):
            raise Refused("invalid_params", "mine must be true or false.", field="mine")
        if is_mine:
            if others := sorted(params.keys() & _SELECTORS):
                raise Refused("invalid_params", f"mine can't be combined with {others[0]}.", field=others[0])
            params |= await access.build_undo_params(scope, request.path_params["conversation"])
        if METHODS[method].kind == "write" and scope.name:
            # A link with a name acts only under that name.
            params.pop("actor", None)
            from_headers["actor"] = scope.name
        elif method == "list.undo" and not params.keys() & {"of", "call", "to_version"}:
            # In this method, `actor` would select whose calls are undone.
            from_headers.pop("actor", None)
        elif METHODS[method].kind == "write" and (actor := access.get_actor(scope)) and "actor" not in params:
            from_headers.setdefault("actor", actor)
        params = bodies.merge_params(request.path_params, params, from_headers)
        confine_call(scope, method, params)
        client = await access.get_client(scope)
        result = await client.forward(Call.raw(method, params))
        return _build_response(request, result, route.status)

    return handle


def _build_response(request: Request, result: bytes, status: int) -> Response:
    """Return the response, which is a 304 if the client already has this version of a GET's result."""
    headers = {"cache-control": "no-store"}
    if request.method in ("GET", "HEAD") and (version := bodies.parse_version(result)) is not None:
        headers = {"cache-control": "no-cache", "etag": f'"{version}"'}
        if headers["etag"] in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
    return Response(result, status, headers, JSON)


def json_response(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, {"cache-control": "no-store"}, JSON)


def event_stream(events: AsyncGenerator[bytes]) -> Response:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
