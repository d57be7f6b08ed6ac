from pathlib import Path

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine
from punchlist_testing.memory_log import MemoryLog
from punchlistd.domain.state import initial_state
from punchlistd.engine.lists.conversations import SNAPSHOT_EVENTS, Conversations, is_snapshot_due
from punchlistd.engine.lists.history import History
from punchlistd.engine.lists.loaded import REPLIES_KEPT, Listings, LoadedConversation
from punchlistd.engine.writing.inbox import Inbox

C = "c"


async def test_what_nobody_used_is_let_go_and_loaded_again_when_needed(tmp_path: Path) -> None:
    async with engine(tmp_path, loaded_s=-1.0) as running:
        peer = await running.connect()
        for number in range(5):
            added = await peer.result("task.add", conversation=C, title=str(number), key=f"k{number}")
            await running.maintenance.refresh()
            assert C not in running.conversations.loaded
            assert await peer.result("task.add", conversation=C, title=str(number), key=f"k{number}") == added
        assert len((await peer.result("task.list", conversation=C))["tasks"]) == 5


async def test_loading_gives_the_same_list_from_snapshot_and_tail(tmp_path: Path) -> None:
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


async def test_two_who_load_the_same_get_the_same() -> None:
    log = MemoryLog()
    conversations = Conversations(log, History(log), Inbox().wait_until_settled)
    assert await conversations.load(C) is await conversations.load(C) is await conversations.durable(C)


async def test_a_damaged_conversation_reads_as_far_as_it_is_whole_and_refuses_changes(
    running: Engine, peer: Peer, log: TouchyLog
) -> None:
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


def test_a_snapshot_is_taken_when_enough_happened() -> None:
    opened = LoadedConversation(initial_state(C), "", 0, 0)
    for version, full in ((1, False), (SNAPSHOT_EVENTS, True)):
        opened.state.version = version
        assert is_snapshot_due(opened, everything=False) == full
    opened.state.version = 1
    assert is_snapshot_due(opened, everything=True)


def test_the_oldest_kept_answer_goes_first() -> None:
    opened = LoadedConversation(initial_state(C), "", 0, 0)
    for number in range(REPLIES_KEPT + 1):
        opened.remember(str(number), "call", b"{}")
    assert "0" not in opened.replies and "1" in opened.replies and len(opened.replies) == REPLIES_KEPT


class List:
    forgotten = 0

    def forget_listing(self) -> None:
        self.forgotten += 1


def test_the_oldest_go_when_there_is_too_much_together() -> None:
    kept, lists = Listings(10), [List() for _ in range(4)]
    for each in (*lists[:3], lists[0]):
        kept.add(each, 3)
    assert [each.forgotten for each in lists] == [0, 0, 0, 0], "an encoding takes the place of the one before it"
    kept.add(lists[3], 3)
    assert [each.forgotten for each in lists] == [0, 1, 0, 0]
    kept.drop(lists[2])
    kept.add(lists[1], 4)
    assert [each.forgotten for each in lists] == [0, 1, 0, 0]


def test_a_single_large_one_is_kept() -> None:
    kept, small, large = Listings(10), List(), List()
    kept.add(small, 1)
    kept.add(large, 100)
    assert (small.forgotten, large.forgotten) == (1, 0)
