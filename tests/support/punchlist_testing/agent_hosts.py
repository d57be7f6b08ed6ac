"""Sessions of an agent host: MCP servers and hooks as child processes, and an MCP server over HTTP in this process."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import anyio

from punchlist_apps.common.http.server import build_server
from punchlist_apps.common.http.sockets import open_loopback_sockets
from punchlist_apps.mcp.server_process import ServerProcess
from punchlist_testing.daemon import Spawned

HOST = "claude-code"


def environment(session: str | None = None, **more: str) -> dict[str, str]:
    """Return the environment of a host's session. None stands for a host that doesn't identify its sessions."""
    own = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session} if session is not None else {}
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "PUNCHLIST"))}
    return {**bare, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **own, **more}


def build_process(directory: object = "/", **env: str) -> ServerProcess:
    """Return a host's process in a directory, with these variables."""
    return ServerProcess(env, str(directory), os.getpid())


def command(daemon: Spawned, *words: str) -> list[str]:
    places = ["--socket", daemon.socket, "--data-dir", daemon.data_dir, "--no-autostart"]
    return [sys.executable, "-m", "punchlist", *words, *places]


def run_hook(daemon: Spawned, session: str, directory: str | None = None, host: str = HOST, **members: Any) -> str:
    """Run `punch agent prime --hook` for an event of a session and return its output.

    The hook runs in the directory, if one is given; otherwise it uses the list `work`.
    """
    env = environment(session, **({} if directory else {"PUNCHLIST_CONVERSATION": "work"}))
    ran = subprocess.run(
        command(daemon, "agent", "prime", "--hook", "--host", host),
        input=json.dumps({"session_id": session, **members}),
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not ran.stderr
    return ran.stdout


@asynccontextmanager
async def mcp_over_http(built: Any, grants: Any = None, places: Any = None, **limits: Any) -> AsyncGenerator[int]:
    """Serve an MCP server in this process; yield its port."""
    http_app: Any = import_module("punchlist_apps.mcp.serve").build_http_app
    sockets = open_loopback_sockets(0)
    port = sockets[0].getsockname()[1]
    server = build_server(http_app(built, port, grants, **limits), places)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, sockets)
        yield port
        server.end()
