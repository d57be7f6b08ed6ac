"""Undo concurrent with other calls."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlistd.domain.evolve import evolve
from punchlistd.engine.calls import Write
from punchlistd.engine.lists import history
from punchlistd.engine.writing import undos

C = "c"


def add(title: str, actor: str = "ann") -> dict[str, Any]:
    return {"conversation": C, "title": title, "actor": actor}


@contextmanager
def folds() -> Generator[list[int]]:
    """Count folded events until the end of the block; the number is the yielded list's only item."""
    counted = [0]

    def note(frame: FrameType, event: str, _arg: object) -> None:
        counted[0] += event == "call" and frame.f_code is evolve.__code__

    sys.setprofile(note)
    try:
        yield counted
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("deleted_by", ["one call", "a call each"])
async def test_undo_folds_each_event_once(tmp_path: Path, deleted_by: str) -> None:
    """Undo skips ann's calls, because bob has deleted their tasks. Skipping a call must not fold the whole history."""
    costs: dict[int, int] = {}
    for count in (50, 200):
        async with engine(tmp_path, index_delay_s=60.0) as running:
            peer = await running.connect()
            names = [str(number + 1) for number in range(count)]
            for name in names:
                await peer.result("task.add", **add(name))
            for each in [names] if deleted_by == "one call" else [[name] for name in names]:
                await peer.result("task.delete", conversation=C, tasks=each, actor="bob")
            with folds() as folded:
                undone = await peer.result("list.undo", conversation=C, of="ann", count=1, preview=True)
            assert undone["undone"] == []
            assert folded[0] <= undone["version"] + 10
            costs[count] = folded[0]
    assert costs[200] <= 4 * costs[50]


async def test_undo_after_the_snapshot_folds_only_later_events(running: Engine, peer: Peer) -> None:
    for number in range(100):
        await peer.result("task.add", **add(str(number)))
    await running.maintenance.refresh()
    await peer.result("task.add", **add("the last one"))
    with folds() as folded:
        assert (await peer.result("list.undo", conversation=C))["undone"] == ['removed #101 "the last one"']
    assert folded[0] <= 5
    assert (await peer.result("list.undo", conversation=C))["undone"] == ['removed #100 "99"'], "which lies before it"


async def test_long_undo_makes_the_next_ones_cheap(
    running: Engine, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "BASE_EVENTS", 20)
    for number in range(200):
        await peer.result("task.add", **add(str(number)))
    await running.maintenance.refresh()  # the snapshot is at the end, and the undone events precede it
    costs: list[int] = []
    for number in (199, 198, 197):
        with folds() as folded:
            undone = (await peer.result("list.undo", conversation=C))["undone"]
        assert undone == [f'removed #{number + 1} "{number}"']
        costs.append(folded[0])
    assert costs[0] > 200 and max(costs[1:]) < 40
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    await peer.result("conversation.delete", conversation=C, confirm=token)
    await peer.result("task.add", **add("new"))
    assert (await peer.result("list.undo", conversation=C))["undone"] == ['removed #1 "new"']


async def test_older_calls_are_found_by_a_longer_lookback(
    running: Engine, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "EXTRA_CALLS", 1)
    monkeypatch.setattr(history, "DEPTH_FACTOR", 2)
    await peer.result("task.add", **add("the one that stays"))
    for number in range(20):
        added = await peer.result("task.add", **add(str(number)))
        await peer.result("task.delete", conversation=C, task=added["task"]["id"], actor="bob")
    undone = await peer.result("list.undo", conversation=C, of="ann", count=1, key="k")
    assert undone["undone"] == ['removed #1 "the one that stays"']
    running.conversations.drop(C)
    assert await peer.result("list.undo", conversation=C, of="ann", count=1, key="k") == undone


async def test_undo_considers_writes_during_its_read(running: Engine, peer: Peer, log: TouchyLog) -> None:
    other = await running.connect()
    await peer.result("task.add", **add("a"))
    gate = log.hold_reads()
    peer.send("list.undo", {"conversation": C}, id=1)
    await gate.reached()
    await other.result("task.add", **add("b", "bob"))
    gate.open()
    assert (await peer.answer(1))["result"]["undone"] == ['removed #2 "b"']


