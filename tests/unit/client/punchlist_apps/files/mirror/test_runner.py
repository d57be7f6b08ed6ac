import json
import os
import random
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from punchlist import connect_async
from punchlist.errors import ConfirmationRequired
from punchlist.taskfiles.config import Config, Entry, FormName
from punchlist.taskfiles.report import status
from punchlist_apps.files.mirror import runner, sync
from punchlist_apps.files.mirror.runner import AlreadyRunning, Runner
from punchlist_schemas.events import TaskEdited
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.mirrors import Place, older_daemon
from punchlist_testing.savers import SAVERS, Saver, sed

PAUSE_S = 0.01


@asynccontextmanager
async def running(
    place: Place, *conversations: str, form: FormName = "checklist", **options: Any
) -> AsyncGenerator[Runner]:
    """Run the mirrors of the named conversations, by default of all."""
    Config(place.daemon.data_dir).add(Entry(str(place.directory), form, conversations or None))
    found = Runner(place.client, place.daemon.data_dir, place.report, **options)
    with found.acquire():
        async with anyio.create_task_group() as group:
            group.start_soon(found.run)
            with anyio.fail_after(30):
                await found.ready.wait()
            yield found
            group.cancel_scope.cancel()


async def until(condition: Callable[[], Any], seconds: float = 10) -> None:
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - a file sends no events
            await anyio.sleep(PAUSE_S)


async def until_titles(place: Place, titles: list[str]) -> None:
    """Wait until both the list and the file have these titles."""
    await place.list.wait(lambda tasks: [task.title for task in tasks] == titles, timeout_s=10)
    await until(lambda: shown(place) == titles)


def shown(place: Place) -> list[str]:
    try:
        return [task["title"] for task in place.read()["tasks"]]
    except (OSError, ValueError):
        return []


@pytest.mark.parametrize("save", SAVERS, ids=lambda save: save.__name__)
async def test_each_way_of_saving_is_one_edit(place: Place, save: Saver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "UNREADABLE_S", 0.3)
    monkeypatch.setattr(sync, "MISSING_S", 0.1)
    await place.list.add_many([f"task {number}" for number in range(1, 6)])
    async with running(place, "web"):
        await until(lambda: len(shown(place)) == 5)
        for number in range(3):
            data = (
                place.file.read_bytes()
                .replace(b"task 2", b"edited 2")
                .replace(b"edited 2", f"edited {number}".encode())
            )
            data = data.replace(f"edited {number - 1}".encode(), f"edited {number}".encode())
            save(place.file, data)
            await until_titles(place, ["task 1", f"edited {number}", "task 3", "task 4", "task 5"])
    said = await place.said()
    assert {kind for _, kind in said} == {"TaskEdited"}
    assert len(said) == 3
    assert place.problems == []


async def test_edit_by_sed_is_applied(place: Place) -> None:
    await place.list.add_many(["one", "two"])
    async with running(place, "web"):
        await until(lambda: len(shown(place)) == 2)
        async with place.list.watch() as changes:
            sed(place.file, 's/"one"/"ONE"/')
            change = await changes.next(5)
        assert isinstance(change.event, TaskEdited)
        assert (change.actor, change.event.title) == ("file:web.json", "ONE")
        await place.list.complete("2")
        await until(lambda: place.read()["tasks"][1]["done"])


async def test_existing_and_new_lists_are_mirrored(place: Place) -> None:
    await place.list.add("a")
    folder = place.directory / ".agents" / "tasks"
    async with running(place):
        await until(place.file.exists)
        await place.client.conversation("later").add("b")
        await until((folder / "later.json").exists)
        (folder / "0123456789abcdef0123456789abcdef.json").write_text('{"tasks": [{"title": "c"}]}')
        uuid = place.client.conversation("01234567-89ab-cdef-0123-456789abcdef")
        await uuid.wait(lambda tasks: [task.title for task in tasks] == ["c"], timeout_s=10)
        await place.client.conversation("Upper.Case").add("d")
        await until(lambda: any(name.startswith("h-") for name in os.listdir(folder)))


