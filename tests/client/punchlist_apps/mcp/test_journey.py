"""Many sessions of one host at once: several repositories, a worktree, several users, hooks, and servers that restart.

`make fault NAME=sessions` runs it whole; `SEED` repeats a run, `SIZE` is the number of calls.
"""

import json
import os
import random
import subprocess
import sys
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository, worktree
from punchlist_testing.work_sessions import CallTool, Told, Worker, judged_all

require_package("mcp")
mcp: Any = import_module("mcp")

HOST = "claude-code"
USERS = ("alice", "bob", "carol")
WEB_SESSIONS = 4
_HOOKS = 0.02
_RESTARTS = 0.01


def environment(session: str) -> dict[str, str]:
    path = os.pathsep.join(one for one in sys.path if one)
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "PUNCHLIST"))}
    return {**bare, "PYTHONPATH": path, "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session}


def words(daemon: Spawned, *more: str) -> list[str]:
    return [
        "-m",
        "punchlist",
        *more,
        "--socket",
        daemon.socket,
        "--data-dir",
        daemon.data_dir,
        "--no-autostart",
    ]


def hook(daemon: Spawned, session: str, directory: Path, event: str) -> str:
    given = json.dumps({"session_id": session, "hook_event_name": event, "cwd": str(directory), "source": "startup"})
    command = [sys.executable, *words(daemon, "agent", "prime", "--hook")]
    ran = subprocess.run(
        command, input=given, cwd=directory, env=environment(session), capture_output=True, text=True, check=True
    )
    assert not ran.stderr
    return ran.stdout


def tools_of(session: Any, meta: dict[str, Any] | None = None) -> CallTool:
    async def call_tool(tool: str, arguments: dict[str, Any]) -> Told:
        reply = await session.call_tool(tool, arguments, meta=meta)
        return Told(reply.content[0].text, reply.structured_content, reply.is_error)

    return call_tool


async def on_stdio(daemon: Spawned, worker: Worker, directory: Path, calls: int) -> None:
    """A session of the host with its own MCP server, which it starts again now and then, and its hooks."""
    session = f"session-{worker.name}"
    server = mcp.StdioServerParameters(
        command=sys.executable, args=words(daemon, "agent", "mcp"), env=environment(session), cwd=str(directory)
    )
    info = mcp.types.Implementation(name=HOST, version="2")
    while calls > 0:
        async with mcp.Client(server, client_info=info) as client:
            while calls > 0:
                calls -= 1
                await worker.step(tools_of(client))
                dice = worker.chance.random()
                if dice < _HOOKS:
                    run = partial(hook, daemon, session, directory, worker.chance.choice(["UserPromptSubmit", "Stop"]))
                    told = await anyio.to_thread.run_sync(run)
                    others = [line for line in told.splitlines() if line.startswith("  #")]
                    assert all(worker.place in line for line in others), told
                elif dice < _HOOKS + _RESTARTS:
                    break
            if not calls:
                await worker.finish(tools_of(client))


async def on_http(client: Any, workers: list[Worker], calls: int, chance: random.Random) -> None:
    """A session over HTTP that works for several users."""
    for _ in range(calls):
        worker = chance.choice(workers)
        await worker.step(tools_of(client, {"punchlist/user": worker.place}))
    for worker in workers:
        await worker.finish(tools_of(client, {"punchlist/user": worker.place}))


async def test_each_task_is_done_once_by_the_session_that_had_it_and_no_row_crosses_users(tmp_path: Path) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from punchlist import connect_async
    from punchlist_apps.mcp.serve import http_app, http_server, loopback_sockets
    from punchlist_apps.mcp.server import Setup, build

    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    size = int(os.environ.get("SIZE") or 160)
    print(f"SEED={seed} SIZE={size}")
    chance = random.Random(seed)

    def worker(name: str, place: str) -> Worker:
        return Worker(name, place, random.Random(chance.random()))

    site, tool = repository(tmp_path / "site"), repository(tmp_path / "tool")
    places = [
        ("a", site, "site"),
        ("b", worktree(site, tmp_path / "branch"), "site"),
        ("c", tool, "tool"),
        ("d", tool, "tool"),
    ]
    local = {name: (worker(name, place), directory) for name, directory, place in places}
    web = [[worker(f"{number}-{user}", user) for user in USERS] for number in range(WEB_SESSIONS)]
    share = size // (len(local) + WEB_SESSIONS)
    runtime = tmp_path / "run"
    runtime.mkdir(0o700)
    with spawned_daemon(runtime) as daemon, anyio.fail_after(120):
        async with AsyncExitStack() as stack:
            backend = await stack.enter_async_context(connect_async(socket=daemon.socket, autostart=False))
            sockets = loopback_sockets(0)
            port = sockets[0].getsockname()[1]
            server = http_server(http_app(build(backend, Setup(directory=str(runtime))), port, None))
            http = await stack.enter_async_context(httpx2.AsyncClient())
            group = await stack.enter_async_context(anyio.create_task_group())
            group.start_soon(server.serve, sockets)
            address = f"http://127.0.0.1:{port}/mcp"
            clients = [
                await stack.enter_async_context(
                    mcp.Client(streamable_http_client(address, http_client=http), mode="legacy")
                )
                for _ in web
            ]
            async with anyio.create_task_group() as work:
                for one, directory in local.values():
                    work.start_soon(on_stdio, daemon, one, directory, share)
                for client, workers in zip(clients, web, strict=True):
                    work.start_soon(on_http, client, workers, share, random.Random(chance.random()))
            server.should_exit = True
        workers = [one for one, _ in local.values()] + [one for more in web for one in more]
        done = judged_all(daemon.socket, workers, USERS)
        print(f"{share * (len(local) + WEB_SESSIONS)} calls, {done} tasks completed")
        assert done
