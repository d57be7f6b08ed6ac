"""Pages of a list's changes: nothing is lost or doubled, whatever happens to the subscription; without the SDK."""

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from shutil import rmtree

import anyio
import pytest

from punchlist import AsyncClient, connect_async
from punchlist.errors import ConfirmationRequired
from punchlist_apps.mcp import event_source
from punchlist_apps.mcp.event_source import HistoryLost, Page, Tail, follow, read_page
from punchlist_apps.mcp.event_types import Position
from punchlist_schemas.events import TaskAdded
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.store import damaged_log
from punchlistd.store.file.schema import connect


@asynccontextmanager
async def start(folder: Path) -> AsyncGenerator[tuple[Spawned, AsyncClient]]:
    with spawned_daemon(folder) as daemon, anyio.fail_after(50):
        async with connect_async(socket=daemon.socket, autostart=False) as client:
            yield daemon, client


def titles(page: Page) -> list[str]:
    return [change.event.task.title for change in page.changes if isinstance(change.event, TaskAdded)]


async def test_pages_follow_a_cursor(tmp_path: Path) -> None:
    async with start(tmp_path) as (_, client):
        work = client.conversation("work")
        start_page = await read_page(client, "work", None)
        assert start_page.changes == [] and not start_page.truncated
        for number in range(5):
            await work.add(f"{number}")
        await client.conversation("other").add("Not of interest")
        read, page = list[str](), start_page
        while True:
            page = await read_page(client, "work", page.position, 2)
            read += titles(page)
            if not page.more:
                break
        assert read == list("01234")


async def test_page_cut_by_size_has_more(tmp_path: Path) -> None:
    async with start(tmp_path) as (_, client):
        work, tail, read = client.conversation("work"), Tail(), list[str]()
        first = (await read_page(client, "work", None)).position
        for number in range(10):
            await work.add(f"{number}", description="x" * 60_000)
        async with aclosing(follow(client, tail, "work", first, lambda: 0.01)) as pages:
            read += titles(await anext(pages))
            async with work.watch() as changes:
                await work.add("10")
                tail.push(await changes.next())
            while "10" not in read:
                read += titles(await anext(pages))
        assert read == [str(number) for number in range(11)]


async def test_position_of_another_log_is_truncated(tmp_path: Path) -> None:
    async with start(tmp_path) as (_, client):
        await client.conversation("work").add("One")
        head = (await read_page(client, "work", None)).position
        for after in (Position("0123", 1), Position(head.epoch, 1_000)):
            assert await read_page(client, "work", after) == Page([], head, truncated=True)


async def test_deletion_truncates(tmp_path: Path) -> None:
    async with start(tmp_path) as (_, client):
        work = client.conversation("work")
        await work.add("Erased")
        before = (await read_page(client, "work", None)).position
        with pytest.raises(ConfirmationRequired) as asked:
            await work.erase()
        await work.erase(confirm=asked.value.token)
        await work.add("New")
        page = await read_page(client, "work", before)
        assert page.truncated and titles(page) == ["New"]


async def test_damaged_log_truncates(tmp_path: Path) -> None:
    await damaged_log(tmp_path / "data")
    async with start(tmp_path) as (_, client):
        epoch = (await client.open()).epoch
        page = await read_page(client, "a", Position(epoch, 0))
        assert len(page.changes) == 1 and not page.truncated
        assert (await read_page(client, "a", page.position)).truncated
        async with aclosing(follow(client, Tail(), "a", None, lambda: 0.0)) as pages:
            for _ in range(3):
                assert not (await anext(pages)).truncated


async def test_later_damage_ends_the_pages(tmp_path: Path) -> None:
    async with start(tmp_path) as (daemon, client):
        await client.conversation("a").add("as it was")
        with pytest.raises(HistoryLost):
            async with aclosing(follow(client, Tail(), "a", None, lambda: 0.0)) as pages:
                await anext(pages)
                daemon.kill()
                with closing(connect(f"{daemon.data_dir}/log.db", "rw")) as connection:
                    connection.execute("UPDATE log SET body = CAST(replace(body, 'as it', 'as he') AS BLOB)").close()
                daemon.start()
                await anext(pages)


async def test_slow_reader_gets_each_change_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    monkeypatch.setattr(event_source, "_MAX_BUFFERED", 3)
    monkeypatch.setattr(event_source, "PAGE", 4)
    async with start(tmp_path) as (_, client), client.watch() as changes:
        work, tail, read = client.conversation("work"), Tail(), list[str]()
        async with aclosing(follow(client, tail, "work", None, lambda: 0.01)) as pages:
            await anext(pages)
            for number in range(60):
                await work.add(f"{number}")
                while (change := await changes.next()).seq < (await work.list()).seq:
                    tail.push(change)
                tail.push(change)
                if chance.random() < 0.1:
                    tail.fall_behind()
                if chance.random() < 0.3:
                    read += titles(await anext(pages))
            while len(read) < 60:
                read += titles(await anext(pages))
        assert read == [str(number) for number in range(60)], f"seed {seed}"


async def test_large_call_is_read_from_the_log(tmp_path: Path) -> None:
    async with start(tmp_path) as (_, client), client.watch() as changes, anyio.create_task_group() as group:
        work, tail, read = client.conversation("work"), Tail(), list[str]()
        await work.add("Before")
        await changes.next()
        async with aclosing(follow(client, tail, "work", None, lambda: 10.0)) as pages:
            await anext(pages)
            await work.add_many([f"{number}" for number in range(1_500)])
            pushed = [await changes.next() for _ in range(1_500)]

            async def push() -> None:
                for change in pushed:
                    tail.push(change)

            group.start_soon(push)  # runs when the reader waits
            while "1499" not in read:
                read += titles(await anext(pages))
        assert read == [str(number) for number in range(1_500)]


async def test_reader_outlives_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_source, "RETRY_S", 0.01)
    async with start(tmp_path) as (daemon, writer):
        async with connect_async(socket=daemon.socket, autostart=False, timeout_s=0.1) as client:
            tail = Tail()
            async with aclosing(follow(client, tail, "work", None, lambda: 10.0)) as pages:
                await anext(pages)
                daemon.kill()
                tail.fall_behind()
                assert (await anext(pages)).changes == []
                daemon.start()
                await writer.conversation("work").add("One")
                while not (page := await anext(pages)).changes:
                    pass
                assert titles(page) == ["One"]


async def test_replaced_log_ends_the_pages(tmp_path: Path) -> None:
    async with start(tmp_path) as (daemon, client):
        await client.conversation("work").add("One")
        tail = Tail()
        async with aclosing(follow(client, tail, "work", None, lambda: 10.0)) as pages:
            await anext(pages)
            daemon.kill()
            rmtree(daemon.data_dir)
            daemon.start()
            tail.fall_behind()
            with pytest.raises(HistoryLost):
                while True:
                    await anext(pages)
