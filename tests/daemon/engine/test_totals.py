from pathlib import Path

from punchlist_testing.engine import TouchyLog, engine
from punchlistd.store.port import StorageFull

C = "c"


async def test_the_work_in_all_conversations_is_followed_change_by_change(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await running.writer.upkeep.refresh()
        await peer.result("task.add_many", conversation=C, tasks=[{"title": "a"}, {"title": "b"}])
        await peer.result("task.set_status", conversation=C, task="1", status="in_progress")
        await peer.result("task.add", conversation="other", title="x")
        await peer.result("task.edit", conversation=C, task="1", title="no change of totals")
        await peer.result("task.set_status", conversation=C, task="1", status="completed")
        assert running.totals[-4:] == [(2, 0), (2, 1), (3, 1), (2, 0)]


async def test_totals_are_right_after_a_kill_a_refused_append_and_a_deletion(tmp_path: Path) -> None:
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
