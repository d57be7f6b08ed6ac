import asyncio
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Engine, Peer, TouchyLog
from punchlist_testing.store import damaged_log
from punchlistd.engine import calls

C = "c"


async def ids(peer: Peer, **params: Any) -> list[str]:
    return [task["id"] for task in (await peer.result("task.list", conversation=C, **params))["tasks"]]


async def filled(peer: Peer) -> None:
    tasks = [
        {"title": "a", "owner": "me"},
        {"title": "b", "status": "in_progress"},
        {"title": "c", "ref": "c"},
        {"title": "d", "blocked_by": ["c"], "owner": "me"},
        {"title": "e", "status": "completed"},
    ]
    await peer.result("task.add_many", conversation=C, tasks=tasks)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, "12345"),
        ({"status": "pending"}, "134"),
        ({"status": ["completed", "in_progress"]}, "25"),
        ({"status": []}, ""),
        ({"owner": "me"}, "14"),
        ({"ready": True}, "13"),
        ({"ready": False}, "245"),
        ({"limit": 2}, "12"),
        ({"offset": 3}, "45"),
        ({"limit": 2, "offset": 2}, "34"),
        ({"limit": 1, "offset": 99}, ""),
        ({"status": "pending", "owner": "me", "ready": True}, "1"),
    ],
)
async def test_list_is_filtered_and_limited(peer: Peer, params: dict[str, Any], expected: str) -> None:
    await filled(peer)
    assert await ids(peer, **params) == list(expected)


async def test_list_returns_requested_members_and_full_counts(peer: Peer) -> None:
    await filled(peer)
    listed = await peer.result("task.list", conversation=C, fields=["title"], limit=1)
    assert listed["tasks"] == [{"id": "1", "title": "a"}]
    assert (listed["total"], listed["counts"]["pending"], listed["version"], listed["seq"]) == (5, 3, 6, 6)


async def test_past_list_is_exact(peer: Peer) -> None:
    shown: list[Any] = []
    for number in range(6):
        await peer.result("task.add", conversation=C, title=str(number))
        if number % 2:
            await peer.result("task.move", conversation=C, task=str(number + 1), before="1")
        shown.append(await peer.result("task.list", conversation=C))
    for listed in shown:
        assert await peer.result("task.list", conversation=C, at_version=listed["version"]) == listed
    assert (await peer.result("task.list", conversation=C, at_version=0))["tasks"] == []


async def test_unknown_conversation_is_empty_at_version_0(peer: Peer, log: TouchyLog) -> None:
    listed = await peer.result("task.list", conversation="new")
    assert (listed["tasks"], listed["version"]) == ([], 0)
    assert (await peer.result("conversation.get", conversation="new"))["conversation"]["version"] == 0
    assert (await peer.result("message.list", conversation="new")) == {"messages": [], "has_more": False}
    assert log.head == 0


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_page_of_messages_is_limited_in_size(peer: Peer, order: str) -> None:
    sizes = (400_000, 10, 300_000, 10, 10, 700_000, 20, 100_000, 450_000)
    for number, size in enumerate(sizes):
        await peer.result("message.append", conversation=C, role="user", content=f"{number} " + "m" * size)
        await peer.result("task.add", conversation=C, title="between")
    found, after, more, pages = list[int](), dict[str, str](), True, 0
    while more:
        page = await peer.result("message.list", conversation=C, order=order, **after)
        found += [int(message["content"].split()[0]) for message in page["messages"]]
        after, more, pages = {"after": page["messages"][-1]["message"]}, page["has_more"], pages + 1
        assert sum(len(message["content"]) for message in page["messages"][:-1]) < 512 << 10
    assert found == (list(range(9)) if order == "asc" else list(range(8, -1, -1)))
    assert pages >= 3


