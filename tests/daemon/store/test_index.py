from contextlib import closing

from punchlist_testing.store import CLEARED, DELETED, Scribe, said
from punchlistd.store.schema import DERIVED, connect
from punchlistd.store.sqlite import SqliteLog


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
    snapshots = [scribe.snapshot("a", sessions=("s",), user="me", open=2), scribe.snapshot("b", updated_at=7)]
    await log.maintain(snapshots)
    await log.close()
    before = derived(path)
    log = await SqliteLog.open(path, reserve_bytes=0)
    await log.rebuild()
    assert log.unindexed == log.head and sorted(log.unindexed_conversations()) == ["a", "b", "c"]
    assert len(await log.find_key("a", "k3")) == 2 and len((await log.load("a")).tail) == 15
    await log.maintain(snapshots)
    await log.close()
    assert derived(path) == before


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
    assert len((await log.load("a")).tail) == 1
