"""The index: built from the log alone, used only if it matches the log, and never required."""

import os
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from punchlist_testing.store import CLEARED, DELETED, OpenedLog, Scribe, said
from punchlistd.store.file import index
from punchlistd.store.file.reading import load, with_rebuild
from punchlistd.store.file.schema import connect
from punchlistd.store.port import Damaged, Loaded, StorageFull
from punchlistd.store.recovery.opening import open_log
from punchlistd.store.recovery.verify import verify_file

DERIVED = ("conversations", "snapshots", "sessions", "parts", "keys")
PAGES = (*DERIVED, "attached", "newest", "users")
EVENTS = 6
PAGE = 4096


@pytest.fixture
def place(path: str) -> Path:
    """Path of the index."""
    return Path(path.replace(".db", ".index"))


def derived(place: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(connect(str(place), "ro")) as connection:
        names = dict(connection.execute("SELECT id, name FROM conversations").fetchall())
        tables = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in DERIVED}
        tables["meta"] = connection.execute("SELECT * FROM meta").fetchall()
    for name, column in (("conversations", 0), ("snapshots", 0), ("sessions", 1), ("parts", 0), ("keys", 0)):
        tables[name] = sorted((*row[:column], names[row[column]], *row[column + 1 :]) for row in tables[name])
    return tables


def execute(path: str | Path, *statements: str) -> None:
    with closing(connect(str(path), "rw")) as connection:
        for statement in statements:
            connection.execute(statement)


async def written(path: str) -> Scribe:
    """Write a log of two conversations, indexed and closed."""
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(EVENTS):
        await scribe.write("b", said("other"))
        await scribe.write("a", said(f"mine {number}"), key=f"k{number}")
    await log.maintain([scribe.snapshot("a", None, sessions=("s",)), scribe.snapshot("b", None)])
    await log.close()
    return scribe


def of(scribe: Scribe, name: str) -> list[bytes]:
    return [line for line in scribe.lines if f'"{name}"'.encode() in line]


def lines(loaded: Loaded) -> list[bytes]:
    return [stored.line for stored in loaded.newer]


