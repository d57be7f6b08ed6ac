"""One connection on the event loop: what it returns, what it holds back, and how it ends."""

import asyncio
import gc
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from punchlist import ConnectionLost, ParseError, ProtocolError, connect_async
from punchlist.connection.core import Profile, Request
from punchlist.connection.link import Link, dial
from punchlist_testing.peer import HELLO, Session, scripted_peer
from punchlist_testing.peer import Request as Asked

READ_AHEAD = 64
PUSH = b'{"jsonrpc":"2.0","method":"events","params":{"n":%d}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":%d,"result":{}}\n'


class Cable(asyncio.Transport):
    """A transport that records the calls it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Any] = []
        self.reads = True
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(msgspec.json.decode(bytes(data)))

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def cable() -> Cable:
    return Cable()


@pytest.fixture
async def link(cable: Cable) -> Link:
    link = Link()
    link.connection_made(cable)
    return link


def wait_request() -> Request:
    return Request.raw("event.wait", {"after": 0, "timeout_ms": 60_000})


async def test_excess_notifications_stay_in_socket_buffer(link: Link, cable: Cable) -> None:
    link.data_received(b"".join(PUSH % n for n in range(READ_AHEAD)))
    assert cable.reads
    link.data_received(PUSH % READ_AHEAD)
    assert not cable.reads
    with anyio.fail_after(30):
        taken = [await link.receive() for _ in range(READ_AHEAD + 1)]
        assert [msgspec.json.decode(notice.params)["n"] for notice in taken] == list(range(READ_AHEAD + 1))
        assert not cable.reads, "no more data was requested yet"
        async with anyio.create_task_group() as group:
            group.start_soon(link.receive)
            await anyio.wait_all_tasks_blocked()
            assert cable.reads
            link.data_received(PUSH % 0)


async def test_long_notifications_are_buffered_singly(link: Link, cable: Cable) -> None:
    long = b'{"jsonrpc":"2.0","method":"rows","params":{"text":"%b"}}\n' % (b"x" * 100_000)
    link.data_received(long)
    assert not cable.reads
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(link.exchange, wait_request())
            await anyio.wait_all_tasks_blocked()
            assert cable.reads
            link.data_received(long + ANSWER % cable.sent[-1]["id"])
            assert cable.reads
        for _ in range(2):
            await link.receive()


async def test_lost_connection_fails_current_and_later_calls(link: Link, cable: Cable) -> None:
    told: list[str] = []

    async def told_by(action: Any) -> None:
        with pytest.raises(ConnectionLost) as caught:
            await action
        told.append(str(caught.value))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(told_by, link.exchange(wait_request()))
            group.start_soon(told_by, link.receive())
            await anyio.wait_all_tasks_blocked()
            link.connection_lost(None)
        await told_by(link.exchange(wait_request()))
        await told_by(link.receive())
    assert told == ["The daemon closed the connection."] * 4
    assert link.is_lost
    assert len(cable.sent) == 1, "nothing is sent into a lost connection"


async def test_notifications_before_the_end_are_delivered(link: Link) -> None:
    link.data_received(PUSH % 1)
    link.connection_lost(None)
    with anyio.fail_after(30):
        assert msgspec.json.decode((await link.receive()).params) == {"n": 1}
        with pytest.raises(ConnectionLost):
            await link.receive()


async def test_garbage_ends_the_connection_for_all(link: Link, cable: Cable) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                with pytest.raises(ProtocolError):
                    await link.exchange(wait_request())

            group.start_soon(ask)
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            link.data_received(b"{nonsense}\n")
    assert cable.aborted


async def test_error_without_id_fails_only_possible_calls(link: Link, cable: Cable) -> None:
    error = {"code": -32700, "message": "what?", "data": {"kind": "parse_error"}}
    failed: list[str] = []

    async def ask(name: str) -> None:
        try:
            await link.exchange(Request.raw(name, {}))
        except ParseError:
            failed.append(name)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for name in ("x.waits", "x.answered", "x.bad"):
                group.start_soon(ask, name)
            await anyio.wait_all_tasks_blocked()
            waits, answered, _ = (message["id"] for message in cable.sent)
            link.data_received(b'{"jsonrpc":"2.0","id":%d,"result":1}\n' % answered)
            link.data_received(msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}) + b"\n")
            await anyio.wait_all_tasks_blocked()
            assert failed == ["x.bad"]
            link.data_received(b'{"jsonrpc":"2.0","id":%d,"result":1}\n' % waits)
    assert failed == ["x.bad"]
    assert not link.is_lost


async def test_cancelled_call_ends_in_daemon_without_harm(tmp_path: Path) -> None:
    def handler(session: Session, request: Asked) -> None:
        if request["method"] != "event.wait":
            session.answer(request, request["params"])

    with scripted_peer(tmp_path, handler) as peer:
        async with connect_async(socket=peer.socket) as client:
            with anyio.move_on_after(0.05) as scope:
                await client.call("event.wait", {"after": 0, "timeout_ms": 60_000})
            assert scope.cancelled_caught
            assert await client.call("x.y", {"n": 1}) == {"n": 1}
        waited, cancelled, _ = peer.seen
        assert (cancelled["method"], cancelled["params"]) == ("rpc.cancel", {"id": waited["id"]})


def answer_to(claim: Any) -> bytes:
    """Return the daemon's reply to a claim, which grants task 3."""
    task = {"id": "3", "title": "t", "status": "in_progress", "priority": "normal", "owner": "ann"}
    task |= {"created_at": 1, "updated_at": 1, "status_changed_at": 1, "version": 2}
    result = {"task": task, "fence": 7, "version": 2, "seq": 2}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": claim["id"], "result": result}) + b"\n"


