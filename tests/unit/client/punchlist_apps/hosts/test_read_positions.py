import os
from pathlib import Path

from punchlist_apps.hosts.read_positions import ReadPosition, ReadPositions

NOTHING = ("", None, ())


def seen(looks: ReadPositions, session: str, conversation: str) -> tuple[str, int | None, tuple[str, ...]]:
    found = looks.load(session, conversation)
    return found.epoch, found.seq, found.reminded


def test_position_is_stored_by_session_and_list(tmp_path: Path) -> None:
    looks = ReadPositions(str(tmp_path))
    looks.save("s", "c", ReadPosition("e", 7, ("1@2",)))
    assert seen(ReadPositions(str(tmp_path)), "s", "c") == ("e", 7, ("1@2",))
    assert seen(looks, "s", "d") == seen(looks, "t", "c") == NOTHING


def test_session_name_can_not_leave_the_directory(tmp_path: Path) -> None:
    looks = ReadPositions(str(tmp_path))
    for session in ("../../x", "/etc/passwd", "a" * 5000, "\x00", "\udcff", "é"):
        looks.save(session, "c", ReadPosition("e", 1))
        assert looks.load(session, "c").seq == 1
    assert [path.name for path in tmp_path.iterdir()] == ["looked"]


def test_damaged_file_gives_empty_position(tmp_path: Path) -> None:
    looks = ReadPositions(str(tmp_path))
    looks.save("s", "c", ReadPosition("e", 7))
    (only,) = (tmp_path / "looked").iterdir()
    only.write_bytes(b"\xff{")
    assert seen(looks, "s", "c") == NOTHING


def test_old_positions_are_deleted(tmp_path: Path) -> None:
    looks = ReadPositions(str(tmp_path))
    looks.save("old", "c", ReadPosition("e", 7))
    (only,) = (tmp_path / "looked").iterdir()
    os.utime(only, (1, 1))
    looks.save("new", "c", ReadPosition("e", 8))
    assert seen(looks, "old", "c") == NOTHING
    assert looks.load("new", "c").seq == 8
