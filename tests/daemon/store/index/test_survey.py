import os
import random
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from punchlist_testing.store import DELETED, Scribe, said
from punchlistd.store.index import recovery as index_recovery
from punchlistd.store.index.survey import SLICE
from punchlistd.store.port import Damaged, Loaded, LogUnusable, Survey
from punchlistd.store.recovery.opening import open_log
from punchlistd.store.sqlite import SqliteLog

LISTS = 40
NAMES = "sqlite_autoindex_conversations_1"
PAGE = 4096


async def closed_log(directory: Path, lists: int = LISTS) -> Path:
    path = directory / "log.db"
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    scribe = Scribe(log)
    entries = [entry for number in range(lists) for entry in scribe.group(f"c{number}", said("x"), after=number)]
    await log.append(entries)
    timed: dict[str, Any] = {"settings": {"auto_clear": "idle"}, "counts": {"completed": 1}}
    about = dict.fromkeys((0, lists - 1), timed)
    await log.maintain([scribe.snapshot(f"c{number}", about=about.get(number, {})) for number in range(lists)])
    await log.close()
    return path


def version(loaded: Loaded) -> int:
    return loaded.newer[-1].version if loaded.newer else loaded.version


def zero_half_of(path: Path, name: str) -> None:
    """Overwrite the later half of the first page of an index, where its entries are."""
    with closing(sqlite3.connect(path)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
    content = bytearray(path.read_bytes())
    content[root * PAGE - PAGE // 2 : root * PAGE] = bytes(PAGE // 2)
    path.write_bytes(content)


@pytest.fixture
async def unnamed(tmp_path: Path) -> AsyncGenerator[SqliteLog]:
    """A log whose index of names finds nothing."""
    path = await closed_log(tmp_path)
    zero_half_of(path, NAMES)
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    yield log
    await log.close()


async def test_a_list_that_the_index_of_names_does_not_find_does_not_begin_anew(unnamed: SqliteLog) -> None:
    assert version(await unnamed.load("c7")) == 1
    assert len(await unnamed.read(0, 10, conversation="c8")) == 1
    assert version(await unnamed.load("nobody")) == 0


async def test_nobody_is_told_that_a_list_has_no_owner_by_an_index_that_finds_nothing(unnamed: SqliteLog) -> None:
    with pytest.raises(Damaged, match="the index can't be read"):
        await unnamed.owner("c7")


@pytest.mark.parametrize("name", [NAMES, "users", "newest"])
async def test_an_index_that_lost_lists_is_found_out_before_any_are_shown_and_built_again(
    tmp_path: Path, name: str
) -> None:
    path = await closed_log(tmp_path)
    zero_half_of(path, name)
    asks: list[Callable[[SqliteLog], Awaitable[object]]] = [
        lambda log: log.survey(),
        lambda log: log.list(limit=9),
        lambda log: log.names(""),
        lambda log: log.maintain([]),
    ]
    for ask in asks:
        log = await SqliteLog.open(str(path), reserve_bytes=0)
        with pytest.raises(Damaged, match="the index can't be read"):
            await ask(log)
        await log.close()
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    with pytest.raises(Damaged):
        await log.survey()
    await log.rebuild()
    assert len(log.unindexed_conversations()) == log.unindexed == LISTS
    assert await log.survey() == ([], []) and len((await log.load("c7")).newer) == 1
    await log.close()


async def test_where_rows_are_spoiled_too_the_log_is_read_without_its_index(tmp_path: Path) -> None:
    path = await closed_log(tmp_path)
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("spoiled", said("lost"))
    await log.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE log SET body = CAST(replace(body, 'lost', 'LOST') AS BLOB) WHERE seq = ?", (LISTS + 1,)
        )
    zero_half_of(path, NAMES)
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    with pytest.raises(Damaged):
        await log.survey()
    with pytest.raises(Damaged):
        await log.rebuild()
    assert len((await log.load("c7")).newer) == 1
    with pytest.raises(Damaged):
        await log.load("spoiled")
    await log.close()


async def test_a_name_that_leads_to_another_list_is_not_believed(tmp_path: Path) -> None:
    path = await closed_log(tmp_path)
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    expected = (await log.load("c7")).check
    await log.close()
    with closing(sqlite3.connect(path)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (NAMES,)).fetchone()[0]
        ids = dict(connection.execute("SELECT name, id FROM conversations"))
    content = bytearray(path.read_bytes())
    entry = content.index(b"c7%c" % ids["c7"], (root - 1) * PAGE)
    content[entry + 2] = ids["c8"]
    path.write_bytes(content)
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    with pytest.raises(Damaged, match="the index can't be read"):
        await log.owner("c7")
    found = await log.load("c7")
    assert (found.newer[-1].check if found.newer else found.check) == expected
    await log.close()


@pytest.mark.parametrize("wholly", [False, True])
async def test_an_entry_of_a_name_that_lost_its_last_byte_makes_no_list_begin_anew(
    tmp_path: Path, wholly: bool
) -> None:
    path = await closed_log(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (NAMES,)).fetchone()[0]
        number = connection.execute("SELECT id FROM conversations WHERE name = 'c36'").fetchone()[0]
    content = bytearray(path.read_bytes())
    entry = content.index(b"\x07\x03\x13\x01c36%c" % number, (root - 1) * PAGE)  # its length, header, name and id
    content[entry] -= 1
    path.write_bytes(content)
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    if wholly:
        with pytest.raises(Damaged, match="the index can't be read"):
            await log.survey()
    assert version(await log.load("c36")) == 1
    with pytest.raises(Damaged, match="the index can't be read"):
        await log.owner("c36")
    await log.close()


async def test_no_flipped_bit_of_the_table_of_lists_or_its_names_makes_a_list_begin_anew(tmp_path: Path) -> None:
    path = await closed_log(tmp_path)
    sound = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        pages: list[tuple[int]] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name IN ('conversations', ?)", (NAMES,)
        ).fetchall()
    seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 32)
    print(f"SEED={seed}")
    chance = random.Random(seed)

    def lengths(spoiled: bytes) -> set[int]:
        path.write_bytes(spoiled)
        try:
            log = open_log(str(path), reserve_bytes=0)
        except LogUnusable:
            return {1}
        try:
            return {version(index_recovery.load(log, f"c{number}")) for number in chance.sample(range(LISTS), 5)}
        finally:
            log.connection.close()

    for _ in range(150):
        (page,) = chance.choice(pages)
        at = (page - 1) * PAGE + chance.randrange(PAGE)
        spoiled = sound[:at] + bytes([sound[at] ^ 1 << chance.randrange(8)]) + sound[at + 1 :]
        assert await run_sync(lengths, spoiled) == {1}, f"byte {at}"


