"""Guarantees of a log on disk beyond those of the common contract."""

import hashlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.to_thread import run_sync

from punchlist_testing.optional import require_program
from punchlist_testing.store import CLEARED, DELETED, OpenedLog, Scribe, said
from punchlistd.store import sqlite
from punchlistd.store.file import operations, schema
from punchlistd.store.file.high_water_mark import HighWaterMark, read_position
from punchlistd.store.port import LogUnusable, Sealed, StorageFailed, StorageFull
from punchlistd.store.recovery.opening import open_log


def crash_copy(path: str, directory: Path) -> str:
    """Return a copy of the log as a crash would leave it."""
    directory.mkdir()
    for name in ("log.db", "log.db-wal", "log.index", "log.index-wal", "log.mark"):
        if os.path.exists(source := os.path.join(os.path.dirname(path), name)):
            shutil.copy(source, directory)
    return str(directory / "log.db")


async def test_reopened_log_continues(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", said("one"), key="k")
    epoch = log.epoch
    await log.close()
    assert sorted(os.listdir(os.path.dirname(path))) == ["log.db", "log.index", "log.mark"]
    scribe.log = log = await OpenedLog.open(path, reserve_bytes=0)
    assert (log.epoch, log.head, log.unindexed, log.regressed) == (epoch, 1, 1, None)
    assert len(await log.find_key("a", "k")) == 1
    await scribe.write("a", said("two"))
    assert [stored.line for stored in await log.read(0, 9)] == scribe.lines
    await log.close()


async def test_commits_survive_a_crash(path: str, log: OpenedLog, tmp_path: Path) -> None:
    scribe = Scribe(log)
    await scribe.write("a", CLEARED, key="k1")
    await log.maintain([scribe.snapshot("a", sessions=("s",))])
    await scribe.write_batch(("a", [said("x")]), ("b", [CLEARED, DELETED]))
    await scribe.write("b", CLEARED, key="k2")
    recovered = await OpenedLog.open(crash_copy(path, tmp_path / "copy"), reserve_bytes=0)
    assert (recovered.head, recovered.unindexed, recovered.regressed) == (5, 4, None)
    assert sorted(recovered.unindexed_conversations()) == ["a", "b"]
    assert [stored.line for stored in await recovered.read(0, 9)] == scribe.lines
    assert len(await recovered.find_key("b", "k2")) == len(await recovered.find_key("a", "k1")) == 1
    assert await recovered.unerased() == ["b"] and await recovered.resolve("s") == ["a"]
    loaded = await recovered.load("a")
    assert (loaded.state, loaded.version, len(loaded.newer)) == (b"state", 1, 1)
    await recovered.close()


async def test_preallocated_wal_survives_a_crash(path: str, tmp_path: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", CLEARED)
    await log.maintain([])
    _, ahead = await log.sizes()
    for number in range(50):
        await scribe.write("a", said(f"number {number}"))
    assert (await log.sizes())[1] == ahead, "commits lengthen no file"
    await log.checkpoint()
    await scribe.write("a", said("after it was cut off"))
    await log.maintain([])
    assert (await log.sizes())[1] >= operations.PREALLOCATED_BYTES
    recovered = await OpenedLog.open(crash_copy(path, tmp_path / "crash"))
    assert [stored.line for stored in await recovered.read(0, 99)] == scribe.lines
    await recovered.close()
    await log.close()


async def test_cancelled_caller_does_not_cancel_the_commit(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0, slow_s=0)
    scribe = Scribe(log)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await scribe.write("a", CLEARED)
    with anyio.fail_after(30):
        await log.sizes()
    assert scope.cancelled_caught and log.head == 1
    await scribe.write("a", said("goes on"))
    assert len((await log.load("a")).newer) == 2
    await log.close()


async def test_fast_disk_commits_inline(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0, slow_s=60.0)
    scribe = Scribe(log)
    assert log.append_now(scribe.group("a", CLEARED))
    async with anyio.create_task_group() as group:
        group.start_soon(log.read, 0, 9)
        await anyio.lowlevel.checkpoint()
        assert not log.append_now([]), "the reader holds the connection"
    assert log.append_now(scribe.group("a", said("again")))
    assert [stored.version for stored in await log.read(0, 9)] == [1, 2]
    await log.close()
    assert not log.append_now([])


async def test_slow_commit_moves_the_next_to_the_thread(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    durations = iter([9.0, 0.0, 0.0, 0.0])

    def append(self: operations.Operations, _entries: Sequence[Sealed]) -> None:
        self.append_s = next(durations)

    monkeypatch.setattr(operations.Operations, "append", append)
    monkeypatch.setattr(sqlite, "COMMITS_IN_THREAD", 2)
    log = await OpenedLog.open(path, reserve_bytes=0, slow_s=1.0)
    assert log.append_now([])
    for _ in range(2):
        assert not log.append_now([])
        await log.append([])
    assert log.append_now([])
    await log.close()


async def test_open_log_is_locked(path: str, log: OpenedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "BUSY_S", 0.01)
    with pytest.raises(LogUnusable, match="in use"):
        await OpenedLog.open(path)
    await Scribe(log).write("a", CLEARED)


async def test_network_file_system_is_rejected_unless_allowed(path: str) -> None:
    with pytest.raises(LogUnusable, match=r"network file system \(nfs4\)"):
        await OpenedLog.open(path, file_system=lambda _: "nfs4")
    assert os.listdir(os.path.dirname(path)) == []
    log = await OpenedLog.open(path, file_system=lambda _: "nfs4", allow_network=True, reserve_bytes=0)
    await log.close()


@pytest.mark.parametrize("page", [0, 1])
def test_log_with_broken_structure_is_rejected(path: str, page: int) -> None:
    schema.create(path)
    data = bytearray(Path(path).read_bytes())
    data[page * 4096 + 100 * (page == 0) : (page + 1) * 4096] = b"\xff" * (4096 - 100 * (page == 0))
    Path(path).write_bytes(data)
    with pytest.raises(LogUnusable, match="punch daemon verify"):
        open_log(path)
    assert Path(path).read_bytes() == data


def test_missing_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(LogUnusable, match="can't be opened"):
        open_log(str(tmp_path / "missing" / "log.db"))


# The high-water mark


async def test_diverged_older_image_is_reported(path: str, tmp_path: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    await Scribe(log).write("a", CLEARED)
    image = crash_copy(path, tmp_path / "image")
    await Scribe(log).write("b", said("this way"))
    await log.close()
    os.unlink(tmp_path / "image" / "log.mark")
    other = await OpenedLog.open(image, reserve_bytes=0)
    await Scribe(other).write("b", said("that way"))
    await Scribe(other).write("c", said("further"))
    await other.close()
    os.replace(image, path)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.regressed == (2, 3)
    await log.close()


async def test_missing_log_is_found_by_its_mark(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    await Scribe(log).write("a", CLEARED)
    await log.close()
    os.unlink(path)
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.regressed == (1, 0) and log.head == 0
    await log.close()


async def test_restored_directory_gets_a_new_epoch(
    tmp_path: Path,
) -> None:
    data, older, twin = tmp_path / "data", tmp_path / "older", str(tmp_path / "run.mark")
    data.mkdir()
    log = await OpenedLog.open(str(data / "log.db"), reserve_bytes=0, twin=twin)
    await Scribe(log).write("a", CLEARED)
    epoch = log.epoch
    await log.close()
    shutil.copytree(data, older)
    log = await OpenedLog.open(str(data / "log.db"), reserve_bytes=0, twin=twin)
    assert (log.regressed, log.epoch) == (None, epoch), "an ordinary restart reports nothing"
    await Scribe(log).write("b", CLEARED, CLEARED)
    await log.close()
    shutil.rmtree(data)
    shutil.copytree(older, data)
    log = await OpenedLog.open(str(data / "log.db"), reserve_bytes=0, twin=twin)
    assert log.regressed == (3, 1)
    assert log.epoch != epoch
    after = log.epoch
    await log.close()
    log = await OpenedLog.open(str(data / "log.db"), reserve_bytes=0, twin=twin)
    assert (log.regressed, log.epoch) == (None, after), "the loss is reported once"
    await log.close()


@pytest.mark.parametrize("twin", ["gone", "of another log", "a directory", "random bytes", "in a missing directory"])
async def test_empty_twin_of_the_mark_is_ignored(path: str, tmp_path: Path, twin: str) -> None:
    place = tmp_path / "twin.mark"
    prepare_twin(twin, place)
    if twin == "in a missing directory":
        place = tmp_path / "missing" / "twin.mark"
    epochs: list[str] = []
    for _ in range(2):
        log = await OpenedLog.open(path, reserve_bytes=0, twin=str(place))
        await Scribe(log).write("a", CLEARED)
        assert log.regressed is None
        epochs.append(log.epoch)
        await log.close()
    assert len(set(epochs)) == 1


def prepare_twin(twin: str, place: Path) -> None:
    if twin == "a directory":
        place.mkdir()
    elif twin == "random bytes":
        place.write_bytes(os.urandom(128))
    elif twin == "of another log":
        other = HighWaterMark(str(place))
        other.write("0123456789abcdef", 1_000, 7)
        other.close()


async def test_lagging_or_foreign_mark_is_ignored(path: str) -> None:
    mark = Path(path).parent / "log.mark"
    log = await OpenedLog.open(path, reserve_bytes=0)
    await Scribe(log).write("a", CLEARED)
    before = mark.read_bytes()
    await Scribe(log).write("b", CLEARED)
    epoch = log.epoch
    await log.close()
    for content in (before, b"", os.urandom(128)):
        mark.write_bytes(content)
        log = await OpenedLog.open(path, reserve_bytes=0)
        assert log.regressed is None and log.epoch == epoch
        await log.close()
    assert len(mark.read_bytes()) == 128


# Files changed by other programs


def overwrite(how: str, path: Path, older: Path) -> None:
    match how:
        case "an older log":
            shutil.copyfile(older / "log.db", path)
        case "the same log":
            path.write_bytes(path.read_bytes())
        case "the whole directory":
            for file in older.iterdir():
                shutil.copy2(file, path.parent / file.name)
        case "zeros":
            with path.open("r+b") as file:
                file.write(bytes(512))
        case "a cut":
            os.truncate(path, path.stat().st_size - 4096)
        case _:
            os.truncate(f"{path}-wal", 4096)


@pytest.mark.parametrize(
    "how", ["an older log", "the same log", "the whole directory", "zeros", "a cut", "a cut of what is ahead"]
)
async def test_overwritten_file_stops_acknowledgements(path: str, tmp_path: Path, how: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", CLEARED)
    older = tmp_path / "older"
    shutil.copytree(tmp_path, older, ignore=shutil.ignore_patterns("older"))
    await scribe.write("a", CLEARED)
    await log.checkpoint()
    for _ in range(2):
        await scribe.write("a", CLEARED)  # the log's own writes must cause no error
    overwrite(how, Path(path), older)
    with pytest.raises(StorageFailed, match="was (overwritten|cut) while in use"):
        await scribe.write("a", CLEARED)
    assert log.head == 4
    await log.close()


async def test_older_wal_of_equal_length_is_detected(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await log.maintain([])  # fills the file with zeros, so that its length stays the same
    await scribe.write("a", CLEARED)
    older = await anyio.Path(f"{path}-wal").read_bytes()
    for _ in range(2):
        await scribe.write("a", CLEARED)
    assert await anyio.to_thread.run_sync(os.path.getsize, f"{path}-wal") == len(older)
    await anyio.to_thread.run_sync(rewrite, f"{path}-wal", older)
    with pytest.raises(StorageFailed, match="log.db-wal was overwritten while in use"):
        await scribe.write("a", CLEARED)
    await log.close()


def rewrite(path: str, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(content)


async def test_wal_of_a_killed_process_is_accepted(path: str, tmp_path: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for _ in range(3):
        await scribe.write("a", CLEARED)
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path, killed, ignore=shutil.ignore_patterns("killed"))
    await log.close()
    log = scribe.log = await OpenedLog.open(str(killed / "log.db"), reserve_bytes=0)
    for _ in range(2):
        await scribe.write("a", CLEARED)
        await log.maintain([])
        await log.checkpoint()
    assert log.head == 5
    await scribe.write("a", CLEARED)
    await anyio.to_thread.run_sync(rewrite, str(killed / "log.db-wal"), bytes(4096))
    with pytest.raises(StorageFailed, match="overwritten while in use"):
        await scribe.write("a", CLEARED)
    await log.close()


@pytest.mark.parametrize("name", ["log.db", "log.db-wal", "lock", "daemon.sock"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_removed_or_replaced_file_stops_acknowledgements(path: str, tmp_path: Path, name: str, how: str) -> None:
    for other in ("lock", "daemon.sock"):
        (tmp_path / other).write_text("")
    log = await OpenedLog.open(path, watch=[str(tmp_path / "lock")], reserve_bytes=0)
    await log.watch(str(tmp_path / "lock"), str(tmp_path / "daemon.sock"))
    scribe = Scribe(log)
    await scribe.write("a", CLEARED)
    if how == "removed":
        (tmp_path / name).unlink()
    else:
        shutil.copy(tmp_path / name, tmp_path / "copy")
        (tmp_path / "copy").rename(tmp_path / name)
    with pytest.raises(StorageFailed, match=name):
        await scribe.write("a", CLEARED)
    assert log.head == 1 and name in log.failed
    for refused in (log.append([]), log.read(0, 1), log.load("a"), log.maintain([]), log.erase("a"), log.list(limit=1)):
        with pytest.raises(StorageFailed, match=name):
            await refused
    await log.close()


async def test_close_keeps_files_that_replaced_ours(path: str, tmp_path: Path) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    await Scribe(log).write("a", CLEARED)
    stranger = await OpenedLog.open(str(tmp_path / "new.db"), reserve_bytes=0)
    await Scribe(stranger).write("b", CLEARED)
    for name in ("log.db", "log.db-wal"):
        os.replace(tmp_path / name.replace("log", "new"), tmp_path / name)
    before = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("log.db", "log.db-wal")}
    with pytest.raises(StorageFailed):
        await Scribe(log).write("a", CLEARED)
    await log.close()
    assert before == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in before}
    with pytest.raises(StorageFailed):
        await Scribe(stranger).write("b", CLEARED)
    await stranger.close()


# Disk errors


@contextmanager
def largest_file(size: int) -> Generator[None]:
    """Limit the size of files, which is the simplest way to cause a write error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_file_size_limit_rejects_writes_and_recovers(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", said("kept"))
    before = list(scribe.lines)
    for _ in range(3):
        with largest_file(200_000), pytest.raises(StorageFull):
            await scribe.append(scribe.group("b", said("x" * 300_000)))
        scribe.versions.pop("b")
        scribe.checks.pop("b")
        assert [stored.line for stored in await log.read(0, 9)] == before and not log.failed
    await scribe.write("a", said("y" * 300_000))
    size = await run_sync(os.path.getsize, path)
    with largest_file(size), pytest.raises(StorageFull):  # the checkpoint makes the file larger
        await log.checkpoint()
    await scribe.write("b", said("x" * 300_000))
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert [stored.line for stored in await log.read(0, 9, max_bytes=1 << 30)] == scribe.lines and log.regressed is None
    await log.close()


async def test_log_rejects_everything_after_a_write_error(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "probe_append", os.stat)  # the disk has space, so it counts as another error
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    await scribe.write("a", said("kept"))
    with largest_file(200_000), pytest.raises(StorageFailed, match="disk I/O error"):
        await scribe.write("a", said("x" * 300_000))
    with pytest.raises(StorageFailed):
        await scribe.write("b", CLEARED)
    await log.close()
    log = await OpenedLog.open(path, reserve_bytes=0)
    assert log.head == 1 and log.regressed is None
    await log.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    require_program("mount")
    point = tmp_path / "small"
    point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(point)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system can't be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)


async def fill(scribe: Scribe, conversation: str) -> None:
    """Write until the log reports a full disk."""
    with anyio.fail_after(30):
        while True:
            before = scribe.versions.get(conversation, 0), scribe.checks.get(conversation, "")
            try:
                await scribe.write(conversation, said("x" * 20_000))
            except StorageFull:
                scribe.versions[conversation], scribe.checks[conversation] = before
                return


async def test_full_disk_rejects_writes_and_recovers(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "CHECKPOINT_PAGES", 50)
    log = await OpenedLog.open(str(small_disk / "log.db"), reserve_bytes=512 << 10)
    ballast = anyio.Path(small_disk / "ballast")
    await ballast.write_bytes(b"x" * 300_000)
    assert log.reserve_held
    scribe = Scribe(log)
    await fill(scribe, "a")
    assert log.head > 5 and not log.failed and not log.reserve_held
    assert [stored.line for stored in (await log.load("a")).newer] == scribe.lines, "reads continue"
    await scribe.write("a", said("what is under way still fits"))
    await log.checkpoint()
    await fill(scribe, "b")
    with pytest.raises(StorageFull):
        await log.maintain([scribe.snapshot("a", b"x" * 1_000_000)])
    assert not log.failed
    await ballast.unlink()
    await scribe.write("b", said("there is space again"))
    await log.close()
    log = await OpenedLog.open(str(small_disk / "log.db"), reserve_bytes=0)
    assert log.head == len(scribe.lines) and log.regressed is None
    assert [stored.line for stored in await log.read(0, 1 << 20, max_bytes=1 << 30)] == scribe.lines
    await log.close()


async def test_reserve_is_restored_when_space_returns(small_disk: Path) -> None:
    log = await OpenedLog.open(str(small_disk / "log.db"), reserve_bytes=256 << 10)
    ballast = anyio.Path(small_disk / "ballast")
    await ballast.write_bytes(b"x" * 1_200_000)
    await fill(Scribe(log), "a")
    assert not log.reserve_held
    await ballast.unlink()
    await log.checkpoint()
    assert log.reserve_held
    await log.close()


async def test_wal_size_is_limited(path: str, log: OpenedLog) -> None:
    scribe = Scribe(log)
    largest = 0
    for _ in range(40):
        await scribe.write("a", said("x" * 500_000))
        await log.maintain([scribe.snapshot("a", b"y" * 100_000)])
        largest = max(largest, (await log.sizes())[1])
    assert 0 < largest < 12 << 20
    await log.checkpoint()
    assert (await log.sizes())[1] == 0


async def test_unclosed_log_does_not_delay_the_exit(path: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from punchlistd.store.sqlite import SqliteLog\n"
        "async def main():\n"
        "    global log\n"
        "    log = await SqliteLog.open(sys.argv[1], reserve_bytes=0)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with anyio.fail_after(30):
        ended = await anyio.run_process([sys.executable, "-c", program, path], env=environment)
    assert ended.returncode == 0


async def test_closed_log_rejects_everything(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    await log.close()
    with pytest.raises(StorageFailed, match="closed"):
        await log.read(0, 1)


async def test_closed_file_is_an_ordinary_database(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    await Scribe(log).write("a", CLEARED, CLEARED)
    await log.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT seq, first FROM log").fetchall() == [(2, 1)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_cancelled_operation_finishes_on_its_connection(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    begun, gate = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        gate.wait(5)

    async with anyio.create_task_group() as group:
        group.start_soon(log._run, work)  # pyright: ignore[reportPrivateUsage]
        await run_sync(begun.wait, 5)
        group.cancel_scope.cancel()
    assert not log.quick
    gate.set()
    await log.sizes()
    assert log.quick
    await log.close()


async def test_each_commit_updates_the_mark(path: str) -> None:
    log = await OpenedLog.open(path, reserve_bytes=0)
    scribe = Scribe(log)
    for number in range(3):
        await scribe.write("a", said(str(number)))
        noted = await run_sync(read_position, path.replace(".db", ".mark"))
        assert noted is not None and (noted.epoch, noted.seq) == (log.epoch, log.head)
    await log.close()
