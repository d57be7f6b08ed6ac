"""Sessions as agents: real `punch agent mcp` processes of one client name, their hooks, and HTTP sessions."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import Client, connect
from punchlist_apps.hosts.sessions import agent_name, key_of
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package

require_package("mcp")
mcp: Any = import_module("mcp")

HOST = "claude-code"


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Spawned) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="zed") as client:
        client.conversation("work").add_many(["one", "two", "three", "four"])
        yield client


def environment(session: str | None) -> dict[str, str]:
    path = os.pathsep.join(one for one in sys.path if one)
    own = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session} if session is not None else {}
    bare = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDE")}
    return {**bare, "PYTHONPATH": path, "PUNCHLIST_CONVERSATION": "work", **own}


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


def hook(daemon: Spawned, event: str, session: str, **members: Any) -> str:
    given = json.dumps({"session_id": session, "hook_event_name": event, **members})
    command = [sys.executable, *words(daemon, "agent", "prime", "--hook")]
    ran = subprocess.run(command, input=given, env=environment(session), capture_output=True, text=True, check=True)
    assert not ran.stderr
    return ran.stdout


@asynccontextmanager
async def sessions(daemon: Spawned, *names: str | None, more: tuple[str, ...] = ()) -> AsyncGenerator[list[Any]]:
    """Hosts of one client name, each with an MCP server of its own. A name is the id of its session."""
    info = mcp.types.Implementation(name=HOST, version="2")
    with anyio.fail_after(60):
        async with AsyncExitStack() as stack:
            servers = [
                mcp.StdioServerParameters(
                    command=sys.executable, args=words(daemon, "agent", "mcp", *more), env=environment(name)
                )
                for name in names
            ]
            yield [await stack.enter_async_context(mcp.Client(one, client_info=info)) for one in servers]


async def said(session: Any, tool: str = "next", meta: dict[str, Any] | None = None, **arguments: Any) -> str:
    reply = await session.call_tool(tool, arguments, meta=meta)
    return reply.content[0].text


def owners(client: Client) -> dict[str, str]:
    return {task.id: task.owner for task in client.conversation("work").list() if task.owner}


async def test_two_sessions_of_one_host_work_on_a_task_each(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a", None) as (a, b):
        assert "Now #1" in await said(a)
        assert "Now #2" in await said(b)
        assert "#2 done.\nNow #3" in await said(b, result="by B")
        assert "Others changed #2, #3" in await said(a, result="by A")
        done = {task.id: (task.result_summary, task.owner) for task in client.conversation("work").list()}
    assert done["1"] == ("by A", agent_name(HOST, key_of("a")))
    assert done["2"][0] == "by B"
    assert done["2"][1].startswith(f"{HOST}/")
    assert done["2"][1] != done["1"][1]


async def test_a_sessions_hooks_and_its_server_are_one_agent(daemon: Spawned, client: Client) -> None:
    for session in ("a", "b"):
        hook(daemon, "SessionStart", session, source="startup")
    async with sessions(daemon, "a", "b") as (a, b):
        await said(a)
        assert hook(daemon, "UserPromptSubmit", "a") == ""
        assert '#1 "one" taken by claude-code/' in hook(daemon, "UserPromptSubmit", "b")
        assert hook(daemon, "Stop", "b") == ""
        assert '#1 \\"one\\"' in hook(daemon, "Stop", "a")
        await said(b)
        assert '#2 \\"two\\"' in hook(daemon, "Stop", "b")
        assert hook(daemon, "Stop", "a") == "", "once"


async def test_after_clear_and_resume_the_running_server_goes_by_the_new_session(
    daemon: Spawned, client: Client
) -> None:
    hook(daemon, "SessionStart", "a", source="startup")
    async with sessions(daemon, "a") as (a,):
        await said(a)
        hook(daemon, "SessionStart", "cleared", source="clear")
        assert "You are at it already.\nNow #1" in await said(a)
        hook(daemon, "SessionStart", "older", source="resume")
        assert "Now #2" in await said(a)
    assert owners(client) == {"1": agent_name(HOST, key_of("a")), "2": agent_name(HOST, key_of("older"))}


async def test_a_server_that_was_started_again_goes_on_with_its_task(daemon: Spawned, client: Client) -> None:
    for turn in ("Now #1", "You are at it already.\nNow #1"):
        async with sessions(daemon, "a") as (a,):
            assert turn in await said(a)
    async with sessions(daemon, "a") as (a,):
        assert "#1 done." in await said(a, result="r")


async def test_two_servers_of_one_session_are_two_agents(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a", "a") as (a, twin):
        assert "Now #1" in await said(a)
        assert "Now #2" in await said(twin)
        assert len(set(owners(client).values())) == 2


async def test_two_servers_that_are_given_one_name_are_told_so(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a", "b", more=("--actor", "ann")) as (a, b):
        assert "Now #1" in await said(a)
        refused = await b.call_tool("next", {})
        assert refused.is_error
        assert refused.structured_content["refused"] == "name_taken"
        assert owners(client) == {"1": "ann"}


@pytest.mark.parametrize("name", ["", "a\x1b[2J", "x" * 129])
def test_a_name_that_can_not_be_shown_is_refused_at_the_start(name: str, daemon: Spawned) -> None:
    command = [sys.executable, *words(daemon, "agent", "mcp", "--actor", name)]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, env=environment(None), capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"--actor is 1 to 128 characters" in ran.stderr
    assert b"\x1b" not in ran.stderr


@pytest.mark.parametrize(
    "meta",
    [
        {"threadId": "0199-{}"},
        {"x-codex-turn-metadata": {"session_id": "s", "thread_id": "0199-{}"}},
        {"vscode.conversationId": "dc30-{}"},
        {"punchlist/agent": "agent-{}"},
    ],
)
async def test_conversations_that_share_a_server_are_agents_of_their_own(
    meta: dict[str, Any], daemon: Spawned, client: Client
) -> None:
    first, second = [json.loads(json.dumps(meta).replace("{}", one)) for one in "12"]
    async with sessions(daemon, "a") as (a,):
        assert "Now #1" in await said(a, meta=first)
        assert "Now #2" in await said(a, meta=second)
        assert "#1 done.\nNow #3" in await said(a, meta=first, result="r")
        assert "You are at it already.\nNow #2" in await said(a, meta=second)


@pytest.mark.parametrize("agent", ["a b", "x" * 10_000, "\x1b[2J", 3, ["a"]])
async def test_a_hostile_name_of_a_sub_agent_is_refused_and_not_repeated(
    agent: Any, daemon: Spawned, client: Client
) -> None:
    async with sessions(daemon, "a") as (a,):
        refused = await a.call_tool("next", {}, meta={"punchlist/agent": agent})
        assert refused.is_error
        assert len(refused.content[0].text) < 200
        assert "\x1b" not in refused.content[0].text
    assert owners(client) == {}


async def test_a_request_that_is_repeated_completes_nothing_further(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a") as (a,):
        await said(a)
        once = await said(a, meta={"punchlist/key": "k"}, result="r")
        assert await said(a, meta={"punchlist/key": "k"}, result="r") == once
        assert "#2 done." in await said(a, meta={"punchlist/key": "l"}, result="r")
    assert [task.status for task in client.conversation("work").list()][2:] == ["in_progress", "pending"]


def test_a_request_whose_bytes_are_sent_twice_completes_nothing_further(daemon: Spawned, client: Client) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": HOST, "version": "2"}}
    take: dict[str, Any] = {"name": "next", "arguments": {}}
    finish: dict[str, Any] = {"name": "next", "arguments": {"result": "r"}}
    lines: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 6, "method": "tools/call", "params": take},
        {"id": 7, "method": "tools/call", "params": finish},
        {"id": 7, "method": "tools/call", "params": finish},
    ]
    command = [sys.executable, *words(daemon, "agent", "mcp")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment("a"), text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        replies: list[Any] = []
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
            process.stdin.flush()
            if "id" in line:
                replies.append(json.loads(process.stdout.readline())["result"])
        process.stdin.close()
    assert replies[2] == replies[3]
    statuses = [task.status for task in client.conversation("work").list()]
    assert statuses == ["completed", "in_progress", "pending", "pending"]


async def test_an_attached_session_finds_its_list_through_the_server_too(daemon: Spawned, client: Client) -> None:
    client.conversation("website").add("There")
    client.call("conversation.attach", {"conversation": "website", "session": "a"})
    environment_of_a = {**environment("a"), "PUNCHLIST_CONVERSATION": ""}
    server = mcp.StdioServerParameters(command=sys.executable, args=words(daemon, "agent", "mcp"), env=environment_of_a)
    with anyio.fail_after(30):
        async with mcp.Client(server) as session:
            assert "There" in await said(session, "tasks")


@asynccontextmanager
async def over_http(daemon: Spawned, mode: str, count: int) -> AsyncGenerator[list[Any]]:
    """Clients of one `punch agent mcp --http` in this process."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from punchlist import connect_async
    from punchlist_apps.mcp.serve import http_app, http_server, loopback_sockets
    from punchlist_apps.mcp.server import Setup, build

    sockets = loopback_sockets(0)
    port = sockets[0].getsockname()[1]
    with anyio.fail_after(60):
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect_async(socket=daemon.socket, autostart=False))
            group = await stack.enter_async_context(anyio.create_task_group())
            server = http_server(http_app(build(client, Setup(conversation="work")), port, None))
            group.start_soon(server.serve, sockets)
            http = await stack.enter_async_context(httpx2.AsyncClient())
            address = f"http://127.0.0.1:{port}/mcp"
            yield [
                await stack.enter_async_context(
                    mcp.Client(streamable_http_client(address, http_client=http), mode=mode)
                )
                for _ in range(count)
            ]
            server.should_exit = True


async def test_each_session_over_http_is_an_agent(daemon: Spawned, client: Client) -> None:
    async with over_http(daemon, "legacy", 2) as (a, b):
        assert "Now #1" in await said(a)
        assert "Now #2" in await said(b)
        assert "#1 done.\nNow #3" in await said(a, result="r")
    assert len(set(owners(client).values())) == 2


async def test_without_sessions_over_http_an_agent_names_itself(daemon: Spawned, client: Client) -> None:
    async with over_http(daemon, "auto", 2) as (a, b):
        assert "give agent, a name of your own" in await said(a)
        assert "4 pending" in await said(a, "tasks")
        assert "Now #1" in await said(a, agent="ann")
        assert "Now #2" in await said(b, agent="bob")
        assert "#1 done.\nNow #3" in await said(a, agent="ann", result="r")