async def test_messages_are_paged_in_both_orders(peer: Peer) -> None:
    for number in range(7):
        await peer.result("message.append", conversation=C, role="user", content=number)
        await peer.result("task.add", conversation=C, title="between")
    for order in ("asc", "desc"):
        found: list[int] = []
        after: dict[str, Any] = {}
        more = True
        while more:
            page = await peer.result("message.list", conversation=C, limit=3, order=order, **after)
            found += [message["content"] for message in page["messages"]]
            after, more = {"after": page["messages"][-1]["message"]}, page["has_more"]
        assert found == (list(range(7)) if order == "asc" else list(range(6, -1, -1)))


async def test_events_are_read_in_pages_of_whole_calls(peer: Peer) -> None:
    ends: list[int] = []
    for _ in range(5):
        ends.append((await peer.result("task.add_many", conversation=C, tasks=[{"title": "x"}] * 4))["seq"])
        ends.append((await peer.result("task.add", conversation="other", title="y"))["seq"])
    for named in ({}, {"conversation": C}):
        seen: list[int] = []
        after = 0
        while (page := await peer.result("event.read", after=after, limit=3, **named))["events"]:
            assert page["events"][-1]["seq"] in ends
            seen += [event["seq"] for event in page["events"]]
            after = page["next"]
        assert seen == sorted(set(seen)) and len(seen) == (21 if named else 27)
        assert page["next"] == 27


