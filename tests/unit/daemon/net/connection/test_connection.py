import asyncio
import socket
import struct
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from punchlist_schemas import strict_json
from punchlist_schemas.results import Limits
from punchlist_schemas.system import os_calls
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlist_testing.malformed import BAD_VALUES, PLACES
from punchlist_testing.turns import turns
from punchlistd.net.connection import NEXT, Connection, Stage
from punchlistd.slices import SLICE_EVENTS

C = "c"


def add(title: str, **more: Any) -> dict[str, Any]:
    return {"conversation": C, "title": title, **more}


def only_session(running: Engine) -> Connection:
    (session,) = running.connections.live
    return session


# framing


async def test_content_length_framing_covers_replies_and_pushes(running: Engine) -> None:
    peer = await running.connect(headers=True)
    await peer.result("event.subscribe", conversation=C)
    peer.send("task.add", add("ä\nb"[0]), id=1)
    assert (await peer.receive())["id"] == 1
    assert (await peer.receive())["method"] == "events"
    peer.write(peer.frame([{"jsonrpc": "2.0", "id": id, "method": "daemon.hello"} for id in (1, 2)]))
    assert {answer["id"] for answer in await peer.receive()} == {1, 2}
    whole = peer.request("daemon.hello", id=3)
    for byte in whole:
        peer.write(bytes([byte]))
        await asyncio.sleep(0)
    assert (await peer.receive())["id"] == 3


async def test_http_client_gets_one_line_and_is_closed(peer: Peer) -> None:
    peer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert "not HTTP" in (await peer.receive())["error"]["message"]
    await peer.closed()


async def test_calls_before_a_broken_frame_are_answered(tmp_path: Path) -> None:
    async with engine(tmp_path, limits=Limits(frame_bytes=2_000)) as running:
        peer = await running.connect()
        calls = [peer.request("task.add", add(str(number)), id=number) for number in range(100)]
        peer.write(b"".join(calls) + peer.request("event.wait", {"after": 999, "timeout_ms": 10_000}, id=100))
        peer.write(b'{"x":"' + b"x" * 3_000)
        answers = {answer["id"]: answer for answer in [await peer.receive() for _ in range(102)]}
        assert answers[None]["error"]["data"]["limit"] == "frame_bytes"
        assert all("result" in answers[number] for number in range(100))
        await peer.closed()


async def test_last_line_needs_no_newline(peer: Peer) -> None:
    peer.write(peer.request("task.add", add("a"), id=1).rstrip(b"\n"))
    peer.writer.write_eof()
    assert "result" in await peer.receive()
    await peer.closed()


async def test_half_closed_connection_is_answered_then_closed(peer: Peer) -> None:
    for number in range(200):
        peer.send("task.add", add(str(number)), id=number)
    peer.send("event.wait", {"after": 0, "timeout_ms": 50, "conversation": "quiet"}, id=200)
    peer.writer.write_eof()
    assert {(await peer.receive())["id"] for _ in range(201)} == set(range(201))
    await peer.closed()


# many calls


async def test_many_unread_calls_are_all_answered(running: Engine, peer: Peer) -> None:
    peer.stop_reading()
    for number in range(5_000):
        peer.send("task.add", add(f"task {number}"), id=number)
    await until(lambda: running.connections.live and only_session(running).paused)
    assert running.unsent(only_session(running)) < 200_000 and running.log.head < 5_000
    peer.resume_reading()
    answers = [await peer.receive() for _ in range(5_000)]
    assert {answer["id"]: answer["result"]["task"]["id"] for answer in answers} == {
        number: str(number + 1) for number in range(5_000)
    }


async def test_calls_of_a_stuck_reader_are_not_executed(running: Engine, peer: Peer) -> None:
    await peer.result("task.add", **add("a"), description="d" * 60_000)
    peer.stop_reading()
    for number in range(500):
        peer.send("task.list", {"conversation": C}, id=number)
    await until(lambda: only_session(running).paused)
    for _ in range(50):
        await asyncio.sleep(0)
    assert running.unsent(only_session(running)) < 300_000
    peer.resume_reading()
    assert [(await peer.receive())["id"] for _ in range(500)] == list(range(500))


