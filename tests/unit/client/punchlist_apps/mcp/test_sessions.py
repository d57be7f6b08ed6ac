"""MCP sessions over HTTP: ownership, and eviction when there are too many."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from punchlist import connect_async
from punchlist_apps.mcp.users import UsersFile
from punchlist_testing.agent_hosts import build_process, mcp_over_http
from punchlist_testing.daemon import running_daemon
from punchlist_testing.flood import flood
from punchlist_testing.optional import require_package

require_package("mcp")
import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client

from punchlist_apps.common.http.connections import ConnectionSlots
from punchlist_apps.mcp.server import Setup, build

ANN, BOB, CAROL = "ann-" * 8, "bob-" * 8, "carol-" * 8
MOST = 6
PLACES = 64
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}


class Site:
    """A running application that gets hand-written requests."""

    def __init__(self, port: int, http: Any, stack: AsyncExitStack) -> None:
        self.port = port
        self.address = f"http://127.0.0.1:{port}/mcp"
        self._http, self._stack = http, stack

    def headers(self, token: str, session: str = "") -> dict[str, str]:
        shown = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        return shown | ({"Mcp-Session-Id": session} if session else {})

    async def post(self, token: str, session: str = "", method: str = "tools/list", **params: Any) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self._http.post(self.address, json=call, headers=self.headers(token, session))

    async def begin(self, token: str) -> str:
        """Start a session; return its id."""
        answer = await self.post(token, method="initialize", **HELLO)
        assert answer.status_code == 200
        return str(answer.headers["mcp-session-id"])

    async def status(self, token: str, session: str) -> int:
        """Send a request in a session; return its HTTP status."""
        return int((await self.post(token, session)).status_code)

    async def listen(self, token: str, session: str) -> Any:
        """Open a session's stream and return the response."""
        headers = self.headers(token, session)
        return await self._stack.enter_async_context(self._http.stream("GET", self.address, headers=headers))

    async def end(self, token: str, session: str) -> int:
        answer = await self._http.delete(self.address, headers=self.headers(token, session))
        return int(answer.status_code)


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Site]:
    (table := tmp_path / "users").touch(0o600)
    table.write_text(json.dumps({ANN: ["ann"], BOB: ["bob"], CAROL: "*"}))
    grants = UsersFile(str(table))
    limits: dict[str, Any] = {"max_sessions": MOST, **getattr(request, "param", {})}
    places = ConnectionSlots(PLACES, lambda token: grants.find_grant(token) is not None)
    with anyio.fail_after(60):
        async with (
            running_daemon(tmp_path) as daemon,
            connect_async(socket=daemon.socket, autostart=False) as client,
            mcp_over_http(build(client, Setup(build_process(), "/")), grants, places, **limits) as port,
            httpx2.AsyncClient() as http,
            AsyncExitStack() as stack,
        ):
            yield Site(port, http, stack)


async def test_a_token_loses_its_own_sessions_first(site: Site) -> None:
    anns = await site.begin(ANN)
    bobs = [await site.begin(BOB) for _ in range(3 * MOST)]
    assert [await site.status(BOB, each) for each in bobs[-MOST + 1 :]] == [200] * (MOST - 1)
    assert {await site.status(BOB, each) for each in bobs[: -MOST + 1]} == {404}
    assert await site.status(ANN, anns) == 200


async def test_greedy_token_leaves_room_for_others(site: Site) -> None:
    for _ in range(MOST):
        await site.begin(BOB)
    for token in (ANN, CAROL):
        mine = [await site.begin(token) for _ in range(MOST // 3)]
        await site.begin(BOB)
        assert [await site.status(token, each) for each in mine] == [200] * (MOST // 3)


async def test_least_recently_used_session_is_replaced(site: Site) -> None:
    first, second, *_ = [await site.begin(ANN) for _ in range(MOST)]
    assert await site.status(ANN, first) == 200
    await site.begin(ANN)
    assert [await site.status(ANN, each) for each in (first, second)] == [200, 404]


async def test_listening_session_is_replaced_after_idle_ones(site: Site) -> None:
    first, *others = [await site.begin(ANN) for _ in range(MOST)]
    assert (await site.listen(ANN, first)).status_code == 200
    assert [await site.status(ANN, each) for each in others] == [200] * (MOST - 1)
    await site.begin(ANN)
    assert [await site.status(ANN, each) for each in (first, others[0])] == [200, 404]


async def test_listening_sessions_do_not_block_others(site: Site) -> None:
    streams = [await site.listen(BOB, await site.begin(BOB)) for _ in range(MOST)]
    assert await site.status(ANN, await site.begin(ANN)) == 200
    await anext(streams[0].aiter_bytes(), None)  # the replaced session's stream ends


async def test_ended_session_frees_its_place(site: Site) -> None:
    first = await site.begin(ANN)
    for _ in range(2 * MOST):
        assert await site.end(ANN, await site.begin(ANN)) == 200
    assert await site.status(ANN, first) == 200


async def test_session_of_another_token_is_unknown(site: Site) -> None:
    anns = await site.begin(ANN)
    assert await site.status(BOB, anns) == 404
    assert (await site.listen(BOB, anns)).status_code == 404
    assert await site.end(BOB, anns) == 404
    assert await site.status(BOB, "0" * 32) == 404
    assert await site.status(ANN, anns) == 200
    assert (await site.listen(ANN, anns)).status_code == 200


async def test_foreign_requests_do_not_refresh_a_session(site: Site) -> None:
    first, second, *_ = [await site.begin(ANN) for _ in range(MOST)]
    assert await site.status(BOB, first) == await site.end(BOB, first) == 404
    await site.begin(ANN)
    assert [await site.status(ANN, each) for each in (first, second)] == [404, 200]


@pytest.mark.parametrize("site", [{"idle_s": 1.5}], indirect=True)
async def test_expired_session_takes_no_place(site: Site) -> None:
    for _ in range(2):
        await site.begin(BOB)
    await anyio.sleep(1.6)  # longer than `idle_s`
    anns = [await site.begin(ANN) for _ in range(MOST)]
    assert [await site.status(ANN, each) for each in anns] == [200] * MOST


async def test_request_without_session_takes_no_place(site: Site) -> None:
    first = await site.begin(ANN)
    for _ in range(2 * MOST):
        assert (await site.post(ANN, method="tools/list")).status_code == 400
    assert await site.status(ANN, first) == 200


@pytest.mark.parametrize("token", ["", f"Authorization: Bearer {BOB}x\r\n"])
async def test_flood_without_token_blocks_no_client(token: str, site: Site) -> None:
    text = f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n{token}\r\n".encode() * 150
    with ExitStack() as stack:
        await anyio.to_thread.run_sync(stack.enter_context, flood(site.port, text, 2 * PLACES))
        for _ in range(5):
            assert await site.status(ANN, await site.begin(ANN)) == 200


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_hosts_that_end_no_session_are_served(mode: Any, site: Site) -> None:
    """Hosts that are killed send no DELETE. Open more sessions than the server can hold."""
    for number in range(MOST + 2):
        async with httpx2.AsyncClient(headers=site.headers(ANN)) as http:
            transport = streamable_http_client(site.address, http_client=http, terminate_on_close=False)
            async with mcp.Client(transport, mode=mode) as host:
                made = await host.call_tool("plan", {"tasks": [f"task {number}"]})
                assert not made.is_error, made