async def test_newest_conversation_is_first_despite_the_clock(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    now = calls.now_ms()
    for name, at in (("before", now), ("after", now - 365 * 86_400_000), ("last", now - 360 * 86_400_000)):
        monkeypatch.setattr(calls, "now_ms", lambda at=at: at)
        await peer.result("task.add", conversation=name, title="x")
    page = await peer.result("conversation.list", limit=1)
    listed = page["conversations"]
    while cursor := page.get("next_cursor"):
        # This moves the list to the front between two pages.
        await peer.result("task.add", conversation="last", title="y")
        page = await peer.result("conversation.list", limit=1, cursor=cursor)
        listed += page["conversations"]
    assert [each["conversation"] for each in listed] == ["last", "after", "before"]
    assert listed[1]["updated_at"] < listed[2]["updated_at"]


async def test_conversation_list_includes_acknowledged_changes(peer: Peer) -> None:
    for number in range(5):
        await peer.result("task.add", conversation=f"c{number}", title="x")
    await peer.result("task.set_status", conversation="c0", task="1", status="completed")
    page = await peer.result("conversation.list", limit=3)
    rest = await peer.result("conversation.list", limit=3, cursor=page["next_cursor"])
    names = [each["conversation"] for each in page["conversations"] + rest["conversations"]]
    assert sorted(names) == [f"c{number}" for number in range(5)] and "next_cursor" not in rest
    assert [
        each["conversation"] for each in (await peer.result("conversation.list", active=False))["conversations"]
    ] == ["c0"]
    found = (await peer.result("conversation.list", query="C3"))["conversations"]
    assert [each["counts"]["pending"] for each in found] == [1]


async def test_event_wait_ignores_other_users(running: Engine) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    alice.send("event.wait", {"after": 0, "timeout_ms": 5_000}, id=1)
    await bob.result("task.add", conversation="his", title="x")
    for _ in range(20):
        await asyncio.sleep(0)
    hers = await running.connect(user="alice")
    await hers.result("task.add", conversation="hers", title="y")
    answer = (await alice.answer(1))["result"]
    assert {event["conversation"] for event in answer["events"]} == {"hers"} and answer["next"] == 4


async def test_event_wait_skips_many_events_of_others(running: Engine) -> None:
    bob, ann = await running.connect(user="bob"), await running.connect(user="ann")
    for number in range(5):
        await bob.result("task.add", conversation="his", title=str(number))
    await ann.result("task.add", conversation="hers", title="mine")
    found = await ann.result("event.wait", after=0, limit=2, timeout_ms=0)
    assert [event["conversation"] for event in found["events"]] == ["hers", "hers"]


async def test_damaged_history_is_a_typed_error(peer: Peer, log: TouchyLog) -> None:
    await peer.result("message.append", conversation=C, role="user", content=1)
    log.damaged_at[C] = 1
    for method, params in [
        ("message.list", {}),
        ("task.list", {"at_version": 1}),
        ("event.read", {"after": 0}),
        ("event.wait", {"after": 0, "timeout_ms": 1000}),
    ]:
        refused = await peer.refusal(method, conversation=C, **params)
        assert (refused["kind"], refused["code"], refused["conversation"]) == ("damaged", -32016, C)


async def test_event_reader_gets_gaps_and_continues(tmp_path: Path) -> None:
    await damaged_log(tmp_path / "data")
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        before = await peer.result("event.read", after=0)
        assert ([event["seq"] for event in before["events"]], before["next"]) == ([1, 2], 2)
        for method, more in (("event.read", {}), ("event.wait", {"timeout_ms": 5_000})):
            refused = await peer.refusal(method, after=2, **more)
            assert (refused["kind"], refused["code"]) == ("gap", -32014)
            assert (refused["after"], refused["first"]) == (2, 4)
            behind = await peer.result(method, after=refused["first"] - 1, **more)
            assert [event["seq"] for event in behind["events"]] == [4]
        peer.close()


async def test_conversation_is_read_past_damage_of_others(tmp_path: Path) -> None:
    """If the conversation's rows can't be identified any more, the whole log is read."""
    await damaged_log(tmp_path / "data", spoiled=(1, 3))
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        shown = (await peer.result("conversation.get", conversation="a"))["conversation"]
        assert shown["version"] == 1
        assert (await peer.refusal("task.add", conversation="a", title="x"))["kind"] == "damaged"
        peer.close()


async def test_explanation_shows_owners_and_expiry(peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="a")
    await peer.result("task.add", conversation=C, title="b", blocked_by=["1"])
    claim = await peer.result("task.claim", conversation=C, owner="ann", task="1")
    told = await peer.result("task.explain", conversation=C, task="2")
    assert [(each["kind"], each["by"], each.get("owner")) for each in told["reasons"]] == [
        ("blocker", "1", "ann"),
        ("in_progress", "1", "ann"),
    ]
    assert all(each["lease_expires_at"] > claim["task"]["created_at"] for each in told["reasons"])
    assert (told["ready"], told["startable"], told["version"]) == (False, False, claim["version"])
    assert (await peer.refusal("task.explain", conversation=C, task="9"))["kind"] == "not_found"
    assert (await peer.result("task.explain", conversation=C))["ready"] is False


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"label": "ui"}, "13"),
        ({"label": ["ui", "big"]}, "3"),
        ({"label": []}, "1234"),
        ({"parent": "1"}, "2"),
        ({"due_before": 20}, "1"),
        ({"due_before": 21, "due_by": "2026-12-24"}, "124"),
        ({"due_before": 21, "due_by": "2026-12-23"}, "12"),
        ({"due_by": "2026-12-24"}, "4"),
        ({"due_before": 1 << 50}, "124"),
        ({"text": "STRASSE"}, "2"),
        ({"text": "noted"}, "4"),
        ({"text": "big", "label": "ui"}, "3"),
    ],
)
async def test_list_is_filtered_by_each_criterion(peer: Peer, params: dict[str, Any], expected: str) -> None:
    tasks = [
        {"title": "a", "labels": ["ui"], "due": 10, "ref": "a"},
        {"title": "b", "description": "Straße", "parent": "a", "due": 20},
        {"title": "c", "labels": ["big", "ui"]},
        {"title": "d", "due_day": "2026-12-24"},
    ]
    await peer.result("task.add_many", conversation=C, tasks=tasks)
    await peer.result("task.note", conversation=C, task="4", text="Noted.")
    assert await ids(peer, **params) == list(expected)


@pytest.mark.parametrize("label", ["", " x", "x ", "a,b", "a\nb", "x" * 65, "x" * 10_000])
async def test_invalid_label_is_rejected(peer: Peer, label: str) -> None:
    refused = await peer.refusal("task.add", conversation=C, title="a", labels=[label])
    assert (refused["kind"], refused["field"].startswith("labels")) == ("invalid_params", True)


