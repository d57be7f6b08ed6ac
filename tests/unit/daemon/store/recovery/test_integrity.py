import os
import shutil
import tracemalloc
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from punchlist_testing.store import Scribe, said
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.integrity import check_pages
from punchlistd.store.sqlite import SqliteLog


async def closed_log(directory: Path) -> Path:
    path = directory / "log.db"
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(40):
        await scribe.write(f"c{number}", said("x" * 500))
    await log.maintain([scribe.snapshot(f"c{number}") for number in range(40)])
    await log.close()
    return path


async def test_file_with_all_pages_is_complete(tmp_path: Path) -> None:
    await run_sync(check_pages, str(await closed_log(tmp_path)))


async def test_truncated_file_is_rejected_untouched(tmp_path: Path) -> None:
    path = await closed_log(tmp_path)
    cut = path.stat().st_size - 4096
    os.truncate(path, cut)
    with pytest.raises(LogUnusable, match=r"is truncated: 1 of \d+ pages are missing"):
        await SqliteLog.open(str(path))
    assert path.stat().st_size == cut


async def test_pages_in_the_wal_are_not_missing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    await Scribe(log).write("c", said("x" * 50_000))
    image = tmp_path / "image.db"
    for suffix in ("", "-wal"):
        await run_sync(shutil.copyfile, f"{path}{suffix}", f"{image}{suffix}")
    await log.close()
    header = bytearray(image.read_bytes())
    # Adds a page that only the WAL contains.
    header[28:32] = (int.from_bytes(header[28:32], "big") + 1).to_bytes(4, "big")
    image.write_bytes(header)
    await run_sync(check_pages, str(image))
    os.unlink(f"{image}-wal")
    with pytest.raises(LogUnusable, match="is truncated"):
        await run_sync(check_pages, str(image))


async def test_flipped_size_costs_no_memory(tmp_path: Path) -> None:
    path = await closed_log(tmp_path)

    def flip_each() -> None:
        whole = path.read_bytes()
        size = int.from_bytes(whole[28:32], "big")
        for flipped in (size ^ 1 << bit for bit in range(32)):
            if flipped < size:
                continue  # SQLite reads the pages that the tree names
            path.write_bytes(whole[:28] + flipped.to_bytes(4, "big") + whole[32:])
            with pytest.raises(LogUnusable, match="is truncated"):
                check_pages(str(path))

    tracemalloc.start()
    try:
        await run_sync(flip_each)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


async def test_damaged_table_definition_is_rejected(tmp_path: Path) -> None:
    path = await closed_log(tmp_path)
    sound = path.read_bytes()
    for name in (b"body", b"value"):
        at = sound.index(name)
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :])
        with pytest.raises(LogUnusable, match="restore a backup"):
            await SqliteLog.open(str(path), reserve_bytes=0)
