"""Calls with thousands of parts, which must not stop other calls."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlist_testing.turns import turns
from punchlistd.domain.decide.apply import apply
from punchlistd.domain.decide.many import add_many
from punchlistd.domain.decide.replace import replace
from punchlistd.domain.evolve import evolve
from punchlistd.engine.watching.subscriptions import Subscriptions
from punchlistd.engine.watching.views import encode_rows
from punchlistd.engine.writing.transaction import MAX_PARTS
from punchlistd.slices import SLICE_EVENTS
from punchlistd.store.port import StorageFull

C = "c"
MANY = MAX_PARTS + 4 * SLICE_EVENTS
WORK = (evolve, apply, add_many, replace)
"""Functions that run for each part of a call. `turns` counts their calls and resumptions as steps.

The rules yield after each step.
"""

SLICE = 3 * SLICE_EVENTS
"""Upper limit for the steps in one turn of the loop.

A slice takes at most two steps for each of its parts, and the end of one slice may share a turn with the beginning of
the next.
"""


def titled(count: int = MANY, prefix: str = "t") -> list[dict[str, Any]]:
    return [{"title": f"{prefix}{number}"} for number in range(count)]


LONG: list[tuple[str, dict[str, Any]]] = [
    ("task.add_many", {"tasks": titled()}),
    ("task.add_many", {"tasks": [{"task": str(1 + each), "title": "x", "notes": ["n"]} for each in range(MANY)]}),
    ("list.replace", {"tasks": titled(prefix="n"), "keep_unfinished": False}),
    ("list.replace", {"tasks": titled()[::-1]}),
    ("list.replace", {"tasks": titled(3, "few"), "keep_unfinished": False}),
    ("list.apply", {"changes": [{"method": "task.edit", "task": str(1 + each), "title": "x"} for each in range(MANY)]}),
    ("list.apply", {"changes": [{"method": "task.delete", "tasks": [str(1 + each) for each in range(MANY)]}]}),
    ("task.delete", {"tasks": [str(1 + each) for each in range(MANY)]}),
    ("task.edit", {"task": "1", "add_blocks": [str(2 + each) for each in range(MANY - 1)]}),
]


@pytest.mark.parametrize(("method", "params"), LONG, ids=[f"{each[0]}-{number}" for number, each in enumerate(LONG)])
async def test_long_call_is_sliced_but_seen_whole(
    running: Engine, peer: Peer, method: str, params: dict[str, Any]
) -> None:
    before = (await peer.result("task.add_many", conversation=C, tasks=titled()))["version"]
    await peer.result("task.add", conversation="aside", title="x")
    reader, versions = await running.connect(), set[int]()
    async with turns(*WORK) as counted:
        peer.send(method, {"conversation": C, **params}, id=1)
        for number in range(60):
            reader.send("task.get", {"conversation": "aside", "task": "1"}, id=number)
            assert "result" in await reader.answer(number)
        reader.send("conversation.get", {"conversation": C}, id=-1)
        versions.add((await reader.answer(-1))["result"]["conversation"]["version"])
        after = (await peer.answer(1))["result"]["version"]
    assert counted.longest <= SLICE
    assert counted.total >= MANY - 1
    assert versions <= {before, after} and after >= before + 3


async def test_call_on_a_long_list_counts_as_long(running: Engine, peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=titled())
    async with turns(*WORK) as counted:
        for number in range(10):
            peer.send("list.replace", {"conversation": C, "tasks": titled(2, str(number))}, id=number)
        for number in range(10):
            assert len((await peer.answer(number))["result"]["tasks"]) == MANY + 2 * (number + 1)
    assert counted.longest <= SLICE


async def test_concurrent_multipart_calls_take_several_turns(running: Engine, peer: Peer) -> None:
    async with turns(*WORK) as counted:
        for number in range(16):
            peer.send("task.add_many", {"conversation": C, "tasks": titled(MAX_PARTS // 4)}, id=number)
        answers = [(await peer.answer(number))["result"]["version"] for number in range(16)]
    assert answers == [1 + (each + 1) * MAX_PARTS // 4 for each in range(16)]
    assert counted.longest <= 4 * MAX_PARTS, "each part is visited up to three times, and one extra call starts"


async def test_other_calls_run_between_two_long_ones(running: Engine, peer: Peer) -> None:
    """Each connection's own calls stay in order."""
    other, seqs = await running.connect(), dict[int, int]()
    for number in range(4):
        peer.send("task.add_many", {"conversation": C, "tasks": titled()}, id=2 * number)
        peer.send("task.add", {"conversation": C, "title": "behind"}, id=2 * number + 1)
    await asyncio.sleep(0)
    other.send("task.add", {"conversation": "aside", "title": "x"}, id=99)
    beside = (await other.answer(99))["result"]["seq"]
    for number in range(8):
        seqs[number] = (await peer.answer(number))["result"]["seq"]
    assert list(seqs.values()) == sorted(seqs.values())
    assert beside < seqs[2], "the call waited for only one of them"


