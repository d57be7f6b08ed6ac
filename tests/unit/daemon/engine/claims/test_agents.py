"""Agents: presence, the claims of departed sessions, and listings."""

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_schemas.params import TaskClaim
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlistd.domain.state import Claim, State
from punchlistd.engine.claims import agents, leases
from punchlistd.engine.claims.leases import Leases
from punchlistd.replication.lanes.members import Member

C: dict[str, Any] = {"conversation": "c"}
A, B = "claude-code/aaaaaa", "claude-code/bbbbbb"
LEASE_MS = 3_600_000


@pytest.fixture
async def ann(running: Engine) -> Peer:
    peer = await running.connect()
    await peer.result("daemon.hello", client={"name": "ann"})
    await peer.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b"}])
    return peer


async def entered(running: Engine, agent: str, user: str | None = None, **more: Any) -> Peer:
    peer = await running.connect(user=user)
    await peer.result("agent.enter", agent=agent, **more)
    return peer


async def claim(peer: Peer, owner: str, **more: Any) -> Any:
    return await peer.result("task.claim", **{**C, "owner": owner, "keep": True, "lease_ms": LEASE_MS, **more})


async def task(peer: Peer, name: str = "1") -> Any:
    return (await peer.result("task.get", **C, task=name))["task"]


async def left(running: Engine, peer: Peer) -> None:
    """Close a connection and wait until the daemon has noticed."""
    live = len(running.connections.live)
    peer.close()
    await until(lambda: len(running.connections.live) < live)


async def end_of_claim(peer: Peer) -> Any:
    """Wait for the list's first Released event and return it."""
    position = 0
    with anyio.fail_after(30):
        while True:
            found = await peer.result("event.wait", **C, after=position, timeout_ms=5_000)
            position = found["next"]
            for event in found["events"]:
                if event["event"]["type"] == "Released":
                    return event["event"]


async def names(peer: Peer, **params: Any) -> list[tuple[str, bool]]:
    listed = (await peer.result("agent.list", **params))["agents"]
    return [(each["name"], "left_at" in each) for each in listed]


async def test_lost_connection_starts_the_grace_period(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"leave_grace": 1})
    agent = await entered(running, A)
    await claim(agent, A)
    assert "left_at" not in await task(ann)
    await left(running, agent)
    shown = await task(ann)
    assert shown["owner"] == A
    assert 0 < shown["lease_expires_at"] - shown["left_at"] <= 1_100
    ended = await end_of_claim(ann)
    assert (ended["owner"], ended["reason"]) == (A, "left")
    assert (await task(ann))["status"] == "pending"


async def test_agent_leave_takes_effect_immediately(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A)
    await ann.result("agent.leave", agent=A)
    assert "left_at" in await task(ann)
    await ann.result("agent.leave", agent="nobody")
    await left(running, agent)
    assert await names(ann) == [("ann", False), (A, True)]


async def test_one_open_connection_keeps_an_agent_present(running: Engine, ann: Peer) -> None:
    first, second = await entered(running, A), await entered(running, A)
    await claim(first, A)
    await left(running, first)
    assert "left_at" not in await task(ann)
    await left(running, second)
    assert "left_at" in await task(ann)


