"""The application: the table, the streams, the older design's endpoints and the page, behind the guard."""

from pathlib import Path
from typing import Any, NamedTuple

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.chat.models.port import Model
from punchlist_apps.chat.usage import Limits
from punchlist_apps.common.http.guard import App, Guard
from punchlist_apps.common.http.keys import Keys
from punchlist_apps.common.http.problem import Problem, Refused, build_problem
from punchlist_apps.web import bodies
from punchlist_apps.web.access import Access
from punchlist_apps.web.ag_ui import AgUi
from punchlist_apps.web.calls import JSON, handler, json_response
from punchlist_apps.web.chat import Panel
from punchlist_apps.web.feed import QUIET_S, Streams
from punchlist_apps.web.files import PAGE, Files
from punchlist_apps.web.openapi import document
from punchlist_apps.web.routes import API, ROUTES, WHO
from punchlist_apps.web.seed import Seed
from punchlist_apps.web.who import who

_TICKET_BYTES = 4 << 10
"""Upper limit for a body with a ticket, which needs no token."""

_KINDS = {404: "no_such_path", 405: "verb"}


class Setup(NamedTuple):
    """What is served, and how.

    `conversation` is the list of the older design's endpoints, `names` are further host names under which the server is
    reached, `page` is the folder of the page's files. After `quiet_s` seconds a quiet stream says something; after
    `idle_s` seconds without a connection the server ends (None: never). `model` reads what is
    said in chats, within `limits` (None: the rules alone). `person` is who runs the server: the actor of the changes
    that they make here; empty: the connection's name.
    """

    conversation: str = "default"
    names: tuple[str, ...] = ()
    page: Path = PAGE
    quiet_s: float = QUIET_S
    idle_s: float | None = None
    model: Model | None = None
    limits: Limits = Limits()
    person: str = ""


def web_app(client: AsyncClient, keys: Keys, ending: anyio.Event, setup: Setup) -> App:
    """The guarded application: `keys` know what requests have to show, `ending` is set when the server ends."""
    access = Access(client, keys, setup.person)
    refusals: Any = {Refused: _refused, PunchlistError: _failed, HTTPException: _unserved}
    routes = _by_path(served(access, keys, ending, setup))
    return Guard(access.watched(Starlette(routes=routes, exception_handlers=refusals)), setup.names)


def served(access: Access, keys: Keys, ending: anyio.Event, setup: Setup) -> list[tuple[str, str, Any]]:
    """Return all that is served: verb, path and handler."""
    files = Files(setup.page)
    streams, seed = Streams(access, ending, quiet_s=setup.quiet_s), Seed(access, setup.conversation)

    panel = Panel(access, ending, setup.model, setup.limits)

    async def session(request: Request) -> Response:
        return await _session(request, keys)

    found: list[tuple[str, str, Any]] = [
        ("GET", "/", files.index),
        ("GET", "/agent-tasks", files.index),
        ("GET", "/chat", files.chat),
        ("GET", "/{name}", files.file),
        ("POST", "/api/session", session),
        ("GET", f"{API}/openapi.json", _document),
        ("GET", f"{API}/feed", streams.feed),
        ("GET", f"{API}/events", streams.events),
        ("GET", WHO, who(access)),
        ("GET", f"{API}/conversations/{{conversation}}/events/stream", streams.events),
        *((row.verb, row.path, handler(row, access)) for row in ROUTES),
        *seed.handlers,
        *panel.handlers,
        ("POST", "/ag-ui", AgUi(panel).handle),
    ]
    try:
        from punchlist_apps.web.chatkit import ChatKit
    except ImportError:  # the extra is not installed
        pass
    else:
        found.append(("POST", "/chatkit", ChatKit(panel).handle))
    return found


def _by_path(served: list[tuple[str, str, Any]]) -> list[Route]:
    """One route for each path, so that a request of another verb is told all that it takes."""
    paths: dict[str, dict[str, Any]] = {}
    for verb, path, handle in served:
        paths.setdefault(path, {})[verb] = handle
    return [Route(path, _by_verb(verbs), methods=list(verbs)) for path, verbs in paths.items()]


def _by_verb(verbs: dict[str, Any]) -> Any:
    async def handle(request: Request) -> Response:
        return await verbs["GET" if request.method == "HEAD" else request.method](request)

    return handle


async def _session(request: Request, keys: Keys) -> Response:
    given = await bodies.body(request, _TICKET_BYTES)
    ticket = given.get("ticket")
    if set(given) != {"ticket"} or not isinstance(ticket, str):
        raise Refused("invalid_params", "The body has ticket, a text.", field="ticket")
    session = keys.redeem(ticket)
    if session is None:
        raise Refused(
            "unauthorized", "The ticket was used already or is older than a minute; `punch web --link` makes one."
        )
    return json_response(session)


async def _document(_request: Request) -> Response:
    return Response(document(), media_type=JSON)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _response(error.problem)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, PunchlistError)
    return _response(build_problem(error))


async def _unserved(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allow = (error.headers or {}).get("Allow", "")
    headers = ((b"allow", allow.encode()),) if allow else ()
    return _response(Problem(_KINDS.get(error.status_code, "internal_error"), headers=headers))


def _response(problem: Problem) -> Response:
    status, headers, body = problem.build_response()
    response = Response(body, status)
    response.raw_headers = [*headers, (b"content-length", b"%d" % len(body))]
    return response
