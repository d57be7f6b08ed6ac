import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.engine import TouchyLog, engine
from punchlistd.engine.writing.maintenance import BUSY_EVENTS, EVENTS_EACH
from punchlistd.store.port import Damaged, StorageFull

C = "c"


async def until(check: Any) -> None:
    with anyio.fail_after(30):
        while not check():  # noqa: ASYNC110 - no event reports this
            await asyncio.sleep(0.001)


async def test_log_is_indexed_shortly_after_the_last_change(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, index_delay_s=0.01) as running:
        await (await running.connect()).result("task.add", conversation=C, title="a")
        assert log.unindexed == 2
        await until(lambda: log.unindexed == 0)


async def test_large_backlog_is_indexed_immediately(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, index_delay_s=1_000.0, index_events=10) as running:
        peer = await running.connect()
        for number in range(12):
            await peer.result("task.add", conversation=C, title=str(number))
        assert log.unindexed < 10


async def test_changes_of_many_lists_are_indexed_together(tmp_path: Path) -> None:
    async with engine(tmp_path, index_delay_s=1_000.0, index_events=20) as running:
        peer, log = await running.connect(), running.log
        most = list[int]()
        for number in range(4 * 20 + 1):
            await peer.result("task.add", conversation=f"c-{number % 12}", title=str(number))
            most.append(log.unindexed)
        assert max(most) in (EVENTS_EACH * 12 - 1, EVENTS_EACH * 12), "there were enough, and four of each"


async def test_wait_for_changes_of_many_lists_is_limited(tmp_path: Path) -> None:
    async with engine(tmp_path, index_delay_s=1_000.0, index_events=20) as running:
        peer, log = await running.connect(), running.log
        most = list[int]()
        for number in range(120):
            await peer.result("task.add", conversation=f"c-{number}", title="alone")
            most.append(log.unindexed)
        assert EVENTS_EACH * 20 - 2 <= max(most) <= EVENTS_EACH * 20 + 2


async def test_indexing_is_postponed_under_load(tmp_path: Path) -> None:
    async with engine(tmp_path, index_delay_s=1_000.0) as running:
        peer, maintenance = await running.connect(), running.maintenance
        await peer.result("task.add", conversation=C, title="the first")
        await peer.result("task.add_many", conversation=C, tasks=[{"title": "x"}] * (BUSY_EVENTS + 1))
        for due in (False, True):
            maintenance._on_timer()  # pyright: ignore[reportPrivateUsage]
            assert maintenance.is_due is due


async def test_full_disk_postpones_indexing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TouchyLog()

    async def no_room(snapshots: Any) -> None:
        raise StorageFull

    async with engine(tmp_path, log, index_delay_s=0.01, index_events=1) as running:
        peer = await running.connect()
        with monkeypatch.context() as patch:
            patch.setattr(log, "maintain", no_room)
            await peer.result("task.add", conversation=C, title="a")
            await until(lambda: "storage_full while indexing" in running.metrics.errors)
            await peer.result("task.add", conversation=C, title="b")
            assert "conversations" in await peer.result("conversation.list")
        await until(lambda: log.unindexed == 0)
        assert len((await peer.result("conversation.list"))["conversations"]) == 1


async def test_close_leaves_full_snapshots(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        await (await running.connect()).result("task.add", conversation=C, title="a")
    loaded = await log.load(C)
    assert (loaded.version, loaded.newer, log.unindexed) == (2, [], 0)


async def test_totals_follow_every_change(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await running.maintenance.refresh()
        await peer.result("task.add_many", conversation=C, tasks=[{"title": "a"}, {"title": "b"}])
        await peer.result("task.set_status", conversation=C, task="1", status="in_progress")
        await peer.result("task.add", conversation="other", title="x")
        await peer.result("task.edit", conversation=C, task="1", title="no change of totals")
        await peer.result("task.set_status", conversation=C, task="1", status="completed")
        assert running.totals[-4:] == [(2, 0), (2, 1), (3, 1), (2, 0)]


async def test_totals_survive_kills_rejections_and_deletions(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, kill=True) as running:
        peer = await running.connect()
        await peer.result("task.add", conversation=C, title="a", status="in_progress")
        await peer.result("task.add", conversation="other", title="b", status="paused")
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("conversation.list")
        assert running.totals == [(2, 1)]
        log.refusal = StorageFull()
        await peer.refusal("task.add", conversation=C, title="c")
        log.refusal = None
        await peer.result("task.add", conversation=C, title="c")
        assert running.totals[-1] == (3, 1)
        token = (await peer.refusal("conversation.delete", conversation=C))["token"]
        await peer.result("conversation.delete", conversation=C, confirm=token)
        assert running.totals[-1] == (1, 0)


async def test_pending_erasure_finishes_after_the_next_start(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", conversation=C, title="secret")
        token = (await peer.refusal("conversation.delete", conversation=C))["token"]
        log.erase_refusal = Damaged(C, 1, "spoiled")
        await peer.result("conversation.delete", conversation=C, confirm=token)
    assert await log.unerased() == [C]
    log.erase_refusal = None
    async with engine(tmp_path, log) as running:
        await running.maintenance.refresh()
    assert await log.unerased() == []
