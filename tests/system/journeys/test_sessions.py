"""Many agents with tools in one process; `make fault NAME=sessions` does the same with MCP servers and hooks."""

import os
import random
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync

from punchlist import AsyncClient, connect_async
from punchlist.tools.toolbox import AsyncToolbox, ToolCaller
from punchlist_testing.daemon import running_daemon
from punchlist_testing.repositories import repository, worktree
from punchlist_testing.work_sessions import CallTool, ToolReply, Worker, check_lists

USERS = ("alice", "bob", "carol")
_RESTARTS = 0.05


async def test_each_task_is_done_once_by_its_session(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    site, tool = repository(tmp_path / "site"), repository(tmp_path / "tool")
    places = [("site", site), ("site", worktree(site, tmp_path / "branch")), ("tool", tool), ("tool", tool)]
    callers = [
        (place, ToolCaller(actor=f"claude-code/{n}", directory=str(path))) for n, (place, path) in enumerate(places)
    ]
    callers += [(user, ToolCaller("my:default", f"web/{number}", user)) for user in USERS for number in range(2)]
    workers: list[Worker] = []
    async with running_daemon(tmp_path) as daemon:
        async with anyio.create_task_group() as group:
            for place, caller in callers:
                workers.append(Worker(caller.actor, place, random.Random(chance.random())))
                group.start_soon(session, daemon.socket, workers[-1], caller._replace(data_dir=daemon.data_dir), 30)
        assert await run_sync(check_lists, daemon.socket, workers, USERS)


async def session(socket: str, worker: Worker, caller: ToolCaller, calls: int) -> None:
    """Run one session. Sometimes its process ends, and the next process starts without its memory."""
    while calls > 0:
        user: Any = {"user": caller.user} if caller.user else {}
        async with connect_async(socket=socket, autostart=False, **user) as client:
            call_tool = tools_of(client, caller)
            while calls > 0:
                calls -= 1
                await worker.step(call_tool)
                if worker.chance.random() < _RESTARTS:
                    break
            if not calls:
                await worker.finish(call_tool)


def tools_of(client: AsyncClient, caller: ToolCaller) -> CallTool:
    box = AsyncToolbox(client, caller)

    async def call_tool(tool: str, arguments: dict[str, Any]) -> ToolReply:
        reply = await box.call("native", tool, arguments)
        return ToolReply(reply.text, reply.data, reply.refused)

    return call_tool
