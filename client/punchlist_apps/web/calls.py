"""The one handler of all rows of the table: a request becomes a call, the answer's bytes go on as they are."""

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


def handler(route: Route, access: Access) -> Handler:
    by_query = route.verb in ("GET", "DELETE")

    async def handle(request: Request) -> Response:
        scope = access.scope(request)
        confine(scope, request.path_params.get("conversation"))
        if by_query:
            given = bodies.query(request, route.method)
        elif request.url.query:
            raise Refused("invalid_params", "This path takes no query; send a JSON object.", field="query")
        else:
            given = await bodies.body(request)
        method = route.many if route.many and "tasks" in given else route.method
        stated = bodies.conditions(request, method)
        if method == "list.undo" and given.pop("mine", False):
            given |= await access.names(scope, request.path_params["conversation"])
        if METHODS[method].kind == "write" and scope.name:
            given.pop("actor", None)  # A link acts under its own name alone.
            stated["actor"] = scope.name
        elif method == "list.undo" and not given.keys() & {"of", "call", "to_version"}:
            stated.pop("actor", None)  # where nobody is named, it says whose calls are taken back
        elif METHODS[method].kind == "write" and (actor := access.actor(scope)) and "actor" not in given:
            stated.setdefault("actor", actor)
        params = bodies.merged(request.path_params, given, stated)
        confine_call(scope, method, params)
        client = await access.client(scope)
        result = await client.forward(Call.raw(method, params))
        return reply(request, result, route.status)

    return handle


def reply(request: Request, result: bytes, status: int = 200) -> Response:
    """The answer; one to GET that has a version is left out for whoever has that version already."""
    headers = {"cache-control": "no-store"}
    if request.method in ("GET", "HEAD") and (version := bodies.version_of(result)) is not None:
        headers = {"cache-control": "no-cache", "etag": f'"{version}"'}
        if headers["etag"] in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
    return Response(result, status, headers, JSON)


def json_response(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, {"cache-control": "no-store"}, JSON)


def event_stream(events: AsyncGenerator[bytes]) -> Response:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