async def test_message_is_found_by_id(peer: Peer) -> None:
    for number in range(3):
        content = {"n": number}
        await peer.result("message.append", conversation=C, role="user", content=content, message=f"m{number}")
    got = (await peer.result("message.get", conversation=C, message="m1"))["message"]
    assert (got["message"], got["content"]) == ("m1", {"n": 1})
    refused = await peer.refusal("message.get", conversation=C, message="m9")
    assert (refused["kind"], refused["what"], refused["id"]) == ("not_found", "message", "m9")


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_messages_of_some_roles_are_paged(peer: Peer, order: str) -> None:
    for number in range(140):
        role = "user" if number % 50 == 7 else "step"
        await peer.result("message.append", conversation=C, role=role, content=number, message=f"m{number}")
    wanted = ["m7", "m57", "m107"] if order == "asc" else ["m107", "m57", "m7"]
    found: list[str] = []
    after: dict[str, str] = {}
    for more in (True, True, False):
        page = await peer.result("message.list", conversation=C, roles=["user"], limit=1, order=order, **after)
        found += [one["message"] for one in page["messages"]]
        after = {"after": found[-1]}
        assert page["has_more"] or not more
    assert found == wanted
    rest = await peer.result("message.list", conversation=C, roles=["user"], order=order, **after)
    assert (rest["messages"], rest["has_more"]) == ([], False)
    assert [
        one["message"]
        for one in (await peer.result("message.list", conversation=C, roles=["user"], order=order))["messages"]
    ] == wanted


@pytest.mark.parametrize("dropped", [False, True])
async def test_superseded_and_retracted_messages_are_hidden(running: Engine, peer: Peer, dropped: bool) -> None:
    for name, role, more in (
        ("u", "user", {}), ("t1", "tool", {}), ("w", "widget", {}), ("t2", "tool", {"supersedes": "t1"}),
    ):  # fmt: skip
        appended = await peer.result("message.append", conversation=C, role=role, content=name, message=name, **more)
        assert appended["message"].get("supersedes", "") == more.get("supersedes", "")
    retract: dict[str, Any] = {"conversation": C, "message": "w", "reason": "it was answered", "key": "k"}
    retracted = await peer.result("message.retract", **retract)
    assert retracted["retracted"] == "w"
    assert await peer.result("message.retract", **retract) == retracted
    if dropped:
        await peer.result("conversation.list")
        running.conversations.drop(C)

    async def shown(**params: Any) -> list[str]:
        page = await peer.result("message.list", conversation=C, **params)
        return [one["message"] for one in page["messages"]]

    assert await shown() == ["u", "t2"]
    assert await shown(order="desc", limit=1) == ["t2"]
    assert await shown(after="t1") == ["t2"]
    assert await shown(roles=["tool"]) == ["t2"]
    page = await peer.result("message.list", conversation=C, all=True)
    marks = {one["message"]: (one.get("superseded_by"), one.get("retracted")) for one in page["messages"]}
    assert marks == {"u": (None, None), "t1": ("t2", None), "w": (None, True), "t2": (None, None)}
    got = (await peer.result("message.get", conversation=C, message="t1"))["message"]
    assert (got["content"], got["superseded_by"]) == ("t1", "t2")


async def test_events_of_a_call_are_found_by_key(peer: Peer) -> None:
    tasks = [{"title": "a"}, {"title": "b"}]
    await peer.result("task.add", conversation=C, title="before")
    await peer.result("task.add_many", conversation=C, tasks=tasks, key="k1")
    found = await peer.result("event.find", conversation=C, key="k1")
    assert [(one["seq"], one["event"]["task"]["title"]) for one in found["events"]] == [(3, "a"), (4, "b")]
    assert found["epoch"] == (await peer.result("daemon.hello"))["epoch"]
    assert (await peer.result("event.find", conversation=C, key="never"))["events"] == []
    assert (await peer.result("event.find", conversation="elsewhere", key="k1"))["events"] == []
