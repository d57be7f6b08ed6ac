"""Features of the asyncio face only: concurrent calls, cancellation, and slow watches."""

import asyncio
from collections.abc import AsyncGenerator
from functools import reduce
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from punchlist import AsyncClient, InvalidParams, LimitExceeded, RequestRefused, connect_async, conversation
from punchlist_testing.daemon import Running, running_daemon


@pytest.fixture
async def near(tmp_path: Path) -> AsyncGenerator[Running]:
    """A daemon on the test's event loop."""
    async with running_daemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture
async def client(near: Running) -> AsyncGenerator[AsyncClient]:
    async with connect_async(socket=near.socket, autostart=False) as client:
        yield client


async def test_concurrent_calls_may_exceed_connection_limit(client: AsyncClient) -> None:
    plan = client.conversation("c")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as calls:
            for n in range(300):
                calls.start_soon(plan.add, f"task {n}")
    titles = [task.title for task in await plan.list()]
    assert sorted(titles) == sorted(f"task {n}" for n in range(300))


async def test_calls_take_effect_in_order(client: AsyncClient) -> None:
    plan = client.conversation("c")
    await asyncio.gather(*(plan.add(str(n)) for n in range(50)))
    assert [task.title for task in await plan.list()] == [str(n) for n in range(50)]


async def test_cancelled_wait_leaves_nothing_in_daemon(client: AsyncClient) -> None:
    with anyio.move_on_after(0.05):
        await client.call("event.wait", {"after": 0, "timeout_ms": 60_000})
    with anyio.fail_after(30):
        assert (await client.conversation("c").add("one")).id == "1"


async def test_body_exception_is_raised_unchanged(near: Running) -> None:
    with pytest.raises(ZeroDivisionError):
        async with connect_async(socket=near.socket) as client:
            await client.conversation("c").add("one")
            _ = 1 // 0
    with pytest.raises(RequestRefused):
        async with connect_async(socket=near.socket) as client, client.conversation("c").watch():
            await client.conversation("c").get("9")


async def test_slow_watch_misses_nothing(client: AsyncClient) -> None:
    plan = client.conversation("c")
    with anyio.fail_after(30):
        async with plan.watch() as changes:
            for n in range(150):
                await plan.add(str(n), description="x" * 60_000)
            (subscription,) = (await client.status()).subscriptions
            assert subscription.lag > 0
            versions = [(await changes.next()).version for _ in range(151)]
    assert versions == list(range(1, 152))


async def test_loop_without_block_ends_with_client(near: Running) -> None:
    async with connect_async(socket=near.socket) as client:
        plan = client.conversation("c")
        await plan.add("one")
        async for change in plan.watch(after=0):
            assert change.version == 1
            break
        status = await client.status()
        assert len(status.subscriptions) == 1
    async with connect_async(socket=near.socket) as client:
        with anyio.fail_after(30):
            while (await client.status()).subscriptions:
                await anyio.lowlevel.checkpoint()


async def test_scope_holds_in_tasks_and_worker_threads(client: AsyncClient) -> None:
    async def add(title: str) -> None:
        await client.conversation().add(title)

    def from_a_thread() -> None:
        anyio.from_thread.run(add, "from a thread")

    async with conversation("scoped"), anyio.create_task_group() as tasks:
        tasks.start_soon(add, "from a task")
        await anyio.to_thread.run_sync(from_a_thread)
    assert {task.title for task in await client.conversation("scoped").list()} == {"from a task", "from a thread"}


@pytest.mark.parametrize("bad", [2**53 + 1, "\ud800", reduce(lambda inner, _: [inner], range(40), [0])])
async def test_unreadable_call_fails_alone(client: AsyncClient, bad: object) -> None:
    plan = client.conversation("c")
    await plan.open()
    waiting: list[object] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as calls:

            async def wait() -> None:
                waiting.append(await client.call("event.wait", {"after": 1, "conversation": "c", "timeout_ms": 5_000}))

            calls.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises((InvalidParams, LimitExceeded)):
                await plan.append_message("user", {"n": bad})
            await plan.add("one")
    assert len(waiting) == 1