async def test_uuid_digits_name_the_file(place: Place) -> None:
    """Even if all lists are mirrored, the file isn't adopted by a second list whose name is the dashed UUID."""
    digits = "0f9619ff8b8611d0b42d00c04fc964ff"
    guid = place.client.conversation(digits)
    with older_daemon():
        await guid.add("a")
    file = place.file.with_name(f"{digits}.json")
    await place.mirrored(conversation=digits).sync()
    async with running(place) as found:
        assert {key[2] for key in found._members} == {digits}  # pyright: ignore[reportPrivateUsage]
        file.write_bytes(file.read_bytes().replace(b'"a"', b'"A"'))
        await guid.wait(lambda tasks: [task.title for task in tasks] == ["A"], timeout_s=10)
        (source,) = found._sources  # pyright: ignore[reportPrivateUsage]
        assert source.find_changed(str(file), found._members) == digits  # pyright: ignore[reportPrivateUsage]
    assert os.listdir(file.parent) == [file.name]
    assert [one.conversation for one in (await place.client.conversations()).conversations] == [digits]
    assert place.problems == []


async def test_spellings_of_one_uuid_get_separate_files(place: Place) -> None:
    spellings = ["0f9619ff8b8611d0b42d00c04fc964ff", "0f9619ff-8b86-11d0-b42d-00c04fc964ff"]
    spellings += [one.upper() for one in spellings]
    for spelling in spellings:
        with older_daemon():
            await place.client.conversation(spelling).add(spelling)
    folder = place.file.parent
    async with running(place):
        await until(lambda: folder.is_dir() and len(list(folder.glob("*.json"))) == len(spellings))
    files = [json.loads(file.read_text()) for file in folder.iterdir()]
    assert {(file["punchlist"]["conversation"], file["tasks"][0]["title"]) for file in files} == {
        (spelling, spelling) for spelling in spellings
    }
    assert spellings[0] in {file.stem for file in folder.iterdir()}
    assert place.problems == []


async def test_only_named_conversation_is_mirrored(place: Place) -> None:
    await place.list.add("a")
    await place.client.conversation("other").add("b")
    async with running(place, "web"):
        await until(place.file.exists)
        await place.client.conversation("other").add("c")
        await place.list.add("d")
        await until(lambda: len(shown(place)) == 2)
    assert os.listdir(place.file.parent) == ["web.json"]


async def test_mirror_added_at_runtime_starts(place: Place) -> None:
    await place.list.add("a")
    async with running(place, "other"):
        Config(place.daemon.data_dir).add(Entry(str(place.directory), "checklist", ("web",)))
        await until(place.file.exists)


