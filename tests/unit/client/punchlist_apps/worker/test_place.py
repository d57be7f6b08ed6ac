"""What a worker takes from systemd or from its predecessor. `tests/system/systemd` runs it under a user manager."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from punchlist_apps.common.http import sockets
from punchlist_apps.relay.dialing import MODULE, read_lock
from punchlist_apps.worker.place import Place, Taken, take
from punchlist_testing.blocking import eventually
from punchlist_testing.terminal import environment

FIRST = 230
HOLDER = """
import sys
from punchlist_apps.worker.place import take
place = take(sys.argv[1])
place.listen()
print("ready", flush=True)
sys.stdin.read()
"""
"""Holds a place until it is ended."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "mcp.sock")


def pass_sockets(monkeypatch: pytest.MonkeyPatch, path: str, *names: str) -> None:
    """Pass listening sockets as systemd does."""
    for number, name in enumerate(names):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(os.path.join(os.path.dirname(path), name))
            sock.listen()
            os.dup2(sock.fileno(), FIRST + number)
    monkeypatch.setattr(sockets, "_FIRST_FD", FIRST)
    for name, value in {"LISTEN_PID": os.getpid(), "LISTEN_FDS": len(names), "NOTIFY_SOCKET": f"{path}.notify"}.items():
        monkeypatch.setenv(name, str(value))


def test_worker_of_systemd_makes_its_log(tmp_path: Path, path: str) -> None:
    log = tmp_path / "share" / "punchlist" / "mcp.log"
    program = "import os, socket, sys; sock = socket.socket(1); sock.bind(sys.argv[1]); sock.listen(); "
    program += "os.dup2(sock.fileno(), 3); os.set_inheritable(3, True); "
    program += "os.environ |= {'LISTEN_FDS': '1', 'LISTEN_PID': str(os.getpid())}; "
    program += "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    command = [sys.executable, "-c", program, path, "-m", MODULE, "--socket", path, "--data-dir", str(log.parent)]
    with subprocess.Popen(command, env=environment()) as worker:
        is_made = eventually(log.exists)
        worker.send_signal(signal.SIGTERM)
    assert is_made


def test_own_socket_is_removed_with_the_place(path: str) -> None:
    place = take(path)
    with pytest.raises(Taken):
        take(path)
    with place.listen():
        assert place.is_found
        assert place.bequeath()[0][0] == "--lock-fd"
        place.leave()
        assert not place.is_found
    again = take(path)
    again.leave()


def test_socket_of_systemd_is_passed_on(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_sockets(monkeypatch, path, "mcp.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{path}.notify")
        place = take(path)
        with place.listen() as listener:
            options, passed = place.bequeath()
            assert options == ["--lock-fd", str(passed[0]), "--listener-fd", str(FIRST), "--manager", f"{path}.notify"]
            assert passed[1] == FIRST
            assert read_lock(passed[0]) == os.getpid()
            assert not {"NOTIFY_SOCKET", "LISTEN_FDS"} & os.environ.keys(), "children don't inherit them"
            place.notify("READY=1")
            assert manager.recv(100) == b"READY=1"
            successor = Place(path, os.dup(passed[0]), socket.socket(fileno=os.dup(listener.fileno())))
        with successor.listen():
            place.leave()
            successor.leave()
            assert successor.is_found, "the socket's file belongs to systemd"


def test_several_sockets_are_rejected(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_sockets(monkeypatch, path, "mcp.sock", "other.sock")
    with pytest.raises(ValueError, match="passed 2 sockets; exactly one"):
        take(path)


def test_worker_of_systemd_ends_an_unmanaged_one(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", HOLDER, path, MODULE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        os.unlink(path)
        pass_sockets(monkeypatch, path, "mcp.sock")
        place = take(path)
        with place.listen():
            place.leave()
        assert holder.wait(60) == -signal.SIGTERM
