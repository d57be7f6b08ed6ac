from pathlib import Path
from typing import Any

import pytest

from punchlist_schemas.results import Limits
from punchlist_testing.engine import Engine, Peer, engine, until


def wait(after: int = 0, timeout_ms: int = 60_000, **more: Any) -> dict[str, Any]:
    return {"after": after, "timeout_ms": timeout_ms, **more}


def waiting(running: Engine) -> int:
    return sum(len(session.waiting) for session in running.connections.live)


async def test_wait_ends_with_the_first_later_event(running: Engine) -> None:
    peer, other = await running.connect(), await running.connect()
    peer.send("event.wait", wait(conversation="c"), id=1)
    await until(lambda: waiting(running) == 1)
    await other.result("task.add", conversation="elsewhere", title="x")
    await other.result("task.add", conversation="c", title="a")
    answer = (await peer.answer(1))["result"]
    assert ([event["seq"] for event in answer["events"]], answer["next"]) == ([3, 4], 4)
    peer.send("event.wait", wait(after=2), id=2)
    assert (await peer.answer(2))["result"]["next"] == 4, "existing events are returned immediately"


async def test_expired_wait_returns_its_position(peer: Peer) -> None:
    await peer.result("task.add", conversation="other", title="x")
    for timeout_ms in (0, 20):
        answer = await peer.result("event.wait", **wait(timeout_ms=timeout_ms, conversation="c"))
        assert (answer["events"], answer["next"]) == ([], 2)


async def test_wait_sees_writes_sent_before_it(peer: Peer) -> None:
    peer.send("task.add", {"conversation": "c", "title": "a"}, id=1)
    peer.send("event.wait", wait(timeout_ms=0), id=2)
    await peer.answer(1)
    assert len((await peer.answer(2))["result"]["events"]) == 2


@pytest.mark.parametrize("id", [7, "seven", '\\u0061"'])
async def test_wait_is_cancelled_by_id(peer: Peer, id: Any) -> None:
    peer.send("event.wait", wait(), id=id)
    peer.send("rpc.cancel", {"id": id}, id=1)
    answers = {message["id"]: message for message in [await peer.receive() for _ in range(2)]}
    assert "result" in answers[1]
    assert answers[id]["error"]["data"]["kind"] == "cancelled"

    peer.write(
        peer.request("task.add", {"conversation": "c", "title": "a"}, id=1)
        + peer.request("event.wait", wait(after=9, conversation="c"), id=2)
        + peer.request("rpc.cancel", {"id": 2}, id=3)
    )
    kinds = {m["id"]: m.get("error", {}).get("data", {}).get("kind") for m in [await peer.receive() for _ in "123"]}
    assert kinds[1] is None and kinds[3] is None and kinds[2] in ("cancelled", "wrong_epoch")


async def test_unknown_id_cancels_nothing(peer: Peer) -> None:
    refused = await peer.refusal("rpc.cancel", id=5)
    assert (refused["kind"], refused["what"], refused["id"]) == ("not_found", "call", "5")
    peer.send("event.wait", wait(), id="5")
    assert (await peer.refusal("rpc.cancel", id=5))["kind"] == "not_found", "a string isn't a number"


@pytest.mark.parametrize("ids", ["own", "equal", "none"])
async def test_connection_limits_its_waiting_calls(tmp_path: Path, ids: str) -> None:
    async with engine(tmp_path, limits=Limits(in_flight=8)) as running:
        peer = await running.connect()
        chosen = {"own": list(range(12)), "equal": [1] * 12, "none": [None] * 12}[ids]
        peer.write(b"".join(peer.request("event.wait", wait(), id=id) for id in chosen))
        if ids != "none":
            for _ in range(4):
                error = (await peer.receive())["error"]["data"]
                assert (error["kind"], error["limit"], error["value"], error["maximum"]) == (
                    "limit_exceeded",
                    "in_flight",
                    9,
                    8,
                )
        await peer.quiet()  # waiting calls don't delay others
        assert waiting(running) == 8
        await peer.result("task.add", conversation="c", title="a")
        await until(lambda: waiting(running) == 0)


async def test_stop_answers_waiting_calls(running: Engine, peer: Peer) -> None:
    peer.send("event.wait", wait(), id=1)
    await until(lambda: waiting(running) == 1)
    running.connections.close()
    assert (await peer.answer(1))["error"]["data"]["kind"] == "shutting_down"
    assert (await peer.refusal("event.wait", **wait()))["code"] == -32012


async def test_stop_asks_old_waits_to_reconnect(running: Engine, peer: Peer) -> None:
    peer.send("event.wait", wait(conversation="c"), id=1)
    await until(lambda: running.subscriptions.subscribed)
    running.connections.close()
    assert (await peer.answer(1))["error"]["data"]["kind"] == "shutting_down"


async def test_closed_connection_ends_its_waits(running: Engine, peer: Peer) -> None:
    peer.send("event.wait", wait(), id=1)
    await until(lambda: waiting(running) == 1)
    peer.close()
    await until(lambda: not running.connections.live)


@pytest.mark.parametrize("end", ["event", "time", "cancel", "hang up"])
async def test_ended_wait_leaves_no_subscription(running: Engine, end: str) -> None:
    peer, other = await running.connect(), await running.connect()
    peer.send("event.wait", wait(timeout_ms=30 if end == "time" else 60_000), id=1)
    await until(lambda: running.subscriptions.subscribed == 1)
    if end == "event":
        await other.result("task.add", conversation="c", title="a")
    elif end == "cancel":
        peer.send("rpc.cancel", {"id": 1}, id=2)
    elif end == "hang up":
        peer.close()
    await until(lambda: running.subscriptions.subscribed == 0 and waiting(running) == 0)
