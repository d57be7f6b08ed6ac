"""Leases: heartbeats, grace period, expiry, and the identity of owners."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlist_testing.unmeasured import mostly_untraced
from punchlistd.store.port import StorageFull

C: dict[str, Any] = {"conversation": "c"}
GRACE_S = 0.05


@pytest.fixture
async def running(tmp_path: Path, log: TouchyLog) -> AsyncIterator[Engine]:
    async with engine(tmp_path, log, grace_s=GRACE_S) as made:
        yield made


@pytest.fixture
async def ann(running: Engine) -> Peer:
    peer = await running.connect()
    await peer.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b"}])
    return peer


async def claim(peer: Peer, owner: str = "ann", **more: Any) -> Any:
    return await peer.result("task.claim", **C, owner=owner, **more)


async def end_of_claim(running: Engine) -> dict[str, Any]:
    """Wait for the list's first Released event, whatever its cause, and return it."""
    watcher = await running.connect()
    position = 0
    with anyio.fail_after(30):
        while True:
            found = await watcher.result("event.wait", **C, after=position, timeout_ms=5_000)
            position = found["next"]
            for event in found["events"]:
                if event["event"]["type"] == "Released":
                    return event["event"]


async def test_claim_returns_its_number_and_duration(ann: Peer) -> None:
    claimed = await claim(ann, lease_ms=5_000)
    task = claimed["task"]
    assert (task["id"], task["owner"], task["status"], task["attempts"]) == ("1", "ann", "in_progress", 1)
    assert claimed["fence"] == claimed["seq"]
    shown = (await ann.result("task.get", **C, task="1"))["task"]
    assert 0 < shown["lease_expires_at"] - shown["updated_at"] <= 6_000
    listed = (await ann.result("task.list", **C))["tasks"]
    assert "lease_expires_at" in listed[0]
    assert "lease_expires_at" not in listed[1]
    cut = await ann.result("task.list", **C, status="in_progress", fields=["lease_expires_at"])
    assert set(cut["tasks"][0]) == {"id", "lease_expires_at"}


async def test_several_claims_have_their_own_numbers(ann: Peer) -> None:
    claimed = await claim(ann, count=5)
    assert [task["id"] for task in claimed["tasks"]] == ["1", "2"]
    assert claimed["fences"] == [claimed["seq"] - 1, claimed["seq"]]
    assert (claimed["fence"], claimed["task"]["id"]) == (claimed["fences"][0], "1")


async def test_claimed_task_shows_owner_and_expiry(running: Engine, ann: Peer) -> None:
    until = (await claim(ann))["task"]["lease_expires_at"]
    bob = await running.connect()
    refused = await bob.refusal("task.claim", **C, owner="bob", task="1")
    assert (refused["kind"], refused["owner"]) == ("lease_held", "ann")
    assert 0 <= refused["expires_at"] - until < 2_000


async def test_lease_expires_without_a_heartbeat(running: Engine, ann: Peer) -> None:
    await claim(ann, lease_ms=1_000)
    released = await end_of_claim(running)
    assert (released["task"], released["owner"], released["reason"]) == ("1", "ann", "expired")
    assert (await claim(ann, "bob"))["task"]["attempts"] == 2


async def test_any_call_of_the_connection_renews_its_claims(running: Engine, ann: Peer) -> None:
    await claim(ann, lease_ms=1_000)
    until = anyio.current_time() + 1.2
    while anyio.current_time() < until:  # no timeout around the call: cancelling it would leave its response unread
        await ann.result("task.get", **C, task="2")
        await anyio.sleep(0.2)
    assert (await ann.result("task.get", **C, task="1"))["task"]["owner"] == "ann"
    await ann.result("task.set_status", **C, task="1", status="completed")


async def test_renewal_adds_no_event_and_restarts_the_lease(ann: Peer) -> None:
    claimed = await claim(ann, lease_ms=1_000)
    renewed = await ann.result("task.renew", **C, task="1", owner="ann", lease_ms=60_000, fence=claimed["fence"])
    assert renewed["version"] == claimed["version"]
    assert renewed["task"]["lease_expires_at"] - claimed["task"]["lease_expires_at"] > 50_000


