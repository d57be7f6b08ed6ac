"""The number of events over time."""

import time
from pathlib import Path
from typing import Any

import msgspec

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Engine, Peer, TouchyLog
from punchlistd.domain.state.tally import Tally

C = "c"


async def add(peer: Peer, *titles: str, actor: str = "ann", name: str = C) -> None:
    for title in titles:
        await peer.result("task.add", conversation=name, title=title, actor=actor)


async def count(peer: Peer, **members: Any) -> tuple[dict[str, int], int]:
    """Return the events by actor in all buckets, and the list's version."""
    result = await peer.result("event.histogram", conversation=C, **members)
    sums: dict[str, int] = {}
    for bucket in result["buckets"]:
        for actor, number in bucket["by"]:
            sums[actor] = sums.get(actor, 0) + number
    versions = [bucket["to_version"] for bucket in result["buckets"]]
    assert versions == sorted(versions)
    return sums, result["version"]


async def test_histogram_counts_events_by_actor(peer: Peer) -> None:
    assert await count(peer) == ({}, 0)
    before = int(time.time() * 1000)
    await add(peer, "a", "b")
    await add(peer, "c", actor="bob")
    assert await count(peer) == ({"ann": 3, "bob": 1}, 4)
    result = await peer.result("event.histogram", conversation=C, buckets=1)
    (bucket,) = result["buckets"]
    assert (bucket["to_version"], bucket["by"]) == (4, [["ann", 3], ["bob", 1]])
    assert before - 60_000 < bucket["at"] <= int(time.time() * 1000)


async def test_histogram_of_a_range_is_exact(peer: Peer) -> None:
    for number in range(20):
        await add(peer, f"t{number}", actor=f"a{number % 2}")
    assert await count(peer, from_version=2, to_version=21) == ({"a0": 10, "a1": 10}, 21)
    assert await count(peer, from_version=5, to_version=5) == ({"a1": 1}, 21)
    assert await count(peer, to_version=3) == ({"a0": 2, "a1": 1}, 21)
    for wrong, field in (
        ({"to_version": 22}, "to_version"),
        ({"from_version": 22}, "from_version"),
        ({"from_version": 4, "to_version": 3}, "from_version"),
        ({"buckets": 201}, "buckets"),
        ({"buckets": 0}, "buckets"),
    ):
        refused = await peer.refusal("event.histogram", conversation=C, **wrong)
        assert (refused["kind"], refused["field"]) == ("invalid_params", field), wrong


async def test_histogram_of_a_new_list_omits_the_deleted_one(peer: Peer) -> None:
    await add(peer, "a", "b")
    asked = await peer.refusal("conversation.delete", conversation=C)
    await peer.result("conversation.delete", conversation=C, confirm=asked["token"])
    assert (await count(peer))[0] == {}
    await add(peer, "c", actor="bob")
    assert (await count(peer))[0] == {"bob": 2}
    assert (await count(peer, from_version=1))[0] == {"bob": 2}


