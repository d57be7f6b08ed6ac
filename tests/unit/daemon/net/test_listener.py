import contextlib
import itertools
import os
import random
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from punchlist.connection.launch import connect
from punchlist_testing.unmeasured import unmeasured
from punchlistd.net.listener import InheritedSocket, OwnSocket, PlaceUnusable, SocketTaken, open_private_directory

NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")

LISTENER = """
import signal, sys
from punchlistd.net.listener import OwnSocket
own = OwnSocket(sys.argv[1])
print("listening", flush=True)
signal.pause()
"""

# The sources may be in a place that another user can't read, so this process changes its user after the imports.
AS_NOBODY = """
import os, sys
from punchlistd.net.listener import OwnSocket, PlaceUnusable, SocketTaken
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    OwnSocket(sys.argv[1])
except (PlaceUnusable, SocketTaken) as error:
    print(type(error).__name__, error)
"""


def python(code: str, *arguments: str) -> list[str]:
    start = f"import sys; sys.path[:0] = {[each for each in sys.path if each]!r}\n"
    return [sys.executable, "-c", start + code, *arguments]


def taken_by_another_process(path: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(python(LISTENER, path), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"listening\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "run" / "daemon.sock")


def make_stale(path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)


def identity(path: str) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_ino, status.st_mode


# Existing files at the socket's path


def test_missing_socket_is_bound(path: str) -> None:
    own = OwnSocket(path)
    connect(path).close()
    own.close()
    assert not os.path.exists(path)


def test_stale_socket_is_replaced(path: str) -> None:
    make_stale(path)
    own = OwnSocket(path)
    connect(path).close()
    own.close()


def test_socket_of_a_killed_daemon_is_replaced(path: str) -> None:
    process = taken_by_another_process(path)
    end(process)
    assert os.path.exists(path)
    OwnSocket(path).close()


@pytest.mark.parametrize("frozen", [False, True], ids=["live", "live but frozen"])
@pytest.mark.parametrize("lock_file", ["kept", "removed"])
def test_live_socket_is_not_replaced(path: str, frozen: bool, lock_file: str) -> None:
    process = taken_by_another_process(path)
    try:
        before = identity(path)
        if frozen:
            process.send_signal(signal.SIGSTOP)
        if lock_file == "removed":
            os.unlink(path + ".lock")
        with pytest.raises(SocketTaken, match=r"Another daemon serves .*daemon\.sock"):
            OwnSocket(path)
        assert identity(path) == before
        process.send_signal(signal.SIGCONT)
        connect(path).close()
    finally:
        end(process)


def test_live_socket_with_full_queue_is_not_replaced(path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700)
    with socket.socket(socket.AF_UNIX) as full, socket.socket(socket.AF_UNIX) as waiting:
        full.bind(path)
        full.listen(0)
        waiting.connect(path)
        with pytest.raises(SocketTaken):
            OwnSocket(path)
    assert stat.S_ISSOCK(os.lstat(path).st_mode)


def a_file(path: str) -> None:
    Path(path).write_text("precious")


def a_link_to_a_live_socket(path: str) -> None:
    os.symlink(path + ".elsewhere", path)


def a_dangling_link(path: str) -> None:
    os.symlink("/nonexistent", path)


@pytest.mark.parametrize("make", [a_file, os.mkdir, a_link_to_a_live_socket, a_dangling_link, os.mkfifo])
def test_other_files_are_not_replaced(path: str, make: Callable[[str], None]) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700)
    make(path)
    before = identity(path)
    with pytest.raises(PlaceUnusable, match="is not a socket. Move it away, or choose another path"):
        OwnSocket(path)
    assert identity(path) == before


@needs_root
def test_other_users_socket_is_not_replaced(path: str) -> None:
    make_stale(path)
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(PlaceUnusable, match="belongs to another user"):
        OwnSocket(path)
    assert os.path.exists(path)


@needs_root
@pytest.mark.parametrize(
    ("mode", "owner", "said"),
    [
        (0o500, NOBODY, "PlaceUnusable .*Permission denied"),
        (0o700, 0, "PlaceUnusable .*can't be used as a directory: Permission denied"),
        (0o755, 0, "PlaceUnusable .*belongs to another user"),
        (0o777, 0, "PlaceUnusable .*belongs to another user"),
        (0o700, NOBODY, "^$"),
    ],
)
def test_permission_errors_have_a_reason(mode: int, owner: int, said: str, open_directory: Path) -> None:
    directory = open_directory / "run"
    directory.mkdir()
    directory.chmod(mode)
    os.chown(directory, owner, owner)
    ended = subprocess.run(
        python(AS_NOBODY, str(directory / "s")),
        env=unmeasured(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ended.stderr == ""
    assert re.search(said, ended.stdout)


@pytest.fixture
def open_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that every user may enter."""
    directory = tmp_path_factory.mktemp("open")
    ours = itertools.takewhile(lambda each: each != Path(tempfile.gettempdir()), (directory, *directory.parents))
    for each in ours:
        each.chmod(each.stat().st_mode | 0o055)
    return directory


# Paths of any length


@pytest.mark.parametrize("length", range(100, 301, 8))
def test_paths_of_any_length_work(tmp_path: Path, length: int) -> None:
    begin = f"{tmp_path}/"
    middle = "d" * 40 + "/"
    while len(begin) + len(middle) + 20 < length:
        begin += middle
    path = begin + "s" * max(3, length - len(begin))
    own = OwnSocket(path)
    client = connect(path)
    own.sock.accept()[0].close()
    client.close()
    own.close()
    assert not os.path.exists(path)


def test_too_long_name_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(PlaceUnusable, match="can't be bound: AF_UNIX path too long"):
        OwnSocket(str(tmp_path / ("s" * 100)))


def test_path_below_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlaceUnusable, match="can't be used as a directory: .*Choose another one"):
        OwnSocket(str(tmp_path / "file" / "s"))


def test_missing_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("HOME")
    with pytest.raises(PlaceUnusable, match="HOME is not set: set it, or PUNCHLIST_DATA_DIR"):
        open_private_directory(str(tmp_path / "file" / "data"))


# Permissions of other users


def test_directory_socket_and_lock_are_private(path: str) -> None:
    before = os.umask(0)
    own = OwnSocket(path)
    os.umask(before)
    directory = os.path.dirname(path)
    modes = {each: stat.S_IMODE(os.lstat(each).st_mode) for each in (directory, path, path + ".lock")}
    assert modes == {directory: 0o700, path: 0o600, path + ".lock": 0o600}
    own.close()


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755, 0o711])
def test_readable_directory_is_accepted(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    os.close(open_private_directory(str(tmp_path)))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_writable_directory_is_rejected(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(PlaceUnusable, match="writable by other users"):
        open_private_directory(str(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


@needs_root
def test_other_users_directory_is_rejected(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    with pytest.raises(PlaceUnusable, match="belongs to another user"):
        open_private_directory(str(tmp_path))


def test_linked_directory_is_rejected_but_not_an_ancestor(tmp_path: Path) -> None:
    (tmp_path / "real" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(PlaceUnusable, match="is a symbolic link. Pass the directory it points to"):
        open_private_directory(str(tmp_path / "link"))
    os.close(open_private_directory(str(tmp_path / "link" / "below")))


def test_directory_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    over = threading.Event()
    number = itertools.count()

    def swap() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):  # the listener creates the directory when it is missing
                place.rename(tmp_path / f"aside{next(number)}")
                place.symlink_to("victim")
                time.sleep(chance.random() / 5_000)
                place.unlink()
            time.sleep(chance.random() / 1_000)

    swapper = threading.Thread(target=swap)
    swapper.start()
    bound = 0
    try:
        for _ in range(1_000):
            with contextlib.suppress(PlaceUnusable, SocketTaken, FileExistsError):
                OwnSocket(str(place / "daemon.sock")).close()
                bound += 1
            assert list(victim.iterdir()) == []
    finally:
        over.set()
        swapper.join()
    assert bound


# Changes while the socket is open


def test_replaced_socket_is_detected_and_kept(path: str) -> None:
    own = OwnSocket(path)
    assert own.is_in_place()
    os.unlink(path)
    assert not own.is_in_place()
    make_stale(path)
    assert not own.is_in_place()
    own.close()
    assert os.path.exists(path)


def test_replaced_directory_is_detected_and_kept(path: str) -> None:
    own = OwnSocket(path)
    directory = os.path.dirname(path)
    os.rename(directory, directory + ".old")
    assert not own.is_in_place()
    other = OwnSocket(path)
    own.close()
    assert other.is_in_place()
    other.close()


def test_second_close_is_harmless(path: str) -> None:
    own = OwnSocket(path)
    inode = os.stat(path + ".lock").st_ino
    own.close()
    other = OwnSocket(path)
    own.close()
    assert other.is_in_place()
    connect(path).close()
    assert os.stat(path + ".lock").st_ino == inode
    other.close()


def test_rejected_socket_leaks_no_descriptor(path: str) -> None:
    own = OwnSocket(path)
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(SocketTaken):
            OwnSocket(path)
    assert set(os.listdir("/proc/self/fd")) == before
    own.close()


# inherited sockets


def listening_at(path: str, mode: int = 0o600) -> socket.socket:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    os.chmod(path, mode)
    sock.listen()
    return sock


def test_inherited_socket_stays_after_close(path: str) -> None:
    inherited = InheritedSocket(listening_at(path))
    assert inherited.path == path
    assert inherited.is_in_place()
    inherited.close()
    assert os.path.exists(path)


def test_inherited_socket_with_a_full_queue_is_accepted(path: str) -> None:
    sock = listening_at(path)
    sock.listen(0)
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(path)
        InheritedSocket(sock).close()


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_DGRAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
    ],
    ids=["tcp", "datagrams", "unbound"],
)
def test_other_inherited_descriptors_are_rejected(family: int, kind: int) -> None:
    with socket.socket(family, kind) as sock, pytest.raises(PlaceUnusable, match="not a listening Unix socket"):
        InheritedSocket(sock)


def test_socket_that_does_not_listen_is_rejected(path: str) -> None:
    make_stale(path)
    os.unlink(path)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)
        with pytest.raises(PlaceUnusable, match="not a listening Unix socket"):
            InheritedSocket(sock)


def test_abstract_socket_is_rejected(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"\0{path}")
        sock.listen()
        with pytest.raises(PlaceUnusable, match="not a listening Unix socket"):
            InheritedSocket(sock)


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_inherited_socket_open_to_others_is_rejected(path: str, mode: int) -> None:
    with listening_at(path, mode) as sock, pytest.raises(PlaceUnusable, match="Use SocketMode=0600"):
        InheritedSocket(sock)


def test_inherited_socket_in_a_writable_directory_is_rejected(path: str) -> None:
    with listening_at(path) as sock:
        os.chmod(os.path.dirname(path), 0o777)
        with pytest.raises(PlaceUnusable, match="Use DirectoryMode=0700"):
            InheritedSocket(sock)


def test_inherited_socket_without_path_is_rejected(path: str) -> None:
    with listening_at(path) as sock:
        os.unlink(path)
        with pytest.raises(PlaceUnusable, match="systemctl --user restart punchlistd.socket"):
            InheritedSocket(sock)


def test_inherited_socket_replaced_by_another_daemon_is_rejected(path: str) -> None:
    with listening_at(path) as sock:
        os.unlink(path)
        os.rename(os.path.dirname(path), os.path.dirname(path) + ".old")
        process = taken_by_another_process(path)
        try:
            with pytest.raises(PlaceUnusable, match="no longer leads to the inherited socket"):
                InheritedSocket(sock)
        finally:
            end(process)
