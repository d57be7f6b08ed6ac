import json
from contextlib import closing

from punchlist_testing.store import CLEARED, DELETED, Scribe, said
from punchlistd.store.file.schema import connect
from punchlistd.store.sqlite import SqliteLog

DERIVED = ("conversations", "snapshots", "sessions", "parts", "keys")


def derived(path: str) -> dict[str, list[tuple[object, ...]]]:
    with closing(connect(path, "ro")) as connection:
        names = dict(connection.execute("SELECT id, name FROM conversations").fetchall())
        tables = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in DERIVED}
        tables["meta"] = connection.execute("SELECT * FROM meta").fetchall()
    for name, column in (("conversations", 0), ("snapshots", 0), ("sessions", 1), ("parts", 0), ("keys", 0)):
        tables[name] = sorted((*row[:column], names[row[column]], *row[column + 1 :]) for row in tables[name])
    return tables


async def test_an_index_built_again_from_nothing_is_the_same(path: str) -> None:
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(5):
        await scribe.write("a", said("x"), said("y"), key=f"k{number}")
        await scribe.write_batch(("c", [CLEARED]), ("b", [said(str(number))]), ("a", [CLEARED]))
        await log.maintain([])
    await scribe.write("c", DELETED, key="last")
    await scribe.write("c", CLEARED)
    snapshots = [scribe.snapshot("a", sessions=("s",), user="me", open=2), scribe.snapshot("b")]
    await log.maintain(snapshots)
    await log.close()
    before = derived(path)
    log = await SqliteLog.open(path, reserve_bytes=0)
    await log.rebuild()
    assert log.unindexed == log.head and sorted(log.unindexed_conversations()) == ["a", "b", "c"]
    assert len(await log.find_key("a", "k3")) == 2 and len((await log.load("a")).newer) == 15
    await log.maintain(snapshots)
    await log.close()
    assert derived(path) == before


async def test_an_index_with_times_of_an_earlier_version_is_ordered_by_position(path: str) -> None:
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for name in ("first", "second", "erased", "third"):
        await scribe.write(name, said("x"))
        await log.maintain([scribe.snapshot(name, deleted=name == "erased")])
    await scribe.write_batch(("b", [said("x")]), ("a", [said("x")]))
    await log.maintain([scribe.snapshot("a"), scribe.snapshot("b")])
    await log.close()
    times = {"first": 1_900, "second": 1_700, "third": 1_800, "a": 1_600, "b": 1_650, "erased": 1_999}
    with closing(connect(path, "rw")) as connection:
        for name, at in times.items():
            connection.execute("UPDATE conversations SET updated_at = ? WHERE name = ?", (at * 10**9, name)).close()
    log = await SqliteLog.open(path, reserve_bytes=0)
    assert [json.loads(summary)["title"] for summary in (await log.list(limit=9))[0]] == [
        "first",
        "third",
        "second",
        "b",
        "a",
    ]  # nothing was written yet: as the earlier version would list them
    scribe.log = log
    await scribe.write("second", said("y"))
    await log.maintain([scribe.snapshot("second")])
    page, cursor = await log.list(limit=3)
    rest, _ = await log.list(limit=3, cursor=cursor)
    assert [json.loads(summary)["title"] for summary in page + rest] == ["second", "a", "b", "third", "first"]
    await log.close()


async def test_maintaining_twice_changes_nothing(path: str) -> None:
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", CLEARED, key="k")
    for _ in range(2):
        await log.maintain([scribe.snapshot("a", sessions=("s",))])
    assert len(await log.keys("a")) == 1 and await log.resolve("s") == ["a"]
    await log.close()
    assert [len(derived(path)[name]) for name in DERIVED] == [1, 1, 1, 1, 1]


async def test_a_conversation_without_a_summary_is_found_but_not_listed(log: SqliteLog) -> None:
    scribe = Scribe(log)
    await scribe.write("a", CLEARED)
    await log.maintain([])
    assert await log.list(limit=9) == ([], None) and await log.names("") == []
    assert len((await log.load("a")).newer) == 1