@pytest.mark.parametrize("tries", [8, 0], ids=["beside the writer", "in its turn"])
async def test_undo_considers_changes_during_its_computation(
    running: Engine, peer: Peer, log: TouchyLog, monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    monkeypatch.setattr(undos, "MAX_ATTEMPTS", tries)
    read_past, is_worked_out = undos.Undos.read_past, anyio.Event()

    async def noted(self: undos.Undos, item: Write) -> None:
        await read_past(self, item)
        is_worked_out.set()

    monkeypatch.setattr(undos.Undos, "read_past", noted)
    other = await running.connect()
    for title in "ab":
        await peer.result("task.add", **add(title))
    commits = log.hold()
    other.send("task.delete", {"conversation": C, "task": "2", "actor": "bob"}, id=1)
    await commits.reached()
    peer.send("list.undo", {"conversation": C, "of": "ann", "count": 9}, id=2)
    with anyio.fail_after(30):
        await is_worked_out.wait()
    commits.open()
    assert (await peer.answer(2))["result"]["undone"] == ['removed #1 "a"']


async def test_undo_runs_in_its_turn_after_eight_retries(
    running: Engine, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that keeps changing a list can't prevent others from undoing."""
    other = await running.connect()
    await peer.result("task.add", **add("a"))
    read_past, tried = undos.Undos.read_past, list[int]()

    async def moved(self: undos.Undos, item: Write) -> None:
        await read_past(self, item)
        tried.append(item.attempts)
        await other.result("task.add", **add(str(len(tried)), "bob"))

    monkeypatch.setattr(undos.Undos, "read_past", moved)
    undone = await peer.result("list.undo", conversation=C, of="bob", count=100)
    assert tried == [*range(1, undos.MAX_ATTEMPTS + 2)]
    assert len(undone["undone"]) == len(tried)


@pytest.mark.parametrize("batch", [False, True], ids=["in a row", "in a batch"])
async def test_calls_after_an_undo_run_after_it(peer: Peer, batch: bool) -> None:
    await peer.result("task.add", **add("a"))
    calls = [("list.undo", {"conversation": C}), ("task.add", add("b")), ("task.list", {"conversation": C})]
    requests = [
        {"jsonrpc": "2.0", "id": id, "method": method, "params": params} for id, (method, params) in enumerate(calls)
    ]
    if batch:
        peer.write(peer.frame(requests))
        answers = await peer.receive()
    else:
        peer.write(b"".join(map(peer.frame, requests)))
        answers = [await peer.receive() for _ in requests]
    told = {answer["id"]: answer["result"] for answer in answers}
    assert told[0]["undone"] == ['removed #1 "a"']
    assert [task["title"] for task in told[2]["tasks"]] == ["b"]


async def test_undo_records_its_actor_and_target(peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", **add("hers", "ann"))
    await peer.result("task.add", **add("his", "bob"))
    undone = await peer.result("list.undo", conversation=C, of="ann", actor="cat")
    assert undone["undone"] == ['removed #1 "hers"']
    (last,) = (await peer.result("event.read", after=undone["seq"] - 1))["events"]
    assert last["actor"] == "cat"
    undone = await peer.result("list.undo", conversation=C, actor="bob")
    assert undone["undone"] == ['removed #2 "his"'], "as it was before there was `of`"
    assert (await peer.result("list.undo", conversation=C, of="nobody", actor="cat"))["undone"] == []


async def test_undo_during_erasure_restores_nothing(running: Engine, peer: Peer, log: TouchyLog) -> None:
    other = await running.connect()
    await peer.result("task.add", **add("secret"))
    await peer.result("task.delete", conversation=C, task="1")
    token = (await other.refusal("conversation.delete", conversation=C))["token"]
    gate = log.hold_reads()
    peer.send("list.undo", {"conversation": C}, id=1)
    await gate.reached()
    await other.result("conversation.delete", conversation=C, confirm=token)
    await other.result("task.add", **add("new", "bob"))
    gate.open()
    assert (await peer.answer(1))["result"]["undone"] == ['removed #1 "new"']
    await until(lambda: not running.claims.waiting)