async def test_closed_connection_loses_claims_after_grace_period(running: Engine, ann: Peer) -> None:
    bob = await running.connect()
    await claim(bob, "bob")
    bob.close()
    assert (await end_of_claim(running))["reason"] == "disconnected"


async def test_kept_claim_outlives_its_connection(running: Engine, ann: Peer) -> None:
    bob = await running.connect()
    await claim(bob, "bob", keep=True)
    bob.close()
    await anyio.sleep(3 * GRACE_S)
    assert (await ann.result("task.get", **C, task="1"))["task"]["owner"] == "bob"
    await ann.result("task.set_status", **C, task="1", status="completed", actor="bob")


async def test_late_owner_cannot_finish_next_owners_work(running: Engine, ann: Peer) -> None:
    lost = await claim(ann, "agent-A", keep=True)
    await ann.result("task.release", **C, task="1", owner="agent-A")
    bob = await running.connect()
    held = await claim(bob, "agent-B", keep=True)
    for status in ("completed", "failed"):
        refused = await ann.refusal("task.set_status", **C, task="1", status=status, actor="agent-A")
        assert (refused["kind"], refused["owner"]) == ("lease_held", "agent-B")
        refused = await ann.refusal("task.set_status", **C, task="1", status=status, fence=lost["fence"])
        assert (refused["kind"], refused["owner"]) == ("lease_held", "agent-B")
    shown = (await ann.result("task.get", **C, task="1"))["task"]
    assert (shown["status"], shown["fence"]) == ("in_progress", held["fence"])


async def test_owner_connection_or_number_finishes_a_kept_claim(running: Engine, ann: Peer) -> None:
    await ann.result("task.add_many", **C, tasks=[{"title": "c"}])
    bob = await running.connect()
    first, second, third = [await claim(bob, "bob", keep=True) for _ in range(3)]
    done = {"status": "completed", **C}
    await bob.result("task.set_status", task=first["task"]["id"], **done)
    refused = await bob.refusal("task.set_status", task=second["task"]["id"], actor="another agent", **done)
    assert refused["kind"] == "lease_held", "a connection for several agents must name the caller"
    await ann.result("task.set_status", task=second["task"]["id"], actor="bob", **done)
    assert (await ann.refusal("task.set_status", task=third["task"]["id"], **done))["kind"] == "lease_held"
    fence = (await ann.result("task.get", **C, task=third["task"]["id"]))["task"]["fence"]
    await ann.result("task.set_status", task=third["task"]["id"], fence=fence, **done)


async def test_apply_can_not_finish_another_owners_task(running: Engine, ann: Peer) -> None:
    bob = await running.connect()
    held = await claim(bob, "bob", task="2")
    edit = {"method": "task.edit", "task": "1", "title": "x"}
    done = {"method": "task.set_status", "task": "2", "status": "completed"}
    refused = await ann.refusal("list.apply", **C, changes=[edit, done])
    assert (refused["kind"], refused["change"], refused["owner"]) == ("lease_held", 1, "bob")
    assert (await ann.result("task.get", **C, task="1"))["task"]["title"] == "a"
    pause = done | {"status": "paused"}
    made = await ann.result("list.apply", **C, changes=[edit, pause, done])
    assert [task["status"] for task in made["tasks"]] == ["pending", "completed"], "pausing the task ends the claim"
    assert (await bob.refusal("task.renew", **C, task="2", owner="bob", fence=held["fence"]))["kind"] == "lease_lost"


async def test_apply_finishes_a_claim_by_its_number(running: Engine, ann: Peer) -> None:
    fence = (await claim(await running.connect(), "bob", task="2"))["fence"]
    done = {"method": "task.set_status", "task": "2", "status": "completed", "fence": fence}
    assert (await ann.result("list.apply", **C, changes=[done]))["tasks"][0]["status"] == "completed"


async def test_kept_claim_is_detached_from_a_closed_connection(running: Engine, ann: Peer) -> None:
    bob = await running.connect()
    await claim(bob, "bob", keep=True)
    bob.close()
    refused = await ann.refusal("task.set_status", **C, task="1", status="completed")
    assert (refused["kind"], refused["owner"]) == ("lease_held", "bob")
    assert len(running.claims.leases) == 1


