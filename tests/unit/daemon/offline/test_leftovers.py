"""Leftovers of killed programs are removed at the next start. Files in use and other users' files stay."""

import fcntl
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from punchlist_testing.daemon import Raw, spawned_daemon
from punchlistd.offline.leftovers import hold_directory, remove_leftovers

SOON_S = 20.0
SECRET = "what was erased"


def places_of(top: Path) -> set[str]:
    """Return the files in a directory that contain the erased text."""
    return {str(path) for path in top.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()}


def copies_of(data: Path) -> list[Path]:
    return [path for path in data.glob("verify-*") if (path / "copy.db").exists()]


def test_leftover_copies_are_removed_at_start(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon:
        data, client = Path(daemon.data_dir), Raw(daemon.socket)
        with closing(client):
            client.result("task.add", conversation="c", title=SECRET)
        env = {**os.environ, "PUNCHLIST_SOCKET": daemon.socket, "PUNCHLIST_DATA_DIR": daemon.data_dir}
        until = time.monotonic() + SOON_S
        while not copies_of(data):
            verify = subprocess.Popen([sys.executable, "-m", "punchlist", "verify"], env=env, stdout=subprocess.DEVNULL)
            while verify.poll() is None and not copies_of(data):
                assert time.monotonic() < until
            verify.kill()
            verify.wait(SOON_S)
        (data / "backups").mkdir()
        for unfinished in (data / "backups" / "b.db.0a1b2c3d.new", data / "log.db.0a1b2c3d.new-journal"):
            unfinished.write_text(SECRET)
        assert daemon.process is not None
        daemon.process.kill()
        daemon.process.wait(SOON_S)
        with spawned_daemon(
            tmp_path / "reader", "--read-only", "--socket", daemon.socket, "--data-dir", str(data)
        ) as reader:
            assert reader.process is not None
            reader.process.kill()
        assert len({os.path.dirname(path) for path in places_of(tmp_path)}) >= 4
        daemon.start()
        with closing(Raw(daemon.socket)) as client:
            asked = client.call("conversation.delete", conversation="c")["error"]["data"]
            client.result("conversation.delete", conversation="c", confirm=asked["token"])
        assert daemon.stop() == 0
        assert places_of(tmp_path) == set()


def test_copy_in_use_stays(tmp_path: Path) -> None:
    used, left = tmp_path / "verify-abcdefgh", tmp_path / "verify-01234567"
    for directory in (used, left):
        directory.mkdir()
        (directory / "copy.db").write_text("x")
    with hold_directory(str(used)):
        assert remove_leftovers(str(tmp_path), str(tmp_path)) == [str(left)]
    assert remove_leftovers(str(tmp_path), str(tmp_path)) == [str(used)]


def test_verify_locks_its_copy(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon:
        data = Path(daemon.data_dir)
        env = {**os.environ, "PUNCHLIST_SOCKET": daemon.socket, "PUNCHLIST_DATA_DIR": daemon.data_dir}
        until, seen = time.monotonic() + SOON_S, False
        while not seen:
            verify = subprocess.Popen([sys.executable, "-m", "punchlist", "verify"], env=env, stdout=subprocess.DEVNULL)
            while verify.poll() is None and not seen:
                assert time.monotonic() < until
                for copy in copies_of(data):
                    seen = is_locked(copy)
            assert verify.wait(SOON_S) == 0


def is_locked(directory: Path) -> bool:
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def test_similar_names_and_link_targets_stay(tmp_path: Path) -> None:
    elsewhere, data = tmp_path / "elsewhere", tmp_path / "data"
    (data / "backups").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("x")
    (data / "verify-abcdefgh").symlink_to(elsewhere)
    for name in ("notes.new", "verify-later", "backups/punchlist-20260101-000000.db", "backups/x.db.new"):
        (data / name).write_text("x")
    assert remove_leftovers(str(data), str(tmp_path / "missing")) == []
    assert (elsewhere / "mine").exists() and len(os.listdir(data)) == 4