async def test_calls_in_flight_are_limited(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, limits=Limits(in_flight=5)) as running:
        peer = await running.connect()
        gate = log.hold()
        for number in range(20):
            peer.send("task.add", add(str(number)), id=number)
        await gate.reached()
        for _ in range(20):
            await asyncio.sleep(0)
        assert only_session(running).protocol.in_flight == 5
        gate.open()
        assert [(await peer.receive())["id"] for _ in range(20)] == list(range(20))


@pytest.mark.parametrize("in_batches", [False, True])
async def test_concurrent_long_calls_of_a_connection_are_limited(tmp_path: Path, in_batches: bool) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer, bystander = await running.connect(), await running.connect()
        gate = log.hold()
        for number in range(20):
            params = add(str(number), metadata={"k": "x" * 300_000})
            call = {"jsonrpc": "2.0", "id": number, "method": "task.add", "params": params}
            peer.write(peer.frame([call] if in_batches else call))
        await gate.reached()
        session = next(each for each in running.connections.live if each.protocol.in_flight)
        await until(lambda: session.output.transport is not None and not session.output.transport.is_reading())
        assert session.protocol.in_flight == 2
        bystander.send("task.add", add("mine"), id="mine")
        gate.open()
        answers = [await peer.receive() for _ in range(20)]
        assert [answer[0]["id"] if in_batches else answer["id"] for answer in answers] == list(range(20))
        task = (await bystander.answer("mine"))["result"]["task"]
        assert int(task["id"]) < 8, "a later call waits only for the calls in flight"
        await peer.quiet()


async def test_others_run_between_many_long_calls(running: Engine, peer: Peer) -> None:
    await peer.result("task.list", conversation=C)
    session = only_session(running)
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "no.such", "params": {"k": "x" * 150_000}} for number in range(8)
    ]
    for call in calls:  # like a loop that keeps reading from a socket with more data
        session.data_received(msgspec.json.encode(call) + b"\n")
    assert len(session.protocol.frames) == 7, "one call is rejected immediately, the others wait"
    assert session.output.transport is not None and not session.output.transport.is_reading()
    assert [(await peer.receive())["id"] for _ in calls] == list(range(8))
    await until(session.output.transport.is_reading)


def many_tasks(count: int = 2_000) -> list[dict[str, Any]]:
    """Return tasks with more members than a frame may have values."""
    members = {"active_form": "b", "description": "c", "owner": "d", "labels": ["e", "f"]}
    return [{"title": f"t{number}", "metadata": {"a": 1, "b": [number, {}]}, **members} for number in range(count)]


async def test_long_frame_is_decoded_in_slices(running: Engine) -> None:
    """All connections share the slices: each turn of the loop runs one."""
    peers, bystander = [await running.connect() for _ in range(3)], await running.connect()
    await bystander.result("task.add", **add("x"))
    async with turns(strict_json.parse) as counted:
        for number, peer in enumerate(peers):
            peer.send("task.add", {"conversation": str(number), "title": "before"}, id=1)
            peer.send("task.add_many", {"conversation": str(number), "tasks": many_tasks()}, id=2)
            peer.send("task.list", {"conversation": str(number), "limit": 1}, id=3)
        for number in range(20):
            bystander.send("task.get", {"conversation": C, "task": "1"}, id=number)
            assert "result" in await bystander.answer(number)
        for peer in peers:
            assert [(await peer.receive())["id"] for _ in range(3)] == [1, 2, 3]
    assert counted.longest <= 2 * SLICE_EVENTS
    assert counted.total >= 3 * 2_000
    (task,) = (await bystander.result("task.list", conversation="1", limit=1))["tasks"]
    assert task["title"] == "before"


async def test_large_frames_wait_undecoded_for_the_writer(
    tmp_path: Path,
) -> None:
    """A decoded frame takes several times its size in bytes while it waits for earlier calls."""
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        commits = log.hold()
        peers = [await running.connect() for _ in range(4)]
        for number, peer in enumerate(peers):
            peer.send("task.add_many", {"conversation": f"{number}", "tasks": many_tasks(1_000)}, id=1)
        await commits.reached()
        await until(lambda: running.connections.held.bytes > 3 * 64 << 10)
        for _ in range(300):
            await asyncio.sleep(0)
        waiting = [session.protocol for session in running.connections.live if session.protocol.frames]
        assert len(waiting) == 3 and not any(protocol.is_decoded for protocol in waiting)
        log.release_all()
        for peer in peers:
            assert len((await peer.answer(1))["result"]["tasks"]) == 1_000


