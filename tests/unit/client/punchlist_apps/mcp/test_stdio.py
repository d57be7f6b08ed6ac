"""Sessions of several hosts in one process: their agents, lists and claims are those of separate processes."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec
import pytest

from punchlist import connect_async
from punchlist_apps.cli.parsing.parser import parse
from punchlist_apps.hosts.sessions import build_agent_name, hash_session
from punchlist_apps.mcp.server_process import ServerProcess
from punchlist_schemas.params import AgentEnter
from punchlist_testing.agent_hosts import HOST, build_process, command, environment, run_hook
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository

require_package("mcp")
mcp: Any = import_module("mcp")


class Started(NamedTuple):
    """How a host starts its server.

    Attributes:
        directory: Working directory, below the test's directory.
        session: The session that Claude Code passes; None for a host that passes none.
        words: Options of `punch agent mcp`.
        env: Variables; `{}` in a value stands for the test's directory.
    """

    directory: str = "one"
    session: str | None = None
    words: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


STARTS = [
    [Started("one", "a"), Started("two", "b")],
    [Started("one", "a"), Started("one", "a")],
    [Started("one"), Started("two")],
    [Started("one", "a"), Started("one", "b", env=(("CLAUDE_PROJECT_DIR", "{}/two"),))],
    [Started("one", "a", env=(("PUNCHLIST_CONVERSATION", "work"),)), Started("one", "b", ("-c", "other"))],
    [Started("one", words=("--actor", "ann")), Started("one", words=("--actor", "ann"))],
    [Started("one", words=("--user", "eve")), Started("one", "b", ("-c", "work", "--tools", "plan,next"))],
]


@asynccontextmanager
async def connect_to_processes(daemon: Spawned, root: Path, starts: list[Started]) -> AsyncGenerator[list[Any]]:
    async with AsyncExitStack() as stack:
        servers = [
            mcp.StdioServerParameters(
                command=sys.executable,
                args=command(daemon, "agent", "mcp", *start.words)[1:],
                env=build_env(start, root),
                cwd=root / start.directory,
            )
            for start in starts
        ]
        yield [await enter(stack, server) for server in servers]


def start_relay() -> "subprocess.Popen[bytes]":
    """Start the process that the host started: a child of this one, as in `connect_to_processes`."""
    return subprocess.Popen(["cat"], stdin=subprocess.PIPE)


@asynccontextmanager
async def connect_to_one_process(daemon: Spawned, root: Path, starts: list[Started]) -> AsyncGenerator[list[Any]]:
    from punchlist_apps.mcp.stdio import open_session

    async with AsyncExitStack() as stack:
        agents: list[Any] = []
        for start in starts:
            relay = stack.enter_context(start_relay())
            args = parse(command(daemon, "agent", "mcp", *start.words)[3:])
            process = ServerProcess(build_env(start, root), str(root / start.directory), relay.pid)
            agents.append(await enter(stack, await stack.enter_async_context(open_session(args, process))))
        yield agents


async def enter(stack: AsyncExitStack, server: Any) -> Any:
    return await stack.enter_async_context(
        mcp.Client(server, client_info=mcp.types.Implementation(name=HOST, version="2"))
    )


def build_env(start: Started, root: Path) -> dict[str, str]:
    return environment(start.session, **{name: value.format(root) for name, value in start.env})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        repository(tmp_path / name)
    return tmp_path


async def play(daemon: Spawned, root: Path, connect_all: Any, starts: list[Started]) -> list[str]:
    """Return the agents' replies, and the tasks of all lists with their owners."""
    run_hook(daemon, "a", str(root / "one"), hook_event_name="SessionStart", source="startup")
    replies: list[str] = []
    async with connect_all(daemon, root, starts) as agents:
        for number, agent in enumerate(agents):
            replies.append(await call(agent, "plan", tasks=[{"title": f"first of {number}"}, {"title": "second"}]))
        replies += [await call(agent, "next") for agent in agents]
        run_hook(daemon, "cleared", str(root / "one"), hook_event_name="SessionStart", source="clear")
        replies += [await call(agent, "next", result="done") for agent in agents]
    async with connect_async(socket=daemon.socket, autostart=False) as client:
        for info in (await client.conversations()).conversations:
            tasks = await client.conversation(info.conversation).list()
            replies += [f"{info.conversation} {task.title} {task.status} {task.owner}" for task in tasks]
    return replies


async def call(agent: Any, tool: str, **arguments: Any) -> str:
    return (await agent.call_tool(tool, arguments)).content[0].text


def number_random_names(replies: list[str]) -> list[str]:
    """Replace the names of agents whose hosts name no session by numbers, in order of appearance."""
    known = {build_agent_name(HOST, hash_session(session)) for session in ("a", "b", "cleared")}
    names: dict[str, str] = {name: name for name in known}
    return [
        re.sub(rf"{HOST}/[0-9a-f]{{6}}", lambda found: names.setdefault(found[0], f"agent {len(names)}"), reply)
        for reply in replies
    ]


@pytest.mark.parametrize("starts", STARTS)
async def test_shared_process_equals_separate_processes(root: Path, starts: list[Started]) -> None:
    told: list[list[str]] = []
    for number, connect_all in enumerate((connect_to_processes, connect_to_one_process)):
        with spawned_daemon(root / f"daemon{number}") as daemon, anyio.fail_after(60):
            told.append(number_random_names(await play(daemon, root, connect_all, starts)))
    assert told[0] == told[1]


