"""Waiting claims: served in order, without polling, and never for a closed connection."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine
from punchlistd.store.port import StorageFull

C: dict[str, Any] = {"conversation": "c"}
FOR_LONG = 60_000


@pytest.fixture
async def ann(peer: Peer) -> Peer:
    return peer


async def waiting(running: Engine, owner: str, **more: Any) -> Peer:
    """A client whose claim (request 7) waits."""
    peer = await running.connect()
    before = len(running.claims.waiting)
    peer.send("task.claim", {**C, "owner": owner, "wait_ms": FOR_LONG, **more}, id=7)
    await until(lambda: len(running.claims.waiting) == before + 1)
    return peer


async def until(check: Any) -> None:
    with anyio.fail_after(30):
        while not check():
            await anyio.lowlevel.checkpoint()


async def add(peer: Peer, *titles: str) -> None:
    await peer.result("task.add_many", **C, tasks=[{"title": title} for title in titles])


async def got(peer: Peer) -> str | None:
    """Return the id of the task that the waiting claim got."""
    task = (await peer.answer(7))["result"]["task"]
    return None if task is None else task["id"]


async def test_waiting_claims_are_served_in_order(running: Engine, ann: Peer) -> None:
    line = [await waiting(running, name) for name in "abcd"]
    await add(ann, "1", "2")
    assert [await got(peer) for peer in line[:2]] == ["1", "2"]
    assert len(running.claims.waiting) == 2
    await add(ann, "3", "4")
    assert [await got(peer) for peer in line[2:]] == ["3", "4"]
    assert len(running.claims.waiting) == 0


async def test_new_claim_does_not_overtake_waiting_ones(running: Engine, ann: Peer) -> None:
    first = await waiting(running, "first")
    ann.write(
        ann.request("task.add", {**C, "title": "a"}, id=1) + ann.request("task.claim", {**C, "owner": "new"}, id=2)
    )
    assert (await ann.answer(1))["result"]["task"]["id"] == "1"
    assert (await ann.answer(2))["result"]["task"] is None
    assert await got(first) == "1"


async def test_new_claim_gets_the_remaining_tasks(running: Engine, ann: Peer) -> None:
    first = await waiting(running, "first")
    tasks = [{"title": "a"}, {"title": "b"}]
    ann.write(
        ann.request("task.add_many", {**C, "tasks": tasks}, id=1) + ann.request("task.claim", {**C, "owner": "n"}, id=2)
    )
    await ann.answer(1)
    taken = {(await ann.answer(2))["result"]["task"]["id"], await got(first)}
    assert taken == {"1", "2"}


async def test_claim_returns_null_at_its_timeout(running: Engine, ann: Peer) -> None:
    await add(ann, "a")
    await ann.result("task.claim", **C, owner="ann")
    assert (await ann.result("task.claim", **C, owner="b", wait_ms=20))["task"] is None
    assert (await ann.result("task.claim", **C, owner="b", task="1", wait_ms=20))["task"] is None
    assert len(running.claims.waiting) == 0


@pytest.mark.parametrize("how", ["complete_blocker", "release", "resume_parent", "delete_blocker", "failed_retry"])
async def test_any_ready_task_wakes_a_waiting_claim(running: Engine, ann: Peer, how: str) -> None:
    await ann.result("task.add", **C, title="first")
    second: dict[str, Any] = {"parent": "1"} if how == "resume_parent" else {"blocked_by": ["1"]}
    await ann.result("task.add", **C, title="second", **second)
    await ann.result("conversation.configure", **C, settings={"max_attempts": 3})
    if how == "resume_parent":
        await ann.result("task.set_status", **C, task="1", status="paused")
    else:
        await ann.result("task.claim", **C, owner="ann")
    peer = await waiting(running, "w")
    if how == "release":
        await ann.result("task.release", **C, task="1", owner="ann")
    elif how == "delete_blocker":
        await ann.result("task.delete", **C, task="1")
    else:
        to = {"complete_blocker": "completed", "resume_parent": "in_progress", "failed_retry": "failed"}[how]
        await ann.result("task.set_status", **C, task="1", status=to)
    assert await got(peer) == ("1" if how in ("release", "failed_retry") else "2")


async def test_claim_may_wait_for_one_task(running: Engine, ann: Peer) -> None:
    await add(ann, "a", "b")
    await ann.result("task.claim", **C, owner="ann", task="2")
    peer = await waiting(running, "w", task="2")
    await add(ann, "c")
    assert len(running.claims.waiting) == 1
    await ann.result("task.release", **C, task="2", owner="ann")
    assert await got(peer) == "2"
    other = await waiting(running, "v", task="2")
    await peer.result("task.set_status", **C, task="2", status="completed")
    assert (await other.answer(7))["error"]["data"]["kind"] == "illegal_transition"


async def test_cancelled_claim_gets_nothing(running: Engine, ann: Peer) -> None:
    first, second = await waiting(running, "a"), await waiting(running, "b")
    first.send("rpc.cancel", {"id": 7}, id=8)
    answers = [await first.receive(), await first.receive()]
    assert {each["id"]: each.get("error", {}).get("data", {}).get("kind") for each in answers} == {
        7: "cancelled",
        8: None,
    }
    await add(ann, "x")
    assert await got(second) == "1"


async def test_closed_connection_gets_nothing(running: Engine, ann: Peer) -> None:
    gone = await waiting(running, "gone")
    gone.close()
    await until(lambda: len(running.claims.waiting) == 0)
    await add(ann, "x")
    assert (await ann.result("task.claim", **C, owner="ann"))["task"]["attempts"] == 1


async def test_claim_cancelled_during_its_commit_is_released(running: Engine, ann: Peer, log: TouchyLog) -> None:
    await add(ann, "x")
    gone = await running.connect()
    gate = log.hold()
    gone.send("task.claim", {**C, "owner": "gone", "wait_ms": FOR_LONG}, id=7)
    await gate.reached()
    gone.close()
    await until(lambda: len(running.connections.live) == 1)
    gate.open()
    claimed = await ann.result("task.claim", **C, owner="next", wait_ms=FOR_LONG)
    assert (claimed["task"]["id"], claimed["task"]["attempts"]) == ("1", 2)
    events = [event["event"] for event in (await ann.result("event.read", **C, after=0))["events"]]
    assert [event["reason"] for event in events if event["type"] == "Released"] == ["released"]


async def test_rejected_append_ends_the_wait(running: Engine, ann: Peer, log: TouchyLog) -> None:
    peer = await waiting(running, "w")
    gate = log.hold()
    ann.send("task.add", {**C, "title": "x"}, id=1)
    await gate.reached()
    log.refusal = StorageFull()
    gate.open()
    assert (await ann.answer(1))["error"]["data"]["kind"] == "storage_full"
    log.refusal = None
    await add(ann, "y")
    assert await got(peer) == "1"


async def test_shutdown_ends_waiting_claims(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        peer = await waiting(running, "w")
        running.connections.close()
        assert (await peer.answer(7))["error"]["data"]["kind"] == "shutting_down"


async def test_other_calls_proceed_while_a_claim_waits(running: Engine) -> None:
    peers = [await waiting(running, name) for name in "ab"]
    await peers[0].result("conversation.open", **C, settings={"execution": "serial"})
    await peers[0].result("conversation.configure", **C, settings={"execution": "serial"})
    peers[0].send("task.add_many", {**C, "tasks": [{"title": "x"}, {"title": "y"}]}, id=9)
    answers = {message["id"]: message["result"] for message in [await peers[0].receive(), await peers[0].receive()]}
    assert answers[7]["task"]["id"] == "1"
    assert len(running.claims.waiting) == 1
    done = await peers[0].result("task.set_status", **C, task="1", status="completed", fence=answers[7]["fence"])
    assert done["next_task"]["id"] == "2"
    assert await got(peers[1]) == "2"


async def test_claim_waits_past_tasks_of_others(running: Engine, ann: Peer) -> None:
    eve, bob = await waiting(running, "eve"), await waiting(running, "bob")
    await add_for(ann, "bob", "1")
    assert (await got(bob), len(running.claims.waiting)) == ("1", 1), (
        "another owner's earlier claim doesn't block this one"
    )
    named = await waiting(running, "carol", task="1")
    await add_for(ann, "bob", "2")
    assert (await ann.result("task.claim", **C, owner="new"))["task"] is None
    await ann.result("task.edit", **C, task="2", owner="eve")
    assert await got(eve) == "2"
    await ann.result("task.set_status", **C, task="1", status="pending")
    assert await got(named) == "1"


async def add_for(peer: Peer, owner: str, title: str) -> None:
    await peer.result("task.add", **C, title=title, owner=owner)


async def test_new_claim_takes_its_reserved_task_first(running: Engine, ann: Peer) -> None:
    eve = await waiting(running, "eve")
    await add_for(ann, "bob", "1")
    assert (await ann.result("task.claim", **C, owner="bob"))["task"]["id"] == "1"
    await add(ann, "2")
    assert await got(eve) == "2"
