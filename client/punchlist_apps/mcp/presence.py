"""Registers this server's agents with the daemon, over a separate connection.

The daemon counts an agent as present while this connection is open, so it stays open when idle. After the daemon
restarts, all agents are registered again. An agent of an HTTP session leaves with the session. The other agents leave
when the server ends, even if it crashes.
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
"""Time between attempts to connect, in seconds. Also the maximum time that an agent's first call waits for a
connection to the daemon."""

REPORT_S = 10.0
"""Minimum time between two reports of the same agent's calls, in seconds."""

_MAX_NAME = 500
_MAX_PATH = 4_096


class Presence:
    """The agents of one server.

    Args:
        directory: The directory in which the agents work; "" if the server serves several hosts.
    """

    def __init__(self, client: AsyncClient, directory: str = "") -> None:
        self._profile = Profile(client.options)
        self._directory = directory
        self._link: Link | None = None
        self._connected = anyio.Event()
        self._retry_now = anyio.Event()
        """Set by a call that needs a connection now, to skip the wait before the next attempt."""
        self._agents: dict[str, AgentEnter] = {}
        self._current: dict[tuple[str, str], str] = {}
        """The current agent of each HTTP session and thread."""
        self._last = ("", 0.0)

    async def enter(self, agent: Agent) -> None:
        """Register the agent of a call before the call claims anything. Report later calls at most every `REPORT_S`."""
        if agent.is_nameless:
            return
        key = agent.http_session, agent.thread
        former, self._current[key] = self._current.get(key), agent.name
        if former not in (None, agent.name):
            self._leave(former)  # The host returned to an older session in the same window.
        is_new, now = agent.name not in self._agents, anyio.current_time()
        is_recent = not is_new and self._last[0] == agent.name and now - self._last[1] < REPORT_S
        if is_recent and self._link is not None:
            return
        self._last = agent.name, now
        self._agents[agent.name] = self._params(agent)
        with anyio.move_on_after(RETRY_S):
            self._retry_now.set()
            await self._connected.wait()
            if self._link is not None:
                await self._enter(self._link, self._agents[agent.name])

    def end_session(self, session: str) -> None:
        """Deregister the agents of an HTTP session that has ended."""
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
                # Nothing is pushed over this connection, so the call returns when the connection ends.
                await link.receive()
        finally:
            self._link = None
            link.close()

    async def _enter(self, link: Link, params: AgentEnter) -> None:
        # Older daemons reject this call. With such a daemon, the agents' claims last until they expire.
        with suppress(PunchlistError):
            result_of(await link.exchange(Request.of("agent.enter", params)), Acknowledged)

    def _params(self, agent: Agent) -> AgentEnter:
        host = _sanitize(agent.host, _MAX_NAME)
        if not self._directory:
            return AgentEnter(agent=agent.name, host=host)
        directory = os.path.realpath(self._directory)
        checkout = None
        with suppress(DirectoryError, OSError):
            checkout = repository.find_repository(directory)
        branch = "" if checkout is None else _sanitize(checkout.branch, _MAX_NAME)
        return AgentEnter(agent=agent.name, host=host, directory=_sanitize(directory, _MAX_PATH), branch=branch)


def _sanitize(text: str, max_length: int) -> str:
    """Return the text as valid UTF-8, limited in length.

    File names and host names may contain any bytes and have any length.
    """
    return text.encode("utf-8", "replace").decode()[:max_length]