async def test_histogram_is_stored_with_the_list(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        await add(peer, *map(str, range(99)))
        before = await peer.result("event.histogram", conversation=C)
        peer.close()
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        assert await peer.result("event.histogram", conversation=C) == before
        await add(peer, "new", actor="bob")
        assert await count(peer) == ({"ann": 100, "bob": 1}, 101)
        peer.close()


async def test_histogram_of_a_list_stored_without_one_is_counted(running: Engine, peer: Peer) -> None:
    await add(peer, *map(str, range(99)))
    loaded = running.conversations.loaded[C]
    expected, loaded.tally = loaded.tally, None
    assert await count(peer) == ({"ann": 100}, 100)
    assert loaded.tally == expected
    await add(peer, "new", actor="bob")
    assert await count(peer) == ({"ann": 100, "bob": 1}, 101)


async def test_histogram_of_a_damaged_list_ends_before_the_damage(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await add(peer, "a", "b", "c")
    running.conversations.drop(C)
    log._lines[2] = log._lines[2].replace(b'"b"', b'"B"')  # pyright: ignore[reportPrivateUsage]
    result = await peer.result("event.histogram", conversation=C, buckets=1)
    assert (result["buckets"][0]["by"], result["damaged"]["seq"]) == ([["ann", 2]], 3)


async def test_other_users_histograms_are_not_found(running: Engine) -> None:
    ann, bob = await running.connect(user="ann"), await running.connect(user="bob")
    await add(ann, "secret")
    assert (await bob.refusal("event.histogram", conversation=C))["kind"] == "not_found"
    assert msgspec.json.encode(await ann.result("event.histogram", conversation=C)).count(b'"ann"') == 1


NOW = {"from_at": 1, "to_at": 1 << 50}


def outcomes(result: Any) -> list[tuple[str, str, str, str]]:
    return [(s["conversation"], s["task"], s.get("owner", ""), s["outcome"]) for s in result["spans"]]


async def test_spans_of_all_lists_and_of_one(peer: Peer) -> None:
    for name in ("a", "b"):
        await add(peer, "t", name=name)
        await peer.result("task.claim", conversation=name, owner=f"agent of {name}", keep=True)
    await peer.result("task.set_status", conversation="a", task="1", status="failed")
    await add(peer, "still open", name="quiet")
    result = await peer.result("event.spans", **NOW)
    assert outcomes(result) == [("a", "1", "agent of a", "failed"), ("b", "1", "agent of b", "running")]
    assert len(result["totals"]) == 240 and "damaged" not in result
    assert [result["totals"][-1][name] for name in ("all", "done", "failed")] == [3, 0, 1]
    assert outcomes(await peer.result("event.spans", conversation="b", **NOW)) == outcomes(result)[1:]
    assert await peer.result("event.spans", conversation="never", from_at=1, to_at=1) == {
        "spans": [],
        "totals": [{"at": 1, "all": 0, "done": 0, "failed": 0}],
    }
    one = await peer.result("event.spans", limit=1, **NOW)
    assert (outcomes(one), one["cut"]) == (outcomes(result)[1:], True)
    later = await peer.result("event.spans", from_at=(1 << 50) - 1, to_at=1 << 50)
    assert (outcomes(later), later["totals"]) == (outcomes(result)[1:], [])
    refused = await peer.refusal("event.spans", from_at=5, to_at=4)
    assert (refused["kind"], refused["field"]) == ("invalid_params", "from_at")


async def test_spans_of_a_late_window_agree_with_those_of_all_time(running: Engine, peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": str(number)} for number in range(300)])
    running.conversations.loaded[C].tally = Tally(0)  # cells of a millisecond, so that reading can begin late
    for number in range(1, 300):
        await peer.result("task.claim", conversation=C, owner="ann", task=str(number), keep=True)
        if number % 3:
            await peer.result("task.set_status", conversation=C, task=str(number), status="completed")
    every = (await peer.result("event.spans", **NOW))["spans"]
    begin = every[250]["from_at"]
    late = await peer.result("event.spans", from_at=begin, to_at=1 << 50)
    assert late["spans"] == [span for span in every if span.get("to_at", begin) >= begin]


async def test_other_users_spans_are_not_found(running: Engine) -> None:
    ann, bob = await running.connect(user="ann"), await running.connect(user="bob")
    await ann.result("task.add", conversation="my:list", title="secret", status="in_progress")
    assert (await bob.refusal("event.spans", conversation="of:ann:list", **NOW))["kind"] == "not_found"
    result = await bob.result("event.spans", **NOW)
    assert (result["spans"], result["totals"][-1]["all"]) == ([], 0)
    assert outcomes(await ann.result("event.spans", **NOW)) == [("of:ann:list", "1", "", "running")]


async def test_spans_of_a_damaged_list_end_before_the_damage(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", conversation="fine", title="x", status="in_progress")
    await peer.result("task.add", conversation=C, title="a", status="in_progress")
    await peer.result("task.add", conversation=C, title="b", status="in_progress")
    await peer.result("conversation.list")
    running.conversations.drop(C)
    log._lines[4] = log._lines[4].replace(b'"b"', b'"B"')  # pyright: ignore[reportPrivateUsage]
    result = await peer.result("event.spans", **NOW)
    assert sorted(outcomes(result)) == [(C, "1", "", "running"), ("fine", "1", "", "running")]
    assert result["damaged"] == [C]
