"""Identifies the agent that makes a request, by its host's name and its session.

A `punch agent mcp` process on standard input and output serves one host. Some hosts run several conversations over one
process and name the conversation in the `_meta` of each call:

| host | member of `_meta` |
|---|---|
| Codex | `threadId`, or `thread_id` in `x-codex-turn-metadata`; a sub-agent has its own thread |
| VS Code | `vscode.conversationId` |

Otherwise the session is that of the process (see `punchlist_apps.hosts.sessions`) or, over HTTP, the MCP session. If
the host doesn't name its session, a server continues the session of a server that ended in the same place.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

import anyio
import msgspec
from mcp.server.context import ServerRequestContext

from punchlist.tools.agent_memory import AgentWork
from punchlist.tools.model import Problem
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, hash_session

Context = ServerRequestContext[Any, Any]

AGENT_KEY = "punchlist/agent"
"""Member of a request's `_meta` with the name of a sub-agent."""

_CONVERSATION_KEYS = ("threadId", "vscode.conversationId")
_CODEX = "x-codex-turn-metadata"
_HTTP_SESSION = "mcp-session-id"
_MAX_AGENTS = 50
_TRIES = 40
_WAIT_S = 2.0
"""Upper limit for the wait of a restarted server for its predecessor to end, in seconds."""


class Agent(NamedTuple):
    """The agent that makes a request.

    Attributes:
        name: The actor of the agent's changes, and the owner of its claims.
        sub_agent: Name of the sub-agent in `_meta`, or "".
        is_nameless: Whether the server can't distinguish the client from others of the same host.
        connection: Scope within which its request ids are unique; "" if unknown.
        session: The id of the host's session; "" if unknown.
        host: The name that the host reports for itself.
        http_session: The MCP session of a request over HTTP.
        thread: The conversation that the host names in the request.
        directory: The directory in which the agent works; "" if unknown.
    """

    name: str
    sub_agent: str = ""
    is_nameless: bool = False
    connection: str = ""
    session: str = ""
    host: str = ""
    http_session: str = ""
    thread: str = ""
    directory: str = ""


class AgentMemory(msgspec.Struct):
    """What another process needs to continue a session with the same agents.

    Attributes:
        first: The key of the session when the server started.
        names: Name that an agent would have -> the name that was reserved for it.
        agents: The agents so far by name, that of the latest call in its conversation last, at most `_MAX_AGENTS`.
        work: What the agents work on.
    """

    first: str | None = None
    names: dict[str, str] = {}
    agents: dict[str, Agent] = {}
    work: list[AgentWork] = []