async def test_frame_of_a_stuck_reader_stays_undecoded(running: Engine, peer: Peer) -> None:
    await peer.result("daemon.hello")
    session = only_session(running)
    peer.send("task.add_many", {"conversation": C, "tasks": many_tasks()}, id=1)
    await until(running.connections.reading.locked)
    session.pause_writing()
    await until(lambda: not running.connections.reading.locked())
    assert session.protocol.frames and not session.protocol.is_decoded
    other = await running.connect()
    other.send("task.add_many", {"conversation": "d", "tasks": many_tasks()}, id=1)
    assert "result" in await other.answer(1)
    assert session.protocol.frames and not session.protocol.is_decoded
    session.resume_writing()
    assert len((await peer.answer(1))["result"]["tasks"]) == 2_000


async def test_dropped_frame_is_not_decoded(tmp_path: Path) -> None:
    """The connection stays open until its earlier calls have been answered."""
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer, commits = await running.connect(), log.hold()
        peer.send("task.add", {"conversation": "a", "title": "x"}, id=1)
        await commits.reached()
        session, held = only_session(running), running.connections.held
        frame = peer.request("task.add_many", {"conversation": C, "tasks": many_tasks()})
        session.data_received(frame[:60_000])
        held.add(64 << 20)  # bytes of other peers
        session.data_received(frame[60_000:])
        assert (await peer.receive())["error"]["data"]["limit"] == "held_bytes"
        held.add(-64 << 20)
        for _ in range(9):
            await asyncio.sleep(0)
        log.release_all()
        assert "result" in await peer.receive()
        await peer.closed()
        other = await running.connect()
        other.send("task.add_many", {"conversation": "d", "tasks": many_tasks()}, id=1)
        assert "result" in await other.answer(1)
        assert (await other.result("task.list", conversation=C))["version"] == 0


async def test_started_batch_keeps_no_decoded_values(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("a"))
        session, reads = only_session(running), log.hold_reads()
        calls = [("list.undo", {"conversation": C}), ("task.add", add("b")), ("task.add", add("c"))]
        peer.write(
            peer.frame([{"jsonrpc": "2.0", "id": id, "method": m, "params": p} for id, (m, p) in enumerate(calls)])
        )
        await reads.reached()
        assert len(session.protocol.members) == 2, "the calls wait for the undo"
        session.pause_writing()
        log.release_all()
        await until(lambda: not session.protocol.members)
        session.resume_writing()
        assert len(await peer.receive()) == 3


async def test_change_releases_its_bytes_with_its_reply(running: Engine, peer: Peer) -> None:
    calls = [
        ("task.add", add("a")),
        ("list.undo", {"conversation": C}),
        ("task.get", {"conversation": C, "task": "1"}),
    ]
    for method, params in calls[:2]:
        assert "error" not in await peer.call(method, **params)
        assert only_session(running).last_write is None
    peer.write(peer.frame([{"jsonrpc": "2.0", "id": id, "method": m, "params": p} for id, (m, p) in enumerate(calls)]))
    assert len(await peer.receive()) == 3
    assert only_session(running).last_write is None


async def test_call_with_the_most_tasks_succeeds(tmp_path: Path) -> None:
    members = {"owner": "o", "labels": ["a", "b", "c", "d"], "notes": ["n"], "links": []}
    tasks = [{"title": f"t{number}", **members} for number in range(10_000)]
    async with engine(tmp_path) as running:
        peer = await running.connect()
        frame = peer.request("list.replace", {"conversation": C, "tasks": tasks}, id=1)
        assert frame.count(b",") + frame.count(b"{") + frame.count(b"[") > strict_json.MAX_VALUES
        peer.write(frame)
        assert len((await peer.answer(1))["result"]["tasks"]) == 10_000


async def test_peer_closed_during_decoding_leaves_nothing(running: Engine, peer: Peer) -> None:
    await peer.result("daemon.hello")
    session = only_session(running)
    frame = peer.request("task.add_many", {"conversation": C, "tasks": many_tasks()})
    for first in range(0, len(frame), 65_536):
        session.data_received(frame[first : first + 65_536])
    session.abort()
    await until(lambda: not running.connections.live)
    other = await running.connect()
    other.send("task.add_many", {"conversation": "d", "tasks": many_tasks()}, id=1)
    assert "result" in await other.answer(1)
    assert (await other.result("task.list", conversation=C))["version"] == 0
    other.close()
    await until(lambda: not running.connections.live)
    assert running.connections.held.bytes == 0


