"""Calls over one blocking connection: deadlines that hold, ends that are told, repeats that are safe."""

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
from punchlist_testing.peer import Request as Asked

PATIENCE_S = 30.0


def soon() -> float:
    return time.monotonic() + PATIENCE_S


def linked(path: str) -> Link:
    return Link(Profile({"socket": path, "autostart": False}), soon())


def ask(**params: Any) -> Request:
    return Request.raw("x.y", params)


def test_an_answer_is_told_from_notifications_and_from_answers_to_others(tmp_path: Path) -> None:
    def handler(session: Session, request: Asked) -> None:
        session.send({"method": "events", "params": {}})
        session.answer({"id": request["id"] + 1}, "for somebody else")
        session.answer(request, request["params"])

    with scripted_peer(tmp_path, handler) as peer:
        link = linked(peer.socket)
        for n in range(3):
            assert result_of(link.exchange(ask(n=n), soon()), dict) == {"n": n}
        link.close()


def chatter(session: Session, request: Asked) -> None:
    """Never answers, and never is quiet either."""
    with suppress(OSError):
        while True:
            session.send({"method": "events", "params": {}})


def silence(session: Session, request: Asked) -> None:
    """Never answers."""


@pytest.mark.parametrize("handler", [chatter, silence])
def test_the_deadline_is_for_the_answer_and_not_for_each_sign_of_life(tmp_path: Path, handler: Handler) -> None:
    with scripted_peer(tmp_path, handler) as peer:
        link = linked(peer.socket)
        with pytest.raises(TimedOut):
            link.exchange(ask(), time.monotonic() + 0.1)
        link.close()


def test_what_is_too_late_already_is_not_sent(tmp_path: Path) -> None:
    with scripted_peer(tmp_path, lambda session, request: session.answer(request, request["params"])) as peer:
        link = linked(peer.socket)
        with pytest.raises(TimedOut):
            link.exchange(ask(late=True), time.monotonic() - 1)
        link.exchange(ask(), soon())
        assert [request["params"] for request in peer.seen] == [{}]
        link.close()


def test_a_daemon_that_hangs_up_is_told_while_reading_and_while_writing(tmp_path: Path) -> None:
    with scripted_peer(tmp_path, lambda session, request: session.hang_up()) as peer:
        link = linked(peer.socket)
        with pytest.raises(ConnectionLost, match="closed the connection"):
            link.exchange(ask(), soon())
        with pytest.raises(ConnectionLost, match="broke: Broken pipe"):
            link.exchange(ask(), soon())
        link.close()


def test_a_signal_that_interrupts_no_system_call_is_heeded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_MAX_SLEEP_S", 0.02)
    never = threading.Event()

    def handler(session: Session, request: Asked) -> None:
        never.wait(0.02)  # by then the caller sleeps, and nothing but a message would end its recv()
        _thread.interrupt_main()

    with scripted_peer(tmp_path, handler) as peer:
        link = linked(peer.socket)
        for _ in range(5):
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                link.exchange(ask(), time.monotonic() + 600)
            assert time.monotonic() - began < PATIENCE_S
        link.close()


def test_a_daemon_that_is_not_ours_to_talk_to_is_hung_up_on(tmp_path: Path) -> None:
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
            linked(path)
        assert served.result(PATIENCE_S) == b""
        assert caught.tb is not None  # the link is still referred to from here: it was closed, not merely forgotten


def test_a_caller_repeats_what_a_restart_interrupted_with_the_same_key(tmp_path: Path) -> None:
    def handler(session: Session, request: Asked) -> None:
        if session.number == 1:
            session.hang_up()
        else:
            session.answer(request, {"key": request["params"]["key"], "n": session.number})

    with scripted_peer(tmp_path, handler) as peer, Caller(socket=peer.socket, autostart=False) as caller:
        answer = caller.call("task.add", {"conversation": "c", "title": "t"})
        assert answer == {"key": peer.seen[0]["params"]["key"], "n": 2}


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_calls(tmp_path: Path) -> None:
    def handler(session: Session, request: Asked) -> None:
        if session.number > 1:
            session.answer(request, "in time")

    with scripted_peer(tmp_path, handler) as peer:
        with Caller(socket=peer.socket, autostart=False, timeout_s=0.1) as caller:
            with pytest.raises(TimedOut, match=r"No reply from the daemon \(pid \d+\) in time.*punch doctor"):
                caller.call("x.y")
            assert caller.call("x.y") == "in time"
