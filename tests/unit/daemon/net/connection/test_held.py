"""The total number of bytes that the daemon holds for all its peers is limited."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from punchlist_schemas.errors import Rejection
from punchlist_schemas.results import Limits
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlistd.engine.calls import Item, Read
from punchlistd.engine.replies import LONG_BYTES, Pieces, size_of
from punchlistd.engine.writing import transaction
from punchlistd.net.connection.held import Held

C = "c"
HELD = 2_000_000


async def filled(running: Engine) -> Peer:
    """Add 600 kB of tasks and 600 kB of messages, and return the connection."""
    peer = await running.connect()
    for _ in range(10):
        await peer.result("task.add", conversation=C, title="t", description="d" * 60_000)
        await peer.result("message.append", conversation=C, role="user", content="m" * 60_000)
    return peer


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("task.list", {"conversation": C, "status": "pending"}),
    ("task.list", {"conversation": C, "at_version": 19}),
    ("message.list", {"conversation": C}),
    ("event.read", {"after": 0}),
    ("event.wait", {"conversation": C, "after": 0, "timeout_ms": 60_000}),
]


@pytest.mark.parametrize("batch", [False, True], ids=["calls", "batches"])
@pytest.mark.parametrize(("method", "params"), ASKED, ids=["list", "at", "messages", "events", "wait"])
async def test_stuck_connections_share_one_byte_limit(
    tmp_path: Path, method: str, params: dict[str, Any], *, batch: bool
) -> None:
    async with engine(tmp_path, held_bytes=HELD) as running:
        filler, held = await filled(running), running.connections.held
        stuck = [await running.connect() for _ in range(20)]
        for peer in stuck:
            peer.stop_reading()
            if batch:
                call = {"jsonrpc": "2.0", "method": method, "params": params}
                peer.write(peer.frame([{**call, "id": id} for id in range(2)]))
            else:
                peer.send(method, params)
        for _ in range(300):
            await asyncio.sleep(0)
        assert held.bytes <= HELD
        refusal = await filler.refusal(method, **params)
        assert (refusal["kind"], refusal["limit"]) == ("limit_exceeded", "held_bytes")
        assert (await filler.result("task.get", conversation=C, task="1"))["task"], "short replies continue"
        assert await filler.result("task.add", conversation=C, title="and changes")
        answers = list[Any]()
        for peer in stuck:
            peer.resume_reading()
            got = await peer.receive()
            answers += got if isinstance(got, list) else [got]
        kinds = {answer["error"]["data"]["limit"] for answer in answers if "error" in answer}
        assert kinds == {"held_bytes"} and any("result" in answer for answer in answers)
        await until(lambda: held.bytes == 0)
        assert await filler.result(method, **params)


async def test_unfinished_frames_count_against_the_limit(tmp_path: Path) -> None:
    async with engine(tmp_path, held_bytes=HELD) as running:
        held = running.connections.held
        part = b'{"jsonrpc":"2.0","id":1,"method":"task.add","params":{"title":"' + b"x" * 950_000
        begun = [await running.connect() for _ in range(2)]
        for number, peer in enumerate(begun, 1):
            peer.write(part)
            await until(lambda number=number: held.bytes >= number * len(part))
        late = await running.connect()
        late.write(part[:150_000])
        assert (await late.receive())["error"]["data"]["limit"] == "held_bytes"
        await late.closed()
        assert (await (await running.connect()).result("task.list", conversation=C))["tasks"] == []
        for peer in begun:
            peer.close()
        await until(lambda: held.bytes == 0)


async def test_stuck_peer_is_closed_when_memory_is_needed(
    tmp_path: Path,
) -> None:
    async with engine(tmp_path, held_bytes=HELD, limits=Limits(frame_seconds=0.0)) as running:
        filler, held = await filled(running), running.connections.held
        stuck = [await running.connect() for _ in range(4)]
        for peer in stuck:
            peer.stop_reading()
            peer.send("message.list", {"conversation": C})
        await until(lambda: held.bytes > HELD - 600_000 or len(running.connections.live) == 1)
        await filler.call("message.list", conversation=C)
        await until(lambda: len(running.connections.live) < 5)
        assert await filler.result("message.list", conversation=C)


async def test_subscriber_without_room_is_ended_and_can_resume(tmp_path: Path) -> None:
    async with engine(tmp_path, held_bytes=HELD) as running:
        filler = await filled(running)
        peer = await running.connect()
        await peer.result("event.subscribe", conversation=C, view="list")
        running.connections.held.add(HELD + 1)
        await filler.result("task.add", conversation=C, title="more")
        assert await peer.raw() == b""
        refusal = await (await running.connect()).refusal("event.subscribe", conversation=C, view="list")
        assert refusal["limit"] == "held_bytes"
        running.connections.held.add(-HELD - 1)
        assert await (await running.connect()).result("event.subscribe", conversation=C, view="list")


@pytest.mark.parametrize("wish", [{"after": 0}, {"view": "list"}, {"view": "rows"}], ids=str)
async def test_new_events_subscriber_is_accepted_among_stuck_ones(tmp_path: Path, wish: dict[str, Any]) -> None:
    async with engine(tmp_path, held_bytes=HELD) as running:
        filler = await filled(running)
        running.connections.held.add(HELD + 1)
        peer = await running.connect()
        assert (await peer.refusal("event.subscribe", conversation=C, **wish))["limit"] == "held_bytes"
        subscription = (await peer.result("event.subscribe", conversation=C))["subscription"]
        await filler.result("task.add", conversation=C, title="short")
        push = (await peer.receive())["params"]
        assert (push["subscription"], len(push["events"])) == (subscription, 1)
        running.connections.held.add(-HELD - 1)


async def test_replies_waiting_for_a_commit_are_limited_globally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "MAX_OWED_BYTES", HELD)
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        filler = await filled(running)

        def forming() -> list[Item]:
            return running.writer._forming.items  # pyright: ignore[reportPrivateUsage]

        commits = log.hold()
        filler.send("task.add", {"conversation": C, "title": "x"})
        await commits.reached()
        peers = [await running.connect() for _ in range(10)]
        for peer in peers:
            peer.send("task.edit", {"conversation": C, "task": "1", "title": "y"}, id=1)
            peer.send("task.list", {"conversation": C, "status": "pending"}, id=2)
        await until(lambda: len(forming()) == 20)
        sizes = [size_of(item.outcome or b"") for item in forming() if isinstance(item, Read)]
        commits.open()  # first, before an assertion can fail: the engine stops only after its last commit
        assert len(sizes) == 10 and 0 < sum(sizes) < HELD + 700_000
        for peer in peers:
            assert "result" in await peer.answer(1)
            assert len((await peer.answer(2))["result"]["tasks"]) == 11


def test_shared_bytes_count_once() -> None:
    asked = list[int]()
    held = Held(300_000, lambda: asked.append(held.bytes))
    short = [bytes(1_000 + number) for number in range(3)]
    long, other = bytes(200_000), bytes(200_001)
    for number in range(3):
        held.hold((short[number], long))
    assert held.bytes == 203_003
    assert held.admit(Pieces((b"{", long, b"}"))) == Pieces((b"{", long, b"}"))
    refused = held.admit(other)
    assert isinstance(refused, Rejection) and refused.data["value"] == 403_004 and asked == [203_003]
    held.add(LONG_BYTES * 2)
    assert held.admit(bytes(LONG_BYTES)) == bytes(LONG_BYTES)
    held.add(-LONG_BYTES * 2)
    for _ in range(3):
        held.release((long,))
    assert held.bytes == 3_003 and held.admit(other) is other