def released(cable: Cable) -> list[Any]:
    releases = [message["params"] for message in cable.sent if message["method"] == "task.release"]
    return [{name: one[name] for name in ("conversation", "task", "owner", "fence")} for one in releases]


CLAIM = Request.raw("task.claim", {"conversation": "c", "owner": "ann", "wait_ms": 60_000})
RELEASE = {"conversation": "c", "task": "3", "owner": "ann", "fence": 7}


async def test_claim_that_crossed_cancellation_is_released_once(link: Link, cable: Cable) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(link.exchange, CLAIM)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    answer = answer_to(cable.sent[0])
    link.data_received(answer)
    link.data_received(answer)
    assert released(cable) == [RELEASE]


@pytest.mark.parametrize("first", ["cancellation", "answer"])
async def test_claim_answered_and_cancelled_together_is_released(link: Link, cable: Cable, first: str) -> None:
    """The caller doesn't run between cancellation and response, so neither is handled when the other arrives."""
    claiming = asyncio.ensure_future(link.exchange(CLAIM))
    await anyio.wait_all_tasks_blocked()
    if first == "cancellation":
        claiming.cancel()
    link.data_received(answer_to(cable.sent[0]))
    if first == "answer":
        claiming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claiming
    assert released(cable) == [RELEASE]


async def test_connection_to_unsuitable_daemon_is_closed(tmp_path: Path) -> None:
    hung_up = anyio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = msgspec.json.decode(await reader.readline())
        hello = msgspec.structs.replace(HELLO, protocol=99)
        writer.write(msgspec.json.encode({"jsonrpc": "2.0", "id": asked["id"], "result": hello}) + b"\n")
        if await reader.read() == b"":
            hung_up.set()
        writer.close()

    path = str(tmp_path / "s")
    with anyio.fail_after(30):
        async with await asyncio.start_unix_server(serve, path):
            with pytest.raises(ProtocolError, match="version 99"):
                await Link.open(Profile({"socket": path, "autostart": False}))
            await hung_up.wait()


async def test_closing_waits_until_the_connection_is_gone(tmp_path: Path) -> None:
    with scripted_peer(tmp_path, lambda session, request: None) as peer:
        link = await Link.open(Profile({"socket": peer.socket}))
        with anyio.fail_after(30):
            await link.aclose()
            await link.aclose()
        with pytest.raises(ConnectionLost, match="was closed"):
            await link.receive()


def test_connection_made_after_loop_end_is_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "daemon.sock")
    profile = Profile({"socket": path, "autostart": False, "timeout_s": 30})
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as first:  # the backlog is full, so the next connection waits
            first.connect(path)
            loop = asyncio.new_event_loop()
            waiting = loop.create_task(dial(profile))
            loop.run_until_complete(asyncio.sleep(0))
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(waiting)
            loop.close()
            (late,) = [one for one in threading.enumerate() if one.name == "punchlist-dial"]
            for _ in range(2):
                listener.accept()[0].close()
            late.join(30)
    gc.collect()  # an unclosed socket is a ResourceWarning, which is an error here
