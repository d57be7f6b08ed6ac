"""Many sessions of one host at once: several repositories, a worktree, several users, hooks, and servers that restart.

`make sessions` runs it whole; `SEED` repeats a run, `SIZE` is the number of calls.
"""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from punchlist import Client, connect
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.repositories import repository, worktree

mcp: Any = pytest.importorskip("mcp", reason="the MCP SDK is not installed: make conformance has it")

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
    return ["-m", "punchlist.cli", *more, "--socket", daemon.socket, "--data-dir", daemon.data_dir, "--no-autostart"]


def hook(daemon: Spawned, session: str, directory: Path, event: str) -> str:
    given = json.dumps({"session_id": session, "hook_event_name": event, "cwd": str(directory), "source": "startup"})
    command = [sys.executable, *words(daemon, "prime", "--hook")]
    ran = subprocess.run(
        command, input=given, cwd=directory, env=environment(session), capture_output=True, text=True, check=True
    )
    assert not ran.stderr
    return ran.stdout


class Worker:
    """One agent: what it adds, what it has, what it has finished, checked against every reply."""

    def __init__(self, name: str, place: str, chance: random.Random) -> None:
        self.name = name
        self.place = place
        """Every title begins with it: nothing of another place may be seen."""
        self.chance = chance
        self.task: str | None = None
        self.done: list[str] = []
        self.added = 0
        self.list = ""

    async def step(self, session: Any, meta: dict[str, Any] | None = None) -> None:
        """One call, chosen at random."""
        calls: list[tuple[str, dict[str, Any]]] = [
            ("plan", {"tasks": [f"{self.place} {self.name} {self.added + number}" for number in (1, 2)]}),
            ("next", {}),
            ("next", {"result": f"by {self.name}"}),
            ("next", {"result": f"by {self.name}"}),
            ("tasks", {"since": "last"}),
        ]
        tool, arguments = self.chance.choice(calls)
        reply = await session.call_tool(tool, arguments, meta=meta)
        text, data = reply.content[0].text, reply.structured_content
        self.list = data.get("conversation", self.list)
        for title in (line.split("] ")[-1] for line in text.splitlines() if line.startswith("#")):
            assert "done" in title or self.place in title, (self.name, text)
        if tool == "plan":
            self.added += 2
        elif tool == "next":
            self._check(arguments, reply.is_error, data, text)

    def _check(self, arguments: dict[str, Any], is_error: bool, data: dict[str, Any], text: str) -> None:
        if is_error:
            assert arguments and self.task is None, (self.name, self.task, text)
            assert "you have no task in progress" in text
            return
        if arguments:
            assert data["finished"] == self.task, (self.name, self.task, text)
            self.done.append(data["finished"])
            self.task = None
        following = data["next"] and data["next"]["id"]
        assert self.task in (None, following), (self.name, self.task, text)
        self.task = following


async def on_stdio(daemon: Spawned, worker: Worker, directory: Path, calls: int) -> None:
    """A session of the host with its own MCP server, which it starts again now and then, and its hooks."""
    session = f"session-{worker.name}"
    server = mcp.StdioServerParameters(
        command=sys.executable, args=words(daemon, "mcp"), env=environment(session), cwd=str(directory)
    )
    info = mcp.types.Implementation(name=HOST, version="2")
    while calls > 0:
        async with mcp.Client(server, client_info=info) as client:
            while calls > 0:
                calls -= 1
                await worker.step(client)
                dice = worker.chance.random()
                if dice < _HOOKS:
                    run = partial(hook, daemon, session, directory, worker.chance.choice(["UserPromptSubmit", "Stop"]))
                    told = await anyio.to_thread.run_sync(run)
                    others = [line for line in told.splitlines() if line.startswith("  #")]
                    assert all(worker.place in line for line in others), told
                elif dice < _HOOKS + _RESTARTS:
                    break


async def on_http(client: Any, workers: list[Worker], calls: int, chance: random.Random) -> None:
    """A session over HTTP that works for several users."""
    for _ in range(calls):
        worker = chance.choice(workers)
        await worker.step(client, {"punchlist/user": worker.place})


def judged(client: Client, name: str, workers: list[Worker]) -> int:
    """Each task of a list was completed once, by whoever had it, with this worker's result; returns how many."""
    tasks = {task.id: task for task in client.conversation(name).list()}
    done = Counter(task for worker in workers for task in worker.done)
    assert set(done.values()) <= {1}, done
    assert {task.id for task in tasks.values() if task.status == "completed"} == set(done)
    for worker in workers:
        assert {tasks[one].result_summary for one in worker.done} <= {f"by {worker.name}"}
        assert worker.task is None or tasks[worker.task].status == "in_progress"
    held = [worker.task for worker in workers if worker.task is not None]
    assert len(held) == len(set(held)) == sum(task.status == "in_progress" for task in tasks.values())
    assert len(tasks) == sum(worker.added for worker in workers)
    assert {task.title.split(" ")[0] for task in tasks.values()} <= {workers[0].place}
    owners = {worker.name: {tasks[one].owner for one in worker.done} for worker in workers}
    assert all(len(one) <= 1 for one in owners.values()), owners
    seen = [owner for one in owners.values() for owner in one]
    assert len(seen) == len(set(seen)), "two sessions, two names"
    return len(done)


def judged_all(daemon: Spawned, local: list[Worker], web: list[Worker]) -> int:
    """The lists of all repositories and all users; returns how many tasks are completed."""
    done = 0
    with connect(socket=daemon.socket, autostart=False) as client:
        for place in ("site", "tool"):
            workers = [one for one in local if one.place == place]
            lists = {one.list for one in workers}
            assert len(lists) == 1, "a worktree shares its repository's list"
            done += judged(client, lists.pop(), workers)
    for user in USERS:
        with connect(socket=daemon.socket, autostart=False, user=user) as client:
            done += judged(client, "my:default", [one for one in web if one.place == user])
    return done


async def test_each_task_is_done_once_by_the_session_that_had_it_and_no_row_crosses_users(tmp_path: Path) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from punchlist import connect_async
    from punchlist.mcp.serve import http_app, http_server, loopback_sockets
    from punchlist.mcp.server import Setup, build

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
        done = judged_all(daemon, [one for one, _ in local.values()], [one for workers in web for one in workers])
        print(f"{share * (len(local) + WEB_SESSIONS)} calls, {done} tasks completed")
        assert done
