"""Many concurrent sessions of one host: repositories, a worktree, several users, hooks, and restarting servers.

`make fault NAME=sessions` runs the full version; `SEED` repeats a run, and `SIZE` is the number of calls.
"""

import os
import random
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from punchlist_testing.agent_hosts import HOST, build_process, command, environment, mcp_over_http, run_hook
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository, worktree
from punchlist_testing.work_sessions import CallTool, ToolReply, Worker, check_lists

require_package("mcp")
mcp: Any = import_module("mcp")

USERS = ("alice", "bob", "carol")
WEB_SESSIONS = 4
_HOOKS = 0.02
_RESTARTS = 0.01


def tools_of(session: Any, meta: dict[str, Any] | None = None) -> CallTool:
    async def call_tool(tool: str, arguments: dict[str, Any]) -> ToolReply:
        reply = await session.call_tool(tool, arguments, meta=meta)
        return ToolReply(reply.content[0].text, reply.structured_content, reply.is_error)

    return call_tool


async def work_over_stdio(daemon: Spawned, worker: Worker, directory: Path, calls: int) -> None:
    """A session of the host with its hooks and its own MCP server, which it sometimes restarts."""
    session = f"session-{worker.name}"
    python, *words = command(daemon, "agent", "mcp")
    server = mcp.StdioServerParameters(command=python, args=words, env=environment(session), cwd=str(directory))
    info = mcp.types.Implementation(name=HOST, version="2")
    while calls > 0:
        async with mcp.Client(server, client_info=info) as client:
            while calls > 0:
                calls -= 1
                await worker.step(tools_of(client))
                dice = worker.chance.random()
                if dice < _HOOKS:
                    event = worker.chance.choice(["UserPromptSubmit", "Stop"])
                    given = {"hook_event_name": event, "cwd": str(directory), "source": "startup"}
                    run = partial(run_hook, daemon, session, str(directory), **given)
                    told = await anyio.to_thread.run_sync(run)
                    others = [line for line in told.splitlines() if line.startswith("  #")]
                    assert all(worker.place in line for line in others), told
                elif dice < _HOOKS + _RESTARTS:
                    break
            if not calls:
                await worker.finish(tools_of(client))


async def work_over_http(client: Any, workers: list[Worker], calls: int, chance: random.Random) -> None:
    """A session over HTTP that works for several users."""
    for _ in range(calls):
        worker = chance.choice(workers)
        await worker.step(tools_of(client, {"punchlist/user": worker.place}))
    for worker in workers:
        await worker.finish(tools_of(client, {"punchlist/user": worker.place}))


async def test_each_task_is_done_once_by_its_owner(tmp_path: Path) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from punchlist import connect_async
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
            served = mcp_over_http(build(backend, Setup(build_process(runtime), str(runtime / "data"))))
            address = f"http://127.0.0.1:{await stack.enter_async_context(served)}/mcp"
            http = await stack.enter_async_context(httpx2.AsyncClient())
            clients = [
                await stack.enter_async_context(
                    mcp.Client(streamable_http_client(address, http_client=http), mode="legacy")
                )
                for _ in web
            ]
            async with anyio.create_task_group() as work:
                for one, directory in local.values():
                    work.start_soon(work_over_stdio, daemon, one, directory, share)
                for client, workers in zip(clients, web, strict=True):
                    work.start_soon(work_over_http, client, workers, share, random.Random(chance.random()))
        workers = [one for one, _ in local.values()] + [one for more in web for one in more]
        done = check_lists(daemon.socket, workers, USERS)
        print(f"{share * (len(local) + WEB_SESSIONS)} calls, {done} tasks completed")
        assert done