async def test_returning_agent_gets_the_full_grace_period(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    claimed = await claim(agent, A)
    await left(running, agent)
    again = await entered(running, A)
    shown = await task(again)
    assert "left_at" not in shown
    assert shown["lease_expires_at"] - claimed["task"]["lease_expires_at"] > -1_000
    done = await again.result("task.set_status", **C, task="1", status="completed", fence=claimed["fence"])
    assert done["task"]["status"] == "completed"


async def test_claim_made_before_entering_ends_with_the_session(running: Engine, ann: Peer) -> None:
    early = await running.connect()
    await claim(early, A)
    agent = await entered(running, A)
    await left(running, agent)
    assert (await task(ann))["left_at"]


async def test_renewal_restores_a_claim(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A)
    await left(running, agent)
    await ann.result("task.renew", **C, task="1", owner=A)
    assert "left_at" not in await task(ann)


async def test_sub_agents_leave_with_their_session(running: Engine, ann: Peer) -> None:
    agent, other = await entered(running, A), await entered(running, B)
    await claim(agent, f"{A}/reviewer")
    await claim(other, B)
    await left(running, agent)
    assert "left_at" in await task(ann, "1")
    assert "left_at" not in await task(ann, "2")


async def test_agent_with_shorter_name_ends_no_other_session(running: Engine, ann: Peer) -> None:
    agent, short = await entered(running, A), await entered(running, "claude-code")
    await claim(agent, A)
    await left(running, short)
    assert "left_at" not in await task(ann)


async def test_kept_claim_without_a_session_stays(running: Engine, ann: Peer) -> None:
    command = await running.connect()
    await claim(command, "ann")
    await left(running, command)
    agent = await entered(running, "ann")
    await left(running, agent)
    assert "left_at" not in await task(ann)


async def test_abandoned_task_is_claimed_by_id(running: Engine, ann: Peer) -> None:
    agent, other = await entered(running, A), await entered(running, B)
    lost = await claim(agent, A, task="1")
    await claim(ann, "ann", task="2")
    refused = await other.refusal("task.claim", **C, owner=B, task="1")
    assert (refused["kind"], "left_at" in refused) == ("lease_held", False)
    await left(running, agent)
    assert (await claim(other, B))["task"] is None, "an abandoned task isn't offered as the next one"
    refused = await other.refusal("task.set_status", **C, task="1", status="completed")
    assert (refused["kind"], refused["owner"]) == ("lease_held", A)
    assert refused["left_at"]
    taken = await claim(other, B, task="1")
    assert (taken["task"]["owner"], taken["task"]["attempts"]) == (B, 2)
    assert "left_at" not in await task(ann)
    assert (await end_of_claim(ann))["reason"] == "left"
    late = await ann.refusal("task.set_status", **C, task="1", status="completed", fence=lost["fence"])
    assert late["kind"] == "lease_held"


async def test_abandoned_serial_task_is_claimed_by_id(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"execution": "serial"})
    agent = await entered(running, A)
    await claim(agent, A)
    await left(running, agent)
    taken = await claim(ann, "ann", task="1")
    assert (taken["task"]["owner"], taken["task"]["status"]) == ("ann", "in_progress")


async def test_session_without_claim_leaves_immediately(running: Engine, ann: Peer, log: TouchyLog) -> None:
    agent = await entered(running, A)
    gate = log.hold()
    agent.send("task.claim", {**C, "owner": A, "keep": True, "lease_ms": LEASE_MS})
    await gate.reached()
    await left(running, agent)
    gate.open()
    await until(lambda: len(running.claims.leases))
    assert "left_at" in await task(ann)


async def test_undo_restores_no_claim_of_a_departed_agent(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A)
    await ann.result("task.set_status", **C, task="1", status="paused", actor="ann")
    await left(running, agent)
    await ann.result("list.undo", **C, actor="ann")
    shown = await task(ann)
    assert (shown["owner"], shown["status"]) == (A, "in_progress")
    assert shown["lease_expires_at"] - shown["left_at"] <= 301_000


async def test_watchers_see_agents_leave_and_return(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A)
    watcher = await running.connect()
    for view in ("rows", "list"):
        await watcher.result("event.subscribe", **C, view=view)
    first = (await watcher.push())["params"]
    assert "left_at" not in first["rows"][0]
    await left(running, agent)
    for _ in range(2):
        push = await watcher.push()
        shown = push["params"].get("rows") or push["params"]["tasks"]
        assert (shown[0]["id"], "left_at" in shown[0]) == ("1", True)
        assert push["params"]["seq"] == first["seq"]
    await entered(running, A)
    for _ in range(2):
        push = await watcher.push()
        shown = push["params"].get("rows") or push["params"]["tasks"]
        assert "left_at" not in shown[0]


async def test_resumed_rows_show_departures(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A)
    seq = (await ann.result("task.list", **C))["seq"]
    await left(running, agent)
    watcher = await running.connect()
    await watcher.result("event.subscribe", **C, view="rows", after=seq)
    push = (await watcher.push())["params"]
    assert [(row["id"], "left_at" in row) for row in push["rows"]] == [("1", True)]


async def card(peer: Peer) -> list[tuple[str, bool]]:
    """Return the owner of each task in progress, and whether the owner has left, from the listing's only list."""
    (found,) = (await peer.result("conversation.list"))["conversations"]
    return [(one["owner"], "left_at" in one) for one in found["running"]]


