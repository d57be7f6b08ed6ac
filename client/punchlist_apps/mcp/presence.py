"""Registers this server's agents with the daemon, on the connection that makes the server's calls.

The daemon counts an agent as present while this connection is open, so it stays open when idle. Each new connection
registers all agents again before its first call. An agent of an HTTP session leaves with the session. The other agents
leave when the server ends, even if it crashes.
"""

import os
from contextlib import suppress

import anyio
import msgspec

from punchlist.calls.call import Call
from punchlist.clients.aio import AsyncClient
from punchlist.connection.core import Request
from punchlist.connection.link import Link
from punchlist.errors import PunchlistError
from punchlist_apps.mcp.agents import Agent
from punchlist_apps.mcp.file_systems import run_in_thread
from punchlist_schemas import repository
from punchlist_schemas.params import AgentEnter, AgentLeave
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.results import HelloResult

RETRY_S = 1.0
"""Time between attempts to connect, in seconds. Also the maximum time that a report of an agent's call takes."""

REPORT_S = 10.0
"""Minimum time between two reports of the same agent's calls, in seconds."""

_MAX_NAME = 500
_MAX_PATH = 4_096


class Presence:
    """The agents of one server.

    Args:
        client: Makes the server's calls.
        pid: The process that the host started; 0 if the server serves several hosts.
    """

    def __init__(self, client: AsyncClient, pid: int = 0) -> None:
        self._client = client
        self._pid = pid
        client.on_connect = self._enter_all
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
        if not is_new and self._last[0] == agent.name and now - self._last[1] < REPORT_S:
            return
        self._last = agent.name, now
        params = AgentEnter(agent=agent.name, host=_sanitize(agent.host, _MAX_NAME), pid=self._pid)
        with anyio.move_on_after(RETRY_S):
            params = await run_in_thread(_add_place, params, agent.directory)
        self._agents[agent.name] = params
        # Older daemons reject this call. With such a daemon, the agents' claims last until they expire.
        with anyio.move_on_after(RETRY_S), suppress(PunchlistError):
            hello = await self._client.open()
            await self._client.run(Call("agent.enter", restrict(params, hello), bool))

    def end_session(self, session: str) -> None:
        """Deregister the agents of an HTTP session that has ended."""
        for key in [key for key in self._current if key[0] == session]:
            self._leave(self._current.pop(key))

    def _leave(self, name: str) -> None:
        if name in self._current.values():
            return
        self._agents.pop(name, None)
        self._client.post(Request.of("agent.leave", AgentLeave(agent=name)))

    async def run(self) -> None:
        """Keep the connection open until cancelled."""
        while True:
            with suppress(PunchlistError):
                await self._client.stay_connected()
            await anyio.sleep(RETRY_S)

    async def _enter_all(self, link: Link) -> None:
        for params in list(self._agents.values()):
            await link.exchange(Request.of("agent.enter", restrict(params, link.hello)))


def _add_place(params: AgentEnter, directory: str) -> AgentEnter:
    if not directory:
        return params
    directory = os.path.realpath(directory)
    checkout = None
    with suppress(DirectoryError, OSError):
        checkout = repository.find_repository(directory)
    branch = "" if checkout is None else _sanitize(checkout.branch, _MAX_NAME)
    return msgspec.structs.replace(params, directory=_sanitize(directory, _MAX_PATH), branch=branch)


def restrict(params: AgentEnter, hello: HelloResult) -> AgentEnter:
    """Return the params without members that an older daemon rejects."""
    return params if "agent.pid" in hello.features else msgspec.structs.replace(params, pid=0)


def _sanitize(text: str, max_length: int) -> str:
    """Return the text as valid UTF-8, limited in length.

    File names and host names may contain any bytes and have any length.
    """
    return text.encode("utf-8", "replace").decode()[:max_length]
