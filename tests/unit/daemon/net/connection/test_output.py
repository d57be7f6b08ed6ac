import asyncio
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer, engine, until
from punchlistd.engine.replies import REPLY_BYTES
from punchlistd.net.connection import Connection
from punchlistd.net.connection.output import JOINED_BYTES

C = "c"


def add(title: str) -> dict[str, Any]:
    return {"conversation": C, "title": title}


async def test_pushes_wait_for_the_reply_of_a_batch(tmp_path: Path) -> None:
    async with engine(tmp_path, batch_calls=2) as running:
        peer = await running.connect()
        await peer.result("event.subscribe", conversation=C)
        writes = [{"jsonrpc": "2.0", "id": id, "method": "task.add", "params": add(str(id))} for id in range(5)]
        waits = {"conversation": "quiet", "after": 0, "timeout_ms": 30}
        subscribe = {"jsonrpc": "2.0", "id": 6, "method": "event.subscribe", "params": {"after": 0}}
        peer.write(
            peer.frame([*writes, subscribe, {"jsonrpc": "2.0", "id": 7, "method": "event.wait", "params": waits}])
        )
        assert len(await peer.receive()) == 7
        events: dict[str, list[int]] = {"1": [], "2": []}
        while any(seqs[-1:] != [6] for seqs in events.values()):
            params = (await peer.push())["params"]
            events[params["subscription"]] += [event["seq"] for event in params["events"]]
        assert events == {"1": [1, 2, 3, 4, 5, 6], "2": [1, 2, 3, 4, 5, 6]}
        await peer.result("task.add", **add("after"))
        await peer.events(2)


async def test_subscription_ids_are_unique(running: Engine, peer: Peer) -> None:
    first = await peer.result("event.subscribe", conversation=C)
    await peer.result("event.unsubscribe", subscription=first["subscription"])
    second = await peer.result("event.subscribe", conversation=C)
    assert first["subscription"] != second["subscription"]
    (session,) = running.connections.live
    assert session.framing == "lines" and session.framed(b"{}") == b"{}\n" and list(session.subscriptions) == ["2"]


# Output that the peer doesn't read

LONG = 300_000


async def turned(times: int = 100) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def asked(running: Engine, *calls: tuple[str, dict[str, Any]]) -> tuple[Peer, Connection]:
    """Return a client that sends all these calls but reads nothing, and its connection."""
    known = set(running.connections.live)
    peer = await running.connect()
    peer.stop_reading()
    peer.write(b"".join(peer.request(method, params, id=id) for id, (method, params) in enumerate(calls)))
    await until(lambda: any(session.paused for session in running.connections.live - known))
    await turned()
    (session,) = running.connections.live - known
    return peer, session


@pytest.mark.parametrize("ask", ["message.list", "event.read", "event.wait", "task.list", "at_version"])
async def test_long_replies_are_built_as_the_peer_reads(running: Engine, ask: str) -> None:
    filler = await running.connect()
    for _ in range(4):
        await filler.result("message.append", conversation=C, role="user", content="m" * LONG)
        await filler.result("task.add", **add("t"), description="d" * 60_000)
    params: dict[str, Any] = {
        "event.read": {"after": 0},
        "event.wait": {"after": 0, "timeout_ms": 60_000},
        "at_version": {"conversation": C, "at_version": 7},
    }.get(ask, {"conversation": C})
    peer, session = await asked(running, *[("task.list" if ask == "at_version" else ask, params)] * 40)
    assert 0 < session.unsent_bytes <= 1_000_000, "one reply, whatever was requested"
    await filler.quiet()
    peer.resume_reading()
    answers = [await peer.receive() for _ in range(40)]
    assert {answer["id"] for answer in answers} == set(range(40)) and all("result" in answer for answer in answers)


async def test_replies_waiting_for_a_commit_are_limited(running: Engine) -> None:
    """Queries after a change are answered at its commit.

    If the replies are too long in total, the rest is read again afterwards.
    """
    filler = await running.connect()
    for _ in range(10):
        await filler.result("task.add", **add("t"), description="d" * 60_000)
    filtered = ("task.list", {"conversation": C, "status": "pending"})
    peer, session = await asked(running, ("task.add", add("one more")), *[filtered] * 60)
    assert 0 < session.unsent_bytes < REPLY_BYTES + 2_000_000
    peer.resume_reading()
    answers = [await peer.receive() for _ in range(61)]
    assert all(answer["result"]["version"] == 12 for answer in answers)


@pytest.mark.parametrize("headers", [False, True], ids=["lines", "headers"])
async def test_batch_answers_what_fits(running: Engine, headers: bool) -> None:
    peer = await running.connect(headers=headers)
    for _ in range(10):
        await peer.result("task.add", **add("t"), description="d" * 60_000)
    calls = [
        ("task.list", {"conversation": C}),
        ("event.read", {"after": 0}),
        ("task.add", add("done all the same")),
    ]
    requests = [
        {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        for id, (method, params) in enumerate([*calls[:2] * 12, calls[2]])
    ]
    peer.write(peer.frame(requests))
    answers = await peer.receive()
    assert {answer["id"] for answer in answers} == set(range(25))
    refused = [answer["error"]["data"] for answer in answers if "error" in answer]
    assert len(refused) in range(10, 22)
    assert {(error["kind"], error["limit"]) for error in refused} == {("limit_exceeded", "batch_bytes")}
    assert "result" in next(answer for answer in answers if answer["id"] == 24), "a change never gets this error"
    await peer.quiet()


async def test_long_list_is_shared_by_its_subscribers(running: Engine) -> None:
    filler = await running.connect()
    for _ in range(10):
        await filler.result("task.add", **add("t"), description="d" * 60_000)
    stuck = [await asked(running, ("event.subscribe", {"conversation": C, "view": "list"})) for _ in range(5)]
    for number in range(3):
        await filler.result("task.edit", conversation=C, task="1", title=f"{number}")
    waiting = [part.obj for _, session in stuck for part, _ in session.output.unsent if len(part) > JOINED_BYTES]
    assert len(waiting) == 5 and len({id(piece) for piece in waiting}) == 1
    assert all(running.unsent(session) <= 2 * JOINED_BYTES for _, session in stuck)
    for peer, _ in stuck:
        peer.resume_reading()
        assert len((await peer.receive())["result"]["tasks"]) == 10
        while (pushed := (await peer.push())["params"])["tasks"][0]["title"] != "2":
            assert pushed["conversation"] == C


async def test_half_closed_connection_gets_the_whole_reply(running: Engine, peer: Peer) -> None:
    for _ in range(30):
        await peer.result("task.add", **add("t"), description="d" * 60_000)
    peer.stop_reading()
    peer.send("task.list", {"conversation": C}, id=1)
    peer.writer.write_eof()
    await until(lambda: any(session.paused for session in running.connections.live))
    peer.resume_reading()
    assert len((await peer.answer(1))["result"]["tasks"]) == 30
    await peer.closed()