class Agents:
    """Identifies the agents of one server.

    Args:
        actor: The name of all agents, if the server was started with one.
        sessions: Stored sessions of the hosts; None for a server shared by several processes.
        session: The id of the session that the server was started for, if the host names it.
        scope: What else servers in one directory share if they continue each other's work: user, list and dialects.
        server_id: Identifies the server; 32 hex digits, random by default.
        memory: The memory of the process that served the session before.
        on_memory: Called with the memory when it has changed, before the agent's call runs.
    """

    def __init__(  # noqa: PLR0913 - what identifies an agent
        self,
        actor: str | None = None,
        sessions: Sessions | None = None,
        session: str | None = None,
        scope: str = "",
        server_id: str = "",
        *,
        memory: AgentMemory | None = None,
        on_memory: Callable[[AgentMemory], None] = lambda _memory: None,
    ) -> None:
        self._actor = actor
        self._sessions = sessions
        self._session = session or ""
        self._scope = scope
        self._server_id = server_id or secrets.token_hex(16)
        self._memory = memory or AgentMemory(None if session is None else hash_session(session))
        self._on_memory = on_memory
        for name, reserved in [*self._memory.names.items()]:
            if sessions is not None and not sessions.lock_name(reserved):  # another server has taken it
                del self._memory.names[name]

    @property
    def known(self) -> list[Agent]:
        """The agents that have made requests, also to an earlier process of the session."""
        return [*self._memory.agents.values()]

    @property
    def work(self) -> list[AgentWork]:
        """What the agents work on, as recorded before their last calls."""
        return self._memory.work

    def record_work(self, work: list[AgentWork]) -> None:
        """Record what the agents work on before a call, in case another process has to repeat the call."""
        if work != self._memory.work:
            self._memory.work = work
            self._on_memory(self._memory)

    async def identify(self, context: Context, directory: str = "") -> Agent:
        """Return the agent that makes a request.

        Args:
            directory: The project's directory; "" if unknown.

        Raises:
            Problem: Another running server uses this server's `--actor`.
        """
        agent = await self._identify(context, directory)
        # The memory is sent as JSON, and a directory's name may contain any bytes.
        known = agent._replace(sub_agent="", directory=agent.directory.encode(errors="replace").decode())
        if context.request is None and known != self._find_newest(known.thread):
            self._memory.agents.pop(agent.name, None)
            self._memory.agents[agent.name] = known
            for name in [*self._memory.agents][:-_MAX_AGENTS]:
                del self._memory.agents[name]
            self._on_memory(self._memory)
        return agent

    def record_next(self, agent: str, *, is_empty: bool) -> None:
        """Record whether an agent's last `next` returned no task, for `punch agent watch`."""
        if self._sessions is not None:
            with suppress(OSError):
                self._sessions.record_next(agent, is_empty=is_empty)

    def _find_newest(self, thread: str) -> Agent | None:
        """Return the current agent of a conversation, which another process registers last."""
        return next((agent for agent in reversed(self._memory.agents.values()) if agent.thread == thread), None)

    async def _identify(self, context: Context, directory: str) -> Agent:
        meta: Mapping[str, Any] = dict(context.meta or {})
        sub_agent = meta.get(AGENT_KEY, "")
        if not isinstance(sub_agent, str):
            raise Problem("invalid_arguments", f"{AGENT_KEY} in _meta must be a string", {"field": AGENT_KEY})
        client = context.session.client_params
        host = client.client_info.name if client is not None else ""
        thread, request = _find_conversation_id(meta), context.request
        http_session = "" if request is None else str(request.headers.get(_HTTP_SESSION, ""))
        connection = http_session if request is not None else self._server_id
        if self._actor is not None:
            name = await self._reserve_name(self._actor) if request is None else self._actor
        elif thread:
            name = build_agent_name(host or "mcp", hash_session(thread))
        elif request is None:
            name = await self._reserve_name(build_agent_name(host or "mcp", self._key(host or "mcp", directory)))
        elif http_session:
            name = build_agent_name(host or "mcp", hash_session(http_session))
        else:
            return Agent(build_agent_name(host or "mcp", "http"), sub_agent, is_nameless=True)
        session = thread or (self._session if request is None else "")
        return Agent(
            name,
            sub_agent,
            connection=connection,
            session=session,
            host=host,
            http_session=http_session,
            thread=thread,
            directory=directory if request is None else "",
        )

    def _key(self, host: str, directory: str) -> str:
        if self._sessions is None:
            return self._server_id
        if self._memory.first is None:
            host_record = self._sessions.load_current()
            if host_record is not None and host_record.sessions:
                self._memory.first = host_record.sessions[-1]
            else:
                place = f"{os.path.realpath(directory)}\0{self._scope}"
                self._memory.first = self._sessions.continue_agent(host, place, self._server_id)
        return self._sessions.find_agent(self._memory.first)

    async def _reserve_name(self, name: str) -> str:
        """Reserve a name for this process and return it.

        If another server already uses the name, return a similar one.
        """
        if self._sessions is None or name in self._memory.names:
            return self._memory.names.get(name, name)
        for _ in range(_TRIES):
            if self._sessions.lock_name(name):
                self._memory.names[name] = name
                break
            await anyio.sleep(_WAIT_S / _TRIES)
        else:
            if self._actor is not None:
                text = (
                    f"another server already uses the name {name}: stop it, or start this one with another --actor,"
                    " or without --actor to get its own name"
                )
                raise Problem("name_taken", text)
            self._memory.names[name] = build_agent_name(name.rpartition("/")[0], secrets.token_hex(16))
        return self._memory.names[name]


def _find_conversation_id(meta: Mapping[str, Any]) -> str:
    turn = meta.get(_CODEX)
    ids = [meta.get(name) for name in _CONVERSATION_KEYS]
    ids += [cast("dict[str, Any]", turn).get("thread_id")] if isinstance(turn, dict) else []
    return next((id for id in ids if isinstance(id, str) and id), "")
