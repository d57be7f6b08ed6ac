"""An MCP server that uses one client: tools of the selected dialects, resources and prompts."""

import hashlib
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any, NamedTuple

import anyio
import mcp_types as types
import msgspec
from mcp.server import NotificationOptions, Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

from punchlist import __version__
from punchlist.base.project import own
from punchlist.clients.aio import AsyncClient
from punchlist.connection.core import derived_keys
from punchlist.errors import PunchlistError
from punchlist.tools import coercion
from punchlist.tools.agent_memory import MAX_SAVED
from punchlist.tools.catalog import offered, prompt
from punchlist.tools.model import Dialect, Problem, Reply, Tool
from punchlist.tools.schema import build_annotations, build_output, build_parameters
from punchlist.tools.toolbox import ToolCaller
from punchlist_apps.common.http.revocation import run_while_valid
from punchlist_apps.mcp import elicitation
from punchlist_apps.mcp.agents import Agent, Agents
from punchlist_apps.mcp.directories import SANDBOX_STATE, Directories
from punchlist_apps.mcp.event_types import CONVERSATION_KEY
from punchlist_apps.mcp.events import EXTENSION, Events, to_mcp_error
from punchlist_apps.mcp.idempotency import KEY, RepeatedRequests
from punchlist_apps.mcp.presence import Presence
from punchlist_apps.mcp.progress import await_with_progress
from punchlist_apps.mcp.resources import Resources
from punchlist_apps.mcp.server_process import ServerProcess
from punchlist_apps.mcp.updates import Feed, Updates
from punchlist_apps.mcp.users import ALL_USERS, GRANT_KEY, USER_KEY, Grant, UserConnection, Users, select_user
from punchlist_apps.mcp.webhooks import Receivers, Webhooks, find_path
from punchlist_schemas.project_file import is_conversation_id

Context = ServerRequestContext[Any, Any]
Result = types.CallToolResult | types.InputRequiredResult

_HOUR = CacheHint(3_600_000, "public")
_NOW = CacheHint(0, "private")
_DECLINED = "The user said no: nothing was changed."

_PROMPTS = {
    "plan": ("Plan work as a task list", "goal", "What to achieve"),
    "resume": ("Continue the open tasks", "conversation", "The list (default: the current one)"),
}


class Setup(NamedTuple):
    """Settings of a server.

    Attributes:
        process: The process that the host started.
        data_dir: The daemon's data directory.
        dialects: Names of the dialects.
        conversation: The list; None for the list of the directory or session.
        actor: The name of all agents; None for a separate name for each.
        user: The user that the client is limited to; None if calls name their users.
        tools: Names of the offered tools; None for all tools of the dialects.
        agents: Identifies the agents; None for a default based on `actor`.
        session_id: Secret of the session that another process may continue; empty for a server's own session.
        is_resumed: Whether an earlier process served the session.
    """

    process: ServerProcess
    data_dir: str
    dialects: tuple[str, ...] = ("native",)
    conversation: str | None = None
    actor: str | None = None
    user: str | None = None
    tools: tuple[str, ...] | None = None
    agents: Agents | None = None
    session_id: str = ""
    is_resumed: bool = False


KEEP_PLAN_HERE = (
    "- Keep the plan here, not in the host's own task tools (TodoWrite, TaskCreate, update_plan, write_todos)."
)
"""Names the task tools of these hosts: Claude Code, OpenCode, Copilot, Codex, Gemini CLI."""


