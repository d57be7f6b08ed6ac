"""The project of a server that a host starts in a plugin's directory: real processes and clients, in both eras."""

import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from punchlist import Client, connect
from punchlist_apps.mcp.server_process import ServerProcess
from punchlist_testing.agent_hosts import command, environment
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository

require_package("mcp")
mcp: Any = import_module("mcp")

CAPABILITY = "codex/sandbox-state-meta"
UNKNOWN = "Refused: The host names no project for this server. start it with a list: punch agent mcp -c NAME"


class Places(NamedTuple):
    """Git repositories: a plugin, and two projects."""

    plugin: Path
    website: Path
    other: Path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*(repository(tmp_path / name) for name in Places._fields))


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path / "daemon") as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Spawned) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="zed") as client:
        yield client


@pytest.fixture(params=["legacy", "auto"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def start(
    daemon: Spawned,
    places: Places,
    mode: str,
    *words: str,
    directory: Path | None = None,
    roots: Any = None,
    **env: str,
) -> AsyncGenerator[Any]:
    """Start a server in the plugin's directory, as hosts of plugins do."""
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=command(daemon, "agent", "mcp", *words)[1:],
        env=environment("a", **{"PLUGIN_ROOT": str(places.plugin), **env}),
        cwd=directory or places.plugin,
    )
    with anyio.fail_after(60):
        async with mcp.Client(server, mode=mode, list_roots_callback=roots) as session:
            yield session


async def add(session: Any, title: str, meta: dict[str, Any] | None = None) -> str:
    reply = await session.call_tool("plan", {"tasks": [{"title": title}]}, meta=meta)
    return reply.content[0].text


def find_lists(client: Client) -> dict[str, list[str]]:
    """Return the titles of the tasks in each list, by the list's short name."""
    page = client.conversations()
    return {
        page.names.get(info.conversation, info.conversation): [
            task.title for task in client.conversation(info.conversation).list()
        ]
        for info in page.conversations
    }


def sandbox(path: Path) -> dict[str, Any]:
    return {CAPABILITY: {"sandboxCwd": path.as_uri()}}


def turn(*paths: Path) -> dict[str, Any]:
    return {"x-codex-turn-metadata": {"workspaces": {str(path): {} for path in paths}}}


async def test_plugin_directory_names_no_list(daemon: Spawned, client: Client, places: Places, mode: str) -> None:
    (places.plugin / "bin").mkdir()
    for directory in (places.plugin, places.plugin / "bin"):
        async with start(daemon, places, mode, directory=directory) as session:
            assert await add(session, "lost") == UNKNOWN
    async with start(daemon, places, mode, "-c", "work") as session:
        await add(session, "named")
    assert find_lists(client) == {"work": ["named"]}


async def test_host_variable_names_project_of_plugin(
    daemon: Spawned, client: Client, places: Places, mode: str
) -> None:
    async with start(daemon, places, mode, CLAUDE_PROJECT_DIR=str(places.website)) as session:
        await add(session, "one", sandbox(places.other))
    assert find_lists(client) == {"website": ["one"]}


async def test_server_outside_its_plugin_uses_its_directory(
    daemon: Spawned, client: Client, places: Places, mode: str
) -> None:
    async with start(daemon, places, mode, directory=places.website) as session:
        assert CAPABILITY not in (session.server_capabilities.experimental or {})
        await add(session, "one", sandbox(places.other))
    assert find_lists(client) == {"website": ["one"]}


async def test_codex_names_project_in_each_call(daemon: Spawned, client: Client, places: Places, mode: str) -> None:
    async with start(daemon, places, mode) as session:
        assert session.server_capabilities.experimental[CAPABILITY] == {}
        await add(session, "one", sandbox(places.website) | turn(places.other))
        (agent,) = [one for one in client.agents() if one.name != "zed"]
        assert agent.directory == str(places.website)
        await add(session, "two", turn(places.other))
        assert await add(session, "lost", turn(places.website, places.other)) == UNKNOWN
    assert find_lists(client) == {"website": ["one"], "other": ["two"]}


@pytest.mark.parametrize(
    "meta",
    [
        {CAPABILITY: {"sandboxCwd": "http://example.org/website"}},
        {CAPABILITY: {"sandboxCwd": "file://elsewhere/website"}},
        {CAPABILITY: {"sandboxCwd": "file:///a%00b"}},
        {CAPABILITY: {"sandboxCwd": "file://["}},
        {CAPABILITY: {"sandboxCwd": 3}},
        {CAPABILITY: ["file:///"]},
        {"x-codex-turn-metadata": {"workspaces": {"website": {}}}},
        {"x-codex-turn-metadata": {"workspaces": ["/website"]}},
    ],
)
async def test_invalid_directory_names_no_project(
    meta: dict[str, Any], daemon: Spawned, client: Client, places: Places
) -> None:
    async with start(daemon, places, "auto") as session:
        assert await add(session, "lost", meta) == UNKNOWN


class Roots:
    """A host's reply to `roots/list`; an error without roots."""

    def __init__(self, *paths: Path) -> None:
        self.roots = [mcp.types.Root(uri=path.as_uri()) for path in paths]
        self.requests = 0

    async def __call__(self, _context: Any) -> Any:
        self.requests += 1
        if not self.roots:
            return mcp.types.ErrorData(code=-32603, message="no roots today")
        return mcp.types.ListRootsResult(roots=self.roots)


async def test_only_root_names_project(daemon: Spawned, client: Client, places: Places) -> None:
    roots = Roots(places.website)
    async with start(daemon, places, "legacy", roots=roots) as session:
        await add(session, "one")
        roots.roots = Roots(places.other).roots
        await add(session, "two")
        await add(session, "three", sandbox(places.website))
    assert find_lists(client) == {"website": ["one", "three"], "other": ["two"]}


async def test_several_roots_name_no_project(daemon: Spawned, client: Client, places: Places) -> None:
    async with start(daemon, places, "legacy", roots=Roots(places.website, places.other)) as session:
        assert await add(session, "lost") == UNKNOWN
    async with start(daemon, places, "auto", roots=Roots(places.website)) as session:
        assert await add(session, "lost") == UNKNOWN, "the modern era has no requests to the host"


async def test_failed_request_for_roots_is_not_repeated(daemon: Spawned, client: Client, places: Places) -> None:
    roots = Roots()
    async with start(daemon, places, "legacy", roots=roots) as session:
        for _ in range(2):
            assert await add(session, "lost") == UNKNOWN
    assert roots.requests == 1


def test_link_to_a_plugin_is_the_plugin(places: Places, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(places.plugin)
    env = {"CLAUDE_PLUGIN_ROOT": str(link)}
    assert ServerProcess(env, str(places.plugin), 1).is_in_plugin
    assert not ServerProcess(env, str(places.plugin) + "-2", 1).is_in_plugin
    assert ServerProcess(env, str(places.website), 1).project_directory == str(places.website)
