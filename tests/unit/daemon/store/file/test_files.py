import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlistd.store.file.files import Inodes, OpenName, Reserve, preallocate, publish
from punchlistd.store.port import StorageFailed


def test_publish_never_replaces_a_file(tmp_path: Path) -> None:
    new, name = tmp_path / "new", tmp_path / "name"
    new.write_text("first")
    publish(str(new), str(name))
    assert name.read_text() == "first" and not new.exists()
    new.write_text("second")
    with pytest.raises(FileExistsError):
        publish(str(new), str(name))
    assert name.read_text() == "first" and new.read_text() == "second"


def test_publishing_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(source, target)

    monkeypatch.setattr(os, "link", refuse)
    new, name = tmp_path / "new", tmp_path / "name"
    new.write_text("first")
    publish(str(new), str(name))
    assert name.read_text() == "first" and not new.exists()
    new.write_text("second")
    with pytest.raises(FileExistsError):
        publish(str(new), str(name))
    assert name.read_text() == "first"


def replace(path: Path) -> None:
    (path.parent / "fresh").write_text("")
    (path.parent / "fresh").rename(path)


def test_rewatching_still_reports_a_replaced_file(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("")
    inodes = Inodes([str(tmp_path / "own")])
    replace(tmp_path / "own")
    inodes.watch([])
    with pytest.raises(StorageFailed):
        inodes.check()


@pytest.fixture
def flushed(tmp_path: Path) -> Iterator[Inodes]:
    (tmp_path / "own").write_text("")
    (tmp_path / "flushed").write_text("")
    inodes = Inodes([str(tmp_path / "own")], flushed=str(tmp_path / "flushed"))
    yield inodes
    inodes.close()


def test_check_of_the_flushed_file_ignores_times(
    tmp_path: Path, flushed: Inodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat, looked = os.stat, list[str]()

    def noted(path: str, *, follow_symlinks: bool = True) -> os.stat_result:
        looked.append(path)
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "stat", noted)
    flushed.check()
    assert looked == [str(tmp_path / "own")]


def test_flushed_file_is_watched_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, _flags: int) -> int:
        raise FileNotFoundError(path)

    (tmp_path / "database").write_text("")
    (tmp_path / "flushed").write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        inodes = Inodes([str(tmp_path / "database")], flushed=str(tmp_path / "flushed"))
    inodes.check()
    replace(tmp_path / "flushed")
    with pytest.raises(StorageFailed, match="flushed was replaced"):
        inodes.check()


def test_fill_appends_zeros_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    preallocate(str(path), 3 << 20)
    assert path.read_bytes() == b"content" + bytes((3 << 20) - 7)
    preallocate(str(path), 1 << 20)
    assert path.stat().st_size == 3 << 20


def test_nothing_is_filled_when_space_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Little:
        f_bavail, f_frsize = 3, 4096

        def __init__(self, _path: str) -> None: ...

    path = tmp_path / "file"
    path.touch()
    monkeypatch.setattr(os, "statvfs", Little)
    preallocate(str(path), 8192)
    assert path.stat().st_size == 0
    preallocate(str(path), 4096)
    assert path.stat().st_size == 4096


@pytest.mark.parametrize(("error", "told"), [(errno.ENOSPC, False), (errno.EDQUOT, False), (errno.EIO, True)])
def test_full_disk_ends_fill_and_errors_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, told: bool
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    path = tmp_path / "file"
    path.touch()
    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError) if told else contextlib.nullcontext():
        preallocate(str(path), 4096)


def test_reserve_allocates_and_releases_space(tmp_path: Path) -> None:
    path = tmp_path / "log.reserve"
    reserve = Reserve(str(path), 1 << 20)
    assert not reserve.held
    reserve.ensure()
    assert reserve.held and path.stat().st_blocks * 512 >= 1 << 20
    assert Reserve(str(path), 1 << 20).held
    assert not Reserve(str(path), 2 << 20).held
    reserve.release()
    assert not reserve.held and not path.exists()


def test_no_reserve_is_allocated_when_space_is_short(tmp_path: Path) -> None:
    for size in (1 << 60, 0):
        reserve = Reserve(str(tmp_path / "log.reserve"), size)
        reserve.ensure()
        assert not reserve.held and list(tmp_path.iterdir()) == []


def test_missing_reserve_is_tolerated(tmp_path: Path) -> None:
    (tmp_path / "log.reserve").symlink_to(tmp_path / "elsewhere")
    reserve = Reserve(str(tmp_path / "log.reserve"), 4096)
    reserve.ensure()
    assert not reserve.held and not (tmp_path / "elsewhere").exists()


def test_wal_is_never_truncated_before_its_commits(tmp_path: Path) -> None:
    path = tmp_path / "log.db-wal"
    path.write_bytes(bytes(8192))
    name = OpenName(str(path))
    name.check()
    with path.open("ab") as file:
        file.write(bytes(4096))
    name.check()
    os.truncate(path, 8192)
    with pytest.raises(StorageFailed, match="was truncated while in use"):
        name.check()
    name.close()
