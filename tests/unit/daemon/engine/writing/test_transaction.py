import msgspec

from punchlist_testing.engine import Engine, Peer, TouchyLog
from punchlistd.store.port import side_of
from punchlistd.store.record import verify

C = "c"


async def test_call_is_one_group_of_lines(peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "x"}] * 3, key="k")
    stored = await log.read(0, 100)
    sides = [side_of(line) for line in stored]
    assert [side.remaining for side in sides] == [3, 2, 1, 0]
    assert [side.key for side in sides] == ["k", "", "", ""] and sides[0].call


async def test_conversations_are_chains_across_batches(peer: Peer, log: TouchyLog) -> None:
    for number in range(10):
        for name in ("a", "b"):
            peer.send("task.add", {"conversation": name, "title": str(number)}, id=number)
    for _ in range(20):
        await peer.receive()
    for name in ("a", "b"):
        check, versions = "", list[int]()
        for stored in await log.read(0, 100, conversation=name):
            assert verify(check, stored)
            check = stored.check
            versions.append(stored.version)
        assert versions == list(range(1, 12))


async def test_stored_and_pushed_events_are_equal(running: Engine, peer: Peer, log: TouchyLog) -> None:
    watcher = await running.connect()
    await watcher.result("event.subscribe")
    await peer.result("task.add", conversation=C, title='"\\é', description="\u2028\n\t", actor="me")
    (line,) = [stored for stored in await log.read(1, 1)]
    pushed = await watcher.raw()
    assert line.wire in pushed
    assert msgspec.json.decode(line.wire)["actor"] == "me"


async def test_undo_records_its_calls_and_is_not_undoable(peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", conversation=C, title="a")
    await peer.result("task.edit", conversation=C, task="1", title="b")
    await peer.result("list.undo", conversation=C)
    assert side_of((await log.read(3, 1))[0]).undoes == (3,)
    assert (await peer.result("task.get", conversation=C, task="1"))["task"]["title"] == "a"
    await peer.result("list.undo", conversation=C)
    assert (await peer.result("task.list", conversation=C))["tasks"] == []


async def test_list_made_serial_starts_its_next_task(peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "a"}, {"title": "b"}])
    done = await peer.result("conversation.configure", conversation=C, settings={"execution": "serial"})
    assert (done["conversation"]["counts"]["in_progress"], done["version"]) == (1, 5)
    assert (await peer.result("task.get", conversation=C, task="1"))["task"]["status"] == "in_progress"


async def test_deletion_leaves_a_tombstone_and_continues_numbers(peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", conversation=C, title="a")
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    deleted = await peer.result("conversation.delete", conversation=C, confirm=token)
    assert (deleted["deleted"], deleted["version"], deleted["seq"]) == (C, 3, 3)
    assert [event["event"]["type"] for event in (await peer.result("event.read", after=0))["events"]] == [
        "ConversationDeleted"
    ]
    again = await peer.result("conversation.open", conversation=C, title="new")
    assert (again["created"], again["version"], again["conversation"]["title"]) == (True, 4, "new")
    assert (await peer.result("task.add", conversation=C, title="b"))["task"]["id"] == "1"
