import zlib
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from punchlist_testing.store import CLEARED, DELETED, OpenedLog, Scribe, said
from punchlistd.store.file.high_water_mark import read_position
from punchlistd.store.file.schema import connect
from punchlistd.store.port import Damaged
from punchlistd.store.recovery.verify import verify_file

SECRET = "the-quick-brown-secret"


def on_disk(directory: Path, text: str) -> list[str]:
    return [path.name for path in directory.iterdir() if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("length", [1, 30_000])
async def test_erased_bytes_are_in_none_of_the_files(
    log: OpenedLog, tmp_path: Path, indexed: bool, length: int
) -> None:
    scribe = Scribe(log)
    title = "a-title-nobody-may-see"
    for number in range(5):
        text = said(SECRET * length)
        await scribe.write_batch(("a", [text]), ("b", [said(f"kept {number}")]), ("a", [text]))
        if indexed:
            snapshot = scribe.snapshot("a", (SECRET * length).encode(), title=title, sessions=("session-of-secret",))
            await log.maintain([snapshot])
    await scribe.write("a", said(SECRET), DELETED)
    await scribe.write("a", said("a new life"))
    assert on_disk(tmp_path, SECRET)
    await log.erase("a")
    for text in (SECRET, title, "session-of-secret"):
        assert on_disk(tmp_path, text) == []
    assert on_disk(tmp_path, "kept 4") == ["log.db"]
    assert [stored.version for stored in (await log.load("a")).newer] == [12, 13]
    assert len((await log.load("b")).newer) == 5


@pytest.mark.parametrize("indexed", [False, True])
async def test_erased_conversation_starts_over_and_others_stay(path: str, indexed: bool) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write_batch(("a", [said(SECRET)]), ("b", [CLEARED]), ("a", [DELETED]), ("b", [CLEARED]))
    if indexed:
        await log.maintain([scribe.snapshot("a", b"", title="none")])
    await log.erase("a")
    for _ in range(2):  # the second time must be harmless
        await log.forget("a")
        assert [stored.conversation for stored in await log.read(0, 9)] == ["b", "b"]
        assert (await log.load("a")).newer == []
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.head == 4 and await log.keys("a") == []
    again = Scribe(log)
    await again.write("a", said("anew"), CLEARED)
    await log.maintain([])
    assert [stored.version for stored in (await log.load("a")).newer] == [1, 2]
    await log.forget("a")
    assert [stored.version for stored in (await log.load("a")).newer] == [1, 2], (
        "the erased list doesn't end with its deletion"
    )
    await log.close()
    report = await anyio.to_thread.run_sync(verify_file, path)
    assert report.problems == []


async def test_log_with_erased_events_can_be_appended_to(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write_batch(("a", [CLEARED]), ("b", [CLEARED]), ("a", [said("x"), DELETED]), ("c", [CLEARED]))
    await log.erase("a")
    await log.close()
    scribe.log = log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.head == 5 and await log.unerased() == [], "only the tombstone is left"
    await log.erase("a")
    assert [stored.seq for stored in await log.read(0, 9)] == [2, 4, 5]
    assert [stored.seq for stored in await log.read(2, 9)] == [4, 5]
    await scribe.write("a", CLEARED)
    await log.maintain([])
    assert await log.unerased() == []
    assert [stored.version for stored in (await log.load("a")).newer] == [3, 4]
    await log.close()


async def test_rows_and_checksums_stay_in_order(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", CLEARED)
    await scribe.write_batch(("a", [CLEARED]), ("b", [CLEARED]))
    await scribe.write("a", DELETED)
    await log.maintain([])
    await log.erase("a")
    await log.close()
    with closing(connect(path, "ro")) as connection:
        rows = connection.execute("SELECT seq, first, sum, body FROM log").fetchall()
    with closing(connect(path.replace(".db", ".index"), "ro")) as connection:
        parts = connection.execute("SELECT name, seq FROM parts JOIN conversations ON id = conversation").fetchall()
    assert [(last, first) for last, first, _, _ in rows] == [(1, 1), (3, 2), (4, 4)]
    assert all(total == zlib.crc32(body) for _, _, total, body in rows) and rows[0][3] == b""
    assert sorted(parts) == [("a", 4), ("b", 3)]
    noted = await anyio.to_thread.run_sync(read_position, path.replace("log.db", "log.mark"))
    assert noted and (noted.seq, noted.sum) == (4, rows[-1][2])


async def test_damaged_row_keeps_only_the_lines_of_others(path: str, tmp_path: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write_batch(("a", [said(SECRET)]), ("b", [said("spoiled")]), ("c", [said(SECRET)]))
    await scribe.write("a", DELETED)
    await log.maintain([])
    await log.close()
    with closing(connect(path, "rw")) as connection:
        body: bytes = connection.execute("SELECT body FROM log WHERE seq = 3").fetchone()[0]
        for old, new in ((b'"conversation":"c"', b'"conversation":"?"'), (b"spoiled", b"sp?iled")):
            assert old in body
            body = body.replace(old, new)
        connection.execute("UPDATE log SET body = ? WHERE seq = 3", (body,))
    log = await OpenedLog.open(path, reserve_bytes=0)
    await log.erase("a")
    assert not log.failed and await log.unerased() == []
    assert [stored.version for stored in (await log.load("a")).newer] == [2]
    with pytest.raises(Damaged):
        await log.load("b")
    await log.checkpoint()
    assert on_disk(tmp_path, SECRET) == [] and on_disk(tmp_path, "sp?iled") == ["log.db"]
    await log.close()


async def test_failed_erasure_is_retried(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    await Scribe(log).write("a", CLEARED, DELETED)
    await log.maintain([])
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert await log.unerased() == ["a"]
    await log.erase("a")
    assert await log.unerased() == []
    await log.close()


async def test_unindexed_erasure_is_written_immediately(log: OpenedLog) -> None:
    await Scribe(log).write("a", said("old"), DELETED)
    await log.erase("a")
    await log.forget("a")
    again = Scribe(log)
    await again.write("a", said("anew"))
    await again.write("b", said("beside"), DELETED)
    await log.maintain([])
    assert [stored.version for stored in (await log.load("a")).newer] == [1]
