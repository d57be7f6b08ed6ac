"""A read-only daemon: with the log of a killed daemon, and on a read-only disk."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from punchlist_faults.mounts import why_not
from punchlist_testing.daemon import Raw, Spawned, spawned_daemon


def contents(directory: str) -> dict[str, tuple[bytes, int]]:
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in Path(directory).iterdir()}


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Spawned]:
    """A killed daemon whose changes exist only in the WAL."""
    with spawned_daemon(tmp_path / "left") as daemon:
        with closing(Raw(daemon.socket)) as client:
            for title in ("one", "two"):
                client.result("task.add", conversation="c", title=title)
        assert daemon.process is not None
        daemon.process.kill()
        daemon.process.wait(10)
        yield daemon


def served(directory: Path, data_dir: str) -> None:
    with spawned_daemon(directory, "--read-only", "--data-dir", data_dir, measured=True) as daemon:
        with closing(Raw(daemon.socket)) as client:
            tasks = client.result("task.list", conversation="c")["tasks"]
            assert [task["title"] for task in tasks] == ["one", "two"]
            assert len(client.result("event.read", after=0)["events"]) == 3
            refused = client.call("task.add", conversation="c", title="three")["error"]
            assert (refused["data"]["kind"], refused["data"]["what"]) == ("forbidden", "change")
            assert len(client.result("task.list", conversation="c")["tasks"]) == 2
        assert daemon.stop() == 0
        assert not [name for name in os.listdir(os.path.dirname(daemon.socket)) if name.startswith("read-only-")]


def test_read_only_daemon_changes_no_byte(left: Spawned, tmp_path: Path) -> None:
    before = contents(left.data_dir)
    served(tmp_path / "reader", left.data_dir)
    assert contents(left.data_dir) == before


def test_log_in_use_is_rejected(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path / "writer") as writer:
        reader = Spawned(tmp_path / "reader", "--read-only", "--data-dir", writer.data_dir)
        with pytest.raises(RuntimeError):
            reader.start()
        assert reader.process is not None and reader.process.wait(10) == 75
        assert "use that one" in reader.log()


def test_directory_without_log_is_rejected(tmp_path: Path) -> None:
    reader = Spawned(tmp_path, "--read-only")
    with pytest.raises(RuntimeError):
        reader.start()
    assert reader.process is not None and reader.process.wait(10) == 78


def test_log_on_a_read_only_disk_is_served(left: Spawned, tmp_path: Path) -> None:
    if said := why_not():
        pytest.skip(said)
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs", place], check=True)
    try:
        shutil.copytree(left.data_dir, place / "data")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        writer = Spawned(tmp_path / "writer", "--data-dir", str(place / "data"))
        with pytest.raises(RuntimeError):
            writer.start()
        assert writer.process is not None and writer.process.wait(10) == 78
        served(tmp_path / "reader", str(place / "data"))
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