async def test_a_start_looks_at_no_list_but_the_one_that_is_asked_for(tmp_path: Path) -> None:
    path = await closed_log(tmp_path)
    log = await run_sync(lambda: open_log(str(path), reserve_bytes=0))
    try:
        assert version(await run_sync(index_recovery.load, log, "c7")) == 1
        assert log.surveyed.up_to == 0 and not log.surveyed.names
        assert version(await run_sync(index_recovery.load, log, "nobody")) == 0
        assert log.surveyed.names and log.surveyed.up_to == 0, "one look at all names, and at nothing else"
    finally:
        await run_sync(log.connection.close)


async def test_all_lists_are_looked_at_in_slices_and_others_have_their_turn(tmp_path: Path) -> None:
    lists = 3 * SLICE + 2
    log = await SqliteLog.open(str(await closed_log(tmp_path, lists)), reserve_bytes=0)
    turns = 0
    found = Survey([], ["not looked yet"])
    async with anyio.create_task_group() as beside:
        finished = anyio.Event()

        async def ask() -> None:
            nonlocal turns
            while not finished.is_set():
                await log.sizes()
                turns += 1

        beside.start_soon(ask)
        found = await log.survey()
        finished.set()
    assert found.timed == ["c0", f"c{lists - 1}"] and found.unerased == []
    assert turns >= lists // SLICE
    await log.close()


async def test_what_was_deleted_and_not_erased_is_found_once_it_is_indexed(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")
    log = await SqliteLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", said("gone"))
    await scribe.write("a", DELETED)
    assert log.just_deleted == ["a"], "it is erased before anybody reads"
    await log.maintain([])
    await log.close()
    log = await SqliteLog.open(path, reserve_bytes=0)
    assert log.just_deleted == [] and (await log.survey()).unerased == ["a"]
    await log.close()


@pytest.mark.parametrize(("member", "spoiled"), [("open", 3), ("in_progress", 4), ("user", 2)])
async def test_what_a_damaged_record_makes_of_a_list_is_found_out(tmp_path: Path, member: str, spoiled: int) -> None:
    path = await closed_log(tmp_path)
    content = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'conversations'").fetchone()[0]
    # The types of a row's members: none (the id), a text of two characters, an empty one, and two zeros.
    types = bytes([0, 17, 13, 8, 8])
    content[content.index(types, (root - 1) * PAGE) + spoiled] = 12 if member == "user" else 13  # another empty thing
    path.write_bytes(content)
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    with pytest.raises(Damaged, match="the index can't be read"):
        await log.survey()
    await log.close()
