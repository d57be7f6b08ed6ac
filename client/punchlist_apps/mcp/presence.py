"""The agents of this server, entered at the daemon over a connection of their own.

The daemon takes an agent for present while this connection is open, so it is not one that closes when it is idle. After
a restart of the daemon all agents are entered again. An agent of an HTTP session leaves with the session; the others
leave when the server ends, in whatever way.
"""

import os
from contextlib import suppress

import anyio

from punchlist.clients.aio import AsyncClient
from punchlist.connection.core import Profile, Request, result_of
from punchlist.connection.link import Link
from punchlist.errors import PunchlistError
from punchlist_apps.mcp.agents import Agent
from punchlist_schemas import repository
from punchlist_schemas.params import AgentEnter, AgentLeave
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.results import Acknowledged

RETRY_S = 1.0
"""How long to wait before the daemon is tried again, in seconds. A first call waits for the daemon at most as long."""

REPORT_S = 10.0
"""Shortest time between two reports of calls of one agent, in seconds."""

_MAX_NAME = 500
_MAX_PATH = 4_096


class Presence:
    """The agents of one server.

    Args:
        directory: Where they work; None: the working directory of a server that serves one host.
    """

    def __init__(self, client: AsyncClient, directory: str | None = None) -> None:
        self._profile = Profile(client.options)
        self._directory = directory
        self._link: Link | None = None
        self._connected = anyio.Event()
        self._retry_now = anyio.Event()
        """Set by a call that should not wait for the next try to connect."""
        self._agents: dict[str, AgentEnter] = {}
        self._current: dict[tuple[str, str], str] = {}
        """The current agent of each HTTP session and each of its threads."""
        self._last = ("", 0.0)

    async def enter(self, agent: Agent) -> None:
        """Enter the agent of a call, before the call claims anything; report a later one once in a while."""
        if agent.is_nameless:
            return
        key = agent.web, agent.thread
        former, self._current[key] = self._current.get(key), agent.name
        if former not in (None, agent.name):
            self._leave(former)  # the host went back to an older session in the same window
        is_new, now = agent.name not in self._agents, anyio.current_time()
        is_known = not is_new and self._last[0] == agent.name and now - self._last[1] < REPORT_S
        if is_known and self._link is not None:
            return
        self._last = agent.name, now
        self._agents[agent.name] = self._params(agent)
        with anyio.move_on_after(RETRY_S):
            self._retry_now.set()
            await self._connected.wait()
            if self._link is not None:
                await self._enter(self._link, self._agents[agent.name])

    def end_session(self, session: str) -> None:
        """Let the agents of an HTTP session leave, since it has ended."""
        for key in [key for key in self._current if key[0] == session]:
            self._leave(self._current.pop(key))

    def _leave(self, name: str) -> None:
        if name in self._current.values():
            return
        self._agents.pop(name, None)
        if self._link is not None and not self._link.is_lost:
            self._link.post(Request.of("agent.leave", AgentLeave(agent=name)))

    async def run(self) -> None:
        while True:
            with suppress(PunchlistError):
                await self._keep()
            self._connected, self._retry_now = anyio.Event(), anyio.Event()
            with anyio.move_on_after(RETRY_S):
                await self._retry_now.wait()

    async def _keep(self) -> None:
        self._link = link = await Link.open(self._profile)
        try:
            for params in list(self._agents.values()):
                await self._enter(link, params)
            self._connected.set()
            while True:
                await link.receive()  # nothing is pushed here: it ends when the connection does
        finally:
            self._link = None
            link.close()

    async def _enter(self, link: Link, params: AgentEnter) -> None:
        # A daemon of an older version knows no agents, and their claims last for their time.
        with suppress(PunchlistError):
            result_of(await link.exchange(Request.of("agent.enter", params)), Acknowledged)

    def _params(self, agent: Agent) -> AgentEnter:
        host = _sanitize(agent.host, _MAX_NAME)
        if agent.web:
            return AgentEnter(agent=agent.name, host=host)
        directory = os.path.realpath(self._directory or ".")
        found = None
        with suppress(DirectoryError, OSError):
            found = repository.above(directory)
        branch = "" if found is None else _sanitize(found.branch, _MAX_NAME)
        return AgentEnter(agent=agent.name, host=host, directory=_sanitize(directory, _MAX_PATH), branch=branch)


def _sanitize(text: str, most: int) -> str:
    """Return a text that the wire takes: names of files and hosts may be any bytes, of any length."""
    return text.encode("utf-8", "replace").decode()[:most]
