"""Calls over one blocking connection: deadlines, lost connections and safe retries."""

import _thread
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from punchlist import ConnectionLost, ProtocolError, TimedOut
from punchlist.connection import waiting
from punchlist.connection.core import Profile, Request, result_of
from punchlist_apps.cli.calling.sync_link import Caller, Link
from punchlist_testing.peer import HELLO, Handler, Session, scripted_peer
from punchlist_testing.peer import Request as PeerRequest

PATIENCE_S = 30.0


def new_deadline() -> float:
    return time.monotonic() + PATIENCE_S


def open_link(path: str) -> Link:
    return Link(Profile({"socket": path, "autostart": False}), new_deadline())


def request(**params: Any) -> Request:
    return Request.raw("x.y", params)


def test_notifications_and_other_replies_are_skipped(tmp_path: Path) -> None:
    def handler(session: Session, request: PeerRequest) -> None:
        session.send({"method": "events", "params": {}})
        session.answer({"id": request["id"] + 1}, "for another call")
        session.answer(request, request["params"])

    with scripted_peer(tmp_path, handler) as peer:
        link = open_link(peer.socket)
        for n in range(3):
            assert result_of(link.exchange(request(n=n), new_deadline()), dict) == {"n": n}
        link.close()


def chatter(session: Session, request: PeerRequest) -> None:
    """Send notifications but never a reply."""
    with suppress(OSError):
        while True:
            session.send({"method": "events", "params": {}})


def silence(session: Session, request: PeerRequest) -> None:
    """Never reply."""


@pytest.mark.parametrize("handler", [chatter, silence])
def test_other_messages_do_not_extend_the_deadline(tmp_path: Path, handler: Handler) -> None:
    with scripted_peer(tmp_path, handler) as peer:
        link = open_link(peer.socket)
        with pytest.raises(TimedOut):
            link.exchange(request(), time.monotonic() + 0.1)
        link.close()


def test_a_call_after_its_deadline_is_not_sent(tmp_path: Path) -> None:
    with scripted_peer(tmp_path, lambda session, request: session.answer(request, request["params"])) as peer:
        link = open_link(peer.socket)
        with pytest.raises(TimedOut):
            link.exchange(request(late=True), time.monotonic() - 1)
        link.exchange(request(), new_deadline())
        assert [request["params"] for request in peer.seen] == [{}]
        link.close()


def test_closed_connection_is_reported(tmp_path: Path) -> None:
    with scripted_peer(tmp_path, lambda session, request: session.hang_up()) as peer:
        link = open_link(peer.socket)
        with pytest.raises(ConnectionLost, match="closed the connection"):
            link.exchange(request(), new_deadline())
        with pytest.raises(ConnectionLost, match="broke: Broken pipe"):
            link.exchange(request(), new_deadline())
        link.close()


def test_a_signal_between_system_calls_is_handled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_MAX_SLEEP_S", 0.02)
    never = threading.Event()

    def handler(session: Session, request: PeerRequest) -> None:
        never.wait(0.02)  # by then the caller waits in recv(), until a message arrives
        _thread.interrupt_main()

    with scripted_peer(tmp_path, handler) as peer:
        link = open_link(peer.socket)
        for _ in range(5):
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                link.exchange(request(), time.monotonic() + 600)
            assert time.monotonic() - began < PATIENCE_S
        link.close()


def test_the_connection_to_a_foreign_daemon_is_closed(tmp_path: Path) -> None:
    def serve(listening: socket.socket) -> bytes:
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            asked = msgspec.json.decode(connection.recv(65_536))
            hello = msgspec.structs.replace(HELLO, protocol=99)
            connection.sendall(msgspec.json.encode({"jsonrpc": "2.0", "id": asked["id"], "result": hello}) + b"\n")
            return connection.recv(1)

    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor(1) as pool:
        listening.bind(path)
        listening.listen()
        served = pool.submit(serve, listening)
        with pytest.raises(ProtocolError, match="version 99") as caught:
            open_link(path)
        assert served.result(PATIENCE_S) == b""
        assert caught.tb is not None  # the traceback keeps the link alive, so it was closed, not garbage-collected


def test_a_restart_repeats_the_call_with_its_key(tmp_path: Path) -> None:
    def handler(session: Session, request: PeerRequest) -> None:
        if session.number == 1:
            session.hang_up()
        else:
            session.answer(request, {"key": request["params"]["key"], "n": session.number})

    with scripted_peer(tmp_path, handler) as peer, Caller(socket=peer.socket, autostart=False) as caller:
        answer = caller.call("task.add", {"conversation": "c", "title": "t"})
        assert answer == {"key": peer.seen[0]["params"]["key"], "n": 2}


def test_late_reply_is_not_mistaken_for_next(tmp_path: Path) -> None:
    def handler(session: Session, request: PeerRequest) -> None:
        if session.number > 1:
            session.answer(request, "in time")

    with scripted_peer(tmp_path, handler) as peer:
        with Caller(socket=peer.socket, autostart=False, timeout_s=0.1) as caller:
            with pytest.raises(TimedOut, match=r"No reply from the daemon \(pid \d+\) in time.*punch doctor"):
                caller.call("x.y")
            assert caller.call("x.y") == "in time"
