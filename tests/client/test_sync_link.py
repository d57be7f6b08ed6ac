"""One blocking connection: deadlines that hold, and ends that are told."""

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

from punchlist import ConnectionLost, ProtocolError, TimedOut, sync_link
from punchlist.core import Profile, Request, result_of
from punchlist.sync_link import FOR_EVER, Link
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_testing.peer import HELLO, Handler, Session, scripted_peer
from punchlist_testing.peer import Request as Asked

PATIENCE_S = 5.0


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


def test_messages_that_come_together_are_handed_out_one_after_the_other(tmp_path: Path) -> None:
    def handler(session: Session, request: Asked) -> None:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": 0}
        pushes = [{"jsonrpc": "2.0", "method": "events", "params": {"n": n}} for n in (1, 2)]
        session.raw(b"".join(msgspec.json.encode(one) + b"\n" for one in (answer, *pushes)))

    with scripted_peer(tmp_path, handler) as peer:
        link = linked(peer.socket)
        assert isinstance(link.exchange(ask(), soon()), Reply)
        pushed = [link.receive(soon()) for _ in range(2)]
        assert [msgspec.json.decode(one.params) for one in pushed if isinstance(one, Notice)] == [{"n": 1}, {"n": 2}]
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


def test_closing_wakes_whoever_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_link, "_HEED_S", 600.0)
    with scripted_peer(tmp_path, silence) as peer:
        link = linked(peer.socket)
        told: list[Exception] = []

        def wait() -> None:
            try:
                link.exchange(ask(), FOR_EVER)
            except ConnectionLost as error:
                told.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert peer.arrived.acquire(timeout=PATIENCE_S)
        link.close()
        waiting.join(PATIENCE_S)
        assert len(told) == 1
        link.close()  # again: no matter


def test_a_signal_that_interrupts_no_system_call_is_heeded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_link, "_HEED_S", 0.02)
    never = threading.Event()

    def handler(session: Session, request: Asked) -> None:
        never.wait(0.02)  # by then the caller sleeps, and nothing but a message would end its recv()
        _thread.interrupt_main()

    with scripted_peer(tmp_path, handler) as peer:
        link = linked(peer.socket)
        for _ in range(5):
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                link.exchange(ask(), FOR_EVER)
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