async def test_owner_returning_within_grace_period_keeps_task(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log, grace_s=30.0) as running:
        bob = await running.connect()
        await bob.result("task.add", **C, title="a")
        fence = (await claim(bob, "bob"))["fence"]
        bob.close()
        again = await running.connect()
        await again.result("task.renew", **C, task="1", owner="bob")
        other = await running.connect()
        refused = await other.refusal("task.renew", **C, task="1", owner="bob")
        assert refused["kind"] == "lease_held", "the same name calls on another connection"
        assert (await other.refusal("task.set_status", **C, task="1", status="completed"))["kind"] == "lease_held"
        assert (await other.refusal("task.release", **C, task="1", owner="bob"))["kind"] == "lease_held"
        await other.result("task.set_status", **C, task="1", status="completed", fence=fence)


async def test_restart_grants_grace_before_offering_the_task(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log, kill=True) as before:
        peer = await before.connect()
        await peer.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b"}])
        kept = await claim(peer, count=2)
    async with engine(tmp_path, log, grace_s=0.2) as after:
        ann = await after.connect()
        await ann.result("task.renew", **C, task="2", owner="ann", fence=kept["fences"][1])
        released = await end_of_claim(after)
        assert (released["task"], released["reason"], released["to"]) == ("1", "restarted", "in_progress")
        late = await ann.refusal("task.set_status", **C, task="1", status="completed", fence=kept["fences"][0])
        assert (late["kind"], late["status"]) == ("lease_lost", "in_progress")
        again = await claim(ann, "bob")
        assert (again["task"]["id"], again["task"]["attempts"]) == ("1", 2)


async def test_kept_claim_restarts_its_lease_after_a_restart(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log, kill=True) as before:
        peer = await before.connect()
        await peer.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b"}])
        await claim(peer, keep=True, lease_ms=3_600_000)
        await claim(peer, "bob")
    async with engine(tmp_path, log, grace_s=0.0) as after:
        assert (await end_of_claim(after))["task"] == "2"
        task = (await (await after.connect()).result("task.get", **C, task="1"))["task"]
        assert (task["owner"], task["status"]) == ("ann", "in_progress")
        assert task["lease_expires_at"] - task["updated_at"] > 3_500_000
        assert len(after.claims.leases) == 1


async def test_claim_repeated_by_key_moves_to_new_connection(running: Engine, ann: Peer) -> None:
    bob = await running.connect()
    first = await claim(bob, "bob", key="k")
    again = await running.connect()
    second = await claim(again, "bob", key="k")
    bob.close()
    await anyio.sleep(3 * GRACE_S)
    assert second["fence"] == first["fence"]
    assert (await again.result("task.get", **C, task="1"))["task"]["owner"] == "bob"
    await again.result("task.set_status", **C, task="1", status="completed")


async def test_failed_write_leaves_no_claim(ann: Peer, log: TouchyLog) -> None:
    log.refusal = StorageFull()
    assert (await ann.refusal("task.claim", **C, owner="ann"))["kind"] == "storage_full"
    log.refusal = None
    assert "owner" not in (await ann.result("task.get", **C, task="1"))["task"]
    assert (await claim(ann, "bob"))["task"]["id"] == "1"


async def test_full_disk_delays_the_end_of_a_claim(running: Engine, ann: Peer, log: TouchyLog) -> None:
    bob = await running.connect()
    await claim(bob, "bob")
    log.refusal = StorageFull()
    bob.close()
    with anyio.fail_after(30):
        while not running.metrics.errors:  # noqa: ASYNC110 - metrics send no events
            await anyio.sleep(0.01)
    log.refusal = None
    assert (await end_of_claim(running))["task"] == "1"


async def test_earlier_renewal_wins_over_expiry(running: Engine, ann: Peer) -> None:
    fence = (await claim(ann))["fence"]
    asked: list[Any] = []
    leases = running.claims.leases
    leases._submit = asked.append  # pyright: ignore[reportPrivateUsage]
    leases.end("c", [("1", fence)], "expired")
    params = asked[0].params
    assert leases.select_due(params) == params
    await ann.result("task.renew", **C, task="1", owner="ann")
    assert leases.select_due(params).claims == ()


