"""Past versions, computed in slices, and the states they start from."""

import asyncio
from typing import Any

import anyio
import pytest

from punchlist_schemas.events import UnknownEvent
from punchlist_testing.engine import Engine, Peer, TouchyLog, until
from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import Scribe, said
from punchlist_testing.turns import turns
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State
from punchlistd.domain.undo.inverse import undo_change
from punchlistd.engine.lists.history import MAX_PASTS, PASTS_KEPT, History, fact_of
from punchlistd.slices import SLICE_EVENTS
from punchlistd.store.port import Damaged, Loaded, Side, Stored
from punchlistd.store.record import seal

C = "c"
LENGTH = 12 * SLICE_EVENTS
WORK = (evolve, undo_change)
"""Functions that run for each event of a history. `turns` counts their calls as steps."""


async def filled(peer: Peer, name: str = C, count: int = LENGTH, key: str | None = None) -> None:
    """Fill a list with `count` events of one task whose status alternates; then add a task with a key if given."""
    await peer.result("task.add", conversation=name, title="x")
    for number in range(count):
        status = ("in_progress", "pending")[number % 2]
        peer.send("task.set_status", {"conversation": name, "task": "1", "status": status}, id=number)
    for _ in range(count):
        await peer.receive()
    if key is not None:
        await peer.result("task.add", conversation=name, title="keyed", key=key)


READERS: list[tuple[str, dict[str, Any]]] = [
    ("list.undo", {"preview": True}),
    ("list.undo", {}),
    ("list.undo", {"of": "anonymous", "preview": True}),
    ("task.list", {"at_version": LENGTH - 1}),
    ("task.add", {"title": "keyed", "key": "k"}),
    ("conversation.get", {}),
]


@pytest.mark.parametrize(("method", "params"), READERS, ids=["preview", "undo", "of", "at", "repeat", "load"])
async def test_long_history_is_read_in_slices(running: Engine, peer: Peer, method: str, params: dict[str, Any]) -> None:
    """Count the steps between two turns of the loop, whose number is the same on every machine."""
    await filled(peer, key="k")
    running.conversations.drop(C)
    others = [await running.connect() for _ in range(4)]
    async with turns(*WORK) as counted:
        for other in others:
            other.send(method, {"conversation": C, **params}, id=1)
        for other in others:
            assert "result" in await other.answer(1)
    assert counted.total >= LENGTH
    assert counted.longest <= 3 * SLICE_EVENTS, "one slice, and an undo step also folds its own events"


@pytest.mark.parametrize("clear", [False, True], ids=["calls", "a clear"])
async def test_change_waits_only_for_writes_of_undo(running: Engine, peer: Peer, *, clear: bool) -> None:
    """The undo is computed outside the writer, so a change to another list waits for only a few slices."""
    await filled(peer)
    if clear:
        await peer.result("task.add_many", conversation=C, tasks=[{"title": "x"}] * LENGTH)
        await peer.result("list.clear", conversation=C)
    undoer, waits = await running.connect(), list[int]()
    count = 1 if clear else LENGTH
    for preview in (True, False):
        async with turns(*WORK) as counted:
            undoer.send("list.undo", {"conversation": C, "count": count, "preview": preview}, id=1)
            answered = asyncio.ensure_future(undoer.answer(1))
            while not answered.done():
                before = counted.total
                await peer.result("task.add", conversation="aside", title="x")
                waits.append(counted.total - before)
        assert "result" in await answered
        assert counted.longest <= (3 * SLICE_EVENTS if preview else LENGTH + 3 * SLICE_EVENTS)
        assert max(waits) <= (20 * SLICE_EVENTS if preview else LENGTH + 20 * SLICE_EVENTS)
        assert len(waits) >= 3


async def test_full_undo_is_sliced_but_seen_whole(running: Engine, peer: Peer) -> None:
    await filled(peer)
    undoer, reader, versions = await running.connect(), await running.connect(), set[int]()
    async with turns(*WORK) as counted:
        undoer.send("list.undo", {"conversation": C, "of": "anonymous"}, id=1)
        for number in range(200):
            reader.send("conversation.get", {"conversation": C}, id=number)
            versions.add((await reader.answer(number))["result"]["conversation"]["version"])
        undone = (await undoer.answer(1))["result"]
    assert counted.longest <= 3 * SLICE_EVENTS
    assert versions <= {LENGTH + 2, undone["version"]} and undone["version"] > 2 * LENGTH


