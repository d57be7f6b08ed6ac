"""Calls by two agents and a person return the same replies in process and over HTTP."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import AsyncClient, connect_async
from punchlist_schemas.things import Gate
from punchlist_testing.agent_hosts import build_process, mcp_over_http
from punchlist_testing.daemon import running_daemon
from punchlist_testing.optional import require_package

require_package("mcp")
mcp: Any = import_module("mcp")
import httpx2
from mcp.client.streamable_http import streamable_http_client

from punchlist_apps.common.http.connections import ConnectionSlots
from punchlist_apps.mcp.server import Setup, build

Script = list[tuple[str, str, dict[str, Any]]]

QUEUE: Script = [
    ("a", "list_tasks", {}),
    ("b", "add_task", {"description": "new"}),
    ("a", "add_task", {"description": "New.", "priority": "high"}),
    ("b", "resume_task", {"taskId": "1"}),
    ("a", "pause_task", {"taskId": "1"}),
    ("a", "complete_task", {"taskId": "1", "result_summary": "not mine"}),
    ("a", "list_tasks", {}),
    ("b", "complete_task", {"taskId": "1", "result_summary": "done"}),
    ("a", "complete_task", {"taskId": "1", "result_summary": "again"}),
    ("a", "delete_task", {"taskId": "2"}),
    ("a", "complete_task", {"taskId": "3", "result_summary": "deployed"}),
    ("b", "resume_task", {"taskId": "3"}),
    ("ann", "reject", {"task": "3", "reason": "the docs are missing"}),
    ("b", "list_tasks", {}),
    ("b", "fail_task", {"taskId": "4", "reason": "no"}),
]
CHECKLIST: Script = [
    ("a", "AddTask", {"title": "new"}),
    ("b", "AddTask", {"title": "New.", "description": "more"}),
    ("a", "CompleteTask", {"taskId": "1"}),
    ("b", "CompleteTask", {"taskId": "1"}),
    ("b", "CompleteTask", {"taskId": "2"}),
    ("b", "DeleteTask", {"taskId": "2"}),
    ("a", "CompleteTask", {"taskId": "3"}),
    ("ann", "reject", {"task": "3", "reason": "the docs are missing"}),
    ("b", "ListTasks", {}),
    ("b", "UncompleteTask", {"taskId": "1"}),
    ("b", "SetTaskList", {"tasks": [{"title": "x"}]}),
    ("a", "ListTasks", {}),
]


@asynccontextmanager
async def connect_in_process(client: AsyncClient, setup: Setup) -> AsyncGenerator[dict[str, Any]]:
    """Two agents, each with its own server."""
    async with mcp.Client(build(client, setup)) as a, mcp.Client(build(client, setup)) as b:
        yield {"a": a, "b": b}


@asynccontextmanager
async def connect_over_http(client: AsyncClient, setup: Setup) -> AsyncGenerator[dict[str, Any]]:
    """Two agents with sessions on one server."""
    async with mcp_over_http(build(client, setup), places=ConnectionSlots(8, lambda _token: True)) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with (
            httpx2.AsyncClient() as one,
            httpx2.AsyncClient() as two,
            mcp.Client(streamable_http_client(url, http_client=one), mode="legacy") as a,
            mcp.Client(streamable_http_client(url, http_client=two), mode="legacy") as b,
        ):
            yield {"a": a, "b": b}


async def replies(directory: Path, transport: Any, dialect: str, script: Script) -> list[str]:
    """Return the reply to each call; agents are named in order of appearance."""
    setup = Setup(build_process(directory), str(directory / "data"), (dialect,), "work")
    names: dict[str, str] = {}
    told: list[str] = []
    with anyio.fail_after(60):
        async with (
            running_daemon(directory) as daemon,
            connect_async(socket=daemon.socket, autostart=False, name="punch mcp") as client,
            connect_async(socket=daemon.socket, autostart=False, name="ann") as ann,
            transport(client, setup) as agents,
        ):
            work = ann.conversation("work")
            await work.add("first")
            await work.add("for ann", owner="ann")
            await work.add("deploy", gate=Gate(yes=True))
            for who, tool, arguments in script:
                if who == "ann":
                    await work.reject(**arguments)
                    continue
                reply = await agents[who].call_tool(tool, arguments)
                told.append(f"{who} {tool}: {''.join(getattr(part, 'text', '') for part in reply.content)}")
    return [
        re.sub(r"mcp/[0-9a-f]{6}", lambda found: names.setdefault(found[0], f"agent {len(names)}"), one) for one in told
    ]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A directory for each transport."""
    found = tmp_path / "inside", tmp_path / "http"
    for place in found:
        place.mkdir()
    return found


@pytest.mark.parametrize(("dialect", "script"), [("queue", QUEUE), ("checklist", CHECKLIST)])
async def test_both_transports_give_equal_results(places: tuple[Path, Path], dialect: str, script: Script) -> None:
    ours = await replies(places[0], connect_in_process, dialect, script)
    assert await replies(places[1], connect_over_http, dialect, script) == ours
    assert any("waits for a person's yes" in one or "waitsFor" in one for one in ours)
    assert any("agent 0" in one for one in ours), "agents are distinguished"
