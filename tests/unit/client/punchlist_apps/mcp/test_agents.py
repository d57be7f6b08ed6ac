"""Sessions as agents: real `punch agent mcp` processes with one client name, their hooks, and HTTP sessions."""

import json
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
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, hash_session
from punchlist_testing.agent_hosts import HOST, build_process, command, environment, mcp_over_http, run_hook
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package

require_package("mcp")
mcp: Any = import_module("mcp")


def get_session(name: str | None) -> dict[str, str]:
    return environment(name, PUNCHLIST_CONVERSATION="work")


def server_arguments(daemon: Spawned, *more: str) -> list[str]:
    return command(daemon, "agent", "mcp", *more)[1:]


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Spawned) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="zed") as client:
        client.conversation("work").add_many(["one", "two", "three", "four"])
        yield client


@asynccontextmanager
async def sessions(
    daemon: Spawned, *names: str | None, more: tuple[str, ...] = (), host: str = HOST
) -> AsyncGenerator[list[Any]]:
    """Connect hosts with the same client name, each to its own MCP server; `names` are the ids of their sessions."""
    info = mcp.types.Implementation(name=host, version="2")
    with anyio.fail_after(60):
        async with AsyncExitStack() as stack:
            servers = [
                mcp.StdioServerParameters(
                    command=sys.executable, args=server_arguments(daemon, *more), env=get_session(name)
                )
                for name in names
            ]
            yield [await stack.enter_async_context(mcp.Client(one, client_info=info)) for one in servers]


async def call_tool(session: Any, tool: str = "next", meta: dict[str, Any] | None = None, **arguments: Any) -> str:
    reply = await session.call_tool(tool, arguments, meta=meta)
    return reply.content[0].text


def owners(client: Client) -> dict[str, str]:
    return {task.id: task.owner for task in client.conversation("work").list() if task.owner}