async def test_boards_see_agents_leave_and_return(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A)
    watcher, eve = await running.connect(), await running.connect(user="eve")
    for peer in (watcher, eve):
        await peer.result("event.subscribe", view="board")
    assert await card(ann) == [(A, False)]
    await left(running, agent)
    (lost,) = (push := (await watcher.push())["params"])["card"]["running"]
    assert 0 < lost["lease_expires_at"] - lost["left_at"] <= 301_000
    assert await card(ann) == [(A, True)]
    resumed = await running.connect()
    await resumed.result("event.subscribe", view="board", after=push["seq"])
    assert "left_at" in (await resumed.push())["params"]["card"]["running"][0]
    await entered(running, A)
    for peer in (watcher, resumed):
        assert "left_at" not in (await peer.push())["params"]["card"]["running"][0]
    assert await card(ann) == [(A, False)]
    await eve.result("task.add", conversation="hers", title="x")
    assert (await eve.push())["params"]["card"]["conversation"] == "hers", "the other list was not shown"


async def test_index_stores_no_departure(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log) as made:
        agent = await entered(made, A)
        await agent.result("task.add", **C, title="a")
        await claim(agent, A)
        await left(made, agent)
        assert await card(await made.connect()) == [(A, True)]
    async with engine(tmp_path, log) as made:
        await entered(made, A)
        assert await card(await made.connect()) == [(A, False)]


async def test_deleted_abandoned_task_is_not_pushed(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A)
    await left(running, agent)
    watcher = await running.connect()
    await watcher.result("event.subscribe", **C, view="rows")
    await watcher.push()
    await ann.result("agent.enter", agent=A)
    await ann.result("task.delete", **C, task="1")
    gone = list[str]()
    while not gone:
        gone = (await watcher.push())["params"].get("gone", [])
    assert gone == ["1"]


async def test_restart_renews_no_absent_session(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log, kill=True) as before:
        peer = await entered(before, A)
        await peer.result("agent.enter", agent=B)
        await peer.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b"}])
        await peer.result("conversation.configure", **C, settings={"leave_grace": 1})
        await claim(peer, A)
        await claim(peer, B)
    async with engine(tmp_path, log, grace_s=0.1) as after:
        back = await entered(after, B)
        lost, kept = await task(back, "1"), await task(back, "2")
        assert lost["lease_expires_at"] - lost["left_at"] <= 1_100
        assert "left_at" not in kept
        assert kept["lease_expires_at"] - kept["updated_at"] > LEASE_MS - 5_000
        ended = await end_of_claim(back)
        assert (ended["task"], ended["reason"]) == ("1", "left")
        assert (await task(back, "1"))["status"] == "pending"
        assert (await task(back, "2"))["owner"] == B


async def test_restarted_daemon_grants_sessions_a_grace_period(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log, kill=True) as before:
        peer = await entered(before, A)
        await peer.result("task.add", **C, title="a")
        await claim(peer, A)
    async with engine(tmp_path, log, grace_s=0.0) as after:
        asking = await after.connect()
        assert "left_at" in await task(asking)
        await entered(after, A)
        assert "left_at" not in await task(asking)


async def test_persons_claim_lasts_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10_000_000
    monkeypatch.setattr(leases, "now_ms", lambda: now)

    def left_s(at: int) -> float:
        state = State("c")
        state.claims["1"] = Claim("ann", 1, 3_600_000, keep=True, at=at)
        kept = Leases(10.0, lambda _write: None)
        kept.adopt(state)
        kept.close()
        return round(kept.of("c")["1"].deadline - time.monotonic())

    assert left_s(now - 1_800_000) == 1_800
    assert left_s(now - 7_200_000) == 10, "at least the grace period is left"
    assert left_s(now + 7_200_000) == 3_600, "at most the lease is left, whatever the clock showed"
    assert left_s(0) == 3_600, "an older version didn't record the time of the claim"


