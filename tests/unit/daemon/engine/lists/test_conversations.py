from pathlib import Path

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine
from punchlist_testing.memory_log import MemoryLog
from punchlistd.domain.state import initial_state
from punchlistd.engine.lists.conversations import SNAPSHOT_EVENTS, Conversations, is_snapshot_due
from punchlistd.engine.lists.history import History
from punchlistd.engine.lists.loaded import REPLIES_KEPT, Listings, LoadedConversation
from punchlistd.engine.writing.inbox import Inbox

C = "c"


async def test_unused_lists_are_evicted_and_reloaded(tmp_path: Path) -> None:
    async with engine(tmp_path, loaded_s=-1.0) as running:
        peer = await running.connect()
        for number in range(5):
            added = await peer.result("task.add", conversation=C, title=str(number), key=f"k{number}")
            await running.maintenance.refresh()
            assert C not in running.conversations.loaded
            assert await peer.result("task.add", conversation=C, title=str(number), key=f"k{number}") == added
        assert len((await peer.result("task.list", conversation=C))["tasks"]) == 5


async def test_snapshot_and_tail_load_the_same_list(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        for number in range(2 * SNAPSHOT_EVENTS):
            await peer.result("task.add", conversation=C, title=str(number))
        await running.maintenance.refresh()
        await peer.result("task.edit", conversation=C, task="1", title="changed")
        listed = await peer.result("task.list", conversation=C)
    async with engine(tmp_path, log) as running:
        assert await (await running.connect()).result("task.list", conversation=C) == listed


async def test_concurrent_loads_share_one_list() -> None:
    log = MemoryLog()
    conversations = Conversations(log, History(log), Inbox().wait_until_settled)
    assert await conversations.load(C) is await conversations.load(C) is await conversations.durable(C)


async def test_damaged_conversation_is_readable_but_read_only(running: Engine, peer: Peer, log: TouchyLog) -> None:
    for title in ("a", "b", "c"):
        await peer.result("task.add", conversation=C, title=title)
    await peer.result("task.add", conversation="fine", title="x")
    running.conversations.drop(C)
    log._lines[2] = log._lines[2].replace(b'"b"', b'"B"')  # pyright: ignore[reportPrivateUsage]
    listed = await peer.result("task.list", conversation=C)
    assert [task["title"] for task in listed["tasks"]] == ["a"]
    refused = await peer.refusal("task.add", conversation=C, title="d")
    assert (refused["kind"], refused["seq"], refused["conversation"]) == ("damaged", 3, C)
    assert (await peer.refusal("list.undo", conversation=C))["kind"] == "damaged"
    assert (await peer.refusal("task.add", conversation=C, title="d", key="k"))["kind"] == "damaged"
    await peer.result("task.add", conversation="fine", title="y")


def test_snapshot_follows_enough_events() -> None:
    opened = LoadedConversation(initial_state(C), "", 0, 0)
    for version, full in ((1, False), (SNAPSHOT_EVENTS, True)):
        opened.state.version = version
        assert is_snapshot_due(opened, everything=False) == full
    opened.state.version = 1
    assert is_snapshot_due(opened, everything=True)


def test_oldest_cached_response_is_dropped_first() -> None:
    opened = LoadedConversation(initial_state(C), "", 0, 0)
    for number in range(REPLIES_KEPT + 1):
        opened.remember(str(number), "call", b"{}")
    assert "0" not in opened.replies and "1" in opened.replies and len(opened.replies) == REPLIES_KEPT


class List:
    forgotten = 0

    def forget_listing(self) -> None:
        self.forgotten += 1


def test_cache_drops_the_oldest_above_its_size() -> None:
    kept, lists = Listings(10), [List() for _ in range(4)]
    for each in (*lists[:3], lists[0]):
        kept.add(each, 3)
    assert [each.forgotten for each in lists] == [0, 0, 0, 0], "each encoding replaces the previous one"
    kept.add(lists[3], 3)
    assert [each.forgotten for each in lists] == [0, 1, 0, 0]
    kept.drop(lists[2])
    kept.add(lists[1], 4)
    assert [each.forgotten for each in lists] == [0, 1, 0, 0]


def test_single_large_response_is_kept() -> None:
    kept, small, large = Listings(10), List(), List()
    kept.add(small, 1)
    kept.add(large, 100)
    assert (small.forgotten, large.forgotten) == (1, 0)
