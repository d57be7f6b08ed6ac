import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from punchlistd.net.listener import OwnSocket, PlaceUnusable
from punchlistd.process.lock import AlreadyRunning, DataLock

HOLDER = """
import sys
from punchlistd.process.lock import DataLock
lock = DataLock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


@pytest.fixture
def holder(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_second_lock_names_its_holder(path: str, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(AlreadyRunning, match=f"process {holder.pid} runs the daemon of .* --data-dir"):
        DataLock(path)


def test_lock_file_names_the_holders_socket(path: str) -> None:
    with closing(DataLock(path, socket="/run/a b/s\u00e4")):
        assert Path(path).read_bytes() == b"%d\n/run/a b/s\xc3\xa4\n" % os.getpid()
        with pytest.raises(AlreadyRunning, match=r"Use that one \(PUNCHLIST_SOCKET=/run/a b/s\u00e4\), stop it"):
            DataLock(path)
    with closing(DataLock(path, socket="/run/a\nb")):
        assert Path(path).read_bytes() == b"%d\n" % os.getpid()


def test_killed_holder_frees_the_lock(path: str, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    DataLock(path).close()


@pytest.mark.parametrize(
    "text",
    [b"1\n", b"%d\n" % os.getppid(), b"", b"\x00\xff\xfe" * 50, b"x" * 99, b"9" * (1 << 20), "²\n".encode()],
    ids=["pid 1", "a living stranger", "empty", "binary junk", "text", "1 MiB", "no digit"],
)
def test_contents_of_the_file_do_not_lock(path: str, text: bytes) -> None:
    Path(path).write_bytes(text)
    with closing(DataLock(path)):
        assert Path(path).read_bytes() == b"%d\n" % os.getpid()
        Path(path).write_bytes(text)
        with pytest.raises(AlreadyRunning, match="process"):
            DataLock(path)


def test_file_stays_after_unlock(path: str) -> None:
    DataLock(path).close()
    inode = os.stat(path).st_ino
    DataLock(path).close()
    assert os.stat(path).st_ino == inode


def test_removed_or_replaced_file_is_detected(path: str) -> None:
    lock = DataLock(path)
    assert lock.is_in_place()
    os.rename(path, path + ".old")
    assert not lock.is_in_place()
    other = DataLock(path)
    assert not lock.is_in_place()
    assert other.is_in_place()
    lock.close()
    other.close()


def test_file_replaced_before_locking_is_rejected(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    real = os.open

    def open_and_lose(*args: object, **kwargs: object) -> int:
        opened.append(real(*args, **kwargs))  # pyright: ignore[reportArgumentType]
        if len(opened) == 1:
            os.unlink(path)
        return opened[-1]

    monkeypatch.setattr(os, "open", open_and_lose)
    lock = DataLock(path, patience_s=1)
    assert len(opened) == 2
    assert lock.is_in_place()
    lock.close()


def test_lock_waits_for_a_departing_holder(path: str) -> None:
    lock = DataLock(path)
    with pytest.raises(AlreadyRunning):
        DataLock(path, patience_s=0.05)
    leaving = threading.Timer(0.1, lock.close)
    leaving.start()
    DataLock(path, patience_s=5).close()
    leaving.join()


def test_symbolic_link_is_not_followed(path: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, path)
    with pytest.raises(OSError, match="symbolic"):
        DataLock(path)
    assert victim.read_text() == "precious"


def test_child_process_does_not_keep_the_lock(path: str) -> None:
    lock = DataLock(path)
    with subprocess.Popen(["sleep", "30"], close_fds=False) as child:
        lock.close()
        DataLock(path).close()
        child.kill()


def test_lock_reports_its_own_file(path: str) -> None:
    lock = DataLock(path)
    status = os.stat(path)
    assert lock.identity == {"device": str(status.st_dev), "inode": str(status.st_ino)}
    lock.close()


def test_file_system_without_locks_is_reported(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(OSError, match="No locks available"):
        DataLock(path, patience_s=5)
    with pytest.raises(PlaceUnusable, match=r"s\.lock can't be locked: No locks available\. Choose another path\."):
        OwnSocket(str(tmp_path / "run" / "s"))
