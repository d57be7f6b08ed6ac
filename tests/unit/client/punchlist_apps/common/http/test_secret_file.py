from pathlib import Path

import pytest

from punchlist_apps.common.http.secret_file import SecretFile

Capture = pytest.CaptureFixture[str]


def test_secret_is_private_and_rotation_is_immediate(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    secret = SecretFile(str(path))
    first = path.read_bytes().strip()
    assert len(first) >= 43 and path.stat().st_mode & 0o777 == 0o600
    assert secret.matches(first)
    fresh = tmp_path / "fresh"
    fresh.touch(0o600)
    fresh.write_bytes(b"rotated")
    fresh.rename(path)
    assert secret.matches(b"rotated") and not secret.matches(first)
    path.unlink()
    assert not secret.matches(b"rotated")


def test_an_unusable_secret_is_reported_once(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "token"
    secret = SecretFile(str(path))
    assert secret.value and capsys.readouterr().err == ""
    path.chmod(0o640)
    assert [secret.value, secret.matches(path.read_bytes().strip())] == [b"", False]
    exposed = f"punch: all clients are rejected: other users may read or write {path}; chmod 600 {path}\n"
    assert capsys.readouterr().err == exposed
    path.chmod(0o600)
    assert secret.value and capsys.readouterr().err == ""
    path.chmod(0o640)
    assert not secret.value and capsys.readouterr().err == exposed


def test_each_reason_is_reported(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "tok\x1ben"
    path.touch(0o600)
    secret = SecretFile(str(path))
    assert not (secret.check() or secret.matches(b""))
    path.unlink()
    assert not secret.check()
    path.mkdir(0o700)
    assert not secret.check()
    empty, missing, directory = capsys.readouterr().err.splitlines()
    assert "tok\\x1ben is empty; remove it and restart" in empty
    assert "is missing; restart the server to make a new one" in missing
    assert "can't be read (Is a directory)" in directory
