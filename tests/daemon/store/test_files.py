import os
from collections.abc import Callable
from pathlib import Path

import pytest

from punchlistd.store.files import Inodes, Reserve, beside, discard, publish, size_of
from punchlistd.store.port import StorageFailed


def test_names_beside_a_log() -> None:
    assert beside("/a.b/log.db", ".mark") == "/a.b/log.mark"


def test_publishing_gives_a_file_its_name_and_never_takes_one(tmp_path: Path) -> None:
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


def test_discarding_takes_what_sqlite_left_too(tmp_path: Path) -> None:
    for suffix in ("", "-wal", "-journal"):
        (tmp_path / f"x{suffix}").write_text("")
    discard(str(tmp_path / "x"))
    assert list(tmp_path.iterdir()) == []
    assert size_of(str(tmp_path / "x")) == 0


def replace(path: Path) -> None:
    (path.parent / "fresh").write_text("")
    (path.parent / "fresh").rename(path)


@pytest.mark.parametrize("change", [Path.unlink, replace])
@pytest.mark.parametrize("name", ["own", "other"])
def test_a_file_that_is_not_what_it_was_is_noticed(tmp_path: Path, name: str, change: Callable[[Path], None]) -> None:
    for each in ("own", "other", "unwatched"):
        (tmp_path / each).write_text("")
    inodes = Inodes([str(tmp_path / "own")])
    inodes.watch([str(tmp_path / "unwatched")])
    inodes.watch([str(tmp_path / "other")])
    (tmp_path / "unwatched").unlink()
    inodes.check()
    change(tmp_path / name)
    with pytest.raises(StorageFailed, match=name):
        inodes.check()


def test_watching_again_does_not_forgive_a_replaced_file_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("")
    inodes = Inodes([str(tmp_path / "own")])
    replace(tmp_path / "own")
    inodes.watch([])
    with pytest.raises(StorageFailed):
        inodes.check()


def test_a_reserve_takes_real_space_and_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "log.reserve"
    reserve = Reserve(str(path), 1 << 20)
    assert not reserve.held
    reserve.ensure()
    assert reserve.held and path.stat().st_blocks * 512 >= 1 << 20
    assert Reserve(str(path), 1 << 20).held
    assert not Reserve(str(path), 2 << 20).held
    reserve.release()
    assert not reserve.held and not path.exists()


def test_no_reserve_is_taken_where_space_is_short_or_none_is_wanted(tmp_path: Path) -> None:
    for size in (1 << 60, 0):
        reserve = Reserve(str(tmp_path / "log.reserve"), size)
        reserve.ensure()
        assert not reserve.held and list(tmp_path.iterdir()) == []


def test_a_reserve_that_can_not_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "log.reserve").symlink_to(tmp_path / "elsewhere")
    reserve = Reserve(str(tmp_path / "log.reserve"), 4096)
    reserve.ensure()
    assert not reserve.held and not (tmp_path / "elsewhere").exists()