async def test_silent_machine_claims_are_claimable_by_id() -> None:
    state, member = State("c"), Member()
    state.claims["1"] = Claim("ann", 7, LEASE_MS, keep=True, keeper="mb_1")
    kept = Leases(10.0, lambda _write: None)
    kept.member = lambda _keeper, _conversation: member
    kept.adopt(state)
    kept.close()
    lease, wanted = kept.of("c")["1"], TaskClaim(conversation="c", owner="bob", task="1")
    assert (lease.silent_at(), kept.left_fence(state, wanted)) == (None, None)
    member.last_seen_at -= 60
    assert 59_000 < agents.now_ms() - (lease.silent_at() or 0) < 90_000
    assert kept.left_fence(state, wanted) == 7
    kept.agent_left("ann")
    assert lease.left_at is None, "another daemon tracks its departure"


async def test_list_shows_who_works_on_what(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A, host="claude-code", directory="/home/ann/site", branch="main")
    await claim(agent, A, actor=A)
    await claim(agent, f"{A}/reviewer", actor=f"{A}/reviewer")
    listed = {each["name"]: each for each in (await agent.result("agent.list"))["agents"]}
    assert set(listed) == {A}, "other connections of its process count as the same agent"
    shown = listed[A]
    assert [shown[name] for name in ("host", "directory", "branch", "conversation")] == [
        "claude-code",
        "/home/ann/site",
        "main",
        "c",
    ]
    assert [one["title"] for one in shown["tasks"]] == ["a", "b"]
    assert shown["since"] <= shown["last_call"]
    assert not any("left_at" in one for one in shown["tasks"])
    await left(running, agent)
    assert await names(await running.connect()) == [("ann", False), (A, True)]
    _, lost = (await ann.result("agent.list"))["agents"]
    for one in lost["tasks"]:
        assert abs(one["left_at"] - lost["left_at"]) < 1_000
        assert 299_000 < one["lease_expires_at"] - one["left_at"] <= 301_000


async def test_agent_that_only_called_is_listed_as_left(running: Engine, ann: Peer) -> None:
    bob = await running.connect()
    await bob.result("task.add", **C, title="c", actor="bob")
    await left(running, bob)
    assert await names(ann) == [("ann", False), ("bob", True)]
    assert await names(ann, conversation="c") == [("ann", False), ("bob", True)]
    await ann.result("conversation.open", conversation="d", actor="ann")
    assert await names(ann, conversation="d") == [("ann", False)]


async def test_users_see_their_own_agents(running: Engine) -> None:
    of_ann, of_bob, trusted = [await entered(running, A, user) for user in ("ann", "bob", None)]
    assert [name for name, _ in await names(of_ann)] == [A]
    await of_ann.result("agent.leave", agent=A)
    assert (await names(of_bob)) == [(A, False)]
    assert len(await names(trusted)) == 3


async def test_same_name_of_two_users_is_two_agents(running: Engine) -> None:
    of_ann, of_bob = await entered(running, "bot", "ann"), await entered(running, "bot", "bob")
    for peer, name in ((of_ann, "list-a"), (of_bob, "list-b")):
        await peer.result("task.add", conversation=name, title="t")
        await claim(peer, "bot", conversation=name)
    await left(running, of_ann)
    asking = await running.connect()
    shown = [
        (await asking.result("task.get", conversation=name, task="1"))["task"].get("left_at", 0)
        for name in ("list-a", "list-b")
    ]
    assert shown[0] and not shown[1]


async def test_departed_names_are_bounded_and_expire(
    running: Engine, ann: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "MAX_LEFT", 3)
    for number in range(5):
        await ann.result("task.note", **C, task="1", text="x", actor=f"p{number}")
    assert [name for name, _ in await names(ann)] == ["ann", "p4", "p3", "p2"]
    monkeypatch.setattr(agents, "LATELY_MS", -1)
    assert await names(ann) == [("ann", False)]


async def test_number_of_agents_is_limited(running: Engine, ann: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "MAX_PRESENT", 1)
    agent = await entered(running, A)
    refused = await agent.refusal("agent.enter", agent=B)
    assert (refused["kind"], refused["limit"]) == ("limit_exceeded", "agents")
    await agent.result("agent.enter", agent=A)


async def test_redone_claim_ends_with_its_session(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A, task="1", actor=A)
    await ann.result("list.undo", **C, of=A, claims=True)
    await ann.result("list.undo", **C, redo=True, claims=True)
    assert (await task(ann))["owner"] == A
    await left(running, agent)
    assert (await task(ann))["left_at"]


