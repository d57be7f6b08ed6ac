import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from punchlist.cli import wire
from punchlist_testing.peer import Handler, Request, Session, scripted_peer


def test_a_socket_path_of_any_length_is_reached(punch: Any, home: Path, tmp_path: Path) -> None:
    punch("add", "a")
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    (deep / "daemon.sock").symlink_to(home / "run" / "daemon.sock")
    result = wire.call(str(deep / "daemon.sock"), "task.list", {"conversation": "default"})
    assert result is not None
    assert wire.decode(result)["tasks"][0]["title"] == "a"


def test_a_daemon_of_another_user_is_not_talked_to(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "a")
    path = str(home / "run" / "daemon.sock")
    assert wire.call(path, "task.list", {"conversation": "default"}) is not None
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert wire.call(path, "task.list", {"conversation": "default"}) is None


@pytest.mark.parametrize(
    "canonical", ["{}", "[]", "1.5", "-3", "true", "null", r'"\u00e9\u2028\\ \""', '{"a": {"b": [[], {}, "x"]}}']
)
def test_values_are_decoded_as_json_says(canonical: str) -> None:
    value = json.loads(canonical)
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), msgspec.json.encode(value).decode()):
        assert wire.decode(text) == value


@pytest.mark.parametrize("text", ["", "nonsense", "{", '"a\nb"'])
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, StopIteration)):
        wire.decode(text)


@pytest.mark.parametrize("params", [{}, {"c": 'é"\n\\'}, {"conversation": "a", "task": "\U0001f389\x00"}])
def test_parameters_are_encoded_as_ascii_json(params: dict[str, str]) -> None:
    text = wire.encode_params(params)
    assert text.isascii()
    assert json.loads(text) == params


def replying(*parts: bytes) -> Handler:
    def handler(session: Session, request: Request) -> None:
        for part in parts:
            session.raw(part)
        session.hang_up()

    return handler


HEAD = b'{"jsonrpc":"2.0","id":1,"result":'


def test_an_answer_in_pieces_is_put_together(tmp_path: Path) -> None:
    text = json.dumps({"n": "x" * 1_000_000}).encode()
    with scripted_peer(tmp_path, replying(HEAD[:5], HEAD[5:] + text[:600_000], text[600_000:] + b"}", b"\r\n")) as peer:
        assert wire.call(peer.socket, "x.y", {"a": "b"}) == text.decode()
        assert peer.seen == [{"jsonrpc": "2.0", "id": 1, "method": "x.y", "params": {"a": "b"}}]


@pytest.mark.parametrize(
    "parts",
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}\n',),
        (b'{"jsonrpc":"2.0","method":"events","params":{}}\n',),
        (b'{"jsonrpc":"2.0","id":2,"result":{}}\n',),
        (HEAD + b"{}",),
        (HEAD + b'"\xff"}\n',),
        (HEAD + b"{}} \n",),
        (),
    ],
    ids=["refusal", "push", "answer to another", "cut short", "no UTF-8", "something behind it", "nothing"],
)
def test_whatever_is_unusual_is_left_to_the_full_client(tmp_path: Path, parts: tuple[bytes, ...]) -> None:
    with scripted_peer(tmp_path, replying(*parts)) as peer:
        assert wire.call(peer.socket, "x.y", {}) is None


def test_a_daemon_that_is_silent_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_TIMEOUT_S", 0.05)
    with scripted_peer(tmp_path, lambda session, request: None) as peer:
        assert wire.call(peer.socket, "x.y", {}) is None


@pytest.mark.parametrize("name", ["missing", "m" * 150, "folder", "no socket"])
def test_where_nobody_listens_there_is_no_answer(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "no socket").write_text("")
    assert wire.call(str(tmp_path / name), "x.y", {}) is None
