"""Reads of a damaged log, and its reports of gaps."""

from contextlib import closing, suppress
from random import Random

import anyio
import pytest

from punchlist_testing.store import CLEARED, DELETED, OpenedLog, Scribe, said
from punchlistd.store.file.schema import connect
from punchlistd.store.port import Damaged, Gap, LogUnusable

NAMES = ("anna", "bert", "carl")


async def written(path: str, *, indexed: bool) -> list[bytes]:
    """Write a log of twelve events: four rows, each with one event of each of three conversations. Return its lines."""
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(4):
        await scribe.write_batch(*[(name, [said(f"{name} {number}")]) for name in NAMES])
    if indexed:
        await log.maintain([])
    await log.close()
    return scribe.lines


def change(path: str, row: int, old: bytes, new: bytes) -> None:
    with closing(connect(path, "rw")) as connection:
        body: bytes = connection.execute("SELECT body FROM log WHERE seq = ?", (row,)).fetchone()[0]
        assert old in body
        connection.execute("UPDATE log SET body = ? WHERE seq = ?", (body.replace(old, new, 1), row))


async def everything(log: OpenedLog, page: int = 99) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Return the lines that a reader of the whole log gets, and its gaps."""
    lines: list[bytes] = []
    gaps: list[tuple[int, int]] = []
    after = 0
    while True:
        try:
            found = await log.read(after, page)
        except Gap as gap:
            assert gap.after == after < gap.first - 1
            gaps.append((gap.after, gap.first))
            after = gap.first - 1
            continue
        if not found:
            assert after == log.head
            return lines, gaps
        lines += [stored.line for stored in found]
        after = found[-1].seq


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("part", [b"bert 1", b'"version":2,"at":1700000000000,"actor":"scribe","event":{"type":"M'])
async def test_damage_affects_only_its_conversation(path: str, indexed: bool, part: bytes) -> None:
    lines = await written(path, indexed=indexed)
    line = next(line for line in lines if b"bert 1" in line)
    change(path, 6, line, line.replace(part, b"?" * len(part)))
    log = await OpenedLog.open(path, reserve_bytes=0)
    with pytest.raises(Damaged) as caught:
        await log.load("bert")
    assert (caught.value.conversation, caught.value.seq) == ("bert", 5)
    for name in ("anna", "carl"):
        assert len((await log.load(name)).newer) == 4
        assert len(await log.read(0, 9, conversation=name)) == 4
    assert await everything(log) == ([each for each in lines if each != line], [(4, 6)])
    assert [(damage.conversation, damage.seq) for damage in log.damage] == [("bert", 5)]
    await log.close()


async def test_damaged_conversation_is_read_up_to_its_damage(path: str) -> None:
    await written(path, indexed=True)
    change(path, 6, b"bert 1", b"bert 7")
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert [stored.seq for stored in await log.read(0, 9, conversation="bert")] == [2]
    with pytest.raises(Damaged, match="event 5"):
        await log.read(2, 9, conversation="bert")
    assert [stored.seq for stored in await log.read(5, 9, conversation="bert")] == [8, 11]
    await log.close()


@pytest.mark.parametrize("indexed", [False, True])
async def test_lost_line_break_damages_both_owners(path: str, indexed: bool) -> None:
    await written(path, indexed=indexed)
    change(path, 6, b"\n", b" ")
    log = await OpenedLog.open(path, reserve_bytes=0)
    for name in ("anna", "bert"):
        with pytest.raises(Damaged):
            await log.load(name)
    assert [damage.seq for damage in log.damage] == [4, 5]
    found, gaps = await everything(log)
    assert len(found) == 10 and gaps == [(3, 6)]
    await log.close()


@pytest.mark.parametrize("begins", [4, -(1 << 62)])
@pytest.mark.parametrize("indexed", [False, True])
async def test_row_without_values_is_damage_for_all(path: str, indexed: bool, begins: int) -> None:
    """A zeroed sector turns NOT NULL columns into NULL, and a row's first position into any number."""
    await written(path, indexed=indexed)
    with closing(connect(path, "rw")) as connection:
        connection.execute("PRAGMA writable_schema = ON").close()
        tables: list[tuple[str, str]] = connection.execute("SELECT sql, name FROM sqlite_schema").fetchall()
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(replace(sql, ' NOT NULL', ''), ' STRICT', '')"
        ).close()
    with closing(connect(path, "rw")) as connection:
        connection.execute("UPDATE log SET first = ?, sum = NULL, body = NULL WHERE seq = 6", (begins,)).close()
        connection.execute("PRAGMA writable_schema = ON").close()
        connection.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", tables).close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    for name in NAMES:
        with pytest.raises(Damaged):
            await log.load(name)
    served, gaps = await everything(log)
    assert (len(served), gaps) == (9, [(3, 7)]), "nothing was erased there"
    await log.close()