async def test_past_version_starts_from_the_nearest_state(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await filled(peer)
    at = {"conversation": C, "at_version": LENGTH // 2}
    first = await peer.result("task.list", **at)
    async with turns(*WORK) as counted:
        assert await peer.result("task.list", **at) == first
        later = await peer.result("task.list", conversation=C, at_version=LENGTH // 2 + 5)
    assert counted.total == 5
    assert (later["version"], later["seq"]) == (LENGTH // 2 + 5, LENGTH // 2 + 5)
    await running.maintenance.refresh()
    running.history.forget(C)
    await peer.result("task.set_status", conversation=C, task="1", status="completed")
    async with turns(*WORK) as counted:
        found = await peer.result("task.list", conversation=C, at_version=LENGTH + 2)
    assert (found["tasks"][0]["status"], counted.total) == ("pending", 0)
    async with turns(*WORK) as counted:
        assert await peer.result("task.list", **at) == first
    assert counted.total == LENGTH // 2, "versions before the snapshot are folded from the beginning"


async def test_few_past_and_no_erased_versions_are_kept(running: Engine, peer: Peer, log: TouchyLog) -> None:
    past = running.history
    for number in range(PASTS_KEPT + 2):
        await filled(peer, f"c{number}", 2)
        await peer.result("task.list", conversation=f"c{number}", at_version=2)
    assert past.kept == [f"c{number}" for number in (2, 3)]
    token = (await peer.refusal("conversation.delete", conversation="c3"))["token"]
    gate = log.hold_reads()
    reader = await running.connect()
    reader.send("task.list", {"conversation": "c2", "at_version": 3}, id=1)
    await gate.reached()
    await peer.result("conversation.delete", conversation="c3", confirm=token)
    gate.open()
    await reader.answer(1)
    assert past.kept == []
    assert (await peer.result("task.list", conversation="c3", at_version=2))["tasks"] == []


async def test_past_versions_are_exact_in_any_order(running: Engine, peer: Peer) -> None:
    wanted = {1: await peer.result("task.add", conversation=C, title="0")}
    for number in range(1, 30):
        added = await peer.result("task.add", conversation=C, title=str(number))
        wanted[added["version"]] = added
    for version in (5, 29, 7, 7, 30, 2, 31, 8):
        found = await peer.result("task.list", conversation=C, at_version=version)
        assert [task["title"] for task in found["tasks"]] == [str(number) for number in range(version - 1)]
    await until(lambda: not running.claims.waiting)


class Cut(MemoryLog):
    """A log that returns one event at a time, and none after a given position."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        found = await super().read(after, 1, conversation=conversation, max_bytes=max_bytes)
        return [stored for stored in found if stored.seq <= self.last]


async def test_short_read_continues_and_gap_is_damage() -> None:
    log, found = Cut(7), list[int]()
    scribe, past = Scribe(log), History(log)
    for number in range(5):
        await scribe.write("a", said(str(number)))
        await scribe.write("b", said(str(number)))

    def take(stored: Stored) -> bool:
        found.append(stored.seq)
        return True

    await past.follow("a", take, 0, 7)
    await past.follow("a", take, 3, 7)
    await past.follow("a", take, 0, 0)
    assert found == [1, 3, 5, 7, 5, 7]
    with pytest.raises(Damaged, match="after 7 are missing"):
        await past.follow("a", take, 0, 9)
    await past.follow("a", take, 7, 9, whole=False)


def test_unknown_event_types_are_kept() -> None:
    wire = b'{"seq":7,"conversation":"c","version":3,"at":1,"actor":"x","event":{"type":"Future","a":1}}'
    fact = fact_of(Stored(7, seal("", wire, Side())[0]))
    assert (fact.seq, fact.version, fact.actor) == (7, 3, "x")
    assert isinstance(fact.event, UnknownEvent) and bytes(fact.event.raw) == b'{"type":"Future","a":1}'


async def test_few_past_versions_are_computed_concurrently() -> None:
    """Each past version is as large as its list, so sixty at the same time would need the memory of sixty lists."""

    class Watched(MemoryLog):
        begun, told, most = 0, 0, 0

        async def load(self, conversation: str) -> Loaded:
            self.begun += 1
            self.most = max(self.most, self.begun - self.told)
            return await super().load(conversation)

    log, names = Watched(), [f"c{number}" for number in range(3 * MAX_PASTS)]
    scribe, history = Scribe(log), History(log)
    for name in names:
        await scribe.write(name, *[said("m")] * (2 * SLICE_EVENTS))

    async def ask(name: str) -> None:
        def tell(state: State, _seq: int) -> int:
            log.told += 1
            return state.version

        assert await history.at(name, 2 * SLICE_EVENTS - 1, log.head, tell) == 2 * SLICE_EVENTS - 1

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(ask, name)
    assert log.told == len(names) and 1 < log.most <= MAX_PASTS


async def test_same_past_version_is_computed_once(running: Engine, peer: Peer) -> None:
    await filled(peer)
    others = [await running.connect() for _ in range(8)]
    async with turns(*WORK) as counted:
        for other in others:
            other.send("task.list", {"conversation": C, "at_version": LENGTH - 1}, id=1)
        for other in others:
            assert "result" in await other.answer(1)
    assert LENGTH - 1 <= counted.total < 2 * LENGTH
