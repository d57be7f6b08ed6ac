from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random, SystemRandom

import anyio
import pytest

from punchlist_testing.store import DELETED, Scribe, said
from punchlistd.store.file import schema
from punchlistd.store.recovery.cut import EVENT_LOST, Source, last_position, plan_repair, remaining_rows
from punchlistd.store.recovery.verify import verify_file
from punchlistd.store.sqlite import SqliteLog

Harm = Callable[[Random, bytes], bytes | None]


def a_byte(random: Random, body: bytes) -> bytes:
    at = random.randrange(len(body))
    return body[:at] + bytes([body[at] ^ 1 << random.randrange(8)]) + body[at + 1 :]


def zeros(random: Random, body: bytes) -> bytes:
    at = random.randrange(len(body))
    return body[:at] + bytes(len(body) - at)


def the_row(_random: Random, _body: bytes) -> None:
    return None


async def write(path: Path, random: Random) -> list[bytes]:
    """Write a log of four conversations in commits of several calls, with one deletion of `a`. Return its lines."""
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(25):
        calls = [
            (random.choice("abcd"), [said(f"{number}")] * random.randrange(1, 4)) for _ in range(random.randrange(1, 5))
        ]
        await scribe.write_batch(*calls)
        if number == 10:
            await scribe.write("a", DELETED)
    await log.close()
    return scribe.lines


def wire(line: bytes) -> bytes:
    return line[: line.index(b"\t")]


@pytest.mark.parametrize("harm", [a_byte, zeros, the_row])
@pytest.mark.parametrize("hits", [1, 4])
def test_cut_keeps_intact_events_and_reports_losses(tmp_path: Path, harm: Harm, hits: int) -> None:
    seed = SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    random = Random(seed)
    path, mended = tmp_path / "log.db", tmp_path / "mended.db"
    lines = anyio.run(write, path, random)
    for _ in range(10):
        mended.unlink(missing_ok=True)
        with closing(schema.connect(str(path), "rw")) as connection, closing(schema.connect(str(mended), "rwc")) as out:
            connection.execute("BEGIN")
            hurt: set[int] = set()
            rows = connection.execute("SELECT seq, first, body FROM log").fetchall()
            for seq, first, body in random.sample(rows, hits):
                spoiled = harm(random, body)
                if spoiled is None:
                    connection.execute("DELETE FROM log WHERE seq = ?", (seq,))
                else:
                    connection.execute("UPDATE log SET body = ? WHERE seq = ?", (spoiled, seq))
                hurt |= {*range(first, seq + 1)}
            source = Source(connection, last_position(connection, out, len(lines)), out)
            assert source.head == len(lines)
            cut = plan_repair(source, {})
            schema.build(out)
            kept: dict[int, bytes] = {}
            for row, left in remaining_rows(source, cut):
                out.execute("INSERT INTO log VALUES(?, ?, ?, ?)", row)
                kept.update((stored.seq, stored.wire) for stored in left)
            connection.execute("ROLLBACK")
        assert verify_file(str(mended)).problems == []
        told = {problem.seq for problem in cut.lost}
        for seq, line in enumerate(lines, 1):
            if seq not in hurt:
                assert kept[seq] == wire(line) or seq in told
            elif seq in kept and kept[seq] != wire(line):
                assert EVENT_LOST["type"].encode() in kept[seq] or b'"Conversation' in kept[seq]
        beside = {seq for seq in told - hurt if seq in cut.dropped}
        assert not beside, "no sound event is dropped"
