"""One MCP server over one client: tools of the chosen dialects, resources, prompts."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import mcp_types as types
import msgspec
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

from punchlist import __version__
from punchlist.base.project import own
from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist.tools import coercion
from punchlist.tools.catalog import offered, prompt
from punchlist.tools.model import Dialect, Problem, Reply, Tool
from punchlist.tools.schema import annotations, output, parameters
from punchlist.tools.toolbox import ToolCaller
from punchlist_apps.common.http.revocation import run_while_valid
from punchlist_apps.mcp import elicitation
from punchlist_apps.mcp.agents import Agent, Agents
from punchlist_apps.mcp.idempotency import KEY, Repeats
from punchlist_apps.mcp.presence import Presence
from punchlist_apps.mcp.progress import reporting
from punchlist_apps.mcp.resources import Resources
from punchlist_apps.mcp.updates import Updates
from punchlist_apps.mcp.users import EVERYBODY, GRANT, USER_KEY, Bound, Grant, Users, user_of
from punchlist_schemas.project_file import is_conversation_id

Context = ServerRequestContext[Any, Any]
Result = types.CallToolResult | types.InputRequiredResult

CONVERSATION_KEY = "punchlist/conversation"
"""A member of a request's `_meta` that names the list for this call."""

_HOUR = CacheHint(3_600_000, "public")
_NOW = CacheHint(0, "private")
_DECLINED = "The user said no: nothing was changed."

_PROMPTS = {
    "plan": ("Plan work as a task list", "goal", "What is to be reached"),
    "resume": ("Go on with the open tasks", "conversation", "The list, if not the usual one"),
}


class Setup(NamedTuple):
    """What a server offers, and to whom.

    Attributes:
        dialects: Names of the dialects.
        conversation: The list, if one is named.
        actor: The name of all agents; by default each has one of its own.
        user: The user that the client is confined to; None where calls name their users.
        tools: Names of the only tools that are offered; None for all of the dialects.
        directory: Where the list is looked for if none is named; None: the working directory.
        data_dir: The daemon's data directory; None: as the environment says.
        agents: Names the agents; None: by `actor`, or each process and each HTTP session by a name of its own.
    """

    dialects: tuple[str, ...] = ("native",)
    conversation: str | None = None
    actor: str | None = None
    user: str | None = None
    tools: tuple[str, ...] | None = None
    directory: str | None = None
    data_dir: str | None = None
    agents: Agents | None = None


INSTEAD = "- Keep the plan here, not in the host's own task tools (TodoWrite, TaskCreate, update_plan, write_todos)."
"""What the tools of `punch setup` replace: Claude Code's, OpenCode's and Copilot's, Codex's, Gemini CLI's."""


