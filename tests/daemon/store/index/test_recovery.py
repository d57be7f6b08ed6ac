from contextlib import closing

import anyio
import anyio.to_thread
import msgspec
import pytest

from punchlist_testing.store import Scribe, said
from punchlistd.store.file.schema import connect
from punchlistd.store.port import Damaged
from punchlistd.store.recovery.verify import verify_file
from punchlistd.store.sqlite import SqliteLog

EVENTS = 6


async def spoiled(path: str, statement: str) -> list[bytes]:
    """A log of two conversations, indexed, with a changed index; the events of `a`."""
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for _ in range(EVENTS):
        await scribe.write("a", said("mine"))
        await scribe.write("b", said("other"))
    summary = msgspec.json.encode({"version": EVENTS})
    await log.maintain([msgspec.structs.replace(scribe.snapshot(name, None), summary=summary) for name in "ab"])
    expected = [event.wire for event in await log.read(0, 100, conversation="a")]
    await log.close()
    connection = connect(path, "rw")
    connection.execute(statement)
    connection.close()
    return expected


LOSSES = (
    "DELETE FROM parts WHERE seq = 1",
    "DELETE FROM parts WHERE seq = 5",
    "UPDATE parts SET seq = seq + 4096 WHERE seq = 7",
    "DELETE FROM parts WHERE seq IN (SELECT max(seq) - 1 FROM parts)",
    "UPDATE parts SET conversation = 9 WHERE conversation = (SELECT id FROM conversations WHERE name = 'a')",
    "DELETE FROM parts",
)


@pytest.mark.parametrize("first", ["load", "read"])
@pytest.mark.parametrize("statement", LOSSES)
async def test_events_that_the_index_has_lost_are_found_in_the_log_and_indexed_again(
    path: str, first: str, statement: str
) -> None:
    expected = await spoiled(path, statement)
    log = await SqliteLog.open(path, reserve_bytes=0)
    if first == "read":
        assert [event.wire for event in await log.read(0, 100, conversation="a")] == expected
    assert [event.wire for event in (await log.load("a")).newer] == expected
    scribe = Scribe(log)
    scribe.versions["a"], scribe.checks["a"] = EVENTS, (await log.load("a")).newer[-1].check
    await scribe.write("a", said("more"))
    await log.maintain([])
    assert len((await log.load("a")).newer) == len(await log.read(0, 100, conversation="b")) + 1 == EVENTS + 1
    await log.close()
    report = await anyio.to_thread.run_sync(verify_file, path)
    assert report.problems == []
    log = await SqliteLog.open(path, reserve_bytes=0)
    assert [event.wire for event in await log.read(0, 100, conversation="a")][:EVENTS] == expected
    await log.close()


async def test_the_log_is_scanned_once_and_not_for_each_damaged_conversation(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    await spoiled(path, "UPDATE log SET body = CAST(replace(body, 'other', 'OTHER') AS BLOB) WHERE seq = 4")
    log = await SqliteLog.open(path, reserve_bytes=0)
    for _ in range(3):
        with pytest.raises(Damaged):
            await log.load("b")
    assert len((await log.load("a")).newer) == EVENTS
    assert "scanned" not in caplog.text  # a spoiled line is damage to the log, not to the index
    await log.close()


async def test_a_summary_that_promises_too_much_changes_nothing(path: str, caplog: pytest.LogCaptureFixture) -> None:
    expected = await spoiled(path, """UPDATE conversations SET summary = CAST('{"version": 99}' AS BLOB)""")
    log = await SqliteLog.open(path, reserve_bytes=0)
    for _ in range(3):
        assert [event.wire for event in (await log.load("a")).newer] == expected
        assert len((await log.load("b")).newer) == EVENTS
    assert caplog.text.count("scanned") == 1
    await log.close()


async def test_a_position_in_the_index_that_is_no_number_any_more_makes_the_log_be_scanned(path: str) -> None:
    expected = await spoiled(path, "SELECT 1")
    data = bytearray(await anyio.Path(path).read_bytes())
    with closing(connect(path, "ro")) as connection:
        page: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'parts'").fetchone()[0]
    cell = (page - 1) * 4096 + 8
    first = (page - 1) * 4096 + int.from_bytes(data[cell : cell + 2], "big")
    assert data[first + 1] == 3  # the length of the record's header, then the types of its two members
    data[first + 3] = 13  # the type of an empty text, which comes behind every number
    await anyio.Path(path).write_bytes(data)
    log = await SqliteLog.open(path, reserve_bytes=0)
    assert [event.wire for event in (await log.load("a")).newer] == expected
    assert [event.wire for event in await log.read(0, 100, conversation="a")] == expected
    await log.close()
