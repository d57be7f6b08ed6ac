"""Both faces with a daemon that dies, sends garbage, hangs, or rejects calls at the wrong time."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from punchlist import ConnectionLost, LimitExceeded, ProtocolError, StorageFull, TimedOut, WrongEpoch
from punchlist_schemas.results import Limits
from punchlist_testing.faces import Connect
from punchlist_testing.peer import HELLO, Request, Session, scripted_peer

TASK = {
    "id": "1", "title": "t", "status": "pending", "priority": "normal",
    "created_at": 1, "updated_at": 1, "status_changed_at": 1, "version": 2,
}  # fmt: skip
ADDED = {"task": TASK, "version": 2, "seq": 2}


@pytest.mark.parametrize("fault", ["hang up", "shutting_down", "outcome_unknown"])
def test_interrupted_mutation_is_retried_with_same_key(tmp_path: Path, open_client: Connect, fault: str) -> None:
    def handler(session: Session, request: Request) -> None:
        if session.number == 3:
            session.answer(request, ADDED)
        elif fault == "hang up":
            session.hang_up()
        else:
            session.refuse(request, -32010 if fault == "outcome_unknown" else -32012, fault)

    with scripted_peer(tmp_path, handler) as peer, open_client(peer.socket) as client:
        assert client.conversation("c").add("t").id == "1"
        keys = [request["params"]["key"] for request in peer.seen]
        assert len(keys) == 3
        assert len(set(keys)) == 1


def test_plain_error_is_not_retried(tmp_path: Path, open_client: Connect) -> None:
    with (
        scripted_peer(tmp_path, lambda session, request: session.refuse(request, -32009, "storage_full")) as peer,
        open_client(peer.socket) as client,
    ):
        with pytest.raises(StorageFull):
            client.conversation("c").add("t")
        assert len(peer.seen) == 1


def test_unsafe_call_fails_with_its_connection(tmp_path: Path, open_client: Connect) -> None:
    with (
        scripted_peer(tmp_path, lambda session, request: session.hang_up()) as peer,
        open_client(peer.socket) as client,
    ):
        with pytest.raises(ConnectionLost):
            client.shutdown()
        assert len(peer.seen) == 1


def test_too_long_request_is_rejected_without_sending(tmp_path: Path, open_client: Connect) -> None:
    hello = msgspec.structs.replace(HELLO, limits=Limits(frame_bytes=1_000))
    with (
        scripted_peer(tmp_path, lambda session, request: session.answer(request, session.number), hello) as peer,
        open_client(peer.socket) as client,
    ):
        with pytest.raises(LimitExceeded):
            client.call("x.y", {"text": "x" * 1_000})
        assert client.call("x.y") == 1
        assert len(peer.seen) == 1


def test_error_during_request_is_read_before_close(tmp_path: Path, open_client: Connect) -> None:
    data = {"kind": "limit_exceeded", "limit": "frame_seconds", "maximum": 10}
    last_words = {"jsonrpc": "2.0", "id": None, "error": {"code": -32008, "message": "too slow", "data": data}}

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            introduced = msgspec.json.decode(connection.recv(65_536))
            connection.sendall(msgspec.json.encode({"jsonrpc": "2.0", "id": introduced["id"], "result": HELLO}) + b"\n")
            connection.recv(10)
            connection.sendall(msgspec.json.encode(last_words) + b"\n")

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        server = threading.Thread(target=serve, args=[listening])
        server.start()
        with open_client(str(tmp_path / "s"), timeout_s=5) as client, pytest.raises(LimitExceeded, match="too slow"):
            client.call("x.y", {"text": "x" * 1_000_000})
        server.join(5)


def test_missing_daemon_times_out(tmp_path: Path, open_client: Connect) -> None:
    with (
        scripted_peer(tmp_path, lambda session, request: session.hang_up()) as peer,
        open_client(peer.socket, timeout_s=0.3) as client,
    ):
        # The deadline passes between two attempts or interrupts the last one.
        with pytest.raises((ConnectionLost, TimedOut)):
            client.conversation("c").list()
        assert len(peer.seen) > 1


def test_silent_daemon_times_out(tmp_path: Path, open_client: Connect) -> None:
    with (
        scripted_peer(tmp_path, lambda session, request: None) as peer,
        open_client(peer.socket, timeout_s=0.1) as client,
        pytest.raises(TimedOut),
    ):
        client.conversation("c").list()


def test_late_response_is_not_taken_for_another(tmp_path: Path, open_client: Connect) -> None:
    held: list[tuple[Session, Request]] = []

    def handler(session: Session, request: Request) -> None:
        if request["method"] == "rpc.cancel":
            return
        if not held:
            held.append((session, request))
            return
        with suppress(OSError):  # the blocking face has closed that connection
            held[0][0].answer(held[0][1], "the old answer")
        session.answer(request, "the new answer")

    with scripted_peer(tmp_path, handler) as peer, open_client(peer.socket, timeout_s=0.1) as client:
        with pytest.raises(TimedOut):
            client.call("x.first")
        assert client.call("x.second") == "the new answer"


def test_unexpected_responses_and_notifications_are_ignored(tmp_path: Path, open_client: Connect) -> None:
    def handler(session: Session, request: Request) -> None:
        session.answer({"id": 77}, "for somebody else")
        session.send({"method": "news.of.later", "params": {}})
        session.answer(request, "for us")

    with scripted_peer(tmp_path, handler) as peer, open_client(peer.socket) as client:
        assert client.call("x.y") == "for us"


@pytest.mark.parametrize("garbage", ["nonsense", {"jsonrpc": "2.0"}, [1]])
def test_call_after_garbage_works(tmp_path: Path, open_client: Connect, garbage: Any) -> None:
    def handler(session: Session, request: Request) -> None:
        if session.number == 1:
            session.raw(msgspec.json.encode(garbage) + b"\n")
        else:
            session.answer(request, "fine")

    with scripted_peer(tmp_path, handler) as peer, open_client(peer.socket) as client:
        with pytest.raises(ProtocolError):
            client.call("x.y")
        assert client.call("x.y") == "fine"


def event(seq: int) -> dict[str, Any]:
    body = {"type": "ListCleared"}
    return {"seq": seq, "conversation": "c", "version": seq, "at": 1, "actor": "a", "event": body}


def test_watch_resumes_after_last_event_without_duplicates(tmp_path: Path, open_client: Connect) -> None:
    def handler(session: Session, request: Request) -> None:
        session.answer(request, {"subscription": "s", "seq": 10, "epoch": "e1"})
        seqs = {2: (11, 12), 3: (11, 12, 13), 4: (14,)}[session.number]
        session.send({"method": "events", "params": {"subscription": "s", "events": [event(n) for n in seqs]}})
        if session.number < 4:
            session.hang_up()

    with scripted_peer(tmp_path, handler) as peer, open_client(peer.socket) as client:
        with client.conversation("c").watch() as changes:
            # The client's own connection is number 1 and sent no request, so the watch uses 2, 3 and 4.
            assert [next(changes).seq for _ in range(4)] == [11, 12, 13, 14]
        positions = [request["params"].get("after") for request in peer.seen]
        assert positions == [None, 12, 13]


def test_replaced_log_is_reported_to_watches(tmp_path: Path, open_client: Connect) -> None:
    def handler(session: Session, request: Request) -> None:
        session.answer(request, {"subscription": "s", "seq": 10, "epoch": f"e{session.number}"})
        session.hang_up()

    with (
        scripted_peer(tmp_path, handler) as peer,
        open_client(peer.socket) as client,
        client.conversation("c").watch() as changes,
        pytest.raises(WrongEpoch),
    ):
        next(changes)