async def test_two_sessions_of_a_host_are_two_agents(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a", None) as (a, b):
        assert "Now #1" in await call_tool(a)
        assert "Now #2" in await call_tool(b)
        assert "#2 done.\nNow #3" in await call_tool(b, result="by B")
        assert "Others changed #2, #3" in await call_tool(a, result="by A")
        done = {task.id: (task.result_summary, task.owner) for task in client.conversation("work").list()}
    assert done["1"] == ("by A", build_agent_name(HOST, hash_session("a")))
    assert done["2"][0] == "by B"
    assert done["2"][1].startswith(f"{HOST}/")
    assert done["2"][1] != done["1"][1]


async def test_session_hooks_and_server_are_one_agent(daemon: Spawned, client: Client) -> None:
    for session in ("a", "b"):
        run_hook(daemon, session, hook_event_name="SessionStart", source="startup")
    async with sessions(daemon, "a", "b") as (a, b):
        await call_tool(a)
        assert run_hook(daemon, "a", hook_event_name="UserPromptSubmit") == ""
        assert '#1 "one" claimed by claude-code/' in run_hook(daemon, "b", hook_event_name="UserPromptSubmit")
        assert run_hook(daemon, "b", hook_event_name="Stop") == ""
        assert '#1 \\"one\\"' in run_hook(daemon, "a", hook_event_name="Stop")
        await call_tool(b)
        assert '#2 \\"two\\"' in run_hook(daemon, "b", hook_event_name="Stop")
        assert run_hook(daemon, "a", hook_event_name="Stop") == "", "once"


@pytest.mark.parametrize(
    ("client_name", "host", "event", "meta"),
    [
        ("codex-mcp-client", "codex", "Stop", {"threadId": "a"}),
        ("gemini-cli-mcp-client", "gemini", "AfterAgent", None),
        ("cursor-vscode", "cursor", "stop", None),
        ("copilot-cli", "copilot", "Stop", None),
    ],
)
async def test_hooks_and_server_share_a_name(
    daemon: Spawned, client: Client, client_name: str, host: str, event: str, meta: dict[str, Any] | None
) -> None:
    run_hook(daemon, "a", host=host)
    async with sessions(daemon, None, host=client_name) as (server,):
        assert "Now #1" in await call_tool(server, meta=meta)
        assert owners(client)["1"].startswith(f"{host}/")
        assert '#1 \\"one\\"' in run_hook(daemon, "a", host=host, hook_event_name=event)


async def test_empty_next_is_recorded_until_the_next(daemon: Spawned, client: Client) -> None:
    known, name = Sessions(daemon.data_dir, None), build_agent_name(HOST, hash_session("a"))
    tasks = client.conversation("work")
    async with sessions(daemon, "a") as (server,):
        for task in tasks.list():
            tasks.set_status(task.id, "paused")
        assert "Nothing ready" in await call_tool(server)
        assert known.had_empty_next(name)
        tasks.add("five")
        assert "Now #5" in await call_tool(server)
        assert not known.had_empty_next(name)


async def test_server_follows_clear_and_resume(daemon: Spawned, client: Client) -> None:
    run_hook(daemon, "a", hook_event_name="SessionStart", source="startup")
    async with sessions(daemon, "a") as (a,):
        await call_tool(a)
        run_hook(daemon, "cleared", hook_event_name="SessionStart", source="clear")
        assert "You are at it already.\nNow #1" in await call_tool(a)
        run_hook(daemon, "older", hook_event_name="SessionStart", source="resume")
        assert "Now #2" in await call_tool(a)
    assert owners(client) == {
        "1": build_agent_name(HOST, hash_session("a")),
        "2": build_agent_name(HOST, hash_session("older")),
    }


async def test_restarted_server_continues_its_task(daemon: Spawned, client: Client) -> None:
    for turn in ("Now #1", "You are at it already.\nNow #1"):
        async with sessions(daemon, "a") as (a,):
            assert turn in await call_tool(a)
    async with sessions(daemon, "a") as (a,):
        assert "#1 done." in await call_tool(a, result="r")


async def test_two_servers_of_one_session_are_two_agents(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a", "a") as (a, twin):
        assert "Now #1" in await call_tool(a)
        assert "Now #2" in await call_tool(twin)
        assert len(set(owners(client).values())) == 2


async def test_second_server_of_same_name_is_rejected(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a", "b", more=("--actor", "ann")) as (a, b):
        assert "Now #1" in await call_tool(a)
        refused = await b.call_tool("next", {})
        assert refused.is_error
        assert refused.structured_content["refused"] == "name_taken"
        assert owners(client) == {"1": "ann"}


@pytest.mark.parametrize("name", ["", "a\x1b[2J", "x" * 129])
def test_unprintable_name_is_rejected_at_start(name: str, daemon: Spawned) -> None:
    server = command(daemon, "agent", "mcp", "--actor", name)
    ran = subprocess.run(server, stdin=subprocess.DEVNULL, env=get_session(None), capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"invalid --actor; use 1 to 128 characters" in ran.stderr
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
async def test_conversations_of_one_server_are_separate_agents(
    meta: dict[str, Any], daemon: Spawned, client: Client
) -> None:
    first, second = [json.loads(json.dumps(meta).replace("{}", one)) for one in "12"]
    async with sessions(daemon, "a") as (a,):
        assert "Now #1" in await call_tool(a, meta=first)
        assert "Now #2" in await call_tool(a, meta=second)
        assert "#1 done.\nNow #3" in await call_tool(a, meta=first, result="r")
        assert "You are at it already.\nNow #2" in await call_tool(a, meta=second)


@pytest.mark.parametrize("agent", ["a b", "x" * 10_000, "\x1b[2J", 3, ["a"]])
async def test_hostile_sub_agent_name_is_not_repeated(agent: Any, daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a") as (a,):
        refused = await a.call_tool("next", {}, meta={"punchlist/agent": agent})
        assert refused.is_error
        assert len(refused.content[0].text) < 200
        assert "\x1b" not in refused.content[0].text
    assert owners(client) == {}


async def test_repeated_request_runs_once(daemon: Spawned, client: Client) -> None:
    async with sessions(daemon, "a") as (a,):
        await call_tool(a)
        once = await call_tool(a, meta={"punchlist/key": "k"}, result="r")
        assert await call_tool(a, meta={"punchlist/key": "k"}, result="r") == once
        assert "#2 done." in await call_tool(a, meta={"punchlist/key": "l"}, result="r")
    assert [task.status for task in client.conversation("work").list()][2:] == ["in_progress", "pending"]


def test_request_sent_twice_runs_once(daemon: Spawned, client: Client) -> None:
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
    server = command(daemon, "agent", "mcp")
    with subprocess.Popen(
        server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=get_session("a"), text=True
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


async def test_server_uses_the_attached_sessions_list(daemon: Spawned, client: Client) -> None:
    client.conversation("website").add("There")
    client.call("conversation.attach", {"conversation": "website", "session": "a"})
    server = mcp.StdioServerParameters(command=sys.executable, args=server_arguments(daemon), env=environment("a"))
    with anyio.fail_after(30):
        async with mcp.Client(server) as session:
            assert "There" in await call_tool(session, "tasks")


@asynccontextmanager
async def connect_over_http(daemon: Spawned, mode: str, count: int) -> AsyncGenerator[list[Any]]:
    """Connect `count` clients to one `punch agent mcp --http` in this process."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from punchlist import connect_async
    from punchlist_apps.mcp.server import Setup, build

    with anyio.fail_after(60):
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect_async(socket=daemon.socket, autostart=False))
            served = mcp_over_http(build(client, Setup(build_process(), daemon.data_dir, conversation="work")))
            address = f"http://127.0.0.1:{await stack.enter_async_context(served)}/mcp"
            http = await stack.enter_async_context(httpx2.AsyncClient())
            yield [
                await stack.enter_async_context(
                    mcp.Client(streamable_http_client(address, http_client=http), mode=mode)
                )
                for _ in range(count)
            ]


async def test_each_session_over_http_is_an_agent(daemon: Spawned, client: Client) -> None:
    async with connect_over_http(daemon, "legacy", 2) as (a, b):
        assert "Now #1" in await call_tool(a)
        assert "Now #2" in await call_tool(b)
        assert "#1 done.\nNow #3" in await call_tool(a, result="r")
    assert len(set(owners(client).values())) == 2


async def test_agent_without_http_session_names_itself(daemon: Spawned, client: Client) -> None:
    async with connect_over_http(daemon, "auto", 2) as (a, b):
        assert "give agent, a name of your own" in await call_tool(a)
        assert "4 pending" in await call_tool(a, "tasks")
        assert "Now #1" in await call_tool(a, agent="ann")
        assert "Now #2" in await call_tool(b, agent="bob")
        assert "#1 done.\nNow #3" in await call_tool(a, agent="ann", result="r")
