"""Which agent makes a request: its host's name and what tells its session apart.

A process of `punch agent mcp` on standard input and output serves one host, but some hosts run several conversations
over it and name the conversation in `_meta` of each call:

| host | member of `_meta` |
|---|---|
| Codex | `threadId`, or `thread_id` in `x-codex-turn-metadata`; a sub-agent has a thread of its own |
| VS Code | `vscode.conversationId` |

Without one the session is the process's own (see `punchlist_apps.hosts.sessions`), and over HTTP the MCP session. Where
nothing tells sessions apart, a server continues the session of one that has ended in the same place.
"""

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import anyio
from mcp.server.context import ServerRequestContext

from punchlist.tools.model import Problem
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, hash_session

Context = ServerRequestContext[Any, Any]

AGENT_KEY = "punchlist/agent"
"""A member of a request's `_meta` that names a sub-agent."""

_SESSIONS = ("threadId", "vscode.conversationId")
_CODEX = "x-codex-turn-metadata"
_HTTP_SESSION = "mcp-session-id"
_TRIES = 40
_WAIT_S = 2.0
"""How long a server that was just started again waits until the one before it has ended, in seconds."""


class Agent(NamedTuple):
    """Who calls.

    Attributes:
        name: Its actor and owner.
        sub_agent: The name that `_meta` gives a sub-agent, or empty.
        is_nameless: Whether the client can't be told apart from others of its kind.
        connection: What the ids of its requests are unique in; empty if nothing is known to be.
        session: The id of the host's session, if the host tells it.
        host: What the host calls itself.
        web: The MCP session of a request over HTTP.
        thread: The conversation that the host names in the request.
    """

    name: str
    sub_agent: str = ""
    is_nameless: bool = False
    connection: str = ""
    session: str = ""
    host: str = ""
    web: str = ""
    thread: str = ""


class Agents:
    """Names the agents of one server.

    Args:
        actor: The name that the server was started with, which all of its agents then have.
        sessions: What hosts note of their sessions; None for a server that many processes share, or none knows.
        session: The id of the session that the server was started for, if the host says so.
        place: What a later server has in common with this one if it continues its work: directory, user, list.
    """

    def __init__(
        self, actor: str | None = None, sessions: Sessions | None = None, session: str | None = None, place: str = ""
    ) -> None:
        self._actor = actor
        self._sessions = sessions
        self._session = session or ""
        self._place = place
        self._first = None if session is None else hash_session(session)
        self._drawn = secrets.token_hex(16)
        self._names: dict[str, str] = {}

    async def of(self, context: Context) -> Agent:
        """The agent that makes a request.

        Raises:
            Problem: The server's `--actor` is the name of another server that runs.
        """
        meta: Mapping[str, Any] = dict(context.meta or {})
        sub_agent = meta.get(AGENT_KEY, "")
        if not isinstance(sub_agent, str):
            raise Problem("invalid_arguments", f"{AGENT_KEY} in _meta must be a text", {"field": AGENT_KEY})
        known = context.session.client_params
        host = known.client_info.name if known is not None else ""
        told, request = _conversation_id(meta), context.request
        web = "" if request is None else str(request.headers.get(_HTTP_SESSION, ""))
        connection = web if request is not None else self._drawn
        if self._actor is not None:
            name = await self._own(self._actor) if request is None else self._actor
        elif told:
            name = build_agent_name(host or "mcp", hash_session(told))
        elif request is None:
            name = await self._own(build_agent_name(host or "mcp", self._key(host or "mcp")))
        elif web:
            name = build_agent_name(host or "mcp", hash_session(web))
        else:
            return Agent(build_agent_name(host or "mcp", "http"), sub_agent, is_nameless=True)
        session = told or (self._session if request is None else "")
        return Agent(name, sub_agent, connection=connection, session=session, host=host, web=web, thread=told)

    def _key(self, host: str) -> str:
        if self._sessions is None:
            return self._drawn
        if self._first is None:
            noted = self._sessions.load_current()
            if noted is not None and noted.sessions:
                self._first = noted.sessions[-1]
            else:
                self._first = self._sessions.continue_agent(host, self._place, self._drawn)
        return self._sessions.find_agent(self._first)

    async def _own(self, name: str) -> str:
        """The name, or one like it that no other server has: two processes with one name would be one agent."""
        if self._sessions is None or name in self._names:
            return self._names.get(name, name)
        for _ in range(_TRIES):
            if self._sessions.lock_name(name):
                self._names[name] = name
                break
            await anyio.sleep(_WAIT_S / _TRIES)
        else:
            if self._actor is not None:
                text = (
                    f"another server works as {name} already, and two would be one agent: end it, or start this one"
                    " with another --actor, or with none to get a name of its own"
                )
                raise Problem("name_taken", text)
            self._names[name] = build_agent_name(name.rpartition("/")[0], secrets.token_hex(16))
        return self._names[name]


def _conversation_id(meta: Mapping[str, Any]) -> str:
    turn = meta.get(_CODEX)
    found = [meta.get(name) for name in _SESSIONS]
    found += [cast("dict[str, Any]", turn).get("thread_id")] if isinstance(turn, dict) else []
    return next((one for one in found if isinstance(one, str) and one), "")