class Handlers:
    """Handlers of the hosts' requests.

    Raises:
        Problem: Unknown dialect or tool.
    """

    def __init__(self, client: AsyncClient, setup: Setup, presence: Presence, feed: Feed) -> None:
        self.setup = setup
        self.presence = presence
        self.updates = Updates(feed, is_resumed=setup.is_resumed)
        self._feed = feed
        self._directories = Directories(setup.process)
        self._agents = setup.agents or Agents(setup.actor)
        self._all = UserConnection(client, self._agents.work)
        self.users = Users(client, work=self._agents.work)
        self._repeated_requests: RepeatedRequests[Result] = RepeatedRequests()
        self._changing = 0
        """Number of running calls that may change something."""
        dialects = offered(setup.dialects, setup.tools)
        extra = [KEEP_PLAN_HERE] if "native" in setup.dialects else []
        self.instructions = "\n".join([prompt(dialects), *extra])
        self._offers = {tool.name: (dialect, tool) for dialect in dialects for tool in dialect.tools}

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.text,
                input_schema={"properties": {}, **build_parameters(tool.arguments)},
                output_schema=build_output(tool),
                annotations=types.ToolAnnotations.model_validate(build_annotations(tool)),
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
            user = self._select_user(context, coercion.find_user(tool, dict(params.arguments or {})))
            directory = await self._directories.find(context)
            agent = await self._agents.identify(context, directory)
        except Problem as problem:
            return _build_result(dialect.refuse(problem))
        await self.presence.enter(agent)

        async def run() -> Result:
            async with self._connect(user) as connection:
                caller = await self._build_caller(context, agent, directory, user, connection)
                return await self._call(context, params, offer, caller, connection)

        if tool.effect == "reads":
            return await await_with_progress(context, run())
        key = _build_request_key(context, params, agent, user)
        with self._derive_keys(key), self._recording_work():
            calls = self._repeated_requests.once(key, run, _is_final) if key else run()
            return await await_with_progress(context, calls)

    def _derive_keys(self, key: str) -> AbstractContextManager[None]:
        """Derive the keys of a request's changes so that its repetition in another process changes nothing twice."""
        return derived_keys(f"{self.setup.session_id}:{key}") if key and self.setup.session_id else nullcontext()

    @contextmanager
    def _recording_work(self) -> Generator[None]:
        """Record what the agents work on before a change, unless another change is running.

        A process that repeats the running changes needs the work from before the first of them.
        """
        if not self._changing:
            self._agents.record_work([*self._all.save_work(), *self.users.save_work()][-MAX_SAVED:])
        self._changing += 1
        try:
            yield
        finally:
            self._changing -= 1

    async def enter_known_agents(self) -> None:
        """Register the agents of an earlier process of this session, which keep their claims."""
        for agent in self._agents.known:
            await self.presence.enter(agent)

    async def _call(
        self,
        context: Context,
        params: types.CallToolRequestParams,
        offer: tuple[Dialect, Tool],
        caller: ToolCaller,
        connection: UserConnection,
    ) -> Result:
        dialect, tool = offer
        arguments = dict(params.arguments or {})
        answer = elicitation.parse_answer(params)
        if answer is not None:
            token, agreed = answer
            if not agreed:
                return _build_result(Reply(text=_DECLINED, data={"status": "declined"}))
            arguments["confirm"] = token
        caller = caller._replace(answered=answer is not None)
        reply = await connection.box.call(dialect, tool.name, arguments, caller)
        if (dialect.name, tool.name) == ("native", "next") and not reply.refused:
            self._agents.record_next(caller.actor, is_empty=reply.data["next"] is None)
        if reply.question is None or not elicitation.can_ask(context):
            return _build_result(reply)
        if elicitation.is_modern(context):
            return elicitation.build_request(reply.question)
        if not await elicitation.ask(context, reply.question):
            return _build_result(Reply(text=_DECLINED, data={"status": "declined"}))
        arguments["confirm"] = reply.question.token
        return _build_result(await connection.box.call(dialect, tool.name, arguments, caller._replace(answered=True)))

    def _select_user(self, context: Context, argument: str | None = None) -> str | None:
        """Return the user of a request, from its argument, `_meta` or token; None if the request may act for all users.

        Raises:
            Problem: The token is not for this user.
        """
        grant = Grant(frozenset({self.setup.user})) if self.setup.user is not None else _get_grant(context)
        meta = dict(context.meta or {}).get(USER_KEY)
        return select_user(grant, [name for name in (argument, meta) if name is not None])

    @asynccontextmanager
    async def _connect(self, user: str | None) -> AsyncGenerator[UserConnection]:
        if user in (None, self.setup.user):
            yield self._all
        else:
            async with self.users.connect(user) as connection:
                yield connection

    async def _build_caller(
        self, context: Context, agent: Agent, directory: str, user: str | None, connection: UserConnection
    ) -> ToolCaller:
        meta_conversation = dict(context.meta or {}).get(CONVERSATION_KEY)
        if isinstance(meta_conversation, str) and meta_conversation:
            conversation = meta_conversation
        elif self.setup.conversation is not None or user is not None:
            conversation = self.setup.conversation and own(self.setup.conversation, user)
        else:
            conversation = await _find_attached_list(connection.client, agent.session)
        return ToolCaller(
            conversation,
            agent.name,
            user,
            directory,
            self.setup.data_dir,
            self.setup.process.env,
            agent=agent.sub_agent,
            is_nameless=agent.is_nameless,
        )

    async def find_list(self, context: Context, user: str | None, name: str | None) -> str:
        """Return the id of the list that a request names, or of its default list.

        Raises:
            MCPError: The list can't be found.
        """
        try:
            async with self._connect(user) as connection:
                if name is not None:
                    name = own(name, user)
                else:
                    directory = await self._directories.find(context)
                    agent = await self._agents.identify(context, directory)
                    caller = await self._build_caller(context, agent, directory, user, connection)
                    name = await connection.box.find_list(caller)
                # The name may be that of an attached session, which can be attached to another list later.
                return (await connection.client.conversation(name).info()).conversation
        except Problem as problem:
            raise MCPError(types.INVALID_PARAMS, problem.text) from None
        except PunchlistError as error:
            raise to_mcp_error(error) from None

    @asynccontextmanager
    async def open_feed(self, user: str | None) -> AsyncGenerator[tuple[AsyncClient, Feed]]:
        """Yield a client that is limited to a user, and the changes of the user's lists."""
        if user in (None, self.setup.user):
            yield self._all.client, self._feed
            return
        client = self._all.client.as_user(user)
        feed, failure = Feed(client), None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(feed.run)
                try:
                    yield client, feed
                except Exception as error:  # raised below, because the group would wrap it
                    failure = error
                group.cancel_scope.cancel()
        finally:
            await client.aclose()
        if failure is not None:
            raise failure

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        _check_may_subscribe(context)
        await self.updates.subscribe(context.session, str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.updates.unsubscribe(context.session, str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if params.notifications.resource_subscriptions:
            _check_may_subscribe(context)
        return await self.updates.listen(context, params)

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        async with self._connect(self.find_user(context)) as connection:
            return await Resources(connection.client).list(context, params)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async with self._connect(self.find_user(context)) as connection:
            return await Resources(connection.client).read(context, params)

    def find_user(self, context: Context) -> str | None:
        """Return the user of a request that reads.

        Raises:
            MCPError: Its token is not for this user.
        """
        try:
            return self._select_user(context)
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
        arguments = params.arguments or {}
        if params.name == "plan":
            goal = arguments.get("goal", "").strip()
            if not goal:
                raise MCPError(types.INVALID_PARAMS, "goal is required")
            text = f"Break this down into tasks, put them on the task list, and begin with the first:\n\n{goal}"
        else:
            user = self.find_user(context)
            async with self._connect(user) as connection:
                directory = await self._directories.find(context)
                agent = await self._agents.identify(context, directory)
                caller = await self._build_caller(context, agent, directory, user, connection)
                caller = caller._replace(conversation=arguments.get("conversation") or caller.conversation)
                tasks = await connection.box.call("native", "tasks", {}, caller)
            text = f"These are the open tasks:\n\n{tasks.text}\n\nContinue where the work stopped."
        content = types.TextContent(type="text", text=text)
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=_PROMPTS[params.name][0], messages=[message])


def _get_grant(context: Context) -> Grant:
    """Return the grant of an HTTP request's token. Requests over standard input are trusted."""
    return ALL_USERS if context.request is None else context.request.scope.get(GRANT_KEY, ALL_USERS)


async def _answer_until_revoked(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Cancel a request when its token is revoked. Closing the HTTP request alone wouldn't stop the SDK's session."""
    with run_while_valid({} if ctx.request is None else ctx.request.scope):
        return await call_next(ctx)
    raise MCPError(types.INVALID_REQUEST, "The token of this request was revoked; nothing more is done for it.")


def _check_may_subscribe(context: Context) -> None:
    """Reject subscriptions with a token for certain users, because `Updates` follows the lists of all users.

    Raises:
        MCPError: The request's token is for certain users only.
    """
    if _get_grant(context).users is not None:
        text = "A token for certain users can't subscribe to resources: read them instead."
        raise MCPError(types.INVALID_PARAMS, text)


async def _find_attached_list(client: AsyncClient, session: str) -> str | None:
    """Return the list to which a host's session is attached (`punch agent attach`), or None."""
    if not is_conversation_id(session):
        return None
    try:
        info = await client.conversation(session).info()
    except PunchlistError:
        return None  # The tool's own calls report the error.
    return info.conversation if session in info.sessions else None


def _build_request_key(context: Context, params: types.CallToolRequestParams, agent: Agent, user: str | None) -> str:
    """Return a key that is the same for all repetitions of this request; "" if repetitions can't be recognized."""
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


def _build_result(reply: Reply) -> types.CallToolResult:
    plain: Any = msgspec.to_builtins(reply.data)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=reply.text)]
    if isinstance(plain, list):
        plain = dict[str, Any](tasks=plain)  # The handshake era requires an object.
    return types.CallToolResult(content=content, structured_content=plain, is_error=reply.refused)