# batches


async def test_batch_is_answered_by_one_array(peer: Peer) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": "add", "method": "task.add", "params": add("a")},
        {"jsonrpc": "2.0", "method": "task.add", "params": add("b")},
        {"jsonrpc": "2.0", "id": "list", "method": "task.list", "params": {"conversation": C}},
        {"jsonrpc": "2.0", "id": "events", "method": "event.read", "params": {"after": 0}},
        {"jsonrpc": "2.0", "id": "none", "method": "no.such"},
        {"jsonrpc": "2.0", "method": "no.such"},
        1,
        {"jsonrpc": "2.0", "id": "hello", "method": "daemon.hello"},
    ]
    peer.write(peer.frame(calls))
    answers = {answer["id"]: answer for answer in await peer.receive()}
    assert set(answers) == {"add", "list", "events", "none", None, "hello"}
    assert [task["title"] for task in answers["list"]["result"]["tasks"]] == ["a", "b"]
    assert len(answers["events"]["result"]["events"]) == 3
    assert answers["none"]["error"]["code"] == -32601 and answers[None]["error"]["code"] == -32600


# ends


async def test_vanished_peer_leaves_nothing(running: Engine) -> None:
    other = await running.connect()
    for number in range(20):
        peer = await running.connect()
        await peer.result("event.subscribe")
        peer.send("event.wait", {"after": 0, "timeout_ms": 60_000}, id=1)
        peer.send("task.add", add(str(number)), id=2)
        peer.write(b'{"half')
        await peer.writer.drain()
        peer.close()
    await until(lambda: len(running.connections.live) == 1)
    assert len((await other.result("task.list", conversation=C))["tasks"]) == 20
    assert not running.subscriptions._groups  # pyright: ignore[reportPrivateUsage]


async def test_stop_answers_reads_in_flight(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("a"))
        slow = log.hold_reads()
        peer.send("event.read", {"after": 0}, id=1)
        await slow.reached()
        only_session(running).finish()
        slow.open()
        assert len((await peer.receive())["result"]["events"]) == 2
        await peer.closed()


def test_stages_only_advance() -> None:
    assert NEXT.keys() == set(Stage) and not NEXT[Stage.GONE]
    assert all(later > stage for stage, following in NEXT.items() for later in following)


async def test_calls_after_the_end_do_not_start(running: Engine, peer: Peer) -> None:
    peer.send("event.wait", {"after": 0, "timeout_ms": 60_000}, id=1)
    await until(lambda: running.connections.live and len(only_session(running).waiting))
    session = only_session(running)
    session.finish()
    session.data_received(peer.request("task.add", add("late"), id=2))
    assert session.stage is Stage.FINISHING and session.protocol.in_flight == 1
    session.finish()
    session.waiting.cancel_all()
    assert (await peer.receive())["id"] == 1
    await peer.closed()
    assert session.stage is Stage.GONE and running.log.head == 0
    with pytest.raises(AssertionError, match="can't go from GONE to CLOSING"):
        session._set_stage(Stage.CLOSING)  # pyright: ignore[reportPrivateUsage]


async def test_other_users_process_is_rejected(running: Engine) -> None:
    running.connections.uids = frozenset({12345})
    peer = await running.connect()
    await peer.closed()
    assert not running.connections.live


def test_large_user_ids_are_read_exactly() -> None:
    class Sock:
        def getsockopt(self, *_: int) -> bytes:
            return struct.pack("iII", 7, (1 << 32) - 2, 0)

    assert os_calls.read_peer(cast(socket.socket, Sock())) == (7, (1 << 32) - 2)


async def test_no_bytes_crash_the_daemon(running: Engine, peer: Peer) -> None:
    for place in PLACES.values():
        for value in BAD_VALUES.values():
            if b"\n" in value:
                continue
            peer.write(place % value + b"\n")
            assert b'"error"' in await peer.raw(), value
    for junk in (b"\x00" * 100, b"\xff\xfe", b"Content-Length: -1\r\n\r\n", b"C" * 5_000, b"CONNECT x"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.setblocking(False)
            sock.connect(running.settings.socket)
            sock.send(junk)
            await asyncio.sleep(0.001)
    await (await running.connect()).quiet()
    assert msgspec.json.encode(running.log.head) == b"0"
