"""Who is there, in the words of `punch who`: of all lists, or for a link to one list of that list alone."""

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from punchlist.base.agents import build_roster, filter_for_list
from punchlist.connection.core import Request as Call
from punchlist_apps.web import bodies
from punchlist_apps.web.access import Access, confine
from punchlist_apps.web.calls import Handler, json_response


def who(access: Access) -> Handler:
    """Return what answers `GET /api/v1/agents`."""

    async def handle(request: Request) -> Response:
        scope = access.scope(request)
        params = bodies.query(request, "agent.list")
        if (wanted := params.setdefault("conversation", scope.list)) is not None:
            confine(scope, wanted)
        client = await access.client(scope)
        found = msgspec.json.decode(await client.forward(Call.raw("agent.list", params)))
        if scope.list is not None:
            found = filter_for_list(found, scope.list)
        told = build_roster(found, int(time.time() * 1000))
        agents = [{**one._asdict(), "tasks": [task._asdict() for task in one.tasks]} for one in told.agents]
        return json_response({"agents": agents, "others": told.others})

    return handle
