import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from punchlist.connection import launch
from punchlist.connection.launch import Target
from punchlist.errors import TimedOut
from punchlist_apps.common import wire
from punchlist_schemas.system import os_calls
from punchlist_testing.peer import HELLO, Handler, Request, Session, scripted_peer


@pytest.fixture(autouse=True)
def unset_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_DATA_DIR", raising=False)


def test_long_socket_paths_work(punch: Any, home: Path, tmp_path: Path) -> None:
    punch("add", "a")
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    (deep / "daemon.sock").symlink_to(home / "run" / "daemon.sock")
    result = wire.call(Target(str(deep / "daemon.sock")), "task.list", {"conversation": "default"})
    assert result is not None
    assert result["tasks"][0]["title"] == "a"


def foreign_peer(_sock: object) -> tuple[int, int]:
    """Return the process and user id of another user."""
    return 1, 54321


def test_daemon_of_another_user_is_rejected(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "a")
    path = str(home / "run" / "daemon.sock")
    assert wire.call(Target(path), "task.list", {"conversation": "default"}) is not None
    # Replace the function in the client only. The daemon in this process still asks the system.
    monkeypatch.setattr(launch, "os_calls", SimpleNamespace(connect=os_calls.connect, read_peer=foreign_peer))
    assert wire.call(Target(path), "task.list", {"conversation": "default"}) is None


def script_replies(*parts: bytes) -> Handler:
    def handler(session: Session, request: Request) -> None:
        for part in parts:
            session.raw(part)
        session.hang_up()

    return handler


HEAD = b'{"jsonrpc":"2.0","id":1,"result":'


def test_a_reply_in_pieces_is_joined(tmp_path: Path) -> None:
    text = json.dumps({"n": "x" * 1_000_000}).encode()
    with scripted_peer(
        tmp_path, script_replies(HEAD[:5], HEAD[5:] + text[:600_000], text[600_000:] + b"}", b"\r\n")
    ) as peer:
        assert wire.call(Target(peer.socket), "x.y", {"a": "b"}) == json.loads(text)
        assert peer.seen == [{"jsonrpc": "2.0", "id": 1, "method": "x.y", "params": {"a": "b"}}]


@pytest.mark.parametrize(
    "parts",
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}\n',),
        (b'{"jsonrpc":"2.0","method":"events","params":{}}\n',),
        (b'{"jsonrpc":"2.0","id":2,"result":{}}\n',),
        (HEAD + b"{}",),
        (HEAD + b'"\xff"}\n',),
        (),
    ],
    ids=["error", "push", "other reply", "cut short", "not UTF-8", "nothing"],
)
def test_unusual_replies_are_left_to_the_full_client(tmp_path: Path, parts: tuple[bytes, ...]) -> None:
    with scripted_peer(tmp_path, script_replies(*parts)) as peer:
        assert wire.call(Target(peer.socket), "x.y", {}) is None


def test_silent_daemon_costs_one_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "TIMEOUT_S", 0.05)
    with (
        scripted_peer(tmp_path, lambda session, request: None) as peer,
        pytest.raises(TimedOut, match=rf"No reply from the daemon \(pid {os.getpid()}\) in time.*punch doctor"),
    ):
        wire.call(Target(peer.socket), "x.y", {})


def test_unanswered_change_is_retried_with_its_key(tmp_path: Path) -> None:
    with scripted_peer(tmp_path, lambda session, request: session.hang_up()) as peer:
        assert wire.call(Target(peer.socket), "task.add", {"title": "t"}, writes=True) is None
        assert [wire.take_key(), wire.take_key()] == [peer.seen[0]["params"]["key"], None]


def test_no_change_is_sent_to_another_build(tmp_path: Path) -> None:
    older = msgspec.structs.replace(HELLO, build="")
    with scripted_peer(tmp_path, lambda session, request: session.answer(request, {}), older) as peer:
        assert wire.call(Target(peer.socket), "task.add", {"title": "t"}, writes=True) is None
        assert wire.call(Target(peer.socket), "task.list", {}) == {}
        assert [request["method"] for request in peer.seen] == ["task.list"]


@pytest.mark.parametrize("name", ["missing", "m" * 150, "folder", "no socket"])
def test_without_a_daemon_the_result_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "no socket").write_text("")
    assert wire.call(Target(str(tmp_path / name)), "x.y", {}) is None
