"""`about`: events with the titles of their tasks and lists, pushed and read."""

from pathlib import Path
from typing import Any

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine

C = "website"


async def change(peer: Peer) -> None:
    """Add, rename, delete and clear tasks, and use an id again."""
    await peer.result("conversation.open", conversation=C, title="The site")
    await peer.result("task.add", conversation=C, title="old")
    await peer.result("task.edit", conversation=C, task="1", title="new")
    await peer.result("task.set_status", conversation=C, task="1", status="in_progress")
    await peer.result("task.delete", conversation=C, task="1")
    await peer.result("task.add", conversation=C, title="second")
    await peer.result("list.clear", conversation=C)
    await peer.result("task.add", conversation=C, title="other first")
    await peer.result("task.note", conversation=C, task="1", text="seen")
    await peer.result("task.add", conversation="untitled", title="elsewhere")


TITLES = ["", "old", "new", "new", "new", "second", "", "other first", "other first", "", "elsewhere"]


def titles(events: list[Any]) -> list[str]:
    return [event["about"].get("title", "") for event in events]


async def receive(peer: Peer, count: int) -> list[Any]:
    events: list[Any] = []
    while len(events) < count:
        events += (await peer.push())["params"]["events"]
    return events


async def test_pushed_events_have_titles(running: Engine, peer: Peer) -> None:
    reader, plain = await running.connect(), await running.connect()
    await reader.result("event.subscribe", about=True)
    await plain.result("event.subscribe")
    await change(peer)
    events = await receive(reader, len(TITLES))
    assert titles(events) == TITLES
    assert [event["about"]["list"] for event in events] == ["The site"] * 9 + ["untitled"] * 2
    assert all("about" not in event for event in await receive(plain, len(TITLES)))


async def test_events_from_the_log_have_the_same_titles(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        await change(await running.connect())
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert titles((await peer.result("event.read", after=0, about=True))["events"]) == TITLES
        assert titles((await peer.result("event.read", before=6, limit=2, about=True))["events"]) == TITLES[3:5]
        await peer.result("event.subscribe", after=0, about=True)
        assert titles(await receive(peer, len(TITLES))) == TITLES


async def test_deleted_list_has_its_last_title(running: Engine, peer: Peer) -> None:
    reader = await running.connect()
    await peer.result("conversation.open", conversation=C, title="The site")
    await reader.result("event.subscribe", about=True)
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    await peer.result("conversation.delete", conversation=C, confirm=token)
    assert [event["about"] for event in await receive(reader, 1)] == [{"list": "The site"}]


async def test_bound_subscriber_gets_titles_of_its_lists(running: Engine, peer: Peer) -> None:
    ann = await running.connect(user="ann")
    await ann.result("event.subscribe", about=True)
    await peer.result("task.add", conversation="others", title="secret")
    await ann.result("task.add", conversation="anns", title="mine")
    assert titles(await receive(ann, 2)) == ["", "mine"]


async def test_damaged_list_lacks_titles_of_deleted_tasks(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await change(peer)
    log.damaged_at[C] = 2
    page = await peer.result("event.read", before=6, limit=2, about=True)
    assert [event["about"] for event in page["events"]] == [{"list": "The site"}] * 2
    assert titles((await peer.result("event.read", limit=4, about=True))["events"]) == TITLES[7:]


async def test_erased_list_does_not_show_the_title_of_its_successor(running: Engine) -> None:
    ann, bob = await running.connect(user="ann"), await running.connect(user="bob")
    await ann.result("conversation.open", conversation="x", title="Ann's")
    token = (await ann.refusal("conversation.delete", conversation="x"))["token"]
    await ann.result("conversation.delete", conversation="x", confirm=token)
    await bob.result("conversation.open", conversation="x", title="Bob's")
    (event,) = (await ann.result("event.read", about=True))["events"]
    assert (event["event"]["type"], event["about"]) == ("ConversationDeleted", {"list": "x"})


async def test_only_events_have_titles(peer: Peer) -> None:
    assert (await peer.refusal("event.subscribe", view="board", about=True))["field"] == "about"
