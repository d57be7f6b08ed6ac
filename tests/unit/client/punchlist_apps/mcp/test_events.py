"""MCP Events in both eras: polls, streams, users and errors, as raw messages."""

import json
import signal
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import anyio
import pytest

from punchlist import AsyncClient, connect_async
from punchlist_testing.agent_hosts import build_process
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.mcp_wire import HANDSHAKE, Wire, open_wire
from punchlist_testing.optional import require_package
from punchlist_testing.served_mcp import Served

require_package("mcp")

import httpx2

from punchlist_apps.mcp import event_source, events
from punchlist_apps.mcp.server import Setup, build

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Place(NamedTuple):
    daemon: Spawned
    host: Wire
    client: AsyncClient


@asynccontextmanager
async def connect(folder: Path, mode: str = "legacy", **options: Any) -> AsyncGenerator[Place]:
    with spawned_daemon(folder) as daemon, anyio.fail_after(50):
        user: Any = {"user": options["user"]} if "user" in options else {}
        setup = Setup(build_process(folder), daemon.data_dir, conversation="work", user=user.get("user"))
        async with (
            connect_async(socket=daemon.socket, autostart=False, **user) as client,
            connect_async(socket=daemon.socket, autostart=False) as other,
            open_wire(build(client, setup), mode) as host,
        ):
            yield Place(daemon, host, other)


async def poll(host: Wire, cursor: str | None, name: str = "task.changed", **params: Any) -> Any:
    return await host.ask("events/poll", name=name, cursor=cursor, **params)


async def open_stream(host: Wire, name: str = "task.added", **params: Any) -> tuple[int, Any]:
    """Open a stream. Return its request, and the params of its first notification."""
    id = await host.send("events/stream", name=name, **params)
    kind, frame = await host.frame()
    assert kind == "active" and frame["_meta"][SUBSCRIPTION] == id
    return id, frame


def seqs(events: list[Any]) -> list[int]:
    return [event["data"]["seq"] for event in events]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_capability_and_types_are_listed(mode: str, tmp_path: Path) -> None:
    async with connect(tmp_path, mode) as place:
        capabilities = place.host.capabilities
        named = capabilities["extensions" if mode == "auto" else "experimental"]
        assert named[events.EXTENSION] == {} == capabilities["events"]
        listed = (await place.host.ask("events/list"))["events"]
        assert [one["name"] for one in listed] == ["task.changed", "task.added", "task.finished"]
        assert all(one["delivery"] == ["push", "poll"] and one["inputSchema"] for one in listed)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_poll_returns_the_events_after_a_cursor(mode: str, tmp_path: Path) -> None:
    async with connect(tmp_path, mode) as place:
        first = await poll(place.host, None)
        shown = {name: first[name] for name in ("events", "truncated", "hasMore", "nextPollMs")}
        assert shown == {"events": [], "truncated": False, "hasMore": False, "nextPollMs": events.POLL_MS}
        work = place.client.conversation("work")
        task = await work.add("One")
        await work.start(task.id)
        await work.complete(task.id)
        everything = await poll(place.host, first["cursor"])
        assert len(everything["events"]) == 3 and not everything["hasMore"]
        assert await poll(place.host, first["cursor"]) == everything
        pages, cursor = list[Any](), first["cursor"]
        while True:
            page = await poll(place.host, cursor, maxEvents=1)
            pages += page["events"]
            cursor = page["cursor"]
            if not page["hasMore"]:
                break
            assert page["nextPollMs"] == 0 and page["cursor"] == page["events"][-1]["eventId"]
        assert pages == everything["events"]
        finished = await poll(place.host, first["cursor"], "task.finished")
        assert [one["data"]["change"]["to"] for one in finished["events"]] == ["completed"]
        assert (await poll(place.host, finished["cursor"]))["events"] == []


