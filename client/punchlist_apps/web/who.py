"""Connected agents and people, as in `punch who`. With a token limited to one list, only the agents and people of that
list are returned."""

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from punchlist.base.agents import build_roster, filter_for_list
from punchlist.connection.core import Request as Call
from punchlist_apps.web import bodies
from punchlist_apps.web.access import Access, confine
from punchlist_apps.web.calls import Handler, json_response


def build_who_handler(access: Access) -> Handler:
    """Return the handler of `GET /api/v1/agents`."""

    async def handle(request: Request) -> Response:
        scope = access.require_scope(request)
        params = bodies.parse_query(request, "agent.list")
        if (conversation := params.setdefault("conversation", scope.list)) is not None:
            confine(scope, conversation)
        client = await access.get_client(scope)
        result = msgspec.json.decode(await client.forward(Call.raw("agent.list", params)))
        if scope.list is not None:
            result = filter_for_list(result, scope.list)
        roster = build_roster(result, int(time.time() * 1000))
        agents = [{**agent._asdict(), "tasks": [task._asdict() for task in agent.tasks]} for agent in roster.agents]
        return json_response({"agents": agents, "others": roster.others})

    return handle
