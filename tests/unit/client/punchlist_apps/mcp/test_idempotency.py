from typing import Any

import anyio
import pytest

from punchlist_apps.mcp import idempotency
from punchlist_apps.mcp.idempotency import RepeatedRequests


async def test_repetition_gets_the_first_reply() -> None:
    asked: RepeatedRequests[int] = RepeatedRequests()
    runs: list[int] = []
    begun, go_on = anyio.Event(), anyio.Event()

    async def run() -> int:
        runs.append(1)
        begun.set()
        await go_on.wait()
        return len(runs)

    replies: list[int] = []

    async def ask() -> None:
        replies.append(await asked.once("a", run, lambda _: True))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await begun.wait()
            group.start_soon(ask)
            group.start_soon(ask)
            go_on.set()
    assert replies == [1, 1, 1]
    assert await asked.once("b", run, lambda _: True) == 2


async def test_failed_request_runs_again() -> None:
    asked: RepeatedRequests[int] = RepeatedRequests()
    replies = iter([1, 2, 3])

    async def run() -> int:
        return next(replies)

    async def fail() -> int:
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError):
        await asked.once("a", fail, lambda _: True)
    assert [await asked.once("a", run, lambda reply: reply == 2) for _ in range(3)] == [1, 2, 2]


async def test_old_replies_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "_MAX_REPLIES", 2)
    asked: RepeatedRequests[int] = RepeatedRequests()
    count = 0

    async def run() -> int:
        nonlocal count
        count += 1
        return count

    def keep(_: Any) -> bool:
        return True

    assert [await asked.once(key, run, keep) for key in ("a", "b", "a", "c", "a")] == [1, 2, 1, 3, 4]
