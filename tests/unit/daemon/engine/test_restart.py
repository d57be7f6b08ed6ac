"""The first responses after a kill equal later ones: they are complete and omit deleted lists."""

from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlistd.clock import now_ms
from punchlistd.store.port import Damaged, StorageFull, Survey

LISTS = {"of:ann:old", "of:ann:new", "of:ann:again", "mine"}
"""Lists that belong to the user ann."""

INDEXING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("conversation.list", {}),
    ("conversation.list", {"query": "gone"}),
    ("conversation.list", {"active": True}),
    ("task.search", {"query": "errand"}),
    ("task.search", {"status": "pending"}),
)
"""Queries on the index, which they bring up to date."""

READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("task.search", {"query": "errand", "conversation": "my:new"}),
    ("event.read", {"after": 0}),
    ("event.wait", {"after": 0, "timeout_ms": 0}),
    *(
        (method, {"conversation": name, **more})
        for name in ("my:new", "my:old", "my:gone", "mine", "moved", "my:again", "of:ann:new", "of:bob:new", "nobody")
        for method, more in (
            ("conversation.get", {}),
            ("task.list", {}),
            ("task.list", {"at_version": 2}),
            ("task.list", {"since": 0}),
            ("task.get", {"task": "1"}),
            ("task.explain", {"task": "1"}),
            ("message.list", {}),
            ("event.find", {"key": "k"}),
            ("event.histogram", {}),
            ("event.histogram", {"from_version": 1}),
            ("event.read", {"after": 0}),
        )
    ),
)
"""Calls that name lists that the index lacks, has in an older state, or still has after deletion."""


async def _live(running: Engine) -> None:
    """Create lists with and without users, index the log, then change, create, delete and move some of them."""
    ann, bob, peer = await running.connect(user="ann"), await running.connect(user="bob"), await running.connect()
    for each in (ann, bob):
        for name in ("old", "gone", "again"):
            await each.result("task.add", conversation=f"my:{name}", title=f"errand {name}")
        await each.result("message.append", conversation="my:old", role="user", content="hello")
    await peer.result("task.add", conversation="nobody", title="errand of nobody")
    await ann.result("conversation.attach", conversation="my:old", session="moved")
    await peer.result("conversation.list")
    assert running.log.unindexed == 0
    for each in (ann, bob):
        await each.result("task.add", conversation="my:old", title="errand late", key="k")
        await each.result("task.add", conversation="my:new", title="errand new", key="k")
        for name in ("gone", "again"):
            asked = await each.refusal("conversation.delete", conversation=f"my:{name}")
            await each.result("conversation.delete", conversation=f"my:{name}", confirm=asked["token"])
        await each.result("task.add", conversation="my:again", title="errand again")
    await ann.result("conversation.open", conversation="mine")
    await ann.result("task.add", conversation="mine", title="errand")
    await ann.result("conversation.attach", conversation="my:new", session="moved")


async def _asked(peer: Peer, method: str, params: dict[str, Any]) -> Any:
    answer = await peer.call(method, **params)
    return answer.get("result") or answer["error"]


async def _killed(directory: Path) -> TouchyLog:
    log = TouchyLog()
    async with engine(directory, log, kill=True, index_delay_s=1_000.0) as running:
        await _live(running)
    return log


@pytest.mark.parametrize("user", [{"user": "ann"}, {"user": "bob"}, {}], ids=str)
async def test_first_response_after_a_kill_is_complete(tmp_path: Path, user: dict[str, Any]) -> None:
    log = await _killed(tmp_path)
    first: list[Any] = []
    for method, params in READS:
        async with engine(tmp_path, log, kill=True, recover=False, index_delay_s=1_000.0) as running:
            first.append(await _asked(await running.connect(**user), method, params))
    assert log.unindexed
    async with engine(tmp_path, log) as running:
        peer = await running.connect(**user)
        await peer.result("conversation.list")
        assert not log.unindexed
        for (method, params), was in zip(READS, first, strict=True):
            assert await _asked(peer, method, params) == was, (method, params)


@pytest.mark.parametrize("user", [{"user": "ann"}, {"user": "bob"}, {}], ids=str)
@pytest.mark.parametrize(("method", "params"), INDEXING)
async def test_queries_wait_for_the_index_to_catch_up(
    tmp_path: Path, method: str, params: dict[str, Any], user: dict[str, Any]
) -> None:
    shown: list[set[str]] = []
    for recover in (False, True):
        async with engine(tmp_path, await _killed(tmp_path), kill=True, recover=recover) as running:
            peer = await running.connect(**user)
            if recover:
                await peer.result("conversation.list")
            result = await peer.result(method, **params)
            shown.append({each["conversation"] for each in result.get("conversations", result.get("hits"))})
    assert shown[0] == shown[1]


@pytest.mark.parametrize("view", ["events", "board"])
async def test_subscription_after_a_kill_is_complete(tmp_path: Path, view: str) -> None:
    log = await _killed(tmp_path)
    pushed: list[dict[str, Any]] = []
    for recover in (False, True):
        async with engine(tmp_path, log, kill=True, recover=recover, index_delay_s=1_000.0) as running:
            peer = await running.connect(user="ann")
            await peer.result("event.subscribe", view=view, after=0)
            seen: dict[str, Any] = {}
            while not LISTS <= {*seen}:
                push = (await peer.push())["params"]
                for each in push["events"] if view == "events" else [push["card"]]:
                    seen[each["conversation"]] = each
            pushed.append({name: seen[name] for name in LISTS})
    assert pushed[0] == pushed[1]


async def test_index_entries_have_summaries(tmp_path: Path) -> None:
    log = await _killed(tmp_path)
    async with engine(tmp_path, log, recover=False):
        pass  # the engine stops before recovery, and indexes everything
    async with engine(tmp_path, log) as running:
        found = await (await running.connect(user="ann")).result("conversation.list")
        assert {each["conversation"] for each in found["conversations"]} == LISTS


async def test_list_dropped_after_a_rejection_is_listed(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, index_delay_s=1_000.0) as running:
        peer = await running.connect()
        await peer.result("task.add", conversation="c", title="a")
        log.refusal = StorageFull()
        assert (await peer.refusal("task.add", conversation="c", title="b"))["kind"] == "storage_full"
        log.refusal = None
        (listed,) = (await peer.result("conversation.list"))["conversations"]
        assert (listed["conversation"], listed["version"]) == ("c", 2)


async def test_deferred_tasks_are_found_after_index_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        later = now_ms() + 3_600_000
        await (await running.connect()).result("task.add", conversation="c", title="a", not_before=later)
    survey, rebuild, damage = log.survey, log.rebuild, [Damaged("", 0, "a test said so")] * 2

    async def surveyed_later() -> Survey:
        if damage:
            raise damage.pop()
        return await survey()

    async def rebuilt_later() -> None:
        if damage:
            raise damage.pop()
        await rebuild()

    monkeypatch.setattr(log, "survey", surveyed_later)
    monkeypatch.setattr(log, "rebuild", rebuilt_later)
    async with engine(tmp_path, log, index_delay_s=0.01) as running:
        await until(lambda: running.totals)
        assert not damage and "c" in running.conversations.loaded
