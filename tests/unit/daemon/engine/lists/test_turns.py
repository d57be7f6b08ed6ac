"""Turns: what an agent gets with a result, and the preconditions of its changes."""

from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer
from punchlistd.engine.lists import trail, turns

C = "c"


def ask(agent: str = "ann", **members: Any) -> dict[str, Any]:
    return {"agent": agent, **members}


async def look(peer: Peer, **members: Any) -> dict[str, Any]:
    """Return the turn in a list's result, with the list's position as `seq`."""
    listed = await peer.result("task.list", conversation=C, limit=1, turn=ask(**members))
    return {**listed["turn"], "seq": listed["seq"]}


async def add(peer: Peer, *titles: str, **members: Any) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": title, **members} for title in titles])


def names(events: list[dict[str, Any]]) -> list[str]:
    return [recorded["event"]["type"] for recorded in events]


async def test_only_requested_turns_are_sent(peer: Peer) -> None:
    await add(peer, "a", "b")
    assert "turn" not in await peer.result("task.list", conversation=C, limit=1)
    assert "turn" not in await peer.result("task.claim", conversation=C, owner="ann")
    claimed = await peer.result("task.claim", conversation=C, owner="bob", turn=ask("bob"))
    assert claimed["turn"]["total"] == 2
    assert claimed["turn"]["counts"]["in_progress"] == 2


async def test_turn_shows_the_work_with_its_claims(peer: Peer) -> None:
    await add(peer, "a", "b")
    await peer.result("task.set_status", conversation=C, task="1", status="in_progress")
    await add(peer, "c", parent="1")
    claim = await peer.result("task.claim", conversation=C, owner="ann", task="3", turn=ask())
    turn = claim["turn"]
    assert [(task["id"], task.get("fence")) for task in turn["running"]] == [("1", None), ("3", claim["fence"])]
    assert turn["parents"] == ["1"]
    assert turn["paths"] == {"3": [{"id": "1", "title": "a"}]}


async def test_turn_has_others_events_since_a_position(peer: Peer) -> None:
    await add(peer, "a", "b", "c")
    since = (await look(peer))["seq"]
    await peer.result("task.edit", conversation=C, task="1", title="x", actor="bob")
    await peer.result("task.edit", conversation=C, task="2", title="y", actor="ann")
    await peer.result("task.edit", conversation=C, task="1", title="z", actor="ann")
    turn = await look(peer, since=since)
    assert [(recorded["actor"], recorded["event"]["task"]) for recorded in turn["events"]] == [
        ("bob", "1"),
        ("ann", "1"),  # because it follows a change by another actor
    ]
    assert [task["title"] for task in turn["changed"]] == ["z"]
    assert (await look(peer, since=turn["seq"]))["events"] == []


async def test_own_change_and_others_events_come_together(peer: Peer) -> None:
    await add(peer, "a", "b")
    since = (await look(peer))["seq"]
    await peer.result("task.delete", conversation=C, task="2", actor="bob")
    params = {"conversation": C, "task": "1", "status": "completed", "actor": "ann"}
    done = await peer.result("task.set_status", **params, turn=ask(since=since))
    assert names(done["turn"]["events"]) == ["Deleted"]
    assert "changed" not in done["turn"]


async def test_events_before_the_first_turn_are_left_out(peer: Peer) -> None:
    await add(peer, "a")
    assert "events" not in await look(peer, since=0)


async def test_dropped_events_are_reported_as_missing(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "MAX_EVENTS", 2)
    await add(peer, "a")
    since = (await look(peer))["seq"]
    for title in "xy":
        await peer.result("task.edit", conversation=C, task="1", title=title, actor="bob")
    assert len((await look(peer, since=since))["events"]) == 2
    await peer.result("task.edit", conversation=C, task="1", title="z", actor="bob")
    assert "events" not in await look(peer, since=since)


async def test_long_events_are_dropped(peer: Peer) -> None:
    await add(peer, "a")
    since = (await look(peer))["seq"]
    for letter in "de":
        await peer.result("task.edit", conversation=C, task="1", description=letter * 60_000, actor="bob")
    assert "events" not in await look(peer, since=since)


async def test_position_of_another_log_has_no_events(peer: Peer) -> None:
    await add(peer, "a")
    turn = await look(peer)
    assert "events" not in await look(peer, since=turn["seq"] + 1)
    epoch = (await peer.result("daemon.hello"))["epoch"]
    assert (await look(peer, since=turn["seq"], epoch=epoch))["events"] == []
    assert "events" not in await look(peer, since=turn["seq"], epoch="another")


