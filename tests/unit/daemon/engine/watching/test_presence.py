"""Followers of a list in `conversation.presence` and in the view `presence`."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer, until
from punchlistd.clock import now_ms
from punchlistd.engine.watching import presence, subscriptions

C = "c"


async def named(running: Engine, actor: str, user: str | None = None) -> Peer:
    peer = await running.connect(user=user)
    await peer.result("daemon.hello", client={"name": actor})
    return peer


async def present(peer: Peer, name: str = C) -> list[tuple[str, int]]:
    answer = await peer.result("conversation.presence", conversation=name)
    return [(each["actor"], each["connections"]) for each in answer["present"]]


def left(running: Engine, connections: int) -> Callable[[], Any]:
    return lambda: len(running.connections.live) == connections


async def test_subscriber_is_present_until_it_ends(running: Engine) -> None:
    asking, ann, bob = [await named(running, name) for name in ("asking", "ann", "bob")]
    assert await present(asking) == []
    before = now_ms()
    first = await ann.result("event.subscribe", conversation=C)
    await ann.result("event.subscribe", conversation=C, view="rows")
    await bob.result("event.subscribe", conversation=C, view="list")
    shown = (await asking.result("conversation.presence", conversation=C))["present"]
    assert sorted((each["actor"], each["connections"]) for each in shown) == [("ann", 1), ("bob", 1)]
    assert all(before <= each["since"] <= now_ms() for each in shown)
    await ann.result("event.unsubscribe", subscription=first["subscription"])
    assert sorted(await present(asking)) == [("ann", 1), ("bob", 1)], "ann still has the rows"
    await ann.result("event.unsubscribe", subscription="2")
    assert await present(asking) == [("bob", 1)]
    bob.close()
    await until(left(running, 2))
    assert await present(asking) == []


async def test_actor_with_two_connections_is_listed_once(running: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "now_ms", count(1000).__next__)
    asking, old, new, zoe, bob = [await named(running, name) for name in ("asking", "ann", "ann", "zoe", "bob")]
    for peer in (zoe, old, old, bob, new):
        await peer.result("event.subscribe", conversation=C)
    assert (await asking.result("conversation.presence", conversation=C))["present"] == [
        {"actor": "zoe", "connections": 1, "since": 1000},
        {"actor": "ann", "connections": 2, "since": 1001},
        {"actor": "bob", "connections": 1, "since": 1003},
    ]


async def test_followers_of_other_lists_are_not_present(running: Engine) -> None:
    asking, ann = await named(running, "asking"), await named(running, "ann")
    await ann.result("event.subscribe")
    await ann.result("event.subscribe", view="board")
    await ann.result("event.subscribe", conversation="other")
    assert (await present(asking), await present(asking, "other")) == ([], [("ann", 1)])


async def test_presence_resolves_sessions(running: Engine) -> None:
    ann = await named(running, "ann")
    await ann.result("conversation.open", conversation=C)
    await ann.result("conversation.attach", conversation=C, session="s")
    await ann.result("event.subscribe", conversation="s")
    assert await present(ann) == await present(ann, "s") == [("ann", 1)]


async def test_bound_user_sees_no_presence_of_others_lists(running: Engine) -> None:
    root, ann, bob = [await named(running, *who) for who in (("root",), ("ann", "ann"), ("bob", "bob"))]
    for peer in (root, ann, bob):
        await peer.result("event.subscribe", conversation=C)
    assert await present(ann) == [("ann", 1)], "whose list it will be is open"
    assert sorted(await present(root)) == [("ann", 1), ("bob", 1), ("root", 1)]
    await ann.result("conversation.open", conversation=C)
    refused = await bob.refusal("conversation.presence", conversation=C)
    assert (refused["kind"], refused["id"]) == ("not_found", C)
    for peer in (root, ann):
        assert sorted(await present(peer)) == [("ann", 1), ("root", 1)], "bob isn't listed"


async def test_stuck_subscriber_is_present(running: Engine) -> None:
    asking, stuck = await named(running, "asking"), await named(running, "stuck")
    await stuck.result("event.subscribe", conversation=C, view="list")
    (connection,) = (each for each in running.connections.live if each.actor == "stuck")
    connection.pause_writing()
    await asking.result("task.add", conversation=C, title="t")
    assert connection.paused
    assert await present(asking) == [("stuck", 1)]


async def watching(running: Engine, actor: str = "watching", user: str | None = None, name: str = C) -> Peer:
    peer = await named(running, actor, user)
    await peer.result("event.subscribe", conversation=name, view="presence")
    return peer


async def told(peer: Peer) -> list[tuple[str, int]]:
    push = await peer.push()
    assert (push["method"], push["params"]["conversation"]) == ("presence", C)
    return [(each["actor"], each["connections"]) for each in push["params"]["present"]]


async def test_presence_watchers_get_each_change_and_are_present(running: Engine) -> None:
    watcher, ann = await watching(running), await named(running, "ann")
    assert await told(watcher) == [("watching", 1)]
    rows = await ann.result("event.subscribe", conversation=C, view="rows")
    assert sorted(await told(watcher)) == [("ann", 1), ("watching", 1)]
    await ann.result("event.unsubscribe", subscription=rows["subscription"])
    assert await told(watcher) == [("watching", 1)]
    await ann.result("event.subscribe", conversation=C)
    assert sorted(await told(watcher)) == [("ann", 1), ("watching", 1)]
    await ann.result("daemon.hello", client={"name": "anne"})
    assert sorted(await told(watcher)) == [("anne", 1), ("watching", 1)]
    ann.close()
    assert await told(watcher) == [("watching", 1)]
    assert await present(watcher) == [("watching", 1)]


async def test_unrelated_changes_push_no_presence(running: Engine) -> None:
    watcher, ann = await watching(running), await named(running, "ann")
    assert await told(watcher) == [("watching", 1)]
    await ann.result("task.add", conversation=C, title="t")
    await ann.result("event.subscribe", conversation="other")
    await ann.result("event.subscribe")
    await ann.result("event.subscribe", conversation=C)
    assert sorted(await told(watcher)) == [("ann", 1), ("watching", 1)], "the only push since"


async def test_simultaneous_connections_of_an_actor_are_one_push(running: Engine) -> None:
    watcher = await watching(running)
    assert await told(watcher) == [("watching", 1)]
    crowd = [await named(running, "ann") for _ in range(40)]
    for peer in crowd:
        peer.send("event.subscribe", {"conversation": C}, id=1)
    pushes = [await told(watcher)]
    while pushes[-1][-1] != ("ann", 40):
        pushes.append(await told(watcher))
    assert len(pushes) <= 3, "40 changes are batched in one push"
    for peer in crowd:
        peer.close()
    while await told(watcher) != [("watching", 1)]:
        pass
    await watcher.quiet()


async def test_brief_presence_is_not_pushed(running: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "GATHER_S", 3600)
    watcher, ann = await watching(running), await named(running, "ann")
    assert await told(watcher) == [("watching", 1)]
    first = await ann.result("event.subscribe", conversation=C)
    await ann.result("event.unsubscribe", subscription=first["subscription"])
    running.subscriptions.presence._flush()  # pyright: ignore[reportPrivateUsage] - as its timer does
    await watcher.quiet()


async def test_bound_user_gets_no_presence_pushes_of_others(running: Engine) -> None:
    ann, bob = await watching(running, "ann", "ann"), await watching(running, "bob", "bob")
    assert (await told(ann), await told(bob)) == ([("ann", 1)], [("bob", 1)]), "whose list it will be is open"
    root = await watching(running, "root")
    assert len(await told(root)) == 3
    await ann.result("conversation.open", conversation=C)
    for peer in (ann, root):
        assert sorted(await told(peer)) == [("ann", 1), ("root", 1)], "bob isn't listed"
    refused = await bob.refusal("event.subscribe", conversation=C, view="presence")
    assert (refused["kind"], refused["id"]) == ("not_found", C)
    await bob.quiet()
    token = (await ann.refusal("conversation.delete", conversation=C))["token"]
    await ann.result("conversation.delete", conversation=C, confirm=token)
    assert (await told(ann), len(await told(root))) == ([("ann", 1)], 3)
    await bob.result("conversation.open", conversation=C)
    for peer in (bob, root):
        assert sorted(await told(peer)) == [("bob", 1), ("root", 1)], "the list is bob's now"
    root.close()
    assert await told(bob) == [("bob", 1)]
    await ann.quiet()


async def test_stuck_watcher_later_gets_only_the_newest_presence(running: Engine) -> None:
    watcher = await watching(running)
    assert await told(watcher) == [("watching", 1)]
    (connection,) = running.connections.live
    connection.pause_writing()
    crowd = [await named(running, f"ann {number}") for number in range(5)]
    for peer in crowd:
        await peer.result("event.subscribe", conversation=C)
        running.subscriptions.presence._flush()  # pyright: ignore[reportPrivateUsage] - as its timer does
    connection.resume_writing()
    assert len(await told(watcher)) == 6
    await watcher.quiet()


async def test_unwatched_presence_costs_nothing(running: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> list[object]:
        raise AssertionError("nobody asked")

    monkeypatch.setattr(presence, "_list_present", asked)
    monkeypatch.setattr(presence, "GATHER_S", None)  # starting a timer would fail
    ann = await named(running, "ann")
    first = await ann.result("event.subscribe", conversation=C, view="rows")
    await ann.result("task.add", conversation=C, title="t")
    await ann.result("event.unsubscribe", subscription=first["subscription"])
    assert await ann.result("daemon.hello")


async def test_presence_is_of_one_conversation(peer: Peer) -> None:
    refused = await peer.refusal("event.subscribe", view="presence")
    assert (refused["kind"], refused["field"]) == ("invalid_params", "conversation")
