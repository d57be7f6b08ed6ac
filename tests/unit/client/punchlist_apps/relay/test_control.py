"""What commands learn of a worker that runs, hangs or has ended. `test_sessions.py` asks real workers."""

import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread

import pytest

from punchlist_apps.relay import frames
from punchlist_apps.relay.control import Status, find_process, read_status, stop
from punchlist_apps.relay.dialing import MODULE, lock_path
from punchlist_apps.relay.relay import Unavailable


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)  # a short path
    return "mcp.sock"


@pytest.fixture
def listening(path: str) -> Iterator[socket.socket]:
    """The socket of a worker that holds its lock and accepts no connection, since its process is this one."""
    lock = os.open(lock_path(path), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, b"%-10d" % os.getpid())
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)
        sock.listen()
        yield sock
    os.close(lock)


def test_released_lock_means_no_worker(path: str, listening: socket.socket) -> None:
    assert find_process(path) == os.getpid()
    Path(lock_path(path)).rename("kept")
    assert find_process(path) is None
    Path(lock_path(path)).write_text("7")  # another file, which no process holds
    assert (find_process(path), read_status(path), stop(path, 1.0)) == (None, None, None)


@pytest.mark.parametrize(("name", "is_worker"), [(MODULE, True), ("systemd", False)])
def test_worker_without_a_written_id_is_found(path: str, name: str, is_worker: bool) -> None:
    program = "import fcntl, socket, sys; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX); "
    program += "sock = socket.socket(1); sock.bind(sys.argv[2]); sock.listen(); print(flush=True); input()"
    command = [sys.executable, "-c", program, lock_path(path), path, name]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as listener:
        assert listener.stdout is not None and listener.stdout.readline()
        assert find_process(path) == (listener.pid if is_worker else None)
        listener.communicate("\n", timeout=20)


def test_unusable_lock_is_reported(path: str) -> None:
    Path(lock_path(path)).symlink_to("elsewhere")
    with pytest.raises(Unavailable, match=r"mcp\.sock\.lock: Too many levels"):
        read_status(path)


def test_silent_worker_is_waited_for_briefly(path: str, listening: socket.socket) -> None:
    assert read_status(path, 0.05) == Status(os.getpid(), "silent")
    with pytest.raises(Unavailable, match=f"kill -9 {os.getpid()}"):
        stop(path, 0.05)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (frames.encode(frames.STATUS, 0, b'{"sessions": 2}'), Status(os.getpid(), "running", 2)),
        (frames.encode(frames.STATUS, 0, b'{"sessions": 2, "mood": "good"}'), Status(os.getpid(), "running", 2)),
        (frames.encode(frames.STATUS, 0, b"fine"), Status(os.getpid(), "silent")),
        (frames.encode(frames.STATUS, 0, b"7"), Status(os.getpid(), "silent")),
        (frames.encode(frames.STATUS, 0, b'{"sessions": 2}')[:5], None),
        (b"HTTP/1.1 400 Bad Request\r\n", Status(os.getpid(), "silent")),
        (b"", None),
    ],
)
def test_reply_decides_the_status(path: str, listening: socket.socket, reply: bytes, status: Status | None) -> None:
    def answer() -> None:
        end, _ = listening.accept()
        with end:
            assert end.recv(100) == frames.encode(frames.STATUS)
            end.sendall(reply)

    worker = Thread(target=answer)
    worker.start()
    try:
        assert read_status(path, 30.0) == status
    finally:
        worker.join()
