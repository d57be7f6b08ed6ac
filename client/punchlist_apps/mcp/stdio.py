"""One host's session over standard input and output, of this process or of one that passes the messages on."""

from argparse import Namespace
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server

from punchlist.clients.aio import AsyncClient
from punchlist.connection.launch import Target, allow_start, note_connected
from punchlist.connection.options import Options
from punchlist_apps.common import autostart
from punchlist_apps.hosts.sessions import Sessions, find_host_process, get_session
from punchlist_apps.mcp.agents import AgentMemory, Agents
from punchlist_apps.mcp.server import Setup, build
from punchlist_apps.mcp.server_process import ServerProcess
from punchlist_apps.mcp.updates import Feeds
from punchlist_schemas.vocabulary import MCP_CLIENT


@asynccontextmanager
async def open_session(  # noqa: PLR0913 - what differs between the two kinds of processes
    args: Namespace,
    process: ServerProcess,
    session_id: str = "",
    *,
    feeds: Feeds | None = None,
    is_resumed: bool = False,
    memory: AgentMemory | None = None,
    on_memory: Callable[[AgentMemory], None] = lambda _memory: None,
) -> AsyncGenerator[Server[Any]]:
    """Open a session: yield its server, and close its connections at the end.

    Args:
        args: The arguments of `punch agent mcp`.
        process: The process that the host started.
        session_id: Identifies the session, also if another process continues it; 32 hex digits, random by default.
        feeds: Feeds to share with other sessions of this process.
        is_resumed: Whether an earlier process served the session.
        memory: The memory of the process that served the session before.
        on_memory: Called when the memory has changed.

    Raises:
        Problem: Unknown dialect or tool.
    """
    target = build_target(args, process)
    # Only a new session starts a daemon that was stopped on purpose.
    (note_connected if is_resumed else allow_start)(target.socket)
    autostart.ensure_mirrors_run(target)
    setup = build_setup(args, process, target)
    sessions = Sessions(target.data_dir, find_host_process(process.pid))
    scope = "\0".join((args.user or "", setup.conversation or "", *setup.dialects))
    agents = Agents(
        args.actor, sessions, get_session(process.env), scope, session_id, memory=memory, on_memory=on_memory
    )
    options = build_options(args, target)
    client = AsyncClient(**options)
    try:
        setup = setup._replace(agents=agents, session_id=session_id, is_resumed=is_resumed)
        yield build(client, setup, feed=feeds and feeds.get(options))
    finally:
        sessions.close()
        await client.aclose()


def build_target(args: Namespace, process: ServerProcess) -> Target:
    """Return the daemon that a process's arguments and variables name.

    The clients of this process know their target's options, but not the other process's variables.
    """
    socket = args.socket or process.env.get("PUNCHLIST_SOCKET")
    data_dir = args.data_dir or process.env.get("PUNCHLIST_DATA_DIR")
    data_dir = data_dir and process.resolve(data_dir)
    # A daemon on a named socket may have any data directory.
    if not socket:
        here, there = Target(None, data_dir), Target(None, data_dir, env=process.env)
        socket = None if there.socket == here.socket else there.socket
        data_dir = data_dir or (None if there.data_dir == here.data_dir else there.data_dir)
    return Target(
        socket and process.resolve(socket),
        data_dir,
        env=process.env,
        autostart=not args.no_autostart and process.env.get("PUNCHLIST_AUTOSTART") != "0",
    )


def build_setup(args: Namespace, process: ServerProcess, target: Target) -> Setup:
    """Return the settings of a process's server."""
    return Setup(
        process,
        target.data_dir,
        dialects=tuple(args.dialect or ("native",)),
        conversation=args.conversation or process.env.get("PUNCHLIST_CONVERSATION") or None,
        actor=args.actor,
        user=args.user,
        tools=args.tools,
    )


def build_options(args: Namespace, target: Target) -> Options:
    """Return the options of a server's connections."""
    options: Options = {"name": MCP_CLIENT, "autostart": target.autostart, **target.options}
    return options | {"user": args.user} if args.user else options
