"""The guarded ASGI application, with the route table, streams, chats, the `/api/agent` endpoints and the page."""

from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.chat.models.port import Model
from punchlist_apps.chat.usage import Limits
from punchlist_apps.common.http.codes import Codes
from punchlist_apps.common.http.guard import App, Guard
from punchlist_apps.common.http.keys import Keys
from punchlist_apps.common.http.problem import Problem, Refused, build_problem
from punchlist_apps.web import bodies
from punchlist_apps.web.access import Access
from punchlist_apps.web.ag_ui import AgUi
from punchlist_apps.web.calls import JSON, build_handler, json_response
from punchlist_apps.web.chat import Panel
from punchlist_apps.web.feed import KEEPALIVE_S, Streams
from punchlist_apps.web.files import PAGE, Files
from punchlist_apps.web.openapi import encode_document
from punchlist_apps.web.routes import API, ROUTES, WHO
from punchlist_apps.web.seed import Seed
from punchlist_apps.web.who import build_who_handler

_MAX_TICKET_BYTES = 4 << 10
"""Maximum size of a sign-in request's body, in bytes. Sign-in doesn't need a token."""

_WRONG_CODE_S = 0.25
"""Time after which a wrong code is rejected, in seconds. It exceeds the time that any rejection takes."""

_KINDS = {404: "no_such_path", 405: "verb"}


class Setup(NamedTuple):
    """Settings of the server.

    Attributes:
        conversation: Default list of the `/api/agent` endpoints.
        names: Host names by which the server can be reached, in addition to loopback names.
        page: Folder with the page's files.
        keepalive_s: Seconds until an idle stream sends a comment.
        idle_s: Seconds without a connection until the server exits; None for never.
        model: Model that interprets chat messages, within `limits`; None to use only the rules.
        person: Name of the person who runs the server, used as the actor of their changes; empty for the connection's
            name.
    """

    conversation: str = "default"
    names: tuple[str, ...] = ()
    page: Path = PAGE
    keepalive_s: float = KEEPALIVE_S
    idle_s: float | None = None
    model: Model | None = None
    limits: Limits = Limits()
    person: str = ""


def build_app(client: AsyncClient, keys: Keys, ending: anyio.Event, setup: Setup) -> App:
    """Build the guarded application. `ending` is set at shutdown."""
    access = Access(client, keys, setup.person)
    exception_handlers: Any = {
        Refused: _handle_refused,
        PunchlistError: _handle_client_error,
        HTTPException: _handle_http_error,
    }
    routes = _build_routes(build_endpoints(access, keys, ending, setup))
    app = Starlette(routes=routes, exception_handlers=exception_handlers)
    return Guard(access.end_on_revocation(app), setup.names)


def build_endpoints(access: Access, keys: Keys, ending: anyio.Event, setup: Setup) -> list[tuple[str, str, Any]]:
    """Return all endpoints, as verb, path and handler."""
    files = Files(setup.page)
    streams, seed = Streams(access, ending, keepalive_s=setup.keepalive_s), Seed(access, setup.conversation)
    panel = Panel(access, ending, setup.model, setup.limits)
    codes = Codes(keys)

    async def session(request: Request) -> Response:
        return await _sign_in(request, keys, codes, access)

    endpoints: list[tuple[str, str, Any]] = [
        ("GET", "/", files.get_index),
        ("GET", "/agent-tasks", files.get_index),
        ("GET", "/chat", files.get_chat),
        ("GET", "/{name}", files.get_file),
        ("POST", "/api/session", session),
        ("GET", f"{API}/openapi.json", _get_openapi),
        ("GET", f"{API}/feed", streams.open_feed),
        ("GET", f"{API}/events", streams.open_events),
        ("GET", WHO, build_who_handler(access)),
        ("GET", f"{API}/conversations/{{conversation}}/events/stream", streams.open_events),
        *((row.verb, row.path, build_handler(row, access)) for row in ROUTES),
        *seed.handlers,
        *panel.handlers,
        ("POST", "/ag-ui", AgUi(panel).handle),
    ]
    try:
        from punchlist_apps.web.chatkit import ChatKit
    except ImportError:  # The extra isn't installed.
        pass
    else:
        endpoints.append(("POST", "/chatkit", ChatKit(panel).handle))
    return endpoints


def _build_routes(endpoints: list[tuple[str, str, Any]]) -> list[Route]:
    """Return one route per path, so that the Allow header of a 405 response lists all verbs of the path."""
    paths: dict[str, dict[str, Any]] = {}
    for verb, path, handle in endpoints:
        paths.setdefault(path, {})[verb] = handle
    return [Route(path, _dispatch_by_verb(verbs), methods=list(verbs)) for path, verbs in paths.items()]


def _dispatch_by_verb(verbs: dict[str, Any]) -> Any:
    async def handle(request: Request) -> Response:
        return await verbs["GET" if request.method == "HEAD" else request.method](request)

    return handle


async def _sign_in(request: Request, keys: Keys, codes: Codes, access: Access) -> Response:
    """Exchange the ticket of a link, or a code, for a session."""
    answer_at = anyio.current_time() + _WRONG_CODE_S
    body = await bodies.parse_body(request, _MAX_TICKET_BYTES)
    if len(body) != 1 or not isinstance(body.get("ticket", body.get("code")), str):
        raise Refused(
            "invalid_params", "The body must have ticket or code, a string, and nothing else.", field="ticket"
        )
    if "ticket" in body:
        session = keys.redeem(body["ticket"])
        if session is None:
            raise Refused(keys.explain_failure(body["ticket"]))
    else:
        session = codes.redeem(body["code"])
        if session is None:
            # The time must not reveal whether a code is wrong, was used or has expired.
            await anyio.sleep_until(answer_at)
            raise Refused("code_wrong")
    return json_response({**msgspec.structs.asdict(session), "person": access.get_person(session.scope)})


async def _get_openapi(_request: Request) -> Response:
    return Response(encode_document(), media_type=JSON)


async def _handle_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _build_response(error.problem)


async def _handle_client_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, PunchlistError)
    return _build_response(build_problem(error))


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allow = (error.headers or {}).get("Allow", "")
    headers = ((b"allow", allow.encode()),) if allow else ()
    return _build_response(Problem(_KINDS.get(error.status_code, "internal_error"), headers=headers))


def _build_response(problem: Problem) -> Response:
    status, headers, body = problem.build_response()
    response = Response(body, status)
    response.raw_headers = [*headers, (b"content-length", b"%d" % len(body))]
    return response