async def test_each_session_is_listed_with_its_process(root: Path) -> None:
    starts = [Started("one", "a"), Started("two", "b")]
    with spawned_daemon(root / "daemon") as daemon, anyio.fail_after(60):
        async with (
            connect_async(socket=daemon.socket, autostart=False, name="zed") as client,
            connect_to_one_process(daemon, root, starts) as agents,
        ):
            for agent in agents:
                await call(agent, "plan", tasks=[{"title": "first"}])
                await call(agent, "next")
            listed = [agent for agent in await client.agents() if agent.host == HOST]
            assert [agent.directory for agent in listed] == [str(root / "one"), str(root / "two")]
            assert len({agent.pid for agent in listed} - {os.getpid()}) == 2
            assert [[task.title for task in agent.tasks] for agent in listed] == [["first"], ["first"]]


async def test_older_daemon_gets_no_process_id(root: Path) -> None:
    from punchlist_apps.mcp.presence import restrict

    params = AgentEnter(agent="a", host=HOST, pid=7)
    with spawned_daemon(root / "daemon") as daemon:
        async with connect_async(socket=daemon.socket, autostart=False) as client:
            hello = await client.open()
    assert restrict(params, hello) == params
    older = msgspec.structs.replace(hello, features=tuple({*hello.features} - {"agent.pid"}))
    assert restrict(params, older) == AgentEnter(agent="a", host=HOST)


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (["--socket", "run/daemon.sock", "--data-dir", "data"], {}),
        ([], {"PUNCHLIST_SOCKET": "run/daemon.sock", "PUNCHLIST_DATA_DIR": "data", "PUNCHLIST_AUTOSTART": "0"}),
    ],
)
async def test_relative_paths_belong_to_the_hosts_process(words: list[str], env: dict[str, str], root: Path) -> None:
    from punchlist_apps.mcp.stdio import open_session

    with spawned_daemon(root / "daemon") as daemon, anyio.fail_after(60):
        args = parse(["agent", "mcp", "-c", "work", *words, *(["--no-autostart"] if words else [])])
        async with (
            open_session(args, build_process(daemon.directory, **env)) as server,
            mcp.Client(server) as agent,
        ):
            assert "Added #1" in await call(agent, "plan", tasks=[{"title": "first"}])
        async with connect_async(socket=daemon.socket, autostart=False) as client:
            assert [task.title for task in await client.conversation("work").list()] == ["first"]


async def test_server_starts_in_a_deleted_directory(root: Path) -> None:
    gone = root / "gone"
    gone.mkdir()
    with spawned_daemon(root / "daemon") as daemon, anyio.fail_after(60):
        words = shlex.join(command(daemon, "agent", "mcp"))
        server = mcp.StdioServerParameters(
            command="/bin/sh",
            args=["-c", f"cd '{gone}' && rmdir '{gone}' && exec {words}"],
            env=environment("a", CLAUDE_PROJECT_DIR=str(root / "one")),
        )
        async with mcp.Client(server) as agent:
            assert "Added #1" in await call(agent, "plan", tasks=[{"title": "first"}])


async def test_next_session_of_a_process_continues(root: Path) -> None:
    with spawned_daemon(root / "daemon") as daemon, anyio.fail_after(60):
        for reply in ("Now #1", "You are at it already.\nNow #1"):
            async with connect_to_one_process(daemon, root, [Started("one"), Started("two")]) as (agent, _other):
                await call(agent, "plan", tasks=[{"title": "first"}])
                assert reply in await call(agent, "next")


async def test_current_agent_is_remembered_last(daemon: Spawned, root: Path) -> None:
    from punchlist_apps.mcp.stdio import open_session

    newest: list[str] = []
    start = Started("one", "a")
    args = parse(command(daemon, "agent", "mcp", "-c", "work")[3:])
    async with AsyncExitStack() as stack:
        relay = stack.enter_context(start_relay())
        process = ServerProcess(build_env(start, root), str(root / "one"), relay.pid)
        session = open_session(args, process, on_memory=lambda memory: newest.append([*memory.agents][-1]))
        agent = await enter(stack, await stack.enter_async_context(session))
        for id in ("a", "b", "a"):
            run_hook(daemon, id, str(root / "one"), hook_event_name="SessionStart", source="resume")
            await call(agent, "tasks")
    names = {id: build_agent_name(HOST, hash_session(id)) for id in "ab"}
    assert [name for name, _ in groupby(newest)] == [names["a"], names["b"], names["a"]]


def test_variables_of_the_hosts_process_determine_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from punchlist_apps.mcp.stdio import build_target

    monkeypatch.setenv("XDG_DATA_HOME", "/ours")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/ours")
    theirs = {"XDG_DATA_HOME": f"{tmp_path}/data", "XDG_RUNTIME_DIR": f"{tmp_path}/run"}
    args = parse(["agent", "mcp"])
    target = build_target(args, ServerProcess(theirs, "/", 1))
    assert (target.socket, target.data_dir) == (f"{tmp_path}/run/punchlist/daemon.sock", f"{tmp_path}/data/punchlist")
    assert target.options == {"socket": target.socket, "data_dir": target.data_dir}
    ours = {"XDG_DATA_HOME": "/ours", "XDG_RUNTIME_DIR": "/ours"}
    assert build_target(args, ServerProcess(ours, "/", 1)).options == {}
    args = parse(["agent", "mcp", "--socket", "s"])
    assert build_target(args, ServerProcess(theirs, "/", 1)).options == {"socket": "/s"}