async def test_endless_reads_delay_a_long_call_briefly(running: Engine, peer: Peer, log: TouchyLog) -> None:
    """For a bound user, a missing list is looked up again each time."""
    await peer.result("task.add", conversation=C, title="x")
    reader = await running.connect()
    await reader.result("daemon.hello", user="u")
    loads = log.hold_loads()
    reader.send("conversation.get", {"conversation": "no"}, id=0)
    await loads.reached()
    peer.send("task.add_many", {"conversation": C, "tasks": titled()}, id=-1)
    await until(lambda: running.inbox.queue)
    for number in range(1, 6):
        before = len(running.inbox.queue)
        reader.send("conversation.get", {"conversation": f"no{number}"}, id=number)
        await until(lambda before=before: len(running.inbox.queue) > before)
        loads.open()
        log.hold_loads()
        await loads.reached()
    assert "result" in await peer.answer(-1)
    log.release_all()
    for number in range(6):
        assert (await reader.answer(number))["result"]["conversation"]["version"] == 0


async def test_rejected_append_of_a_long_call_leaves_nothing(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", conversation=C, title="x")
    log.refusal = StorageFull("full")
    refused = await peer.refusal("list.replace", conversation=C, tasks=titled())
    assert refused["kind"] == "storage_full"
    log.refusal = None
    assert [each["title"] for each in (await peer.result("task.list", conversation=C))["tasks"]] == ["x"]
    assert len((await peer.result("list.replace", conversation=C, tasks=titled()))["tasks"]) == MANY + 1


def linked(count: int = MAX_PARTS - 100) -> list[dict[str, Any]]:
    """Return a chain of tasks that fits in one decision but has more events than one slice."""
    return [
        {"title": f"t{each}", "ref": f"r{each}", "blocked_by": [f"r{each + 1}"] if each + 1 < count else []}
        for each in range(count)
    ]


async def test_reader_does_not_evict_a_list_being_created(running: Engine, peer: Peer) -> None:
    """A missing list is unloaded again after a request."""
    reader = await running.connect()
    peer.send("task.add_many", {"conversation": C, "tasks": titled()}, id=1)
    for number in range(30):
        reader.send("task.list", {"conversation": C}, id=number)
        reader.send("event.find", {"conversation": C, "last": 1}, id=100 + number)
    made = (await peer.answer(1))["result"]["version"]
    assert (await peer.result("task.list", conversation=C))["version"] == made == MANY + 1


async def test_concurrent_calls_with_many_events_all_succeed(running: Engine, peer: Peer, log: TouchyLog) -> None:
    changer, peers = await running.connect(), [peer, *[await running.connect() for _ in range(3)]]
    gate = log.hold()
    changer.send("task.add", {"conversation": "aside", "title": "x"}, id=1)
    await gate.reached()
    for number, each in enumerate(peers):
        each.send("task.add_many", {"conversation": f"c{number % 2}", "tasks": linked()}, id=1)
    await until(lambda: running.inbox.queue)
    gate.open()
    made = [(await each.answer(1))["result"]["version"] for each in peers]
    assert sorted(made) == [2 * len(linked()), 2 * len(linked()), 4 * len(linked()) - 1, 4 * len(linked()) - 1]
    assert "result" in await changer.answer(1)


async def test_call_after_a_rejected_append_is_decided_again(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", conversation=C, title="x")
    other, gate = await running.connect(), log.hold()
    other.send("task.add", {"conversation": C, "title": "y"}, id=1)
    await gate.reached()
    peer.send("task.add_many", {"conversation": C, "tasks": linked()}, id=2)
    await running.connect()  # the request sent before has arrived
    log.refusal = StorageFull("full")
    gate.open()
    gate = log.hold()
    assert (await other.answer(1))["error"]["data"]["kind"] == "storage_full"
    log.refusal = None
    gate.open()
    made = (await peer.answer(2))["result"]
    assert made["version"] == 2 * len(linked()) + 1
    log.release_all()
    assert [each["title"] for each in (await peer.result("task.list", conversation=C))["tasks"][:2]] == ["x", "t0"]


async def test_long_calls_are_rejected_like_short_ones(running: Engine, peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="x")
    late = await peer.refusal("task.add_many", conversation=C, tasks=titled(), expect_version=7)
    assert late["kind"] == "version_conflict"
    twice = await peer.refusal("task.add_many", conversation=C, tasks=[*titled(), *[{"task": "1", "title": "x"}] * 2])
    assert (twice["kind"], twice["field"]) == ("invalid_params", "task")
    changes = [{"method": "task.edit", "task": "1", "title": f"{each}"} for each in range(MANY)]
    gone = await peer.refusal("list.apply", conversation=C, changes=[*changes, {"method": "task.delete", "task": "9"}])
    assert (gone["kind"], gone["change"]) == ("not_found", MANY)
    assert (await peer.result("task.list", conversation=C))["tasks"][0]["title"] == "x"


@pytest.mark.parametrize("view", ["rows", "events"])
async def test_long_call_is_pushed_one_subscriber_per_turn(tmp_path: Path, view: str) -> None:
    piece = 2_000
    async with engine(tmp_path, chunk_bytes=piece) as running:
        peer, watchers = await running.connect(), [await running.connect() for _ in range(6)]
        for watcher in watchers:
            await watcher.result("event.subscribe", conversation=C, view=view)
        async with turns(encode_rows, Subscriptions.catch_up) as counted:
            await peer.result("task.add_many", conversation=C, tasks=titled())
            for watcher in watchers:
                seen = 0
                while seen < MANY:
                    pushed = (await watcher.receive())["params"]
                    seen += len(pushed.get("rows", ())) + len(pushed.get("events", ()))
    assert counted.longest <= (piece // 40 if view == "rows" else 2), "a row has more than 80 bytes"
    assert counted.total >= 6 * (MANY if view == "rows" else 1)


async def test_reads_finish_while_a_long_call_commits(running: Engine, peer: Peer, log: TouchyLog) -> None:
    changer, reader = await running.connect(), await running.connect()
    await changer.result("task.add", conversation="aside", title="x")
    gate = log.hold(after=True)
    changer.send("task.add", {"conversation": "aside", "title": "y"}, id=1)
    await gate.reached()
    peer.send("task.add_many", {"conversation": C, "tasks": titled()}, id=2)
    await until(lambda: bool(running.inbox.queue))
    reader.send("task.get", {"conversation": "aside", "task": "2"}, id=3)
    await until(lambda: len(running.inbox.queue) > 1)
    async with turns(add_many) as counted:
        gate.open()
        assert "result" in await reader.answer(3)
        assert counted.total < MANY
    assert "result" in await peer.answer(2)
