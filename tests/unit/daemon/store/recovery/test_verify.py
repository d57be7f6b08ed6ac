import hashlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import anyio
import pytest

from punchlist_testing.store import CLEARED, DELETED, Scribe, said
from punchlistd.store.file.lines import checksum
from punchlistd.store.file.schema import connect
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.verify import Report, verify_file
from punchlistd.store.sqlite import SqliteLog


@pytest.fixture
def closed(path: str) -> str:
    """A log with two conversations, groups, an erased conversation, and an index of most of it."""
    anyio.run(write_log, path)
    return path


async def write_log(path: str) -> None:
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write_batch(("gone", [said("x")]), ("a", [said("one"), said("two")]))  # positions 1 to 3
    await scribe.write("gone", DELETED)  # 4
    await log.erase("gone")
    await log.maintain([scribe.snapshot("a")])
    await scribe.write_batch(("a", [said("three")]), ("b", [said("four"), CLEARED, CLEARED]))  # positions 5 to 8
    await scribe.write("a", said("five"))  # 9
    await scribe.write("gone", CLEARED)  # 10
    await log.close()


def contents(path: str) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in Path(path).parent.iterdir()}


def places(report: Report) -> list[tuple[str, int]]:
    return [(problem.conversation, problem.seq) for problem in report.problems]


def execute(path: str, *statements: str) -> None:
    with closing(connect(path, "rw")) as connection:
        for statement in statements:
            connection.execute(statement)


def rewrite(path: str, row: int, change: Callable[[bytes], bytes], *, honest: bool = False) -> None:
    """Change a row's body, and with `honest` also its checksum."""
    with closing(connect(path, "rw")) as connection:
        body = change(connection.execute("SELECT body FROM log WHERE seq = ?", (row,)).fetchone()[0])
        connection.execute("UPDATE log SET body = ? WHERE seq = ?", (body, row))
        if honest:
            connection.execute("UPDATE log SET sum = ? WHERE seq = ?", (checksum(body), row))


def test_intact_log_has_no_problems(closed: str) -> None:
    before = contents(closed)
    report = verify_file(closed)
    assert report.problems == []
    assert (report.head, report.rows, report.events, report.conversations) == (10, 5, 9, 3)
    assert contents(closed) == before


async def test_unclosed_log_is_verified_in_a_copy(path: str, log: SqliteLog, tmp_path: Path) -> None:
    await Scribe(log).write("a", CLEARED, CLEARED)
    directory = tmp_path / "crashed"
    await anyio.Path(directory).mkdir()
    for name in ("log.db", "log.db-wal", "log.mark"):
        await anyio.Path(directory / name).write_bytes(await anyio.Path(tmp_path / name).read_bytes())
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    report = await anyio.to_thread.run_sync(verify_file, str(directory / "log.db"))
    assert (report.events, report.problems) == (2, [])
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_each_flipped_bit_is_reported_with_its_position(closed: str) -> None:
    with closing(connect(closed, "ro")) as connection:
        body: bytes = connection.execute("SELECT body FROM log WHERE seq = 8").fetchone()[0]
    random = Random(3)
    for bit in random.sample(range(len(body) * 8), 150):
        flipped = bytearray(body)
        flipped[bit // 8] ^= 1 << bit % 8
        rewrite(closed, 8, lambda _, flipped=flipped: bytes(flipped))
        report = verify_file(closed)
        assert report.problems and all(5 <= seq <= 8 for _, seq in places(report)), bit


def test_damage_is_reported_once(closed: str) -> None:
    rewrite(closed, 8, lambda body: body.replace(b"three", b"eerht"))
    assert places(verify_file(closed)) == [("a", 5)]


FORGERIES: list[tuple[Callable[[bytes], bytes], list[tuple[str, int]]]] = [
    (lambda body: body.replace(b"three", b"eerht"), [("a", 5)]),
    (lambda body: body.replace(b'"version":3', b'"version":4', 1), [("a", 5), ("a", 9)]),
    (lambda body: body.replace(b'"seq":5', b'"seq":6'), [("", 5)]),
    (lambda body: body.replace(b'{"seq"', b'{"sec"', 1), [("", 5)]),
    (lambda body: b"\n".join(body.split(b"\n")[:-1]), [("b", 7)]),
    (lambda body: b"\n".join(body.split(b"\n")[:2] + body.split(b"\n")[3:]), [("b", 8)]),
]


@pytest.mark.parametrize(("change", "found"), FORGERIES)
def test_forged_row_is_found_by_its_chain(
    closed: str, change: Callable[[bytes], bytes], found: list[tuple[str, int]]
) -> None:
    rewrite(closed, 8, change, honest=True)
    assert places(verify_file(closed))[: len(found)] == found


def test_half_a_group_is_reported(path: str) -> None:
    async def write() -> None:
        log = await SqliteLog.open(path, reserve_bytes=0)
        scribe = Scribe(log)
        half = scribe.group("a", CLEARED, CLEARED)[:1]
        await log.append([*half, *scribe.group("b", CLEARED, after=1)])
        await log.append(scribe.group("c", CLEARED, CLEARED)[:1])
        await log.close()

    anyio.run(write)
    report = verify_file(path)
    assert places(report) == [("a", 2), ("c", 3)]
    assert all("1 events of" in problem.reason for problem in report.problems)


def test_a_missing_row_is_reported(closed: str) -> None:
    execute(closed, "DELETE FROM log WHERE seq = 8")
    report = verify_file(closed)
    assert places(report) == [("", 5), ("a", 9)]
    assert "5 to 8" in report.problems[0].reason and "version 4" in report.problems[1].reason


def test_shortened_log_is_found_by_its_mark(closed: str) -> None:
    execute(closed, "DELETE FROM log WHERE seq = 10")
    report = verify_file(closed)
    assert places(report) == [("", 10)] and "had come to 10" in report.problems[0].reason


def test_unreadable_pages_are_reported_and_the_rest_verified(path: str) -> None:
    async def write() -> None:
        log = await SqliteLog.open(path, reserve_bytes=0)
        scribe = Scribe(log)
        await scribe.write("a", said("x" * 100_000))
        await scribe.write("b", CLEARED)
        await log.close()

    anyio.run(write)
    with closing(connect(path, "ro")) as connection:
        query = "SELECT max(pageno) FROM dbstat WHERE name = 'log' AND pagetype = 'overflow'"
        page: int = connection.execute(query).fetchone()[0]
    data = bytearray(Path(path).read_bytes())
    data[(page - 2) * 4096 : (page - 1) * 4096] = b"\xff" * 4096
    Path(path).write_bytes(data)
    report = verify_file(path)
    assert any(seq in (0, 1) for _, seq in places(report)) and report.head == 2


def test_other_files_can_not_be_verified(tmp_path: Path) -> None:
    with pytest.raises(LogUnusable, match="not there"):
        verify_file(str(tmp_path / "log.db"))
    with pytest.raises(LogUnusable, match="not a punchlist log"):
        verify_file(__file__)


def test_log_without_tables_can_not_be_verified(closed: str) -> None:
    execute(closed, "DROP TABLE meta")
    with pytest.raises(LogUnusable, match="definition of meta"):
        verify_file(closed)