async def test_turn_has_the_agents_last_event(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "MAX_EVENTS", 2)
    await peer.result("task.list", conversation=C, turn=ask())
    added = await peer.result("task.add", conversation=C, title="a", actor="ann")
    assert (await look(peer))["last"] == [added["seq"], added["version"]]
    assert (await look(peer, agent="bob"))["last"] == [0, 0]
    assert "last" not in await look(peer, since=0)
    for title in "xy":
        await peer.result("task.edit", conversation=C, task="1", title=title, actor="bob")
    assert "last" not in await look(peer), "the event was dropped"


async def test_many_running_tasks_are_left_out(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_RUNNING", 1)
    await add(peer, "a", status="in_progress")
    assert [task["id"] for task in (await look(peer))["running"]] == ["1"]
    await add(peer, "b", status="in_progress")
    assert "running" not in await look(peer)


async def test_long_tasks_are_left_out(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_BYTES", 3_000)
    await add(peer, "a", status="in_progress")
    since = (await look(peer))["seq"]
    for task in ("1", "2"):
        if task == "2":
            await add(peer, "b", status="in_progress")
        await peer.result("task.note", conversation=C, task=task, text="n" * 1_500, actor="bob")
    turn = await look(peer, since=since)
    assert "running" not in turn
    assert [task["id"] for task in turn["changed"]] == ["1"]
    assert len(turn["events"]) == 3


async def test_only_some_changed_tasks_are_shown(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_CHANGED", 1)
    since = (await look(peer))["seq"]
    await add(peer, "a", "b")
    turn = await look(peer, since=since)
    assert [task["id"] for task in turn["changed"]] == ["1"]
    assert names(turn["events"]) == ["ConversationOpened", "TaskAdded", "TaskAdded"]


async def test_added_tasks_are_ready_or_not(peer: Peer) -> None:
    tasks = [{"title": "a", "ref": "a"}, {"title": "b", "blocked_by": ["a"]}, {"title": "c"}]
    added = await peer.result("task.add_many", conversation=C, tasks=tasks, turn=ask())
    assert added["turn"]["ready"] == ["1", "3"]


async def test_empty_claim_is_explained(peer: Peer) -> None:
    await add(peer, "a", owner="bob")
    claim = await peer.result("task.claim", conversation=C, owner="ann", turn=ask())
    explained = await peer.result("task.explain", conversation=C, owner="ann")
    assert claim["task"] is None
    assert claim["turn"]["reasons"] == explained["reasons"]


@pytest.mark.parametrize(
    ("limit", "value", "shown"), [("MAX_CHANGED", 2, 2), ("MAX_CHANGED", 1, 1), ("MAX_BYTES", 9, 0)]
)
async def test_empty_claim_shows_some_abandoned_tasks(
    running: Engine, peer: Peer, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, shown: int
) -> None:
    monkeypatch.setattr(turns, limit, value)
    await add(peer, "a", "b")
    gone = await running.connect()
    await gone.result("agent.enter", agent="bob")
    for task in ("1", "2"):
        await peer.result("task.claim", conversation=C, task=task, owner="bob", keep=True)
    await gone.result("agent.leave", agent="bob")
    claim = await peer.result("task.claim", conversation=C, owner="ann", turn=ask())
    assert [task["id"] for task in claim["turn"].get("abandoned", [])] == ["1", "2"][:shown]


async def test_applied_changes_name_the_next_task(peer: Peer) -> None:
    await add(peer, "a", "b")
    changes = [{"method": "task.set_status", "task": "1", "status": "completed"}]
    applied = await peer.result("list.apply", conversation=C, changes=changes, turn=ask())
    assert applied["turn"]["next"]["id"] == "2"


async def test_other_users_get_no_events(running: Engine) -> None:
    ann, bob = await running.connect(), await running.connect()
    await ann.result("daemon.hello", user="ann")
    await bob.result("daemon.hello", user="bob")
    await add(ann, "secret")
    since = (await look(ann))["seq"]
    answer = await bob.call("task.list", conversation=C, limit=1, turn=ask("bob", since=since))
    assert "secret" not in str(answer)
    token = (await ann.call("conversation.delete", conversation=C))["error"]["data"]["token"]
    await ann.result("conversation.delete", conversation=C, confirm=token)
    await add(bob, "open")
    turn = await look(bob, agent="bob", since=since)
    assert "secret" not in str(turn)
    assert "events" not in turn, "the list of the other user was erased"


@pytest.mark.parametrize(("own", "accepted"), [(["1", "2"], True), (["2", "1"], True), (["1"], False), ([], False)])
async def test_change_requires_the_agents_own_tasks(peer: Peer, own: list[str], accepted: bool) -> None:
    await add(peer, "a", status="in_progress")
    await add(peer, "b", status="in_progress", owner="ann")
    await add(peer, "c", status="in_progress", owner="bob")
    await add(peer, "parent", status="in_progress", owner="ann")
    await add(peer, "child", parent="4")
    answer = await peer.call("task.add", conversation=C, title="d", turn=ask(own=own))
    assert ("result" in answer) is accepted
    if not accepted:
        assert answer["error"]["data"]["kind"] == "version_conflict"
        assert "#1, #2 in progress" in answer["error"]["message"]


TASKS = [
    {"title": "pending"},
    {"title": "reserved", "owner": "bob"},
    {"title": "reserved for the host", "owner": "host"},
    {"title": "paused", "status": "paused"},
    {"title": "begun", "status": "in_progress"},
    {"title": "begun by bob", "status": "in_progress", "owner": "bob"},
    {"title": "begun by a sub-agent", "status": "in_progress", "owner": "host/ann/x"},
    {"title": "done", "status": "completed"},
    {"title": "failed", "status": "failed"},
]

CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "complete": ("task.set_status", {"status": "completed"}, "1347"),
    "reopen": ("task.set_status", {"status": "pending"}, "134789"),
    "claim": ("task.claim", {"owner": "host/ann"}, "13"),
    "edit": ("task.edit", {"title": "x"}, "123456789"),
    "assign": ("task.edit", {"owner": "host/ann"}, "134789"),
    "delete": ("task.delete", {}, "134789"),
}
"""Change -> method, params, and the tasks that are free for it."""


@pytest.mark.parametrize("change", CHANGES)
async def test_change_requires_a_free_task(peer: Peer, change: str) -> None:
    method, params, free = CHANGES[change]
    accepted = ""
    for number in range(1, len(TASKS) + 1):
        await peer.result("list.replace", conversation=C, tasks=[], keep_unfinished=False)
        await peer.result("list.clear", conversation=C)
        await peer.result("task.add_many", conversation=C, tasks=TASKS)
        answer = await peer.call(method, conversation=C, task=str(number), **params, turn=ask("host/ann", free=True))
        accepted += str(number) if "result" in answer else ""
        assert "result" in answer or answer["error"]["data"]["kind"] == "lease_held"
    assert accepted == free


async def test_waiting_task_is_not_free(peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="a", gate={"yes": True})
    await peer.result("task.set_status", conversation=C, task="1", status="completed")
    answer = await peer.call("task.edit", conversation=C, task="1", title="x", turn=ask(free=True))
    assert answer["error"]["data"]["kind"] == "lease_held"


async def test_serial_list_starts_tasks_for_anyone(peer: Peer) -> None:
    await peer.result("conversation.configure", conversation=C, settings={"execution": "serial"})
    await add(peer, "a", "b")
    claim = await peer.result("task.claim", conversation=C, owner="ann", task="1", turn=ask(free=True))
    assert claim["task"]["owner"] == "ann"


async def test_every_task_of_a_batch_must_be_free(peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=TASKS)
    changes = [{"method": "task.set_status", "task": task, "status": "completed"} for task in ("1", "6")]
    answer = await peer.call("list.apply", conversation=C, changes=changes, turn=ask(free=True))
    assert answer["error"]["data"]["task"] == "6"
    answer = await peer.call("task.delete", conversation=C, tasks=["1", "6"], turn=ask(free=True))
    assert answer["error"]["data"]["task"] == "6"


async def test_missing_task_is_reported_as_missing(peer: Peer) -> None:
    await add(peer, "a")
    answer = await peer.call("task.delete", conversation=C, task="7", turn=ask(free=True))
    assert answer["error"]["data"]["kind"] == "not_found"


async def test_repeated_call_gets_no_turn(peer: Peer) -> None:
    await add(peer, "a")
    params = {"conversation": C, "task": "1", "status": "completed", "key": "k"}
    first = await peer.result("task.set_status", **params, turn=ask(since=0))
    again = await peer.result("task.set_status", **params, turn=ask(since=1, free=True))
    assert first.pop("turn")["total"] == 1
    assert again == first


async def test_rejected_change_uses_no_rate(peer: Peer) -> None:
    await add(peer, "a", status="in_progress", owner="bob")
    await peer.result("conversation.configure", conversation=C, settings={"rate_limit": 1})
    params = {"conversation": C, "task": "1", "status": "paused", "actor": "ann"}
    assert "error" in await peer.call("task.set_status", **params, turn=ask(free=True))
    await peer.result("task.set_status", **params)