@pytest.mark.parametrize("indexed", [False, True])
async def test_zeroed_sector_is_never_an_erasure(path: str, indexed: bool) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(40):
        await scribe.write(NAMES[number % 3], said(f"{number} " + "x" * 90))
    if indexed:
        await log.maintain([])
    await log.close()
    with closing(connect(path, "ro")) as connection:
        pages: list[int] = [
            page for (page,) in connection.execute("SELECT pageno FROM dbstat WHERE name = 'log' AND pagetype = 'leaf'")
        ]
    sound = await anyio.Path(path).read_bytes()
    told = 0
    for at in (start for page in pages for start in range((page - 1) * 4096, page * 4096, 512)):
        await anyio.Path(path).write_bytes(sound[:at] + bytes(512) + sound[at + 512 :])
        await anyio.Path(path.replace(".db", ".mark")).unlink(missing_ok=True)
        try:
            log = await OpenedLog.open(path, reserve_bytes=0)
        except LogUnusable:
            told += 1
            continue
        served, gaps = await everything(log)
        missing = [line for line in scribe.lines[: log.head] if line not in served]
        lost = {seq for after, first in gaps for seq in range(after + 1, first)}
        assert {scribe.lines.index(line) + 1 for line in missing} == lost, at
        told += bool(lost)
        for name in NAMES:
            expected = [line for line in scribe.lines[: log.head] if b'"%s"' % name.encode() in line]
            try:
                got = [stored.line for stored in await log.read(0, 99, conversation=name)]
                assert got == expected[: len(got)], at
                if len(got) < len(expected):
                    with pytest.raises(Damaged):
                        await log.read(int(got[-1][7:].split(b",")[0]), 99, conversation=name)
                assert [stored.line for stored in (await log.load(name)).newer] == expected, at
            except Damaged:
                assert lost, at
        await log.close()
    assert told > len(pages)