async def test_regular_check_finds_lost_events(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(*_: Any, stop_event: anyio.Event, **__: Any) -> AsyncGenerator[Any]:
        await stop_event.wait()
        yield set()

    monkeypatch.setattr(runner, "awatch", deaf)
    await place.list.add("a")
    async with running(place, "web", reconcile_s=0.2):
        await until(place.file.exists)
        place.edit(lambda value: value["tasks"][0].update(title="A"))
        await until_titles(place, ["A"])


@pytest.mark.parametrize(
    ("error", "option", "watching"),
    [
        (RuntimeError("Error creating recommended watcher: Too many open files"), "force_polling", "polling"),
        (PermissionError("Permission denied about a folder inside"), "ignore_permission_denied", "events"),
    ],
)
async def test_edits_in_unwatchable_folder_are_found(
    place: Place, monkeypatch: pytest.MonkeyPatch, error: Exception, option: str, watching: str
) -> None:
    real: Any = runner.awatch  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

    def awatch(*paths: Any, **options: Any) -> Any:
        if not options[option]:
            raise error
        return real(*paths, **{**options, "poll_delay_ms": 30})

    monkeypatch.setattr(runner, "awatch", awatch)
    await place.list.add("a")
    async with running(place, "web"):
        await until(place.file.exists)
        place.edit(lambda value: value["tasks"][0].update(title="A"))
        await until_titles(place, ["A"])
    assert place.report.watching == watching


async def test_recreated_directory_is_filled_again(place: Place) -> None:
    await place.list.add("a")
    async with running(place, "web", reconcile_s=0.2):
        await until(place.file.exists)
        shutil.rmtree(place.directory)
        await until(lambda: "trouble" in place.kinds())
        place.directory.mkdir()
        await until(place.file.exists)
        place.edit(lambda value: value["tasks"][0].update(title="A"))
        await until_titles(place, ["A"])


async def test_second_process_is_rejected(place: Place) -> None:
    async with running(place):
        with pytest.raises(AlreadyRunning):
            Runner(place.client, place.daemon.data_dir, place.report).acquire()


async def test_writes_are_rate_limited(place: Place) -> None:
    await place.list.add("start")
    async with running(place, "web"):
        await until(place.file.exists)
        writes: set[int] = set()
        began = anyio.current_time()
        for number in range(200):
            await place.list.edit("1", title=f"t{number}")
            writes.add(place.file.stat().st_ino)
        await until_titles(place, ["t199"])
        took = anyio.current_time() - began
    assert len(writes) <= took / sync.WRITE_PAUSE_S + 2
    assert await place.said() == []


async def test_concurrent_calls_and_edits_are_all_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "WRITE_PAUSE_S", 0.02)
    monkeypatch.setattr(sync, "UNREADABLE_S", 0.2)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    await place.list.add_many([f"task {number}" for number in range(200)])
    added: set[str] = set()

    async def daemon() -> None:
        for number in range(100):
            if chance.random() < 0.3:
                added.add((await place.list.add(f"daemon {number}")).title)
            else:
                await place.list.edit(str(chance.randint(1, 100)), description=f"d{number}")
            await anyio.sleep(chance.random() * 0.01)

    async def file() -> None:
        for number in range(60):
            try:
                value = place.read()
            except (OSError, ValueError):
                continue
            if chance.random() < 0.3:
                added.add(f"file {number}")
                value["tasks"].append({"title": f"file {number}", "id": f"f{number}"})
            else:
                chance.choice(value["tasks"][100:200])["description"] = f"f{number}"
            chance.choice(SAVERS[:-1])(place.file, json.dumps(value).encode())
            await anyio.sleep(chance.random() * 0.02)

    async with running(place, "web"):
        await until(lambda: len(shown(place)) == 200)
        async with anyio.create_task_group() as group:
            group.start_soon(daemon)
            group.start_soon(file)
        wanted = {f"task {number}" for number in range(200)} | added

        async def settled() -> bool:
            tasks = [(task.title, task.description) for task in await place.list.list()]
            return {title for title, _ in tasks} >= wanted and tasks == [
                (task["title"], task["description"]) for task in place.read()["tasks"]
            ]

        with anyio.move_on_after(30):
            while not await settled():  # noqa: ASYNC110 - no event reports that both sides agree
                await anyio.sleep(0.05)
        assert await settled(), (sorted(wanted - set(await place.titles())), place.problems)
    assert sorted(await place.titles()) == sorted(wanted)


async def test_mirror_reconnects_after_daemon_restart(tmp_path: Path) -> None:
    directory = tmp_path / "mirror"
    directory.mkdir()
    with spawned_daemon(tmp_path) as daemon:
        async with connect_async(socket=daemon.socket, autostart=False) as client:
            place = Place(daemon, client, directory)
            await place.list.add("a")
            async with running(place, "web"):
                await until(place.file.exists)
                await run_sync(daemon.restart)
                place.edit(lambda value: value["tasks"][0].update(title="A"))
                await until_titles(place, ["A"])
                await place.list.add("b")
                await until_titles(place, ["A", "b"])


async def test_erased_list_deletes_its_file(place: Place) -> None:
    await place.list.add("a")
    async with running(place):
        await until(place.file.exists)
        await place.list.add("seen by who follows")
        await until(lambda: "seen by who follows" in place.file.read_text())
        with pytest.raises(ConfirmationRequired) as caught:
            await place.list.erase()
        await place.list.erase(confirm=caught.value.token)
        await until(lambda: not place.file.exists())


async def test_file_of_deleted_list_is_reported(
    place: Place,
) -> None:
    await place.list.add("a")
    async with running(place):
        await until(place.file.exists)
        with pytest.raises(ConfirmationRequired) as caught:
            await place.list.erase()
        await place.list.erase(confirm=caught.value.token)
        await until(lambda: not place.file.exists())
        put = b'{"tasks": [{"title": "saved late"}]}'
        place.file.write_bytes(put)
        await until(lambda: any(one.kind == "foreign" for one in place.problems))
        (told,) = [one for one in place.problems if one.kind == "foreign"]
        assert "the list web was deleted" in told.text and told.file == str(place.file)
        assert place.file.read_bytes() == put
        assert "web" not in {one.conversation for one in (await place.client.conversations()).conversations}
        await place.list.add("begun anew")
        await until_titles(place, ["begun anew", "saved late"])
        now = status(place.daemon.data_dir)
        assert now is not None and now.problems == ()
