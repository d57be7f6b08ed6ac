"""Deleting, replacing or narrowing a token ends its HTTP requests, in both protocol eras."""

import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import connect
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package

require_package("mcp")
mcp: Any = import_module("mcp")

from punchlist_testing.served_mcp import Served

ANN, TEAM, BACKEND = "of-ann-" * 4, "of-a-team-" * 3, "of-a-backend-" * 3
WITHIN_S = 3.0
"""Tolerance for a busy machine, in seconds. The documented limit on an idle machine is one second."""

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def write(table: Path, grants: dict[str, Any]) -> None:
    fresh = table.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(grants))
    fresh.replace(table)


GRANTS: dict[str, Any] = {ANN: ["ann"], TEAM: ["ann", "bob"], BACKEND: "*"}
ENDS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "entry removed": (ANN, lambda table: write(table, {BACKEND: "*"})),
    "narrowed": (TEAM, lambda table: write(table, {**GRANTS, TEAM: ["bob"]})),
    "all users to some": (BACKEND, lambda table: write(table, {**GRANTS, BACKEND: ["ann"]})),
    "file deleted": (ANN, Path.unlink),
    "opened to others": (ANN, lambda table: table.chmod(0o644)),
    "no table any more": (ANN, lambda table: write(table, {"short": "*"})),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path / "users.json", GRANTS)
    return tmp_path / "users.json"


@contextmanager
def serving(daemon: Spawned, *more: str) -> Generator[Served]:
    served = Served(daemon, *more)
    try:
        yield served
    finally:
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=20)


@pytest.fixture
def served(tmp_path: Path, table: Path) -> Generator[tuple[Served, Spawned]]:
    dialects = ("--dialect", "native", "--dialect", "todo-v1")
    with spawned_daemon(tmp_path) as daemon, serving(daemon, *dialects, "--users", str(table)) as served:
        yield served, daemon


class Session:
    """A session of the handshake era that sends hand-written requests."""

    def __init__(self, http: Any, id: str) -> None:
        self.http, self.id = http, id

    @asynccontextmanager
    async def stream(self, verb: str, method: str = "", **params: Any) -> AsyncGenerator[Any]:
        headers = {"Accept": "application/json, text/event-stream", **({"Mcp-Session-Id": self.id} if self.id else {})}
        body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if "/in" in method else {"id": 7})}
        more: Any = {"json": body} if method else {}
        async with self.http.stream(verb, "/mcp", headers=headers, **more) as response:
            yield response


@asynccontextmanager
async def session(served: Served, token: str) -> AsyncGenerator[Session]:
    import httpx2

    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, base_url=f"http://127.0.0.1:{served.port}", timeout=30) as http:
        opening = Session(http, "")
        async with opening.stream("POST", "initialize", **INITIALIZE) as response:
            await response.aread()
            opened = Session(http, response.headers["mcp-session-id"])
        async with opened.stream("POST", "notifications/initialized") as response:
            assert response.status_code == 202
        yield opened


async def read_to_end(response: Any) -> float:
    """Read a response until it ends in any way; return the duration in seconds."""
    at = time.monotonic()
    import httpx2

    with anyio.fail_after(30), suppress(httpx2.RemoteProtocolError):
        async for _ in response.aiter_raw():
            pass
    return time.monotonic() - at


@pytest.mark.parametrize("end", ENDS)
async def test_revoking_token_in_any_way_ends_streams(served: tuple[Served, Spawned], table: Path, end: str) -> None:
    token, act = ENDS[end]
    wait = {"name": "wait", "arguments": {"seconds": 60}, "_meta": {"punchlist/user": "ann"}}
    async with session(served[0], token) as host:
        async with host.stream("GET") as listening, host.stream("POST", "tools/call", **wait) as waiting:
            assert (listening.status_code, waiting.status_code) == (200, 200)
            act(table)
            assert await read_to_end(waiting) < WITHIN_S
            assert await read_to_end(listening) < WITHIN_S
        if end not in ("narrowed", "all users to some"):
            async with host.stream("POST", "tools/list") as refused:
                assert refused.status_code == 401


async def test_token_that_gains_user_keeps_streams(served: tuple[Served, Spawned], table: Path) -> None:
    wait = {"name": "wait", "arguments": {"seconds": 2}, "_meta": {"punchlist/user": "bob"}}
    async with session(served[0], TEAM) as host, host.stream("POST", "tools/call", **wait) as waiting:
        write(table, {**GRANTS, TEAM: ["ann", "bob", "carol"]})
        assert b'"result"' in await waiting.aread()


async def test_revoked_token_stops_its_calls(served: tuple[Served, Spawned], table: Path) -> None:
    """The call waits for a suspended daemon, which resumes after the token is revoked."""
    server, daemon = served
    assert daemon.process is not None
    added = {"name": "add_task", "arguments": {"user_id": "ann", "title": "for the revoked"}}
    later = {"name": "add_task", "arguments": {"user_id": "ann", "title": "later"}}
    async with session(server, ANN) as host, session(server, BACKEND) as other:
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            async with host.stream("POST", "tools/call", **added) as waiting:
                write(table, {BACKEND: "*"})
                assert await read_to_end(waiting) < WITHIN_S
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        async with other.stream("POST", "tools/call", **later) as response:
            assert b'"result"' in await response.aread()
    with connect(socket=daemon.socket, autostart=False) as client:
        assert [task.title for task in client.conversation("of:ann:work").list()] == ["later"]


@pytest.mark.parametrize("end", ["deleted", "replaced", "emptied"])
async def test_token_for_all_is_revoked_by_its_file(tmp_path: Path, end: str) -> None:
    with spawned_daemon(tmp_path) as daemon, serving(daemon) as server:
        token = server.token
        async with session(server, token) as host, host.stream("GET") as listening:
            if end == "deleted":
                server.token_file.unlink()
            elif end == "replaced":
                server.token_file.write_text("another token, just as long as it must be\n")
            else:
                server.token_file.write_text("")
            assert await read_to_end(listening) < WITHIN_S


async def test_modern_call_ends_with_its_token(served: tuple[Served, Spawned], table: Path) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {BACKEND}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{served[0].port}/mcp", http_client=http)
        with anyio.fail_after(30):
            async with mcp.Client(transport, mode="auto") as host:
                ended = anyio.Event()

                async def wait() -> None:
                    with pytest.raises(mcp.MCPError):
                        await host.call_tool("wait", {"seconds": 60})
                    ended.set()

                async with anyio.create_task_group() as group:
                    group.start_soon(wait)
                    await host.list_tools()
                    write(table, {ANN: ["ann"]})
                    at = time.monotonic()
                    await ended.wait()
                    assert time.monotonic() - at < WITHIN_S
