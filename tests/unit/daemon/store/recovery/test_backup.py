import errno
import os
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from punchlist_testing.store import CLEARED, DELETED, OpenedLog, Scribe, said
from punchlistd.store.file.schema import connect
from punchlistd.store.recovery import backup as backup_module
from punchlistd.store.recovery.backup import BackupFailed, restore

FILES = {"log.db", "log.db-wal", "log.index", "log.index-wal", "log.mark"}
"""A backup of an open log."""


async def filled(log: OpenedLog) -> Scribe:
    scribe = Scribe(log)
    for number in range(30):
        await scribe.write("a", said(str(number)), CLEARED, key=f"k{number}")
        await scribe.write(f"c{number}", CLEARED)
        if number == 20:
            names = ["a", *(f"c{each}" for each in range(20))]
            await log.maintain([scribe.snapshot(name, sessions=(f"s-{name}",)) for name in names])
    return scribe


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_module, "STEP_ROWS", 7)


async def test_backup_is_the_log_without_its_index(log: OpenedLog, tmp_path: Path) -> None:
    scribe = await filled(log)
    target = str(tmp_path / "copy.db")
    report = await log.backup(target)
    assert (report.path, report.epoch, report.head, report.events, report.conversations) == (
        target, log.epoch, 90, 90, 31,
    )  # fmt: skip
    assert sorted(set(os.listdir(tmp_path)) - FILES) == ["copy.db"]
    copy = await OpenedLog.open(target, reserve_bytes=0)
    assert (copy.epoch, copy.head, copy.unindexed, copy.regressed) == (log.epoch, log.head, log.head, None)
    assert [stored.line for stored in await copy.read(0, 999)] == scribe.lines
    assert sorted(await copy.keys("a")) == sorted(await log.keys("a"))
    assert (await copy.load("a")).newer[-1] == (await log.load("a")).newer[-1]
    await copy.close()


async def test_commits_continue_during_a_backup(log: OpenedLog, tmp_path: Path) -> None:
    scribe = await filled(log)
    made = anyio.Event()

    async def back_up() -> None:
        await log.backup(str(tmp_path / "copy.db"))
        made.set()

    written = 0
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(back_up)
            while not made.is_set():
                await scribe.write("a", said("meanwhile"))
                await log.maintain([scribe.snapshot("a", sessions=("moved",))])
                written += 1
    assert written > 5
    copy = await OpenedLog.open(str(tmp_path / "copy.db"), reserve_bytes=0)
    assert 90 <= copy.head <= log.head
    assert [stored.line for stored in await copy.read(0, 9999)] == scribe.lines[: copy.head]
    loaded = await copy.load("a")
    assert loaded.version + len(loaded.newer) == 60 + copy.head - 90
    await copy.close()


async def test_backup_omits_events_erased_meanwhile(log: OpenedLog, tmp_path: Path) -> None:
    scribe = await filled(log)
    await scribe.write("gone", said("secret-words"))
    await scribe.write("gone", DELETED)
    copy = backup_module.Copy(log._operations, str(tmp_path / "x"))  # pyright: ignore[reportPrivateUsage]
    await scribe.write_batch(*[(f"more{number}", [CLEARED]) for number in range(9)])
    for number in range(9):
        await scribe.write(f"more{number}", CLEARED)
    for _ in range(9):
        await log._run(copy.step)  # pyright: ignore[reportPrivateUsage]
    assert b"secret-words" in await anyio.Path(copy.unfinished).read_bytes()
    await log.erase("gone")
    while await log._run(copy.step):  # pyright: ignore[reportPrivateUsage]
        pass
    assert b"secret-words" not in await anyio.Path(copy.unfinished).read_bytes()
    await log._run(copy.close)  # pyright: ignore[reportPrivateUsage]
    assert not await anyio.Path(copy.unfinished).exists()


async def test_backup_never_replaces_a_file(log: OpenedLog, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(BackupFailed, match="already exists") as caught:
        await log.backup(str(tmp_path / "taken"))
    assert caught.value.kind == "taken"
    assert (tmp_path / "taken").read_text() == "mine"
    with pytest.raises(BackupFailed, match="could not be written: No such file") as caught:
        await log.backup(str(tmp_path / "missing" / "copy.db"))
    assert caught.value.kind == "place"
    await log.backup(str(tmp_path / "empty.db"))
    assert not log.failed and not [name for name in os.listdir(tmp_path) if name.endswith(".new")]


async def test_cancelled_backup_leaves_nothing(log: OpenedLog, tmp_path: Path) -> None:
    await filled(log)
    before = sorted(os.listdir(tmp_path))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.backup, str(tmp_path / "copy.db"))
        await anyio.lowlevel.checkpoint()
        while sorted(os.listdir(tmp_path)) == before:
            await log.sizes()
        tasks.cancel_scope.cancel()
    assert sorted(os.listdir(tmp_path)) == before
    await log.load("a")


async def test_backup_error_names_its_kind(log: OpenedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(_finished: str, _path: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backup_module, "publish", publish)
    with pytest.raises(BackupFailed, match="No space left") as caught:
        await log.backup(str(tmp_path / "copy.db"))
    assert caught.value.kind == "full"
    assert set(os.listdir(tmp_path)) == FILES


async def test_backup_of_unreadable_pages_reports_damage(path: str, tmp_path: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    await Scribe(log).write("a", said("x" * 100_000))
    await log.maintain([])
    await log.close()
    with closing(connect(path, "ro")) as connection:
        page = connection.execute("SELECT min(pageno) FROM dbstat WHERE name = 'log' AND pagetype = 'overflow'")
        number = page.fetchone()[0]
    data = bytearray(await anyio.Path(path).read_bytes())
    data[(number - 1) * 4096 : number * 4096] = b"\xff\xff\xff\xf0" + b"\0" * 4092
    await anyio.Path(path).write_bytes(data)
    log = await OpenedLog.open(path, reserve_bytes=0)
    with pytest.raises(BackupFailed, match="can't be read") as caught:
        await log.backup(str(tmp_path / "copy.db"))
    assert caught.value.kind == "damaged"
    await log.close()


async def test_crashed_log_can_be_restored(log: OpenedLog, tmp_path: Path) -> None:
    await filled(log)
    for name in ("crashed", "home"):
        (tmp_path / name).mkdir()
    for name in ("log.db", "log.db-wal"):
        data = await anyio.Path(tmp_path / name).read_bytes()
        await anyio.Path(tmp_path / "crashed" / name).write_bytes(data)
    report = await anyio.to_thread.run_sync(restore, str(tmp_path / "crashed" / "log.db"), str(tmp_path / "home"))
    assert (report.head, report.problems) == (90, [])
    assert sorted(os.listdir(tmp_path / "home")) == ["log.db", "log.index", "log.mark"]
    assert sorted(os.listdir(tmp_path / "crashed")) == ["log.db", "log.db-wal"]