async def test_rebuilt_index_is_the_same(path: str, place: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
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
    before = derived(place)
    os.unlink(place)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.unindexed == log.head and sorted(log.unindexed_conversations()) == ["a", "b", "c"]
    assert len(await log.find_key("a", "k3")) == 2 and len((await log.load("a")).newer) == 15
    for _ in range(2):  # the second time must change nothing
        await log.maintain(snapshots)
    await log.close()
    assert derived(place) == before


async def test_conversation_without_summary_is_not_listed(log: OpenedLog) -> None:
    await Scribe(log).write("a", CLEARED)
    await log.maintain([])
    assert await log.list(limit=9) == ([], None) and await log.names("") == []
    assert len((await log.load("a")).newer) == 1


# Checks of the index at the start


def zero_half_of(place: Path, name: str) -> None:
    """Zero the second half of the root page of a table or index, which contains its entries."""
    root = page_of(place, name)
    content = bytearray(place.read_bytes())
    content[root * PAGE - PAGE // 2 : root * PAGE] = bytes(PAGE // 2)
    place.write_bytes(content)


def page_of(place: Path, name: str) -> int:
    with closing(connect(str(place), "ro&immutable=1")) as connection:
        return connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]


HARMS: dict[str, Callable[[Path], object]] = {
    "it is ahead": lambda place: execute(place, "UPDATE meta SET seq = 1000"),
    "of another history": lambda place: execute(place, "UPDATE meta SET sum = sum + 1"),
    "of another log": lambda place: execute(place, "UPDATE meta SET epoch = '0123456789abcdef'"),
    "of another format": lambda place: execute(place, "PRAGMA user_version = 99"),
    "no database": lambda place: place.write_bytes(b"no database " * 1000),
    "cut short": lambda place: os.truncate(place, PAGE),
    "empty": lambda place: os.truncate(place, 0),
    "gone": os.unlink,
    "without names": lambda place: zero_half_of(place, "sqlite_autoindex_conversations_1"),
    "without owners": lambda place: zero_half_of(place, "users"),
    "without an order": lambda place: zero_half_of(place, "newest"),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_index_of_another_log_is_rebuilt_at_start(path: str, place: Path, harm: str) -> None:
    scribe = await written(path)
    await run_sync(HARMS[harm], place)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert (log.unindexed, sorted(log.unindexed_conversations())) == (log.head, ["a", "b"])
    assert lines(await log.load("a")) == of(scribe, "a") and len(await log.keys("a")) == EVENTS
    await log.maintain([scribe.snapshot("a", sessions=("s",))])
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.unindexed == 0 and await log.resolve("s") == ["a"]
    await log.close()


async def test_stale_index_is_completed_at_start(path: str, place: Path) -> None:
    scribe = await written(path)
    behind = await anyio.Path(place).read_bytes()
    scribe.log = log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.unindexed == 0
    await scribe.write("a", said("later"), key="later")
    await log.maintain([])
    await log.close()
    await anyio.Path(place).write_bytes(behind)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert (log.unindexed, list(log.unindexed_conversations())) == (1, ["a"])
    assert lines(await log.load("a")) == of(scribe, "a") and len(await log.find_key("a", "later")) == 1
    await log.close()


async def test_index_catches_up_after_a_kill(path: str, log: OpenedLog, tmp_path: Path) -> None:
    scribe = Scribe(log)
    await scribe.write("a", said("one"))
    await log.maintain([scribe.snapshot("a", b"one")])
    await scribe.write("a", said("two"))
    killed = tmp_path / "killed"
    await run_sync(lambda: shutil.copytree(tmp_path, killed, ignore=shutil.ignore_patterns("killed")))
    copy = await OpenedLog.open(str(killed / "log.db"), reserve_bytes=0)
    assert copy.unindexed == 1 and (await copy.load("a")).state == b"one"
    await copy.close()


async def test_index_falls_back_to_memory(path: str, place: Path) -> None:
    scribe = await written(path)
    os.unlink(place)
    os.mkdir(place)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert lines(await log.load("a")) == of(scribe, "a")
    await log.maintain([scribe.snapshot("a", sessions=("s",))])
    assert await log.resolve("s") == ["a"] and log.unindexed == 0
    await log.close()


async def test_full_disk_leaves_events_unindexed(path: str, log: OpenedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    scribe = Scribe(log)
    await scribe.write("a", said("one"), key="k")
    with monkeypatch.context() as patch:
        patch.setattr(index, "_save_snapshots", full)
        with pytest.raises(StorageFull):
            await log.maintain([scribe.snapshot("a")])
    assert log.unindexed == 1 and lines(await log.load("a")) == scribe.lines and len(await log.keys("a")) == 1
    await log.maintain([scribe.snapshot("a")])
    assert log.unindexed == 0


# Rebuilds of an index that turns out to be wrong while the log is open


async def accept(log: OpenedLog) -> None:
    """Do what the engine does after the index is lost."""
    with pytest.raises(Damaged, match="the index can't be read"):
        await log.owner("a")
    await log.rebuild()


@pytest.mark.parametrize("name", PAGES)
async def test_unreadable_index_page_is_rebuilt(path: str, place: Path, name: str) -> None:
    scribe = await written(path)

    def spoil() -> None:
        root = page_of(place, name)
        with place.open("r+b") as file:
            file.seek((root - 1) * PAGE)
            file.write(b"\xff" * 64)

    await run_sync(spoil)
    scribe.log = log = await OpenedLog.open(path, reserve_bytes=0)
    assert [stored.line for stored in await log.read(0, 99)] == scribe.lines
    assert [stored.line for stored in await log.read(0, 99, conversation="a")] == of(scribe, "a")
    assert [stored.line for stored in await log.find_key("a", "k3")] == [of(scribe, "a")[3]]
    assert len(await log.keys("a")) == 6
    await scribe.write("a", said("one more"), key="more")
    for each in ("a", "b"):
        assert lines(await log.load(each)) == of(scribe, each)
    await log.rebuild()
    await log.maintain([scribe.snapshot("a", sessions=("s",)), scribe.snapshot("b")])
    assert await log.resolve("s") == ["a"]
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.unindexed == 0 and len(await log.keys("a")) == EVENTS + 1
    await log.close()
    assert (await run_sync(verify_file, path)).problems == []


LOSSES = (
    "DELETE FROM parts WHERE seq = 2",
    "DELETE FROM parts WHERE seq = 6",
    "UPDATE parts SET seq = seq + 4096 WHERE seq = 8",
    "UPDATE parts SET seq = seq + 1 WHERE seq = 8",
    "DELETE FROM parts WHERE seq = 12",
    "UPDATE parts SET conversation = 9 WHERE conversation = (SELECT id FROM conversations WHERE name = 'a')",
    "DELETE FROM parts",
)


def misorder_rows(place: Path) -> None:
    """Give the last row of a conversation the position of an earlier one."""
    with closing(connect(str(place), "ro&immutable=1")) as connection:
        positions = connection.execute("SELECT seq FROM parts WHERE conversation = 2 ORDER BY seq").fetchall()
    (earlier,), _, (last,) = positions[-3:]
    first = (page_of(place, "parts") - 1) * PAGE
    content = bytearray(place.read_bytes())
    # A record of 5 bytes: the header's size, the type "8 bits" twice, the conversation, and the position.
    entry = content.index(bytes((5, 3, 1, 1, 2, last)), first, first + PAGE)
    content[entry + 5] = earlier
    place.write_bytes(content)


async def test_index_with_rows_out_of_order_is_rebuilt(
    path: str, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scribe = await written(path)
    misorder_rows(place)
    log = await OpenedLog.open(path, reserve_bytes=0)
    for name in ("a", "b"):
        assert lines(await log.load(name)) == of(scribe, name)
    assert "not in order" in caplog.text
    await log.close()


@pytest.mark.parametrize("first", ["load", "read"])
@pytest.mark.parametrize("statement", LOSSES)
async def test_events_missing_from_the_index_are_reindexed(
    path: str, place: Path, first: str, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    scribe = await written(path)
    execute(place, statement)
    scribe.log = log = await OpenedLog.open(path, reserve_bytes=0)
    if first == "read":
        assert [event.line for event in await log.read(0, 100, conversation="a")] == of(scribe, "a")
    assert lines(await log.load("a")) == of(scribe, "a")
    assert caplog.text.count("the index is rebuilt") == 1
    await accept(log)
    await scribe.write("a", said("more"))
    await log.maintain([])
    assert lines(await log.load("a")) == of(scribe, "a") and len(await log.read(0, 100, conversation="b")) == EVENTS
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.unindexed == 0
    assert [event.line for event in await log.read(0, 100, conversation="a")] == of(scribe, "a")
    await log.close()


@pytest.mark.parametrize(
    "statement", ["UPDATE keys SET hash = hash + 1", "UPDATE keys SET seq = seq + 1 WHERE seq = 4"]
)
async def test_changed_keys_are_read_from_the_log(path: str, place: Path, statement: str) -> None:
    await written(path)
    execute(place, statement)
    log = await OpenedLog.open(path, reserve_bytes=0)
    known = await log.keys("a")
    assert len(known) == EVENTS and [len(await log.find_key("a", f"k{number}")) for number in range(EVENTS)] == [1] * 6
    await log.close()


async def test_failed_statement_is_reported_until_cleared(path: str) -> None:
    scribe = await written(path)
    scribe.log = log = await OpenedLog.open(path, reserve_bytes=0)
    await log._run(log._operations.index.query, "DROP TABLE sessions")  # pyright: ignore[reportPrivateUsage]
    asks: list[Callable[[], Awaitable[object]]] = [
        lambda: log.resolve("s"), log.survey, log.totals, lambda: log.names(""), lambda: log.maintain([]),
        lambda: log.list(limit=9), lambda: log.erase("a"), log.unerased,
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(Damaged, match="the index can't be read: no such table"):
            await ask()
    await log.rebuild()
    assert log.unindexed == log.head
    await log.maintain([scribe.snapshot("a", sessions=("s",))])
    assert await log.resolve("s") == ["a"]
    await log.close()


async def test_damaged_log_rebuilds_no_index(path: str, caplog: pytest.LogCaptureFixture) -> None:
    await written(path)
    execute(path, "UPDATE log SET body = CAST(replace(body, 'other', 'OTHER') AS BLOB) WHERE seq = 5")
    execute(path, "DELETE FROM log WHERE seq = 6")
    log = await OpenedLog.open(path, reserve_bytes=0)
    for name in ("a", "b", "a", "b"):
        with pytest.raises(Damaged):
            await log.load(name)
    assert "built again" not in caplog.text
    await log.close()


async def test_rebuilt_index_records_owners_of_lost_row(path: str, place: Path) -> None:
    """The log's rows of `b` are unreadable, and the index is wrong about `a`."""
    scribe = await written(path)
    execute(path, "DELETE FROM log WHERE seq % 2 = 1")
    execute(place, "DELETE FROM parts WHERE seq = 6")
    for start in range(3):
        log = await OpenedLog.open(path, reserve_bytes=0)
        assert lines(await log.load("a")) == of(scribe, "a")
        with pytest.raises(Damaged):
            await log.load("b")
        if start == 0:
            await accept(log)
        await log.maintain([])
        await log.close()


async def test_damaged_event_without_owner_is_found_at_start(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for name in ("anna", "bert"):
        await scribe.write(name, said("x"))
    await scribe.write("anna", said("last"))
    await log.close()
    execute(path, "UPDATE log SET body = CAST(replace(body, 'anna', '????') AS BLOB) WHERE seq = 3")
    for _ in range(3):
        log = await OpenedLog.open(path, reserve_bytes=0)
        with pytest.raises(Damaged):
            await log.load("anna")
        await log.maintain([])
        await log.close()


def closed_log(path: str, lists: int) -> None:
    async def write() -> None:
        log = await OpenedLog.open(path, reserve_bytes=0)
        scribe = Scribe(log)
        await log.append(
            [entry for number in range(lists) for entry in scribe.group(f"c{number}", said("x"), after=number)]
        )
        await log.maintain([scribe.snapshot(f"c{number}") for number in range(lists)])
        await log.close()

    anyio.run(write)


def test_flipped_bits_never_restart_a_list(path: str, place: Path) -> None:
    lists = 40
    closed_log(path, lists)
    sound = place.read_bytes()
    pages = [page_of(place, name) for name in ("conversations", "sqlite_autoindex_conversations_1")]
    seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 32)
    print(f"SEED={seed}")
    chance = random.Random(seed)
    for _ in range(150):
        at = (chance.choice(pages) - 1) * PAGE + chance.randrange(PAGE)
        place.write_bytes(sound[:at] + bytes([sound[at] ^ 1 << chance.randrange(8)]) + sound[at + 1 :])
        log = open_log(path, reserve_bytes=0)
        try:
            found = [with_rebuild(log, load, f"c{number}") for number in chance.sample(range(lists), 5)]
            assert {each.newer[-1].version if each.newer else each.version for each in found} == {1}, f"byte {at}"
        finally:
            log.finish()
            log.connection.close()


async def test_pending_erasures_are_found_once_indexed(path: str, place: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for name in ("a", "b"):
        await scribe.write(name, said("gone"))
        await scribe.write(name, DELETED)
    await log.erase("b")
    assert log.just_deleted == ["a"], "the list is erased before any read"
    await log.maintain([])
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.just_deleted == [] and (await log.survey()).unerased == ["a"]
    await log.close()
    os.unlink(place)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.just_deleted == ["a"], "only the tombstone of b is left"
    await log.close()
