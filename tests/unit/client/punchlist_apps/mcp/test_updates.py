from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import AsyncClient, connect_async
from punchlist_apps.cli.parsing.parser import parse
from punchlist_testing.agent_hosts import build_process, command
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.optional import require_package

require_package("mcp")
mcp: Any = import_module("mcp")

URI = "punchlist://work/tasks"


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_handshake_host_is_notified_of_changes(tmp_path: Path) -> None:
    from punchlist_apps.mcp.server import Setup, build

    send, receive = anyio.create_memory_object_stream[str](100)

    async def on_message(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            await send.send(str(message.params.uri))

    with spawned_daemon(tmp_path) as daemon:
        async with (
            connect_async(socket=daemon.socket, autostart=False) as client,
            connect_async(socket=daemon.socket, autostart=False) as other,
            mcp.Client(
                build(client, Setup(build_process(), "/")), mode="legacy", message_handler=on_message
            ) as session,
        ):
            with anyio.fail_after(30):
                await session.subscribe_resource(URI)
                await other.conversation("work").add("One")
                assert await receive.receive() == URI
                await other.conversation("elsewhere").add("Not of interest")
                daemon.restart()
                await other.conversation("work").add("Two")
                assert await receive.receive() == URI
    send.close()
    receive.close()


async def test_modern_stream_is_notified_of_changes(tmp_path: Path) -> None:
    from punchlist_apps.mcp.server import Setup, build

    with spawned_daemon(tmp_path) as daemon:
        async with (
            connect_async(socket=daemon.socket, autostart=False) as client,
            connect_async(socket=daemon.socket, autostart=False) as other,
            mcp.Client(build(client, Setup(build_process(), "/"))) as session,
        ):
            with anyio.fail_after(30):
                async with session.listen(resource_subscriptions=[URI]) as events:
                    await other.conversation("work").add("One")
                    event = await anext(aiter(events))
                    assert str(event.uri) == URI


async def test_attached_session_is_followed_to_another_list(tmp_path: Path) -> None:
    from punchlist_apps.mcp.server import Setup, build

    address = "punchlist://session-1/tasks"
    with spawned_daemon(tmp_path) as daemon:
        async with (
            connect_async(socket=daemon.socket, autostart=False) as client,
            connect_async(socket=daemon.socket, autostart=False) as other,
            mcp.Client(build(client, Setup(build_process(), "/"))) as session,
        ):
            work, elsewhere = other.conversation("work"), other.conversation("elsewhere")
            await work.attach("session-1")
            with anyio.fail_after(30):
                async with session.listen(resource_subscriptions=[address]) as events:
                    stream = aiter(events)
                    for change in (
                        lambda: work.add("One"),
                        lambda: elsewhere.attach("session-1"),
                        lambda: elsewhere.add("Two"),
                    ):
                        await change()
                        assert str((await anext(stream)).uri) == address


async def test_reconnection_announces_all_subscribed_resources(tmp_path: Path) -> None:
    from punchlist_apps.mcp.server import Setup, build

    with spawned_daemon(tmp_path) as daemon:
        async with (
            connect_async(socket=daemon.socket, autostart=False, timeout_s=0.2) as client,
            mcp.Client(build(client, Setup(build_process(), "/"))) as session,
        ):
            with anyio.fail_after(30):
                async with session.listen(resource_subscriptions=[URI, "punchlist://other/tasks"]) as events:
                    daemon.kill()
                    with anyio.move_on_after(0.5):
                        await anext(aiter(events))
                    daemon.start()
                    uris = {str((await anext(aiter(events))).uri) for _ in range(2)}
                    assert uris == {URI, "punchlist://other/tasks"}


async def list_subscriptions(client: AsyncClient) -> list[str]:
    return [subscription.view for subscription in (await client.status()).subscriptions]


async def count_connections(client: AsyncClient) -> int:
    return sum(one.name == "tools" for one in (await client.status()).clients)


async def test_idle_server_has_one_connection_without_subscription(tmp_path: Path) -> None:
    from punchlist_apps.mcp.server import Setup, build

    with spawned_daemon(tmp_path) as daemon, anyio.fail_after(30):
        async with (
            connect_async(socket=daemon.socket, autostart=False, name="tools") as client,
            connect_async(socket=daemon.socket, autostart=False) as other,
            mcp.Client(build(client, Setup(build_process(), "/", conversation="work"))) as session,
        ):
            await session.call_tool("next", {})
            assert await list_subscriptions(other) == []
            assert await count_connections(other) == 1


async def test_server_follows_daemon_while_subscribed(tmp_path: Path) -> None:
    from punchlist_apps.mcp.server import Setup, build

    with spawned_daemon(tmp_path) as daemon, anyio.fail_after(30):
        async with (
            connect_async(socket=daemon.socket, autostart=False) as client,
            connect_async(socket=daemon.socket, autostart=False) as other,
            mcp.Client(build(client, Setup(build_process(), "/"))) as session,
        ):
            for _ in range(2):
                async with session.listen(resource_subscriptions=[URI]) as events:
                    assert await list_subscriptions(other) == ["events"]
                    await other.conversation("work").add("One")
                    assert str((await anext(aiter(events))).uri) == URI
                while await list_subscriptions(other):  # until the first change without a subscriber
                    await other.conversation("work").add("Unseen")


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_sessions_of_a_process_share_one_subscription(tmp_path: Path, mode: str) -> None:
    from punchlist_apps.mcp.stdio import open_session
    from punchlist_apps.mcp.updates import open_feeds

    with spawned_daemon(tmp_path) as daemon, anyio.fail_after(30):
        args = parse(command(daemon, "agent", "mcp")[3:])
        async with open_feeds() as feeds, connect_async(socket=daemon.socket, autostart=False) as other:

            @asynccontextmanager
            async def subscribe() -> AsyncGenerator[Callable[[], Awaitable[object]]]:
                """Open a session that subscribes. Yield a function that waits for its next notification."""
                server = open_session(args, build_process(tmp_path), feeds=feeds)
                async with server as built, connect_and_listen(built, mode) as wait:
                    yield wait

            async with subscribe() as one:
                async with subscribe() as two:
                    assert await list_subscriptions(other) == ["events"]
                    await other.conversation("work").add("One")
                    assert [await one(), await two()] == [URI, URI]
                await other.conversation("work").add("Two")
                assert await one() == URI


@asynccontextmanager
async def connect_and_listen(server: Any, mode: str) -> AsyncGenerator[Callable[[], Awaitable[object]]]:
    """Subscribe to `URI` in an era of the protocol. Yield a function that waits for the next notification."""
    send, receive = anyio.create_memory_object_stream[str](100)

    async def on_message(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            await send.send(str(message.params.uri))

    async with send, receive, mcp.Client(server, mode=mode, message_handler=on_message) as session:
        if mode == "legacy":
            await session.subscribe_resource(URI)
            yield receive.receive
        else:
            async with session.listen(resource_subscriptions=[URI]) as events:
                stream = aiter(events)

                async def wait() -> str:
                    return str((await anext(stream)).uri)

                yield wait
