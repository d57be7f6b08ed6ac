"""`event.read` with `before`: the newest events, in pages."""

from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Engine, Peer, TouchyLog
from punchlist_testing.store import damaged_log
from punchlistd.store.port import Stored


async def read_back(peer: Peer, **params: Any) -> list[list[int]]:
    """Return the positions of all events, in pages from the newest to the oldest one."""
    pages, before = list[list[int]](), {}
    while True:
        page = await peer.result("event.read", **params, **before)
        pages.append([event["seq"] for event in page["events"]])
        if not page["next"]:
            return pages
        before = {"before": page["next"]}


def join(pages: list[list[int]]) -> list[int]:
    return [seq for page in reversed(pages) for seq in page]


@pytest.mark.parametrize("limit", [1, 3, 7, 1_000])
@pytest.mark.parametrize("conversation", [None, "a", "b"])
async def test_pages_from_the_end_contain_each_event_once(peer: Peer, conversation: str | None, limit: int) -> None:
    for number in range(20):
        await peer.result("task.add", conversation="b" if number % 5 == 0 else "a", title="x")
    await peer.result("task.add_many", conversation="a", tasks=[{"title": "y"}] * 9)
    named = {} if conversation is None else {"conversation": conversation}
    pages = await read_back(peer, limit=limit, **named)
    everything = await peer.result("event.read", after=0, **named)
    assert join(pages) == [event["seq"] for event in everything["events"]]
    assert max(map(len, pages)) <= limit


async def test_large_events_are_read_in_several_pages(peer: Peer) -> None:
    for _ in range(5):
        await peer.result("message.append", conversation="a", role="tool", content="x" * 300_000)
    await peer.result("message.append", conversation="a", role="tool", content="x" * 900_000)
    pages = await read_back(peer)
    assert join(pages) == list(range(1, 8))
    assert len(pages) > 4


async def test_user_gets_its_own_events(running: Engine, peer: Peer) -> None:
    ann = await running.connect(user="ann")
    for number in range(40):
        await (ann if number % 10 == 0 else peer).result("task.add", conversation=f"of-{number % 10}", title="x")
    seen = await ann.result("event.read", after=0)
    assert join(await read_back(ann, limit=2)) == [event["seq"] for event in seen["events"]]


async def test_scan_for_visible_events_ends(running: Engine, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlistd.engine.reading.backward.SCANNED_BYTES", 100)
    ann = await running.connect(user="ann")
    await ann.result("task.add", conversation="anns", title="x")
    for _ in range(50):
        await peer.result("task.add", conversation="others", title="x")
    pages = await read_back(ann, limit=10)
    assert (join(pages), pages[0], len(pages) > 2) == ([1, 2], [], True)


async def test_large_events_of_others_are_not_all_read_at_once(
    running: Engine, peer: Peer, log: TouchyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("punchlistd.engine.reading.backward.SCANNED_BYTES", 600_000)
    ann = await running.connect(user="ann")
    await ann.result("task.add", conversation="anns", title="old")
    for _ in range(30):
        await peer.result("message.append", conversation="others", role="tool", content="x" * 300_000)
    await ann.result("task.add", conversation="anns", title="new")
    sizes, read = list[int](), log.read

    async def measure(*args: Any, **options: Any) -> list[Stored]:
        part = await read(*args, **options)
        sizes.append(sum(len(stored.line) for stored in part))
        return part

    monkeypatch.setattr(log, "read", measure)
    page = await ann.result("event.read")
    assert [event["version"] for event in page["events"]] == [3]
    assert 0 < sum(sizes) < 4_000_000, "all of them have 9 MB"
    assert join(await read_back(ann)) == [1, 2, page["events"][0]["seq"]]


async def test_position_is_checked(peer: Peer) -> None:
    await peer.result("task.add", conversation="a", title="x")
    assert (await peer.refusal("event.read", after=0, before=2))["field"] == "before"
    assert (await peer.refusal("event.read", before=4))["kind"] == "wrong_epoch"
    assert (await peer.refusal("event.read", before=1, epoch="0"))["kind"] == "wrong_epoch"
    assert (await peer.result("event.read", before=0)) == await peer.result("event.read", before=1)
    assert (await peer.result("event.read", before=3))["next"] == 0


async def test_lost_events_end_the_page_and_are_reported(tmp_path: Path) -> None:
    await damaged_log(tmp_path / "data")
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        page = await peer.result("event.read")
        assert page["events"]
        assert [event["seq"] for event in page["events"]] == list(range(page["next"], page["events"][-1]["seq"] + 1))
        refused = await peer.refusal("event.read", before=page["next"])
        assert (refused["kind"], refused["first"]) == ("gap", page["next"])
        peer.close()