async def test_resumed_task_returns_to_its_session(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await claim(agent, A, task="1", actor=A)
    for to in ("paused", "in_progress"):
        await ann.result("task.set_status", **C, task="1", status=to)
    resumed = await task(ann)
    assert (resumed["owner"], resumed["lease_expires_at"] > 0) == (A, True)
    await left(running, agent)
    assert (await task(ann))["left_at"]


async def test_task_resumed_after_its_session_is_free(running: Engine, ann: Peer) -> None:
    agent, other = await entered(running, A), await entered(running, B)
    await claim(agent, A, task="1", actor=A)
    await ann.result("task.set_status", **C, task="1", status="paused")
    await left(running, agent)
    resumed = (await ann.result("task.set_status", **C, task="1", status="in_progress"))["task"]
    assert (resumed["status"], resumed.get("owner")) == ("pending", None)
    assert (await claim(other, B))["task"]["id"] == "1"


async def test_resume_after_a_restart_finds_sessions(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log) as first:
        agent = await entered(first, A)
        await agent.result("task.add", **C, title="a")
        await claim(agent, A, task="1", actor=A)
        await agent.result("task.set_status", **C, task="1", status="paused", actor="ann")
    async with engine(tmp_path, log) as second:
        peer = await second.connect()
        resumed = (await peer.result("task.set_status", **C, task="1", status="in_progress"))["task"]
        assert (resumed["status"], resumed.get("owner")) == ("pending", None)


async def test_reservation_ends_with_its_sessions_grace_period(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"leave_grace": 0})
    agent, other = await entered(running, A), await entered(running, B)
    for name, owner in (("1", A), ("2", "zoe")):
        await ann.result("task.edit", **C, task=name, owner=owner)
    other.send("task.claim", {**C, "owner": B, "keep": True, "wait_ms": 30_000}, id=9)
    await left(running, agent)
    got = (await other.answer(9))["result"]["task"]
    assert got["id"] == "1"
    assert [note["text"] for note in got["notes"]] == [f"It was reserved for {A}, whose session has ended."]
    assert (await task(ann, "2"))["owner"] == "zoe"


async def test_returning_session_keeps_its_reservation(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await ann.result("task.edit", **C, task="1", owner=A)
    await left(running, agent)
    seen = await task(ann)
    assert seen["lease_expires_at"] - seen["left_at"] == 300_000
    (told,) = (await ann.result("task.explain", **C, task="1"))["reasons"]
    assert (told["kind"], told["left_at"], told["lease_expires_at"]) == (
        "reserved",
        seen["left_at"],
        seen["lease_expires_at"],
    )
    await entered(running, A)
    assert "left_at" not in await task(ann)
    assert not running.claims.reservations._timers  # pyright: ignore[reportPrivateUsage]


async def test_departed_sessions_task_is_claimed_by_id(running: Engine, ann: Peer) -> None:
    agent, other = await entered(running, A), await entered(running, B)
    await ann.result("task.edit", **C, task="1", owner=A)
    assert (await other.refusal("task.claim", **C, task="1", owner=B, keep=True))["reserved"]
    await left(running, agent)
    assert (await claim(other, B, task="1"))["task"]["owner"] == B


async def test_task_reserved_for_an_old_session_is_free(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"leave_grace": 0})
    agent = await entered(running, A)
    await left(running, agent)
    await ann.result("task.edit", **C, task="1", owner=A)
    got = await claim(await entered(running, B), B, wait_ms=30_000)
    assert got["task"]["notes"][0]["text"].startswith(f"It was reserved for {A}")


async def test_restart_ends_reservations_of_absent_sessions(tmp_path: Path, log: TouchyLog) -> None:
    async with engine(tmp_path, log) as first:
        agent = await entered(first, A)
        await agent.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b", "owner": A}])
        await agent.result("conversation.configure", **C, settings={"leave_grace": 0})
        await claim(agent, A, task="1", actor=A)
        await agent.result("task.set_status", **C, task="1", status="completed", actor=A)
    async with engine(tmp_path, log) as second:
        peer = await entered(second, B)
        assert (await claim(peer, B, wait_ms=30_000))["task"]["id"] == "2"


