"""Sessions that end: real `punch agent mcp` processes that stop, are killed, suspended and resumed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from punchlist import Client, connect
from punchlist_apps.hosts.sessions import build_agent_name, hash_session
from punchlist_schemas.things import SettingsPatch, Task
from punchlist_testing.agent_hosts import HOST, build_process, command, environment, mcp_over_http, run_hook
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package

require_package("mcp")
mcp: Any = import_module("mcp")

PATIENCE_S = 20.0


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Spawned) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="zed") as client:
        client.conversation("work").add_many(["one", "two", "three"])
        yield client


class Window:
    """A host's window: one `punch agent mcp` that gets hand-written messages, so that it can be killed at any time."""

    def __init__(self, daemon: Spawned, session: str | None, host: str, *more: str, place: Any = None) -> None:
        self.process = subprocess.Popen(
            command(daemon, "agent", "mcp", *more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(session, PUNCHLIST_CONVERSATION="work"),
            cwd=place or daemon.directory,
            text=True,
        )
        self._id = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": host, "version": "2"}}
        self._ask("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str = "next", **arguments: Any) -> str:
        return self._ask("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]

    def end(self) -> None:
        """Close the server's input, as an exiting host does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            reply = json.loads(self.process.stdout.readline())
            if reply.get("id") == self._id:
                return reply["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()


@pytest.fixture
def windows(daemon: Spawned) -> Generator[Callable[..., Window]]:
    opened: list[Window] = []

    def window(session: str | None = None, *more: str, host: str = HOST, place: Any = None) -> Window:
        opened.append(Window(daemon, session, host, *more, place=place))
        return opened[-1]

    yield window
    for each in opened:
        each.process.kill()
        with each.process:
            pass


def task(client: Client, name: str = "1") -> Task:
    return client.conversation("work").get(name)


def wait_for(client: Client, condition: Callable[[Task], bool], name: str = "1") -> Task:
    """Wait until a watch of the list, which also reports departed agents, shows that the task meets a condition."""
    with client.conversation("work").watch(view="rows") as lists:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = next(one for one in lists.next(timeout_s=deadline - time.monotonic()) if one.id == name)
            if condition(found):
                return found
    raise AssertionError("it did not become so")


def has_left(found: Task) -> bool:
    return found.left_at is not None


def is_there(found: Task) -> bool:
    return found.left_at is None and found.owner != ""


@pytest.mark.parametrize("how", ["end", "kill"])
def test_closed_window_counts_as_left(how: str, client: Client, windows: Callable[..., Window]) -> None:
    window = windows("a")
    assert "Now #1" in window.call()
    assert is_there(task(client))
    getattr(window, how)()
    found = wait_for(client, has_left)
    assert found.left_at is not None and found.lease_expires_at is not None
    assert 0 < found.lease_expires_at - found.left_at <= 301_000


def test_another_session_takes_abandoned_task(client: Client, windows: Callable[..., Window]) -> None:
    gone, other = windows("a"), windows("b")
    gone.call()
    gone.call("update", id="3", status="in_progress", agent="reviewer")
    assert "Now #2" in other.call()
    gone.kill()
    wait_for(client, has_left)
    told = other.call(result="r")
    assert "Nothing ready: 2 in progress" in told
    for name in ("1", "3"):
        assert f"take it with update id={name} status=in_progress" in told, "also the sub-agent's task"
    assert other.call("update", id="1", status="in_progress") == "#1 is yours."
    assert is_there(task(client))
    late = windows("a")
    assert "Now #3" not in late.call()
    assert f"is being worked on by {task(client).owner}" in late.call("update", id="1", status="completed")


def test_abandoned_task_is_pending_after_grace_period(client: Client, windows: Callable[..., Window]) -> None:
    client.conversation("work").configure(settings=SettingsPatch(leave_grace=1))
    window = windows("a")
    window.call()
    window.kill()
    assert wait_for(client, lambda found: found.status == "pending").owner == ""


def test_suspended_window_stays_present(client: Client, windows: Callable[..., Window]) -> None:
    still, other = windows("a"), windows("b")
    still.call()
    still.kill(signal.SIGSTOP)
    other.call()
    other.kill()
    wait_for(client, has_left, "2")
    assert is_there(task(client, "1"))
    still.kill(signal.SIGCONT)
    assert "#1 done" in still.call(result="r")


def test_resumed_session_continues_within_grace_period(client: Client, windows: Callable[..., Window]) -> None:
    first = windows("a")
    first.call()
    first.kill()
    wait_for(client, has_left)
    again = windows("a")
    assert "You are at it already.\nNow #1" in again.call()
    assert is_there(task(client))
    assert "#1 done" in again.call(result="r")


def test_restarted_daemon_keeps_present_sessions(
    daemon: Spawned, client: Client, windows: Callable[..., Window]
) -> None:
    client.conversation("work").configure(settings=SettingsPatch(leave_grace=3))
    gone, there = windows("a"), windows("b")
    gone.call()
    there.call()
    daemon.kill()
    gone.kill()
    gone.process.wait()
    daemon.restart()
    assert wait_for(client, is_there, "2").lease_expires_at
    assert wait_for(client, lambda found: found.status == "pending", "1").attempts == 1
    assert is_there(task(client, "2"))


def test_claim_after_restart_ends_with_its_session(
    daemon: Spawned, client: Client, windows: Callable[..., Window]
) -> None:
    window = windows("a")
    window.call()
    daemon.kill()
    daemon.restart()
    assert "Now #2" in window.call(result="done")
    window.kill()
    assert wait_for(client, has_left, "2").left_at


def test_hook_reports_the_end_of_a_session(daemon: Spawned, client: Client, windows: Callable[..., Window]) -> None:
    window = windows("a")
    run_hook(daemon, "a", hook_event_name="SessionStart", source="startup")
    window.call()
    assert run_hook(daemon, "a", hook_event_name="SessionEnd", reason="clear") == ""
    assert is_there(task(client))
    assert run_hook(daemon, "a", hook_event_name="SessionEnd", reason="prompt_input_exit") == ""
    assert has_left(task(client))


def test_hook_of_unknown_session_is_silent(daemon: Spawned) -> None:
    assert run_hook(daemon, "never seen", hook_event_name="SessionEnd", reason="other") == ""


def test_returning_to_older_session_leaves_the_newer(
    daemon: Spawned, client: Client, windows: Callable[..., Window]
) -> None:
    run_hook(daemon, "a", hook_event_name="SessionStart", source="startup")
    window = windows("a")
    window.call()
    run_hook(daemon, "older", hook_event_name="SessionStart", source="resume")
    assert "Now #2" in window.call()
    wait_for(client, has_left, "1")
    assert is_there(task(client, "2"))
    run_hook(daemon, "a", hook_event_name="SessionStart", source="resume")
    assert "Now #1" in window.call()
    wait_for(client, has_left, "2")
    assert is_there(task(client, "1"))


def test_next_server_in_a_place_continues(client: Client, windows: Callable[..., Window]) -> None:
    first = windows(host="gen")
    first.call()
    first.kill()
    first.process.wait()
    again, third = windows(host="gen"), windows(host="gen")
    assert "You are at it already.\nNow #1" in again.call()
    assert "Now #2" in third.call(), "only one of the two continues"
    owners = {one.id: one.owner for one in client.conversation("work").list() if one.owner}
    assert len(set(owners.values())) == 2
    assert "#1 done" in again.call(result="r")


def test_no_server_continues_for_a_suspended_one(client: Client, windows: Callable[..., Window]) -> None:
    still = windows(host="gen")
    still.call()
    still.kill(signal.SIGSTOP)
    assert "Now #2" in windows(host="gen").call()
    assert "Now #3" in windows(host="gen").call()
    still.kill(signal.SIGCONT)
    assert "#1 done" in still.call(result="r")


def test_server_of_another_host_starts_fresh(client: Client, windows: Callable[..., Window]) -> None:
    first = windows(host="gen")
    first.call()
    first.kill()
    first.process.wait()
    assert "Now #2" in windows(host="other").call()
    owner = windows(None, "--user", "ann", host="gen").call("tasks")
    assert "one" not in owner


def test_claude_dialect_finishes_after_a_crash(client: Client, windows: Callable[..., Window]) -> None:
    first = windows(None, "--dialect", "claude", host="gen")
    first.call("TaskUpdate", taskId="1", status="in_progress")
    first.kill()
    first.process.wait()
    again = windows(None, "--dialect", "claude", host="gen")
    assert "#1" in again.call("TaskUpdate", taskId="1", status="completed")
    assert task(client).status == "completed"


def test_agents_are_listed_with_what_they_do(daemon: Spawned, client: Client, windows: Callable[..., Window]) -> None:
    subprocess.run(["git", "init", "-q", "-b", "topic", str(daemon.directory)], check=True)
    window = windows("a")
    window.call()
    (agent,) = [one for one in client.call("agent.list")["agents"] if one["name"] != "zed"]
    assert agent["name"] == build_agent_name(HOST, hash_session("a"))
    assert agent["host"] == HOST
    assert Path(agent["directory"]) == daemon.directory.resolve()
    assert agent["branch"] == "topic"
    assert agent["pid"] == window.process.pid
    assert agent["tasks"] == [{"conversation": "work", "id": "1", "title": "one"}]


def test_any_directory_and_host_can_register(daemon: Spawned, client: Client, windows: Callable[..., Window]) -> None:
    place = os.path.join(os.fsencode(daemon.directory), b"\xff")
    os.mkdir(place)
    window = windows("a", host="h" * 2_000, place=place)
    assert "Now #1" in window.call()
    (agent,) = [one for one in client.agents() if one.tasks]
    assert agent.directory.endswith("/?")
    assert len(agent.host) == 500
    window.kill()
    wait_for(client, has_left)


class Web:
    """`punch agent mcp --http` in this process, called with hand-written requests."""

    def __init__(self, http: Any, address: str) -> None:
        self._http = http
        self._address = address

    async def ask(self, method: str, session: str = "", id: int | None = 1, **params: Any) -> Any:
        headers = {"Accept": "application/json, text/event-stream"} | ({"Mcp-Session-Id": session} if session else {})
        asked = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        return await self._http.post(self._address, json=asked, headers=headers)

    async def begin(self) -> str:
        info = {"name": HOST, "version": "2"}
        hello = await self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        session = hello.headers["mcp-session-id"]
        await self.ask("notifications/initialized", session, None)
        await self.ask("tools/call", session, name="next", arguments={})
        return session

    async def end(self, session: str) -> None:
        await self._http.delete(self._address, headers={"Mcp-Session-Id": session})


@asynccontextmanager
async def serve_over_http(daemon: Spawned, idle_s: float = 60.0, most: int = 9) -> AsyncGenerator[Web]:
    import httpx2

    from punchlist import connect_async
    from punchlist_apps.mcp.presence import Presence
    from punchlist_apps.mcp.server import Setup, build

    with anyio.fail_after(60):
        async with connect_async(socket=daemon.socket, autostart=False) as client:
            presence = Presence(client)
            built = build(client, Setup(build_process(), daemon.data_dir, conversation="work"), presence)
            limits: Any = {"max_sessions": most, "idle_s": idle_s, "on_session_end": presence.end_session}
            async with mcp_over_http(built, **limits) as port, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
                yield Web(http, f"http://127.0.0.1:{port}/mcp")


async def test_http_agent_leaves_with_its_session(daemon: Spawned, client: Client) -> None:
    async with serve_over_http(daemon) as web:
        session, _other = await web.begin(), await web.begin()
        await web.end(session)
        await anyio.to_thread.run_sync(wait_for, client, has_left, "1")
        assert is_there(task(client, "2"))


async def test_evicted_http_session_leaves(daemon: Spawned, client: Client) -> None:
    async with serve_over_http(daemon, most=1) as web:
        for _ in range(2):
            await web.begin()
        await anyio.to_thread.run_sync(wait_for, client, has_left, "1")
        assert is_there(task(client, "2"))


async def test_idle_http_session_leaves(daemon: Spawned, client: Client) -> None:
    async with serve_over_http(daemon, idle_s=0.2) as web:
        await web.begin()
        await anyio.to_thread.run_sync(wait_for, client, has_left, "1")