@pytest.mark.parametrize("indexed", [False, True])
async def test_flipped_bits_are_never_served(path: str, indexed: bool) -> None:
    lines = await written(path, indexed=indexed)
    with closing(connect(path, "rw")) as connection:
        body: bytes = connection.execute("SELECT body FROM log WHERE seq = 6").fetchone()[0]
    random = Random(11)
    for _ in range(60):
        at = random.randrange(len(body) * 8)
        flipped = bytearray(body)
        flipped[at // 8] ^= 1 << at % 8
        with closing(connect(path, "rw")) as connection:
            connection.execute("UPDATE log SET body = ? WHERE seq = 6", (bytes(flipped),))
        log = await OpenedLog.open(path, reserve_bytes=0)
        served, gaps = await everything(log)
        assert set(served) <= set(lines) and len(served) >= 10, at
        assert gaps and sum(first - after - 1 for after, first in gaps) == 12 - len(served), at
        assert log.damage, at
        refused = 0
        for name in NAMES:
            try:
                assert [stored.line for stored in (await log.load(name)).newer] == [
                    line for line in lines if f'"{name}"'.encode() in line
                ]
            except Damaged as damaged:
                refused += 1
                assert damaged.conversation == name and 4 <= damaged.seq <= 9
        assert refused, at
        await log.close()


@pytest.mark.parametrize("indexed", [False, True])
async def test_flipped_position_never_hides_an_event(path: str, indexed: bool) -> None:
    """The row appears at another position, or before rows that it seems to follow."""
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(2):
        for name in NAMES:
            await scribe.write(name, said(f"{name} {number}"))
        await scribe.write_batch(("anna", [said("both")]), ("bert", [said("both")]))
    if indexed:
        await log.maintain([])
    await log.close()
    sound = await anyio.Path(path).read_bytes()
    with closing(connect(path, "ro")) as connection:
        rows: list[tuple[int, bytes]] = connection.execute("SELECT seq, body FROM log").fetchall()
    for seq, body in rows[:-1]:
        header = sound.index(body) - 14
        at = sound.index(b"%c\x06\x00" % seq, header)
        for bit in range(8):
            await anyio.Path(path).write_bytes(sound[:at] + bytes([seq ^ 1 << bit]) + sound[at + 1 :])
            await anyio.Path(path.replace(".db", ".mark")).unlink(missing_ok=True)
            for name in (*NAMES, ""):
                try:
                    log = await OpenedLog.open(path, reserve_bytes=0)
                except LogUnusable:
                    continue
                if name:
                    await expect_all_or_told(
                        log, name, [line for line in scribe.lines if b'"%s"' % name.encode() in line]
                    )
                else:
                    served, gaps = await everything(log)
                    told = {each for after, first in gaps for each in range(after + 1, first)}
                    missing = {each for each, line in enumerate(scribe.lines, 1) if line not in served}
                    assert missing <= told, (seq, bit)
                await log.close()


@pytest.mark.parametrize("indexed", [False, True])
async def test_row_with_flipped_position_is_not_served(path: str, indexed: bool) -> None:
    """A search by position finds this row first, and its content follows from earlier rows.

    Only the next row reveals the error.
    """
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(3):
        await scribe.write_batch(*[(name, [said(f"{name} {number}")]) for name in NAMES])
    await scribe.write("dora", said("last"))
    if indexed:
        await log.maintain([])
    await log.close()
    sound = await anyio.Path(path).read_bytes()
    at = sound.index(b"\x06\x06\x00", sound.index(b'{"seq":4,') - 14)
    await anyio.Path(path).write_bytes(sound[:at] + b"\x09" + sound[at + 1 :])
    log = await OpenedLog.open(path, reserve_bytes=0)
    for name in NAMES:
        with pytest.raises(Damaged):
            await log.load(name)
        for after in (3, 6):
            with pytest.raises(Damaged):
                await log.read(after, 9, conversation=name)
    await log.close()


async def test_log_without_last_checksum_reports_its_end(
    path: str,
) -> None:
    lines = await written(path, indexed=False)
    data = bytearray(await anyio.Path(path).read_bytes())
    header = data.index(b"\x0c\x06\x00", data.index(lines[9]) - 14)
    data[header + 4] = 0  # its type is now that of NULL
    await anyio.Path(path).write_bytes(data)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.regressed == (12, 12)
    assert (await everything(log))[1] == [(9, 13)]
    await log.close()


async def expect_all_or_told(log: OpenedLog, name: str, expected: list[bytes]) -> None:
    """Read a conversation from its beginning, then only its last event. A missing event must be reported."""
    for begin in (0, len(expected) - 1):
        after = int(expected[begin - 1][7:].split(b",")[0]) if begin else 0
        got: list[bytes] = []
        with suppress(Damaged):
            while found := await log.read(after, 2, conversation=name):
                got += [stored.line for stored in found]
                after = found[-1].seq
            assert got == expected[begin:]
        assert got == expected[begin:][: len(got)]


@pytest.mark.parametrize(("spoiled", "refused"), [(b"bera", {"bert"}), (b"xxxx", {"anna", "bert", "carl"})])
async def test_last_event_with_a_damaged_name_is_missed(path: str, spoiled: bytes, refused: set[str]) -> None:
    await written(path, indexed=False)
    change(path, 12, b'"bert"', b'"%s"' % spoiled)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert [damage.seq for damage in log.damage] == [11]
    found: set[str] = set()
    for name in NAMES:
        try:
            await log.load(name)
        except Damaged as damaged:
            assert damaged.seq == 11
            found.add(name)
    assert found == refused - {"carl"}, "carl's event after it follows from the one before it"
    assert (await log.load("new")).newer == []
    await log.close()


async def test_key_of_an_untrusted_event_is_damage(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", said("one"), key="k")
    await scribe.write("a", said("two"), key="other")
    await log.maintain([])
    await log.close()
    change(path, 1, b"one", b"won")
    log = await OpenedLog.open(path, reserve_bytes=0)
    with pytest.raises(Damaged, match="event 1"):
        await log.find_key("a", "k")
    assert [stored.seq for stored in await log.find_key("a", "other")] == [2]
    assert await log.find_key("a", "unused") == []
    await log.close()


async def test_missing_row_damages_its_owners(path: str) -> None:
    await written(path, indexed=True)
    with closing(connect(path, "rw")) as connection:
        connection.execute("DELETE FROM log WHERE seq = 6")
    log = await OpenedLog.open(path, reserve_bytes=0)
    with pytest.raises(Damaged, match="version 2 is missing"):
        await log.load("anna")
    found, gaps = await everything(log)
    assert len(found) == 9 and gaps == [(3, 7)]
    await log.close()


async def test_damaged_snapshot_falls_back_to_the_log(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", CLEARED, CLEARED)
    await log.maintain([scribe.snapshot("a", b"fine")])
    await scribe.write("a", CLEARED)
    await log.close()
    for spoil in ("state = x'00'", "chain = 'wrong', sum = sum"):
        with closing(connect(path.replace(".db", ".index"), "rw")) as connection:
            connection.execute(f"UPDATE snapshots SET {spoil}")
        log = await OpenedLog.open(path, reserve_bytes=0)
        loaded = await log.load("a")
        assert (loaded.state, loaded.version, len(loaded.newer)) == (None, 0, 3)
        await log.close()


@pytest.mark.parametrize("which", ["min", "max"])
async def test_unreadable_pages_are_damage(path: str, which: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("b", CLEARED)
    await scribe.write("a", said("x" * 100_000), CLEARED)
    await scribe.write("b", CLEARED)
    await log.maintain([])
    await log.close()
    with closing(connect(path, "rw")) as connection:
        page = connection.execute(
            f"SELECT {which}(pageno) FROM dbstat WHERE name = 'log' AND pagetype = 'overflow'"
        ).fetchone()
    await spoil_page(path, page[0])
    log = await OpenedLog.open(path, reserve_bytes=0)
    with pytest.raises(Damaged):
        await log.load("a")
    assert len((await log.load("b")).newer) == 2
    assert await everything(log) == ([scribe.lines[0], scribe.lines[3]], [(1, 4)])
    await log.close()


@pytest.mark.parametrize("page", [1, 2, 99])
@pytest.mark.parametrize(
    ("spoiled", "told"),
    [
        ((1,), [(0, 2)]),
        ((5,), [(4, 6)]),
        ((12,), [(11, 13)]),
        ((5, 6), [(4, 7)]),
        ((6, 7), [(5, 8)]),
        ((1, 3, 11), [(0, 2), (2, 4), (10, 12)]),
    ],
)
async def test_reader_of_the_whole_log_gets_gaps(
    path: str, spoiled: tuple[int, ...], told: list[tuple[int, int]], page: int
) -> None:
    lines = await written(path, indexed=False)
    for seq in spoiled:
        text = b"%s %d" % (NAMES[(seq - 1) % 3].encode(), (seq - 1) // 3)
        change(path, (seq + 2) // 3 * 3, text, b"x" * len(text))
    log = await OpenedLog.open(path, reserve_bytes=0)
    found, gaps = await everything(log, page)
    assert found == [line for seq, line in enumerate(lines, 1) if seq not in spoiled]
    assert gaps == told
    await log.close()


async def test_erased_events_are_not_a_gap(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write_batch(("a", [said("x" * 3_000), CLEARED]), ("b", [said("x" * 3_000)]), ("a", [CLEARED]))
    await scribe.write("a", CLEARED)
    await scribe.write("a", DELETED)
    await scribe.write("b", CLEARED)
    await log.erase("a")
    kept = [scribe.lines[2], *scribe.lines[5:]]
    assert await everything(log) == (kept, [])
    assert [stored.line for stored in await log.read(3, 99, max_bytes=100)] == [scribe.lines[5]]
    await log.close()


async def spoil_page(path: str, page: int) -> None:
    data = bytearray(await anyio.Path(path).read_bytes())
    data[(page - 1) * 4096 : (page - 1) * 4096 + 4] = b"\xff\xff\xff\xf0"
    data[(page - 1) * 4096 + 4 : page * 4096] = b"\0" * 4092
    await anyio.Path(path).write_bytes(data)


async def test_tombstone_in_a_damaged_row_is_recognized(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", CLEARED)
    await scribe.write_batch(("b", [said("one")]), ("a", [DELETED]))
    await log.close()
    change(path, 3, b"one", b"two")
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert await log.unerased() == ["a"] and [stored.version for stored in (await log.load("a")).newer] == [1, 2]
    await log.close()


@pytest.mark.parametrize("indexed", [False, True])
async def test_resume_inside_a_damaged_row_reports_it(path: str, indexed: bool) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write_batch(*[("anna", [said(f"anna {number}")]) for number in range(4)])
    await scribe.write_batch(("anna", [said("anna 4")]))
    if indexed:
        await log.maintain([])
    await log.close()
    for line in scribe.lines[2:4]:
        change(path, 4, line, bytes(len(line)))
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert [stored.seq for stored in await log.read(0, 9, conversation="anna")] == [1, 2]
    assert [stored.seq for stored in await log.read(1, 9, conversation="anna")] == [2]
    with pytest.raises(Damaged):
        await log.read(2, 9, conversation="anna")
    await log.close()