async def test_lists_show_departed_sessions_of_reserved_tasks(running: Engine, ann: Peer) -> None:
    agent = await entered(running, A)
    await ann.result("task.edit", **C, task="1", owner=A)
    await left(running, agent)
    assert [("left_at" in one) for one in (await ann.result("task.list", **C))["tasks"]] == [True, False]
    await ann.result("task.edit", **C, task="1", owner=None)
    assert [("left_at" in one) for one in (await ann.result("task.list", **C))["tasks"]] == [False, False]


async def test_earlier_reservation_ends_with_its_session(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"leave_grace": 0})
    await ann.result("task.edit", **C, task="1", owner=A)
    agent, other = await entered(running, A), await entered(running, B)
    await claim(other, B, task="2")
    other.send("task.claim", {**C, "owner": B, "keep": True, "wait_ms": 30_000}, id=9)
    await left(running, agent)
    assert (await other.answer(9))["result"]["task"]["owner"] == B


async def test_changed_grace_period_applies_to_departed_sessions(running: Engine, ann: Peer) -> None:
    agent, other = await entered(running, A), await entered(running, B)
    await ann.result("task.edit", **C, task="1", owner=A)
    await left(running, agent)
    await claim(other, B, task="2")
    other.send("task.claim", {**C, "owner": B, "keep": True, "wait_ms": 30_000}, id=9)
    await ann.result("conversation.configure", **C, settings={"leave_grace": 0})
    assert (await other.answer(9))["result"]["task"]["owner"] == B


async def gone(running: Engine, agent: str) -> None:
    """Make an agent enter the list, then close its connection."""
    await left(running, await entered(running, agent))


async def test_persons_task_in_progress_is_never_released(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"leave_grace": 0})
    await ann.result("task.add", **C, title="c", status="in_progress", owner="zoe")
    await gone(running, A)
    await ann.result("task.edit", **C, task="1", owner=A)
    other = await entered(running, B)
    await claim(other, B, task="2")
    assert (await claim(other, B, wait_ms=30_000))["task"]["id"] == "1"
    shown = await task(ann, "3")
    assert (shown["status"], shown["owner"], "left_at" in shown) == ("in_progress", "zoe", False)


async def test_departed_sessions_unclaimed_task_is_released(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"leave_grace": 0})
    await gone(running, A)
    other = await entered(running, B)
    await claim(other, B, count=2)
    await ann.result("task.add", **C, title="c", status="in_progress", owner=A)
    assert (await claim(other, B, wait_ms=30_000))["task"]["id"] == "3"


@pytest.mark.parametrize("execution", ["manual", "serial"])
async def test_departed_sessions_unclaimed_task_is_claimed_by_id(running: Engine, ann: Peer, execution: str) -> None:
    await ann.result("conversation.configure", **C, settings={"execution": execution})
    if execution == "manual":
        await ann.result("task.set_status", **C, task="1", status="in_progress")
    agent, other = await entered(running, A), await entered(running, B)
    await left(running, agent)
    await ann.result("task.edit", **C, task="1", owner=A)
    shown = await task(ann)
    assert (shown["status"], shown["owner"], "left_at" in shown) == ("in_progress", A, True)
    assert (await claim(other, B, task="1"))["task"]["owner"] == B


async def test_reservation_for_a_plain_caller_stays(running: Engine, ann: Peer) -> None:
    await ann.result("conversation.configure", **C, settings={"leave_grace": 0}, actor="bob")
    await gone(running, A)
    await ann.result("task.edit", **C, task="1", owner="bob")
    await ann.result("task.edit", **C, task="2", owner=A)
    other = await entered(running, B)
    assert (await claim(other, B, wait_ms=30_000))["task"]["id"] == "2"
    shown = await task(ann)
    assert (shown["owner"], "left_at" in shown) == ("bob", False)


async def test_response_to_a_reservation_shows_the_departure(running: Engine, ann: Peer) -> None:
    await gone(running, A)
    assert "left_at" in (await ann.result("task.edit", **C, task="1", owner=A))["task"]


async def test_last_reservation_leaves_no_timer(running: Engine, ann: Peer) -> None:
    await gone(running, A)
    reservations = running.claims.reservations
    await ann.result("task.edit", **C, task="1", owner=A)
    assert reservations.lists and reservations._timers  # pyright: ignore[reportPrivateUsage]
    await ann.result("task.edit", **C, task="1", owner="")
    assert not reservations.lists and not reservations._timers  # pyright: ignore[reportPrivateUsage]