def _build_security(session_id: str) -> RequestStateSecurity:
    """Return the seal of what a host sends back with a user's answer. Each process of a session can open it."""
    if not session_id:
        return RequestStateSecurity.ephemeral()
    return RequestStateSecurity(keys=[hashlib.sha256(f"request-state {session_id}".encode()).digest()])


class _Server(Server[Any]):
    """A server that names more capabilities: MCP Events for the handshake era, which knows no extensions.

    Codex sends its directory with each call to a server in a plugin's directory.
    """

    is_in_plugin = False

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        names = (EXTENSION, SANDBOX_STATE) if self.is_in_plugin else (EXTENSION,)
        return super().get_capabilities(
            notification_options,
            {**{name: {} for name in names}, **(experimental_capabilities or {})},
            extensions,
            protocol_version=protocol_version,
        )


def build(
    client: AsyncClient,
    setup: Setup,
    presence: Presence | None = None,
    feed: Feed | None = None,
    receivers: Receivers | None = None,
) -> Server[Any]:
    """Build a server for any transport.

    Args:
        presence: Registers the agents with the daemon; None to create a new `Presence`.
        feed: Changes of resources, followed by the caller; None to follow the daemon while the server runs.
        receivers: How events are sent to webhooks; None for a server without them.

    Raises:
        Problem: Unknown dialect or tool.
    """
    own_feed = Feed(client)
    presence = presence or Presence(client, setup.process.pid)
    handlers = Handlers(client, setup, presence, feed or own_feed)
    delivery = ("push", "poll") if receivers is None else ("push", "poll", "webhook")
    events = Events(handlers, delivery)
    webhooks = None
    if receivers is not None:
        webhooks = Webhooks(find_path(setup.data_dir, setup.user), events, *receivers)

    @asynccontextmanager
    async def run_tasks(_server: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        async with anyio.create_task_group() as group:
            if feed is None:
                group.start_soon(own_feed.run)
            group.start_soon(handlers.updates.run)
            group.start_soon(handlers.presence.run)
            group.start_soon(handlers.users.run)
            group.start_soon(handlers.enter_known_agents)
            if webhooks is not None:
                group.start_soon(webhooks.run)
            yield {}
            group.cancel_scope.cancel()

    server = _Server(
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
        lifespan=run_tasks,
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
    server.is_in_plugin = setup.process.is_in_plugin
    events.install(server)
    if webhooks is not None:
        webhooks.install(server)
    server.middleware.append(_answer_until_revoked)
    server.middleware.append(RequestStateBoundary(_build_security(setup.session_id), default_audience="punchlist"))
    return server
