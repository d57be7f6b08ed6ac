"""Lists and their events as MCP resources."""

from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from punchlist.clients.aio import AsyncClient
from punchlist.errors import NotFound, PunchlistError
from punchlist.tools.budget import fit
from punchlist.tools.refusals import to_problem
from punchlist_apps.mcp.uris import TEMPLATES, Address, format_tasks_uri, parse_uri

_PAGE = 100
_EVENTS = 500
_BUDGET = 1 << 20
"""Maximum total length of the tasks in one result, in characters."""
_JSON = "application/json"

Context = ServerRequestContext[Any, Any]


class Resources:
    """Handlers of resource requests."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cursor = params.cursor if params is not None else None
        try:
            page = await self._client.conversations(limit=_PAGE, cursor=cursor)
        except PunchlistError as error:
            raise _to_mcp_error(error) from None
        resources = [
            types.Resource(
                uri=format_tasks_uri(item.conversation),
                name=page.names.get(item.conversation, item.conversation),
                title=item.title or None,
                description=f"The task list: {item.counts.completed} completed, {item.counts.pending} pending",
                mime_type=_JSON,
            )
            for item in page.conversations
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=page.next_cursor)

    async def templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        notes = {"tasks": "A task list as it is now", "events": "What happened behind a position (seq) of the log"}
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(name=name, uri_template=template, description=notes[name], mime_type=_JSON)
                for name, template in TEMPLATES.items()
            ]
        )

    async def read(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        address = parse_uri(uri)
        if address is None:
            raise _unknown_resource(uri)
        try:
            value = await (self._tasks(address) if address.kind == "tasks" else self._events(address))
        except NotFound:
            raise _unknown_resource(uri) from None
        except PunchlistError as error:
            raise _to_mcp_error(error) from None
        text = msgspec.json.encode(value).decode()
        contents = types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _tasks(self, address: Address) -> dict[str, Any]:
        tasks = await self._client.conversation(address.conversation).list()
        shown, left_out = fit(tasks, msgspec.to_builtins, _BUDGET)
        head = {"conversation": address.conversation, "version": tasks.version, "seq": tasks.seq}
        value = {**head, "counts": msgspec.to_builtins(tasks.counts), "tasks": shown}
        return value | ({"omitted": left_out} if left_out else {})

    async def _events(self, address: Address) -> dict[str, Any]:
        params = {"conversation": address.conversation, "after": address.after, "limit": _EVENTS}
        return await self._client.call("event.read", params)


def _unknown_resource(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"Unknown resource: {uri[:200]}", data={"uri": uri[:1_000]})


def _to_mcp_error(error: PunchlistError) -> MCPError:
    return MCPError(types.INTERNAL_ERROR, to_problem(error).text)