class Handlers:
    """What answers the requests of hosts.

    Raises:
        Problem: There is no such dialect, or no such tool.
    """

    def __init__(self, client: AsyncClient, setup: Setup, presence: Presence) -> None:
        self.setup = setup
        self.presence = presence
        self.updates = Updates(client)
        self.users = Users(client)
        self._all = Bound(client)
        self._agents = setup.agents or Agents(setup.actor)
        self._repeats: Repeats[Result] = Repeats()
        chosen = offered(setup.dialects, setup.tools)
        instead = [INSTEAD] if "native" in setup.dialects else []
        self.instructions = "\n".join([prompt(chosen), *instead])
        self._offers = {tool.name: (dialect, tool) for dialect in chosen for tool in dialect.tools}

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.text,
                input_schema={"properties": {}, **parameters(tool.arguments)},
                output_schema=output(tool),
                annotations=types.ToolAnnotations.model_validate(annotations(tool)),
            )
            for _, tool in self._offers.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> Result:
        offer = self._offers.get(params.name)
        if offer is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        dialect, tool = offer
        try:
            user = self._user(context, coercion.user_of(tool, dict(params.arguments or {})))
            agent = await self._agents.of(context)
        except Problem as problem:
            return _result(dialect.refuse(problem))
        await self.presence.enter(agent)

        async def run() -> Result:
            async with self._bound(user) as bound:
                return await self._call(context, params, offer, await self._seat(context, agent, user, bound), bound)

        key = "" if tool.effect == "reads" else _repeated(context, params, agent, user)
        return await reporting(context, self._repeats.once(key, run, _is_final) if key else run())

    async def _call(
        self,
        context: Context,
        params: types.CallToolRequestParams,
        offer: tuple[Dialect, Tool],
        caller: ToolCaller,
        bound: Bound,
    ) -> Result:
        dialect, tool = offer
        arguments = dict(params.arguments or {})
        answer = elicitation.answered(params)
        if answer is not None:
            token, agreed = answer
            if not agreed:
                return _result(Reply(text=_DECLINED, data={"status": "declined"}))
            arguments["confirm"] = token
        caller = caller._replace(answered=answer is not None)
        reply = await bound.box.call(dialect, tool.name, arguments, caller)
        if reply.question is None or not elicitation.can_ask(context):
            return _result(reply)
        if elicitation.is_modern(context):
            return elicitation.required(reply.question)
        if not await elicitation.ask(context, reply.question):
            return _result(Reply(text=_DECLINED, data={"status": "declined"}))
        arguments["confirm"] = reply.question.token
        return _result(await bound.box.call(dialect, tool.name, arguments, caller._replace(answered=True)))

    def _user(self, context: Context, named: str | None = None) -> str | None:
        """The user of a request: of its argument, its `_meta` or its token; None for a trusted one that names nobody.

        Raises:
            Problem: Its token is not for this user.
        """
        grant = Grant(frozenset({self.setup.user})) if self.setup.user is not None else _grant(context)
        by_meta = dict(context.meta or {}).get(USER_KEY)
        return user_of(grant, [name for name in (named, by_meta) if name is not None])

    @asynccontextmanager
    async def _bound(self, user: str | None) -> AsyncGenerator[Bound]:
        if user in (None, self.setup.user):
            yield self._all
        else:
            async with self.users.of(user) as bound:
                yield bound

    async def _seat(self, context: Context, agent: Agent, user: str | None, bound: Bound) -> ToolCaller:
        named = dict(context.meta or {}).get(CONVERSATION_KEY)
        if isinstance(named, str) and named:
            conversation = named
        elif self.setup.conversation is not None or user is not None:
            conversation = self.setup.conversation and own(self.setup.conversation, user)
        else:
            conversation = await _attached(bound.client, agent.session)
        return ToolCaller(
            conversation,
            agent.name,
            user,
            self.setup.directory,
            self.setup.data_dir,
            agent=agent.sub_agent,
            is_nameless=agent.is_nameless,
        )

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        _refuse_following(context)
        await self.updates.subscribe(context.session, str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.updates.unsubscribe(context.session, str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if params.notifications.resource_subscriptions:
            _refuse_following(context)
        return await self.updates.listen(context, params)

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        async with self._bound(self._reader(context)) as bound:
            return await Resources(bound.client).list(context, params)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async with self._bound(self._reader(context)) as bound:
            return await Resources(bound.client).read(context, params)

    def _reader(self, context: Context) -> str | None:
        try:
            return self._user(context)
        except Problem as problem:
            raise MCPError(types.INVALID_PARAMS, problem.text) from None

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        prompts = [
            types.Prompt(
                name=name,
                description=text,
                arguments=[types.PromptArgument(name=argument, description=note, required=name == "plan")],
            )
            for name, (text, argument, note) in _PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in _PROMPTS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        given = params.arguments or {}
        if params.name == "plan":
            goal = given.get("goal", "").strip()
            if not goal:
                raise MCPError(types.INVALID_PARAMS, "goal is required")
            text = f"Break this down into tasks, put them on the task list, and begin with the first:\n\n{goal}"
        else:
            user = self._reader(context)
            async with self._bound(user) as bound:
                caller = await self._seat(context, await self._agents.of(context), user, bound)
                caller = caller._replace(conversation=given.get("conversation") or caller.conversation)
                tasks = await bound.box.call("native", "tasks", {}, caller)
            text = f"These are the open tasks:\n\n{tasks.text}\n\nGo on where the work stopped."
        content = types.TextContent(type="text", text=text)
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=_PROMPTS[params.name][0], messages=[message])


def _grant(context: Context) -> Grant:
    """What the token of an HTTP request allows; whoever speaks over standard input and output is trusted."""
    return EVERYBODY if context.request is None else context.request.scope.get(GRANT, EVERYBODY)


async def _until_revoked(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Answer a request while its token is valid: a session works on apart from the HTTP request that is cut off."""
    with run_while_valid({} if ctx.request is None else ctx.request.scope):
        return await call_next(ctx)
    raise MCPError(types.INVALID_REQUEST, "The token of this request was revoked; nothing more is done for it.")


def _refuse_following(context: Context) -> None:
    """What follows resources follows those of all users.

    Raises:
        MCPError: The request's token is for some users only.
    """
    if _grant(context).users is not None:
        said = "A token for certain users can't subscribe to resources: read them instead."
        raise MCPError(types.INVALID_PARAMS, said)


async def _attached(client: AsyncClient, session: str) -> str | None:
    """The list that a host's session was attached to (`punch agent attach`), if it was."""
    if not is_conversation_id(session):
        return None
    try:
        found = await client.conversation(session).info()
    except PunchlistError:
        return None  # what the tool asks for is refused with the reason
    return found.conversation if session in found.sessions else None


def _repeated(context: Context, params: types.CallToolRequestParams, agent: Agent, user: str | None) -> str:
    """What a repetition of this request has in common with it; empty if that can't be known."""
    key = dict(context.meta or {}).get(KEY)
    if isinstance(key, str) and key:
        parts: list[Any] = [agent.name, agent.sub_agent, "key", key]
    elif agent.connection and context.request_id is not None:
        parts = [agent.connection, "id", context.request_id]
    else:
        return ""
    parts += [user, params.name, params.arguments, params.input_responses is not None]
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def _is_final(result: Result) -> bool:
    return isinstance(result, types.CallToolResult) and not result.is_error


def _result(reply: Reply) -> types.CallToolResult:
    plain: Any = msgspec.to_builtins(reply.data)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=reply.text)]
    if isinstance(plain, list):
        plain = dict[str, Any](tasks=plain)  # the handshake era takes objects alone
    return types.CallToolResult(content=content, structured_content=plain, is_error=reply.refused)


def build(client: AsyncClient, setup: Setup, presence: Presence | None = None) -> Server[Any]:
    """The server, ready to be run over any transport. While it runs it follows the daemon.

    Args:
        presence: Enters the agents at the daemon; None: one that nobody else uses.

    Raises:
        Problem: There is no such dialect, or no such tool.
    """
    handlers = Handlers(client, setup, presence or Presence(client, setup.directory))

    @asynccontextmanager
    async def following(_server: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        async with anyio.create_task_group() as group:
            group.start_soon(handlers.updates.run)
            group.start_soon(handlers.presence.run)
            group.start_soon(handlers.users.run)
            yield {}
            group.cancel_scope.cancel()

    server: Server[Any] = Server(
        "punchlist",
        version=__version__,
        title="punchlist",
        description="Task lists that agents and people share",
        instructions=handlers.instructions,
        cache_hints={
            "tools/list": _HOUR,
            "prompts/list": _HOUR,
            "resources/templates/list": _HOUR,
            "resources/list": _NOW,
            "resources/read": _NOW,
        },
        lifespan=following,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=Resources(client).templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=handlers.listen,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    server.middleware.append(_until_revoked)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="punchlist"))
    return server
