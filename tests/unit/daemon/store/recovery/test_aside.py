"""A log that is moved aside so that another one can replace it."""

import resource
from pathlib import Path

import pytest

from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.aside import reject_unfinished_restore, replacing

NAMES = ("log.db", "log.db-wal", "log.mark", "log.reserve", "log.index", "log.index-wal", "log.search")


def filled(directory: Path) -> Path:
    for name in (*NAMES, "daemon.log", "lock"):
        (directory / name).write_text(name)
    return directory


def test_log_moves_with_its_companion_files(tmp_path: Path) -> None:
    filled(tmp_path)
    with replacing(str(tmp_path), str(tmp_path / "aside-1"), "copy.db"):
        with pytest.raises(LogUnusable, match="punch daemon restore copy.db"):
            reject_unfinished_restore(str(tmp_path))
        (tmp_path / "log.db").write_text("next")
    reject_unfinished_restore(str(tmp_path))
    assert sorted(path.name for path in (tmp_path / "aside-1").iterdir()) == sorted(NAMES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aside-1", "daemon.log", "lock", "log.db"]


def test_interrupted_restore_is_completed_by_another(tmp_path: Path) -> None:
    (tmp_path / "restoring").write_text("copy.db")
    with replacing(str(tmp_path), None, "copy.db"):
        pass
    reject_unfinished_restore(str(tmp_path))


def test_unwritable_note_leaves_no_trace(tmp_path: Path) -> None:
    before = {path.name for path in filled(tmp_path).iterdir()}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, limit[1]))
    try:
        with pytest.raises(OSError, match="too large"), replacing(str(tmp_path), str(tmp_path / "aside-1"), "copy.db"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    reject_unfinished_restore(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == before


def test_failure_removes_the_new_log(tmp_path: Path) -> None:
    for name in ("log.db", "log.search"):
        (tmp_path / name).write_text(name)
    with pytest.raises(LogUnusable), replacing(str(tmp_path), str(tmp_path / "aside-1"), "copy.db"):
        for name in (*NAMES, "other"):
            (tmp_path / name).write_text("next")
        raise LogUnusable("rejected")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"log.db": "log.db", "log.search": "log.search", "other": "next"}


def test_failure_restores_everything_and_an_earlier_note(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "restoring").write_text("first.db")
    with pytest.raises(OSError, match="full"), replacing(str(tmp_path), str(tmp_path / "aside-1"), "copy.db"):
        raise OSError("the disk is full")
    assert all((tmp_path / name).read_text() == name for name in NAMES)
    assert not (tmp_path / "aside-1").exists() and (tmp_path / "restoring").exists()