async def test_page_is_cut_inside_a_call(tmp_path: Path) -> None:
    async with connect(tmp_path) as place:
        start = (await poll(place.host, None))["cursor"]
        await place.client.conversation("work").add_many([f"{number}" for number in range(7)])
        sizes, cursor, more = list[int](), start, True
        while more:
            page = await poll(place.host, cursor, "task.added", maxEvents=3)
            sizes.append(len(page["events"]))
            cursor, more = page["cursor"], page["hasMore"]
        assert sizes == [3, 3, 1]


async def test_history_that_is_gone_is_truncated(tmp_path: Path) -> None:
    async with connect(tmp_path) as place:
        await place.client.conversation("work").add("One")
        page = await poll(place.host, "0123456789abcdef.5")
        assert page["truncated"] and page["events"] == []
        assert not (await poll(place.host, page["cursor"]))["truncated"]
        _, frame = await open_stream(place.host, cursor="0123456789abcdef.5")
        assert frame["truncated"] and frame["cursor"] == page["cursor"]


async def test_old_events_are_left_out(tmp_path: Path) -> None:
    async with connect(tmp_path) as place:
        start = (await poll(place.host, None))["cursor"]
        await place.client.conversation("work").add("One")
        assert (await poll(place.host, start, maxAgeMs=3_600_000))["truncated"] is False
        page = await poll(place.host, start, maxAgeMs=0)
        assert page["truncated"] and page["events"] == []


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "task.exploded"}, events.UNKNOWN_EVENT),
        ({"name": "task.added", "cursor": "5"}, -32602),
        ({"name": "task.added", "arguments": {"list": "work"}}, -32602),
        ({"name": "task.added", "maxEvents": 0}, -32602),
        ({"name": "task.added", "arguments": {"conversation": ""}}, -32602),
        ({}, -32602),
    ],
)
async def test_bad_request_gets_a_typed_error(params: Any, code: int, tmp_path: Path) -> None:
    async with connect(tmp_path) as place:
        assert (await place.host.ask("events/poll", **params))["code"] == code


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_stream_continues_polls_and_ends_when_cancelled(mode: str, tmp_path: Path) -> None:
    async with connect(tmp_path, mode) as place:
        host, work = place.host, place.client.conversation("work")
        start = (await poll(host, None))["cursor"]
        await work.add("0")
        id, frame = await open_stream(host, cursor=start)
        assert frame["cursor"] == start and not frame["truncated"]
        for number in range(1, 20):
            await work.add(f"{number}")
        frames = [await host.frame() for _ in range(20)]
        assert {kind for kind, _ in frames} == {"event"}
        polled = (await poll(host, start, "task.added"))["events"]
        assert [params["eventId"] for _, params in frames] == [one["eventId"] for one in polled]
        assert all(params["cursor"] == params["eventId"] for _, params in frames)
        await host.notify("notifications/cancelled", requestId=id)
        await host.ask("tools/list")
        await work.add("Unheard")
        _, other = await open_stream(host)
        assert other["_meta"][SUBSCRIPTION] != id  # and no event of the cancelled stream came before


async def test_idle_stream_sends_heartbeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)
    async with connect(tmp_path) as place:
        _, active = await open_stream(place.host, "task.finished")
        kind, frame = await place.host.frame()
        assert (kind, frame["cursor"]) == ("heartbeat", active["cursor"])
        await place.client.conversation("work").add("Not selected")
        while frame["cursor"] == active["cursor"]:
            kind, frame = await place.host.frame()
        assert kind == "heartbeat"


async def test_replaced_log_terminates_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_source, "RETRY_S", 0.05)
    async with connect(tmp_path) as place:
        id, _ = await open_stream(place.host)
        place.daemon.kill()
        rmtree(place.daemon.data_dir)
        place.daemon.start()
        kind, frame = await place.host.frame()
        assert (kind, frame["error"]["code"]) == ("terminated", events.TERMINATED)
        assert "result" in await place.host.reply(id)


