"""Who follows a list, as `conversation.presence` tells it."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer, until
from punchlistd.clock import now_ms
from punchlistd.engine import subscriptions

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


async def test_who_subscribes_is_there_until_they_unsubscribe_or_hang_up(running: Engine) -> None:
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


async def test_an_actor_with_two_connections_is_told_once_from_its_oldest_subscription(
    running: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "now_ms", count(1000).__next__)
    asking, old, new, zoe, bob = [await named(running, name) for name in ("asking", "ann", "ann", "zoe", "bob")]
    for peer in (zoe, old, old, bob, new):
        await peer.result("event.subscribe", conversation=C)
    assert (await asking.result("conversation.presence", conversation=C))["present"] == [
        {"actor": "zoe", "connections": 1, "since": 1000},
        {"actor": "ann", "connections": 2, "since": 1001},
        {"actor": "bob", "connections": 1, "since": 1003},
    ]


async def test_who_follows_all_lists_or_another_is_not_at_this_one(running: Engine) -> None:
    asking, ann = await named(running, "asking"), await named(running, "ann")
    await ann.result("event.subscribe")
    await ann.result("event.subscribe", view="board")
    await ann.result("event.subscribe", conversation="other")
    assert (await present(asking), await present(asking, "other")) == ([], [("ann", 1)])


async def test_a_session_leads_to_who_is_at_its_list(running: Engine) -> None:
    ann = await named(running, "ann")
    await ann.result("conversation.open", conversation=C)
    await ann.result("conversation.attach", conversation=C, session="s")
    await ann.result("event.subscribe", conversation="s")
    assert await present(ann) == await present(ann, "s") == [("ann", 1)]


async def test_a_bound_user_hears_of_nobody_at_what_is_not_theirs(running: Engine) -> None:
    root, ann, bob = [await named(running, *who) for who in (("root",), ("ann", "ann"), ("bob", "bob"))]
    for peer in (root, ann, bob):
        await peer.result("event.subscribe", conversation=C)
    assert await present(ann) == [("ann", 1)], "whose list it will be is open"
    assert sorted(await present(root)) == [("ann", 1), ("bob", 1), ("root", 1)]
    await ann.result("conversation.open", conversation=C)
    refused = await bob.refusal("conversation.presence", conversation=C)
    assert (refused["kind"], refused["id"]) == ("not_found", C)
    for peer in (root, ann):
        assert sorted(await present(peer)) == [("ann", 1), ("root", 1)], "bob is told nothing of it: he is not there"


async def test_one_that_takes_no_bytes_is_there_all_the_same(running: Engine) -> None:
    asking, stuck = await named(running, "asking"), await named(running, "stuck")
    await stuck.result("event.subscribe", conversation=C, view="list")
    (connection,) = (each for each in running.connections.live if each.actor == "stuck")
    connection.pause_writing()
    await asking.result("task.add", conversation=C, title="t")
    assert connection.paused
    assert await present(asking) == [("stuck", 1)]
