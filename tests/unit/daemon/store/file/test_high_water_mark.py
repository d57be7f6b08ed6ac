from pathlib import Path

import pytest

from punchlistd.store.file.high_water_mark import HighWaterMark, Position, read_position


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "log.mark")


def write(path: str, *seqs: int) -> None:
    mark = HighWaterMark(path)
    mark.read()
    for seq in seqs:
        mark.write("0123456789abcdef", seq, seq * 7)
    mark.close()


def test_last_written_position_is_read(path: str) -> None:
    assert read_position(path) is None
    for seqs in ((5,), (6, 7, 8), (3,)):
        write(path, *seqs)
        assert read_position(path) == Position("0123456789abcdef", seqs[-1], seqs[-1] * 7)
        mark = HighWaterMark(path)
        assert mark.read() == read_position(path)
        mark.close()
        mark.close()
    assert Path(path).stat().st_size == 128


def test_torn_write_leaves_the_previous_position(path: str) -> None:
    write(path, 10, 11)
    data = Path(path).read_bytes()
    for at in (*range(44), *range(64, 108)):
        torn = bytearray(data)
        torn[at] ^= 1
        Path(path).write_bytes(torn)
        found = read_position(path)
        assert found and found.seq == (11 if at >= 64 else 10)
    Path(path).write_bytes(data[:70])
    assert read_position(path) == Position("0123456789abcdef", 11, 77)


@pytest.mark.parametrize("junk", [b"", b"x", b"\0" * 128, b"junk" * 1000])
def test_invalid_mark_is_overwritten(path: str, junk: bytes) -> None:
    Path(path).write_bytes(junk)
    assert read_position(path) is None
    write(path, 4, 5)
    assert read_position(path) == Position("0123456789abcdef", 5, 35)