async def test_resumed_stream_of_a_lost_position_terminates(tmp_path: Path) -> None:
    async with connect(tmp_path) as place:
        await place.host.send("events/stream", name="task.added", cursor="0123.5", _meta={"punchlist/resumed": True})
        assert (await place.host.frame())[0] == "terminated"


async def test_number_of_streams_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS", 1)
    async with connect(tmp_path) as place:
        id, _ = await open_stream(place.host)
        assert (await place.host.ask("events/stream", name="task.added"))["code"] == events.TOO_MANY
        await place.host.notify("notifications/cancelled", requestId=id)
        await place.host.ask("tools/list")
        await open_stream(place.host)


async def test_lost_connections_free_their_streams(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon, ExitStack() as stack, anyio.fail_after(50):
        served = Served(daemon, "--token-file", str(tmp_path / "token"))
        stack.callback(served.process.communicate, timeout=20)
        stack.callback(served.process.send_signal, signal.SIGINT)
        headers = {"Authorization": f"Bearer {served.token}", "Accept": "application/json, text/event-stream"}
        url, opened = f"http://127.0.0.1:{served.port}/mcp", {"jsonrpc": "2.0", "method": "events/stream"}
        async with (
            connect_async(socket=daemon.socket, autostart=False) as client,
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
        ):
            begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HANDSHAKE}
            http.headers["Mcp-Session-Id"] = (await http.post(url, json=begin)).headers["Mcp-Session-Id"]
            await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})

            async def open_and_drop(id: int) -> str:
                message = {**opened, "id": id, "params": {"name": "task.added"}}
                async with http.stream("POST", url, json=message) as response:
                    lines = response.aiter_lines()
                    return await anext(line async for line in lines if line.startswith("data: {"))

            for number in range(events.MAX_STREAMS):
                assert "active" in await open_and_drop(number + 1)
            await client.conversation("work").add("Ends the streams")
            for id in count(1_000):
                if "active" in await open_and_drop(id):
                    break


async def test_default_list_of_an_attached_session_is_pinned(tmp_path: Path) -> None:
    async with connect(tmp_path) as place:
        work, other = place.client.conversation("work"), place.client.conversation("other")
        await work.attach("session-1")
        _, frame = await open_stream(place.host, arguments={"conversation": "session-1"})
        assert frame["_meta"]["punchlist/conversation"] == "work"
        await other.attach("session-1")
        await other.add("Elsewhere")
        await work.add("Here")
        assert (await place.host.frame())[1]["data"]["conversation"] == "work"


@pytest.mark.parametrize("user", [None, "ann"])
async def test_session_sees_only_lists_of_its_user(user: str | None, tmp_path: Path) -> None:
    """The server is limited to ann, or its requests name her."""
    options: Any = {} if user is None else {"user": user}
    meta: Any = {"_meta": {"punchlist/user": "ann"}} if user is None else {}
    async with connect(tmp_path, **options) as place:
        start = (await poll(place.host, None, **meta))["cursor"]
        await open_stream(place.host, **meta)
        await place.client.conversation("work").add("Nobody's")
        for name in ("bob", "ann"):
            async with place.client.as_user(name) as owner:
                await owner.conversation("my:work").add(f"{name}'s")
        _, event = await place.host.frame()
        assert event["data"]["change"]["task"]["title"] == "ann's"
        assert seqs((await poll(place.host, start, "task.added", **meta))["events"]) == [event["data"]["seq"]]
        for name in ("of:bob:work", "my:work"):
            page = await poll(place.host, start, "task.added", arguments={"conversation": name}, **meta)
            assert "bob's" not in json.dumps(page)


async def test_streams_of_a_server_share_one_subscription(tmp_path: Path) -> None:
    async with connect(tmp_path) as place:
        for _ in range(3):
            await open_stream(place.host)
        await place.client.conversation("work").add("One")
        for _ in range(3):
            await place.host.frame()
        assert [one.view for one in (await place.client.status()).subscriptions] == ["events"]
