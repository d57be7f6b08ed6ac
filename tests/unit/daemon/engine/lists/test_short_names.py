"""A repository's list is found and shown by its short name as long as that name is unambiguous."""

from pathlib import Path
from typing import Any

import pytest

from punchlist_schemas.repository import stem_of
from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Engine, Peer

A, B = "website-8f909d367e2b", "website-00ff00ff00ff"


@pytest.fixture
async def ann(peer: Peer) -> Peer:
    return peer


async def id_of(peer: Peer, name: str) -> str:
    return (await peer.result("conversation.get", conversation=name))["conversation"]["conversation"]


async def name_of(peer: Peer, id: str) -> str:
    whole = await peer.result("task.list", conversation=id)
    some = await peer.result("task.list", conversation=id, limit=1)
    got = await peer.result("conversation.get", conversation=id)
    names = [one.get("name", id) for one in (whole, some, got)]
    assert len(set(names)) == 1, "all responses show the same name"
    return names[0]


async def add(peer: Peer, conversation: str, title: str = "a") -> dict[str, Any]:
    return await peer.result("task.add", conversation=conversation, title=title)


@pytest.mark.parametrize(
    ("id", "stem"),
    [(A, "website"), ("a-b-8f909d367e2b", "a-b"), ("website", ""), ("website-8f909d367e2", ""), ("-8f909d367e2b", "")]
    + [
        ("website-8F909D367E2B", ""),
        ("website_8f909d367e2b", ""),
        ("website-8f909d367e2g", ""),
        ("0f9619ff-8b86-4011-b42d-00cf4fc964ff", ""),
        (f"of:ann:{A}", ""),
    ],
)
def test_only_repository_ids_have_short_names(id: str, stem: str) -> None:
    assert stem_of(id) == stem


async def test_short_name_resolves_to_its_list(ann: Peer) -> None:
    await add(ann, A)
    assert (await id_of(ann, "website"), await name_of(ann, A)) == (A, "website")
    assert await name_of(ann, "website") == "website"
    await add(ann, "website", "b")
    await ann.result("task.set_status", conversation="website", task="2", status="completed")
    tasks = (await ann.result("task.list", conversation=A))["tasks"]
    assert [task["status"] for task in tasks] == ["pending", "completed"]
    assert (await ann.result("conversation.open", conversation="website")).get("created", False) is False
    listed = await ann.result("conversation.list")
    assert ([one["conversation"] for one in listed["conversations"]], listed["names"]) == ([A], {A: "website"})


async def test_ambiguous_short_name_is_rejected(ann: Peer) -> None:
    await add(ann, A)
    assert await id_of(ann, "website") == A
    await add(ann, B)
    assert await id_of(ann, "website") == "website"
    assert [await name_of(ann, one) for one in (A, B)] == [A, B]
    token = (await ann.refusal("conversation.delete", conversation=B))["token"]
    await ann.result("conversation.delete", conversation=B, confirm=token)
    assert (await id_of(ann, "website"), await name_of(ann, A)) == (A, "website")


@pytest.mark.parametrize(
    ("method", "members"),
    [
        ("task.add", {"title": "a"}),
        ("task.add_many", {"tasks": [{"title": "a"}]}),
        ("task.claim", {"owner": "ann"}),
        ("list.replace", {"tasks": [{"title": "a"}]}),
        ("conversation.open", {}),
        ("conversation.attach", {"session": "s"}),
        ("conversation.configure", {"title": "a"}),
        ("message.append", {"role": "user", "content": "a"}),
    ],
)
async def test_ambiguous_short_name_creates_no_list(ann: Peer, method: str, members: dict[str, Any]) -> None:
    await add(ann, A)
    await add(ann, B)
    refused = await ann.refusal(method, conversation="website", **members)
    assert (refused["kind"], refused["names"]) == ("not_found", sorted([A, B]))
    assert {one["conversation"] for one in (await ann.result("conversation.list"))["conversations"]} == {A, B}


async def test_list_with_the_exact_name_wins(ann: Peer) -> None:
    for name in ("website", A, B):
        await add(ann, name)
    await add(ann, "website", "b")
    assert len((await ann.result("task.list", conversation="website"))["tasks"]) == 2


async def test_user_may_own_list_with_ambiguous_name(running: Engine, ann: Peer) -> None:
    await add(ann, A)
    await add(ann, B)
    eve = await running.connect(user="eve")
    await add(eve, "website")
    assert len((await eve.result("task.list", conversation="website"))["tasks"]) == 1


async def test_subscriber_follows_by_short_name(running: Engine, ann: Peer) -> None:
    await add(ann, A)
    eve = await running.connect()
    await eve.result("event.subscribe", conversation="website")
    await add(ann, "website", "b")
    (event,) = await eve.events(1)
    assert event["conversation"] == A


async def test_exact_id_wins(ann: Peer) -> None:
    await add(ann, "website")
    await add(ann, A)
    assert (await id_of(ann, "website"), await name_of(ann, A)) == ("website", A)


async def test_formerly_unused_short_name_is_found(ann: Peer) -> None:
    assert await id_of(ann, "website") == "website"
    await add(ann, A)
    assert await id_of(ann, "website") == A


async def test_users_lists_have_no_short_names(running: Engine, ann: Peer) -> None:
    eve = await running.connect(user="eve")
    await add(eve, A)
    assert await id_of(ann, "website") == "website"
    await add(ann, B)
    assert await id_of(ann, "website") == B
    refused = await eve.refusal("conversation.get", conversation=B)
    assert refused["kind"] == "not_found"
    assert (await eve.result("conversation.get", conversation="website"))["conversation"]["version"] == 0


async def test_exact_id_wins_after_a_restart(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        await add(peer, "website")
        await add(peer, A)
        peer.close()
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        assert await name_of(peer, A) == A, "this list is now in use, the other isn't"
        assert await id_of(peer, "website") == "website"
        peer.close()


async def test_short_names_survive_a_restart(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        await add(peer, A)
        peer.close()
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        assert await name_of(peer, A) == "website"
        await add(peer, B)
        assert await name_of(peer, A) == A
        peer.close()


async def test_users_list_takes_no_short_name(running: Engine, ann: Peer) -> None:
    await add(ann, A)
    eve = await running.connect(user="eve")
    await add(eve, "website", "hers")
    assert await id_of(ann, "website") == A
    await add(ann, "website", "his")
    assert [one["title"] for one in (await eve.result("task.list", conversation="website"))["tasks"]] == ["hers"]
    assert [one["title"] for one in (await ann.result("task.list", conversation=A))["tasks"]] == ["a", "his"]


async def test_a_users_agents_show_no_short_names(running: Engine, ann: Peer) -> None:
    eve = await running.connect(user="eve")
    await eve.result("agent.enter", agent="bot")
    await eve.result("task.add", conversation=A, title="hers", actor="bot")
    token = (await eve.refusal("conversation.delete", conversation=A))["token"]
    await eve.result("conversation.delete", conversation=A, confirm=token)
    await add(ann, A)
    assert await name_of(ann, A) == "website"
    (bot,) = (await eve.result("agent.list"))["agents"]
    assert (bot["name"], bot["conversation"]) == ("bot", A)
    assert "names" not in await eve.result("agent.list")
    assert (await ann.result("agent.list"))["names"] == {A: "website"}
