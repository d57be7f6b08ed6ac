"""An index that can't be read gives way to the log, and is built again."""

import os
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from punchlist_testing.store import CLEARED, Scribe, said
from punchlistd.store.file.schema import connect
from punchlistd.store.port import Damaged, StorageFailed
from punchlistd.store.recovery.verify import verify_file
from punchlistd.store.sqlite import SqliteLog

PAGES = ("sessions", "attached", "parts", "keys", "snapshots", "newest", "users", "conversations")


def spoil(path: str, name: str) -> None:
    """Overwrite the beginning of a table's or index's root page."""
    with closing(connect(path, "ro&immutable=1")) as connection:
        row = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    with open(path, "r+b") as file:
        file.seek((row[0] - 1) * 4096)
        file.write(b"\xff" * 64)


async def written(path: str) -> Scribe:
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(6):
        await scribe.write("a", said(f"mine {number}"), key=f"k{number}")
        await scribe.write("b", CLEARED)
    await log.maintain([scribe.snapshot("a", sessions=("s",)), scribe.snapshot("b")])
    await log.close()
    return scribe


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_of_the_index_that_can_not_be_read_hides_no_event_and_is_built_again(path: str, name: str) -> None:
    scribe = await written(path)
    spoil(path, name)
    scribe.log = log = await SqliteLog.open(path, reserve_bytes=0)
    mine = [line for line in scribe.lines if b'"a"' in line]
    assert [stored.line for stored in await log.read(0, 99)] == scribe.lines
    assert [stored.line for stored in await log.read(0, 99, conversation="a")] == mine
    assert [stored.line for stored in await log.find_key("a", "k3")] == [mine[3]]
    assert len(await log.keys("a")) == 6
    await scribe.write("a", said("one more"), key="more")
    inode = (await anyio.Path(path).stat()).st_ino
    await log.rebuild()
    assert (await anyio.Path(path).stat()).st_ino != inode
    assert log.unindexed == log.head and sorted(log.unindexed_conversations()) == ["a", "b"]
    await scribe.write("b", said("and another"))
    await log.maintain([scribe.snapshot("a", sessions=("s",)), scribe.snapshot("b")])
    assert await log.resolve("s") == ["a"]
    assert [stored.line for stored in await log.read(0, 99)] == scribe.lines
    epoch = log.epoch
    await log.close()
    report = await run_sync(verify_file, path)
    assert report.problems == [] and report.epoch == epoch
    assert sorted(os.listdir(os.path.dirname(path))) == ["log.db", "log.mark"]


async def test_where_an_event_is_spoiled_too_nothing_is_built_again(path: str, tmp_path: Path) -> None:
    await written(path)
    spoil(path, "parts")
    with closing(connect(path, "rw")) as connection:
        connection.execute("UPDATE log SET sum = sum + 1 WHERE seq = 5")
    log = await SqliteLog.open(path, reserve_bytes=0)
    assert len(await log.read(0, 99, conversation="b")) == 6
    with pytest.raises(Damaged, match="index can't be read"):
        await log.maintain([])
    with pytest.raises(Damaged, match="not every event"):
        await log.rebuild()
    assert len(await log.read(0, 99, conversation="a")) == 6, "the chain proves that its line is sound"
    assert sorted(os.listdir(tmp_path)) == ["log.db", "log.db-wal", "log.mark"]
    await log.close()


async def test_a_log_that_was_built_again_notices_that_it_is_replaced(path: str, tmp_path: Path) -> None:
    scribe = await written(path)
    scribe.log = log = await SqliteLog.open(path, reserve_bytes=0)
    await log.rebuild()
    await scribe.write("a", CLEARED)
    os.rename(path, tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="removed"):
        await scribe.write("a", CLEARED)
    await log.close()
