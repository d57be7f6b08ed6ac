import fcntl
import os
from pathlib import Path

import pytest

from punchlist_apps.hosts.read_positions import ReadPosition, ReadPositions

NOTHING = ReadPosition()


def load(positions: ReadPositions, session: str, conversation: str = "c") -> ReadPosition:
    with positions.lock(session, conversation) as position:
        return position.value


def save(positions: ReadPositions, session: str, value: ReadPosition) -> None:
    with positions.lock(session, "c") as position:
        position.save(value)


def test_position_is_stored_by_session_and_list(tmp_path: Path) -> None:
    positions, stored = ReadPositions(str(tmp_path)), ReadPosition("e", 7, ("1@2",), (9,), ("startup", 1.5))
    save(positions, "s", stored)
    assert load(ReadPositions(str(tmp_path)), "s") == stored
    assert load(positions, "s", "d") == load(positions, "t") == NOTHING


def test_session_name_can_not_leave_the_directory(tmp_path: Path) -> None:
    positions = ReadPositions(str(tmp_path))
    for session in ("../../x", "/etc/passwd", "a" * 5000, "\x00", "\udcff", "é"):
        save(positions, session, ReadPosition("e", 1))
        assert load(positions, session).seq == 1
    assert [path.name for path in tmp_path.iterdir()] == ["looked"]


def find_files(directory: Path) -> tuple[Path, Path]:
    """Return the files of the only position: its value and its lock."""
    value, lock = sorted((directory / "looked").iterdir())
    return value, lock


def test_damaged_file_gives_empty_position(tmp_path: Path) -> None:
    positions = ReadPositions(str(tmp_path))
    save(positions, "s", ReadPosition("e", 7))
    find_files(tmp_path)[0].write_bytes(b"\xff{")
    assert load(positions, "s") == NOTHING


def test_old_positions_are_deleted(tmp_path: Path) -> None:
    positions = ReadPositions(str(tmp_path))
    save(positions, "old", ReadPosition("e", 7))
    files = find_files(tmp_path)
    for file in files:
        os.utime(file, (1, 1))
    save(positions, "new", ReadPosition("e", 8))
    assert not any(file.exists() for file in files)
    assert load(positions, "old") == NOTHING
    assert load(positions, "new").seq == 8


def test_printed_changes_are_kept_until_passed() -> None:
    position = ReadPosition("e", 7, told=(8, 12))
    assert position.advance("e", 10).told == (12,)
    assert position.advance("f", 10).told == ()


def test_suspended_hook_does_not_block_others(tmp_path: Path) -> None:
    positions = ReadPositions(str(tmp_path))
    with positions.lock("s", "c") as suspended:
        with positions.lock("s", "c", timeout_s=0.05) as position:
            position.save(ReadPosition("e", 8))
        suspended.save(ReadPosition("e", 7))
    assert load(positions, "s").seq == 8, "the suspended hook moved the position back"


def test_saved_position_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    positions, flock, blocked = ReadPositions(str(tmp_path)), fcntl.flock, list[int]()

    def record_blocked(file: int, operation: int) -> None:
        try:
            flock(file, operation)
        except BlockingIOError:
            blocked.append(file)
            raise

    monkeypatch.setattr(fcntl, "flock", record_blocked)
    with positions.lock("s", "c") as first:
        first.save(ReadPosition("e", 7))
        with positions.lock("s", "c", timeout_s=0.0):
            assert blocked, "the second hook got the lock"


def test_waiting_hook_reads_the_saved_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    positions, flock, tried = ReadPositions(str(tmp_path)), fcntl.flock, list[int]()
    holder = positions.lock("s", "c")
    first = holder.__enter__()

    def save_at_second_try(file: int, operation: int) -> None:
        tried.append(file)
        if len(tried) == 2:
            first.save(ReadPosition("e", 7))
            holder.__exit__(None, None, None)
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", save_at_second_try)
    assert load(positions, "s").seq == 7
