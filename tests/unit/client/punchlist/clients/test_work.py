"""Working through a list with both faces: the state of a task after each way its body can end."""

import asyncio
import gc
from collections.abc import Generator
from typing import Any

import anyio
import pytest

from punchlist import AsyncClient, AsyncConversation, Conversation, LeaseLost, connect, connect_async
from punchlist_testing.daemon import Running, Spawned


@pytest.fixture
def plan(daemon: Running) -> Generator[Conversation]:
    with connect(socket=daemon.socket, autostart=False) as client:
        plan = client.conversation("c")
        plan.add_many("abc")
        yield plan


def told(plan: Conversation) -> list[tuple[str, int, str]]:
    return [(task.status, task.attempts, task.fail_reason) for task in plan.list()]


def test_finished_body_completes_task(plan: Conversation) -> None:
    titles = [task.title for task in plan.work("w")]
    assert (titles, plan.list().counts.completed) == (["a", "b", "c"], 3)


def test_exception_fails_task_and_propagates(plan: Conversation) -> None:
    with pytest.raises(ValueError, match="no such file"), plan.work("w") as tasks:
        for task in tasks:
            if task.title == "b":
                raise ValueError("no such file")
    assert told(plan) == [("completed", 1, ""), ("failed", 1, "no such file"), ("pending", 0, "")]


def test_leaving_early_gives_the_task_back(plan: Conversation) -> None:
    with plan.work("w") as tasks:
        for _ in tasks:
            break
    assert told(plan)[0] == ("pending", 1, "")
    for _ in plan.work("w"):
        break
    gc.collect()
    assert told(plan)[0] == ("pending", 2, "")


def test_body_may_finish_task_itself(plan: Conversation) -> None:
    with plan.work("w") as tasks:
        for task in tasks:
            if task.title == "a":
                plan.complete(task.id, "in a.txt")
            elif task.title == "b":
                plan.pause(task.id)
    assert [task.status for task in plan.list()] == ["completed", "paused", "completed"]
    assert plan.get("1").result_summary == "in a.txt"


def test_one_task_is_claimed_finished_and_failed(plan: Conversation) -> None:
    with plan.claim("w", "2") as task:
        assert task is not None and task.title == "b"
    with pytest.raises(RuntimeError), plan.claim("w") as task:
        raise RuntimeError
    with plan.claim("w") as task:
        assert task is not None
    with plan.claim("w") as task:
        assert task is None
    assert [(task.status, task.fail_reason) for task in plan.list()] == [
        ("failed", "RuntimeError"),
        ("completed", ""),
        ("completed", ""),
    ]


def test_interrupt_does_not_fail_task(plan: Conversation) -> None:
    with pytest.raises(KeyboardInterrupt), plan.claim("w"):
        raise KeyboardInterrupt
    assert told(plan)[0] == ("pending", 1, "")


def test_lost_claim_is_reported(plan: Conversation) -> None:
    with pytest.raises(LeaseLost), plan.claim("w", "1"):
        plan.reopen("1")
    with pytest.raises(ZeroDivisionError), plan.claim("w", "1"):
        plan.reopen("1")
        raise ZeroDivisionError


def test_a_claim_is_renewed_while_the_body_runs(plan: Conversation) -> None:
    with plan.claim("w", "1", lease_ms=1_000), plan.watch() as watch, pytest.raises(TimeoutError):
        watch.next(timeout_s=1.25)
    assert plan.get("1").attempts == 1


def test_a_claim_survives_a_restart_of_the_daemon(process: Spawned) -> None:
    with connect(socket=process.socket, autostart=False) as client:
        plan = client.conversation("c")
        plan.add("a")
        with plan.claim("w", lease_ms=1_000):
            process.restart()
            other = connect(socket=process.socket, autostart=False)
            watch = other.conversation("c").watch(after=0)
            with pytest.raises(TimeoutError):
                while True:
                    assert type(watch.next(timeout_s=1.25).event).__name__ != "Released"
            other.close()
        assert plan.get("1").status == "completed"


def test_work_waits_for_new_tasks(plan: Conversation, daemon: Running) -> None:
    plan.clear()
    with connect(socket=daemon.socket, autostart=False) as second:
        done: list[str] = []
        with plan.work("w", follow=True) as tasks:
            second.conversation("c").add("late")
            for task in tasks:
                done.append(task.title)
                plan.complete(task.id)
                break
    assert done == ["late"]


@pytest.fixture
async def client(process: Spawned) -> Any:
    async with connect_async(socket=process.socket, autostart=False) as client:
        yield client


@pytest.fixture
async def aplan(client: AsyncClient) -> AsyncConversation:
    plan = client.conversation("c")
    await plan.add_many("abc")
    return plan


async def statuses(plan: AsyncConversation) -> list[str]:
    return [task.status for task in await plan.list()]


async def test_asyncio_completes_fails_and_gives_back(aplan: AsyncConversation) -> None:
    async with aplan.work("w") as tasks:
        async for _ in tasks:
            break
    assert await statuses(aplan) == ["pending", "pending", "pending"]
    with pytest.raises(ValueError, match="oops"):
        async with aplan.work("w") as tasks:
            async for task in tasks:
                if task.id == "2":
                    raise ValueError("oops")
    assert await statuses(aplan) == ["completed", "failed", "pending"]
    assert (await aplan.get("2")).fail_reason == "oops"
    assert [task.id async for task in aplan.work("w")] == ["3"]
    async with aplan.claim("w") as task:
        assert task is None


async def test_abandoned_async_loop_releases_its_task(aplan: AsyncConversation) -> None:
    async for _ in aplan.work("w"):
        break
    gc.collect()
    await aplan.client.status()
    assert (await aplan.get("1")).status == "pending"


async def test_cancelled_body_releases_task(aplan: AsyncConversation) -> None:
    with anyio.move_on_after(0.05):
        async with aplan.claim("w"):
            await anyio.sleep_forever()
    assert (await aplan.get("1")).status == "pending"


async def test_claim_cancelled_in_flight_holds_nothing(aplan: AsyncConversation) -> None:
    """Whether or not the daemon has already granted the claim, the task is free in the end."""
    for delay in (0.0, 0.0005, 0.001, 0.002, 0.005):
        taking = asyncio.ensure_future(aplan.take("w", wait_ms=60_000))
        await asyncio.sleep(delay)
        taking.cancel()
        result = (await asyncio.gather(taking, return_exceptions=True))[0]
        if not isinstance(result, BaseException) and result.task is not None:
            await aplan.release(result.task.id, "w")
        with anyio.fail_after(30):
            await aplan.wait(lambda tasks: tasks.counts.in_progress == 0)