async def test_clear_and_erase_leave_no_leases(running: Engine, ann: Peer) -> None:
    await claim(ann, count=2)
    await ann.result("list.clear", **C)
    assert running.claims.leases.of("c") == {}
    await ann.result("task.add", **C, title="x")
    await claim(ann)
    token = (await ann.refusal("conversation.delete", **C))["token"]
    await ann.result("conversation.delete", **C, confirm=token)
    assert running.claims.leases.of("c") == {}


async def test_ended_claims_leave_no_old_deadlines(running: Engine, ann: Peer) -> None:
    for _ in mostly_untraced(1_200):
        ann.send("task.claim", {**C, "owner": "ann", "task": "1"}, id=1)
        ann.send("task.release", {**C, "task": "1", "owner": "ann"}, id=2)
        await ann.answer(1)
        await ann.answer(2)
    assert len(running.claims.leases._queue) < 1_010  # pyright: ignore[reportPrivateUsage]


class Standstill:
    """Simulate suspension: nothing runs and the monotonic clock continues."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._clock, self._lost_s = time.monotonic, 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self._clock() + self._lost_s)

    def lasts(self, seconds: float) -> None:
        self._lost_s += seconds


async def rung(running: Engine) -> None:
    """Fire the lease timer before any socket is read, as uvloop does after suspension."""
    leases = running.claims.leases
    leases.close()
    leases._on_timer()  # pyright: ignore[reportPrivateUsage]
    timer = leases._timer  # pyright: ignore[reportPrivateUsage]
    await until(lambda: leases._timer is not timer)  # pyright: ignore[reportPrivateUsage]


async def test_claims_expired_during_suspension_can_be_renewed(
    tmp_path: Path, log: TouchyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Standstill(monkeypatch)
    async with engine(tmp_path, log, grace_s=60) as running:
        ann = await running.connect()
        await ann.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b"}])
        claimed = await claim(ann, lease_ms=1_000)
        kept = await claim(ann, "bob", task="2", keep=True, lease_ms=1_000)
        machine.lasts(3)
        await rung(running)
        for task, owner, fence in (("1", "ann", claimed["fence"]), ("2", "bob", kept["fence"])):
            await ann.result("task.renew", **C, task=task, owner=owner, fence=fence, lease_ms=60_000)
        events = (await ann.result("event.read", **C, after=0))["events"]
        assert "Released" not in {event["event"]["type"] for event in events}


async def test_unrenewed_claim_ends_once_after_suspension(
    running: Engine, ann: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Standstill(monkeypatch)
    bob = await running.connect()
    await claim(bob, "bob", lease_ms=1_000)
    bob.close()  # closing sets a second deadline for the same claim
    machine.lasts(3)
    assert (await end_of_claim(running))["owner"] == "bob"
    await ann.result("task.edit", **C, task="2", title="later")
    events = (await ann.result("event.read", **C, after=0))["events"]
    assert [event["event"]["type"] for event in events].count("Released") == 1


async def test_claim_with_two_past_deadlines_ends_once(
    running: Engine, ann: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("punchlistd.engine.claims.leases._STANDSTILL_S", 1e9)  # without grace, both deadlines count
    machine = Standstill(monkeypatch)
    bob = await running.connect()
    await claim(bob, "bob", lease_ms=1_000)
    bob.close()
    machine.lasts(3)
    assert (await end_of_claim(running))["owner"] == "bob"
    await ann.result("task.edit", **C, task="2", title="later")
    events = (await ann.result("event.read", **C, after=0))["events"]
    assert [event["event"]["type"] for event in events].count("Released") == 1


async def test_buffered_heartbeat_is_read_before_expiry(
    running: Engine, ann: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Standstill(monkeypatch)
    await claim(ann, lease_ms=1_000)
    machine.lasts(1.2)
    async with anyio.create_task_group() as group:
        group.start_soon(rung, running)
        group.start_soon(lambda: ann.result("task.get", **C, task="2"))
    events = (await ann.result("event.read", **C, after=0))["events"]
    assert "Released" not in {event["event"]["type"] for event in events}
