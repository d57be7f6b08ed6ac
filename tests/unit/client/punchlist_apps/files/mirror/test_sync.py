import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from punchlist import Gate, SettingsPatch, connect_async
from punchlist.errors import ConfirmationRequired, ConnectionLost
from punchlist_apps.files.mirror import files
from punchlist_apps.files.mirror import sync as module
from punchlist_apps.files.mirror.apply import ProposalApplier
from punchlist_apps.files.mirror.files import Folder
from punchlist_apps.files.mirror.sync import ListSync
from punchlist_testing.daemon import running_daemon
from punchlist_testing.mirrors import Place
from punchlist_testing.store import damaged_log


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WRITE_PAUSE_S", "UNREADABLE_S", "MISSING_S"):
        monkeypatch.setattr(module, name, 0.0)


@pytest.fixture
async def mirror(place: Place) -> ListSync:
    """Create a list with the task `a`, and its file."""
    await place.list.add("a")
    mirror = place.mirrored()
    await mirror.sync()
    return mirror


async def resync(mirror: ListSync) -> None:
    mirror.is_stale = True
    await mirror.sync()


async def test_only_existing_list_gets_a_file(place: Place) -> None:
    mirror = place.mirrored()
    await mirror.sync()
    assert not place.file.exists()
    await place.list.add("a")
    await resync(mirror)
    assert [task["title"] for task in place.read()["tasks"]] == ["a"]


async def test_own_write_is_neither_edit_nor_repeated(place: Place, mirror: ListSync) -> None:
    before = place.file.stat().st_ino
    for _ in range(5):
        await resync(mirror)
    await place.list.append_message("user", "hello")
    await resync(mirror)
    await place.mirrored().sync()
    assert place.file.stat().st_ino == before
    assert await place.said() == []


async def test_all_kinds_of_edits_become_calls(place: Place) -> None:
    await place.list.add_many(["a", "b", "c"])
    mirror = place.mirrored()
    await mirror.sync()

    def change(value: Any) -> None:
        a, b, c = value["tasks"]
        a["title"] = "A"
        a["done"] = True
        value["tasks"] = [c, {"title": "new", "description": "d"}, a]
        assert b

    place.edit(change)
    await mirror.sync()
    assert await place.titles() == ["c", "new", "A"]
    assert (await place.list.get("1")).status == "completed"
    assert {actor for actor, _ in await place.said()} == {"file:web.json"}
    assert [task["id"] for task in place.read()["tasks"]] == ["3", "4", "1"]
    assert place.problems == []


async def test_file_with_own_ids_deletes_nothing(place: Place) -> None:
    place.write({"tasks": [{"id": "0af3", "title": "a", "description": "", "done": False}]})
    mirror = place.mirrored()
    await mirror.sync()
    assert place.read()["tasks"][0]["id"] == "0af3"
    await place.list.add("ours")
    place.write({"tasks": [{"id": "0af3", "title": "a", "done": True}, {"id": "77bb", "title": "b"}]})
    await mirror.sync()
    assert await place.titles() == ["a", "ours", "b"]
    assert (await place.list.get("1")).status == "completed"
    assert [task["id"] for task in place.read()["tasks"]] == ["0af3", "2", "77bb"]


async def test_foreign_members_survive_writes(place: Place) -> None:
    mine = {"createdAt": "2026-02-18", "tags": ["a"]}
    place.write(
        {"sessionTitle": "S", "tasks": [{"id": "0af3", "title": "a", "description": "", "done": False, **mine}]}
    )
    mirror = place.mirrored()
    await mirror.sync()
    for change in (place.list.add("b"), place.list.complete("1"), place.list.edit("1", title="A")):
        await change
        await resync(mirror)
    again = place.mirrored()  # after a restart
    await place.list.move("2", before="1")
    await again.sync()
    for _ in range(2):
        value = place.read()
        assert value["sessionTitle"] == "S"
        assert value["tasks"][1] == {"id": "0af3", "title": "A", "description": "", "done": True, **mine}
        place.file.unlink()  # the mirror restores the file unchanged
        await again.sync()
    assert place.problems == []


async def test_slow_program_without_our_member_reverts_nothing(place: Place, mirror: ListSync) -> None:
    old = {"tasks": place.read()["tasks"]}
    await place.list.edit("1", title="A")
    await place.list.add("b")
    await resync(mirror)
    place.write({"tasks": [*old["tasks"], {"id": "x", "title": "c"}]})
    await mirror.sync()
    assert sorted(await place.titles()) == ["A", "b", "c"]


@pytest.mark.parametrize("data", [None, b"", b" \n", b'{"tasks": []}', b"\xef\xbb\xbf", b"emptied"])
async def test_missing_or_empty_file_deletes_nothing(place: Place, data: bytes | None) -> None:
    await place.list.add_many(["a", "b"])
    mirror = place.mirrored()
    await mirror.sync()
    if data is None:
        place.file.unlink()
    elif data == b"emptied":  # the emptied file still names its base version
        place.edit(lambda value: value.update(tasks=[]))
    else:
        place.file.write_bytes(data)
    await mirror.sync()
    assert [task["title"] for task in place.read()["tasks"]] == await place.titles() == ["a", "b"]
    assert await place.said() == []


@pytest.mark.parametrize("data", [b'{"tasks": [{"id": "1", "tit', b"[]", b'{"tasks": "x"}', b"\xff"])
async def test_corrupt_file_is_reported_until_repaired(
    place: Place, mirror: ListSync, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = place.file.read_bytes()
    monkeypatch.setattr(module, "UNREADABLE_S", 100.0)
    place.file.write_bytes(data)
    await mirror.sync()
    assert place.problems == []
    assert mirror.retry_s
    monkeypatch.setattr(module, "UNREADABLE_S", 0.0)
    await place.list.add("b")
    await resync(mirror)
    assert place.file.read_bytes() == data
    assert place.kinds() == ["corrupt"]
    place.file.write_bytes(good.replace(b'"a"', b'"A"'))
    await mirror.sync()
    assert [task["title"] for task in place.read()["tasks"]] == ["A", "b"]


async def test_removed_corrupt_file_is_written_again(place: Place) -> None:
    await place.list.add("a")
    place.write([])
    mirror = place.mirrored()
    await mirror.sync()
    assert place.kinds() == ["corrupt"]
    place.file.unlink()
    await mirror.sync()
    assert place.read()["tasks"][0]["title"] == "a"


async def test_old_file_restores_nothing(place: Place) -> None:
    await place.list.add_many(["a", "b"])
    mirror = place.mirrored()
    await mirror.sync()
    old = place.file.read_bytes()
    await place.list.delete("1")
    await place.list.edit("2", title="B")
    await place.list.add("c")
    await resync(mirror)
    place.file.write_bytes(old)
    await mirror.sync()
    assert await place.titles() == ["B", "c"]
    assert await place.said() == []
    assert [task["title"] for task in place.read()["tasks"]] == ["B", "c"]


async def test_edit_of_older_file_is_merged(place: Place) -> None:
    await place.list.add_many(["a", "b"])
    mirror = place.mirrored()
    await mirror.sync()
    old = place.read()
    await place.list.add("c")
    await resync(mirror)
    old["tasks"] = [{**old["tasks"][1], "description": "more"}]
    place.write(old)
    await place.mirrored().sync()
    assert await place.titles() == ["a", "b", "c"]
    assert (await place.list.get("2")).description == "more"
    assert place.kinds() == ["kept"]


async def test_removal_from_newest_file_deletes_the_task(place: Place) -> None:
    await place.list.add_many(["a", "b"])
    await place.mirrored().sync()
    place.edit(lambda value: value["tasks"].pop(0))
    await place.mirrored().sync()
    assert await place.titles() == ["b"]


async def test_conflict_is_reported_and_list_value_stays(place: Place, mirror: ListSync) -> None:
    await place.list.edit("1", title="theirs")
    place.edit(lambda value: value["tasks"][0].update(title="mine"))
    mine = place.file.read_bytes()
    await mirror.sync()
    assert await place.titles() == ["theirs"]
    (problem,) = place.problems
    assert problem.kind == "conflict"
    assert "#1 title" in problem.text
    assert place.file.with_name(problem.copy.rpartition("/")[2]).read_bytes() == mine
    (message,) = (await place.list.messages()).messages
    assert message.role == "conflict"
    assert message.actor == "file:web.json"
    assert '"mine"' in message.content["conflicts"][0]


async def test_rejected_change_is_a_conflict_with_reason(place: Place) -> None:
    await place.list.add("a")
    await place.list.add("b", blocked_by=["1"])
    mirror = place.mirrored()
    await mirror.sync()
    place.edit(lambda value: value["tasks"][1].update(done=True))
    await mirror.sync()
    assert "blocked" in place.problems[0].text
    place.edit(lambda value: [task.update(done=True) for task in reversed(value["tasks"])])
    await mirror.sync()
    assert [task.status for task in await place.list.list()] == ["completed", "completed"]
    place.edit(lambda value: value["tasks"][0].update(title="x" * 501))
    await mirror.sync()
    assert "invalid_params" in place.problems[-1].text
    assert [task["title"] for task in place.read()["tasks"]] == ["a", "b"]


@pytest.mark.parametrize("member", ["epoch", "conversation"])
async def test_foreign_file_is_reported_and_not_written(place: Place, mirror: ListSync, member: str) -> None:
    place.edit(lambda value: (value["punchlist"].update({member: "other"}), value["tasks"].append({"title": "x"})))
    data = place.file.read_bytes()
    await mirror.sync()
    assert place.file.read_bytes() == data
    assert await place.titles() == ["a"]
    assert place.kinds() == ["foreign"]
    place.file.unlink()
    await mirror.sync()
    assert [task["title"] for task in place.read()["tasks"]] == ["a"]


def at_our_next_write(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Run an action just before the mirror writes."""
    replace = Folder.replace

    def late(self: Folder, name: str, data: bytes, expected: bytes | None) -> bytes | None:
        monkeypatch.setattr(Folder, "replace", replace)
        happens()
        return replace(self, name, data, expected)

    monkeypatch.setattr(Folder, "replace", late)


async def test_edit_during_a_write_is_applied(place: Place, mirror: ListSync, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.list.add("b")

    def late() -> None:
        place.edit(lambda value: (value["tasks"][0].update(title="A"), value["tasks"].append({"title": "c"})))

    at_our_next_write(monkeypatch, late)
    await resync(mirror)
    assert sorted(await place.titles()) == ["A", "b", "c"]
    assert sorted(task["title"] for task in place.read()["tasks"]) == ["A", "b", "c"]
    assert os.listdir(place.file.parent) == ["web.json"]


async def test_partly_written_file_is_not_replaced(
    place: Place, mirror: ListSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = place.file.read_bytes().replace(b'"a"', b'"A"')
    await place.list.add("b")
    writer = place.file.open("r+b", buffering=0)  # a slow editor

    def late() -> None:
        writer.truncate(0)

    at_our_next_write(monkeypatch, late)
    await resync(mirror)
    assert mirror.retry_s
    writer.write(whole)
    writer.close()
    await mirror.sync()
    assert await place.titles() == ["A", "b"]
    assert [task["title"] for task in place.read()["tasks"]] == ["A", "b"]


async def test_edits_continue_during_incomplete_displaced_file(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNREADABLE_S", 100.0)
    await place.list.add("a")
    mirror = place.mirrored()
    await mirror.sync()
    whole = place.file.read_bytes()
    await place.list.add("b")
    writer = place.file.open("r+b", buffering=0)

    def half() -> None:
        writer.truncate(0)

    at_our_next_write(monkeypatch, half)
    await resync(mirror)
    place.edit(lambda value: value["tasks"].append({"title": "c"}))
    await mirror.sync()
    assert await place.titles() == ["a", "b", "c"]
    with writer:
        writer.write(whole.replace(b'"a"', b'"A"'))
    await mirror.sync()
    assert await place.titles() == ["A", "b", "c"]
    assert [task["title"] for task in place.read()["tasks"]] == ["A", "b", "c"]
    assert os.listdir(place.file.parent) == ["web.json"]


async def test_incomplete_file_is_kept_as_a_copy(
    place: Place, mirror: ListSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.list.add("b")

    def half() -> None:
        place.file.write_bytes(b'{"tasks": [')

    at_our_next_write(monkeypatch, half)
    await resync(mirror)
    assert place.kinds() == ["conflict"]
    copies = [one.read_bytes() for one in place.file.parent.glob("*.conflict")]
    assert copies == [b'{"tasks": [']
    assert [task["title"] for task in place.read()["tasks"]] == ["a", "b"]


async def test_displaced_special_file_is_kept(
    place: Place, mirror: ListSync, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await place.list.add("b")

    def link() -> None:
        read, calls = files._read, iter(range(9))  # pyright: ignore[reportPrivateUsage]

        def late(folder: int, name: str) -> bytes | None:
            found = read(folder, name)
            if next(calls) == 0:
                place.file.unlink()
                place.file.symlink_to(tmp_path / "elsewhere")
            return found

        monkeypatch.setattr(files, "_read", late)

    at_our_next_write(monkeypatch, link)
    for _ in range(2):
        await resync(mirror)
    assert [task["title"] for task in place.read()["tasks"]] == ["a", "b"]
    [copy] = place.file.parent.glob("*.conflict")
    assert os.readlink(copy) == str(tmp_path / "elsewhere")
    assert place.kinds()[-1] == "conflict"


async def test_displaced_file_is_applied_after_daemon_returns(
    place: Place, mirror: ListSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.list.add("b")
    take = ProposalApplier.apply

    def late() -> None:
        monkeypatch.setattr(ProposalApplier, "apply", away)
        place.edit(lambda value: value["tasks"][0].update(title="A"))

    async def away(*_: Any) -> Any:
        monkeypatch.setattr(ProposalApplier, "apply", take)
        raise ConnectionLost("the daemon is away")

    at_our_next_write(monkeypatch, late)
    mirror.is_stale = True
    with pytest.raises(ConnectionLost):
        await mirror.sync()
    await resync(mirror)
    assert await place.titles() == ["A", "b"]
    assert os.listdir(place.file.parent) == ["web.json"]


async def test_late_write_is_applied_after_daemon_returns(
    place: Place, mirror: ListSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = place.file.read_bytes()
    await place.list.add("b")
    take = ProposalApplier.apply

    async def away(*_: Any) -> Any:
        monkeypatch.setattr(ProposalApplier, "apply", take)
        raise ConnectionLost("the daemon is away")

    with place.file.open("r+b") as writer:
        await resync(mirror)
        writer.write(whole.replace(b'"a"', b'"A"'))
    monkeypatch.setattr(ProposalApplier, "apply", away)
    with pytest.raises(ConnectionLost):
        await mirror.sync()
    await mirror.sync()
    assert await place.titles() == ["A", "b"]


async def test_displaced_file_of_interrupted_write_is_found(place: Place) -> None:
    await place.list.add("a")
    await place.mirrored().sync()
    beside = place.file.with_name(".web.json.mirror")
    beside.write_bytes(place.file.read_bytes().replace(b'"a"', b'"A"'))
    await place.mirrored().sync()
    assert await place.titles() == ["A"]
    beside.write_bytes(b'{"tas')
    await place.mirrored().sync()
    assert os.listdir(place.file.parent) == ["web.json"]


async def test_full_disk_is_reported_until_resolved(
    place: Place, mirror: ListSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place.file.read_bytes()
    fsync = os.fsync

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    await place.list.add("b")
    mirror.is_stale = True
    monkeypatch.setattr(os, "fsync", full)
    await mirror.sync()
    monkeypatch.setattr(os, "fsync", fsync)
    assert place.file.read_bytes() == before
    assert place.kinds() == ["trouble"]
    assert mirror.retry_s
    await mirror.sync()
    assert [task["title"] for task in place.read()["tasks"]] == ["a", "b"]


async def test_erasure_during_a_write_deletes_the_file(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.list.add("a")
    mirror = place.mirrored()
    written, replace = anyio.Event(), Folder.replace

    def slow(self: Folder, name: str, data: bytes, expected: bytes | None) -> bytes | None:
        found = replace(self, name, data, expected)
        anyio.from_thread.run_sync(written.set)
        return found

    monkeypatch.setattr(Folder, "replace", slow)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(mirror.sync)
            await written.wait()
            await mirror.erase()
    assert not place.file.exists()
    await resync(mirror)
    assert not place.file.exists()


async def erased(place: Place) -> None:
    with pytest.raises(ConfirmationRequired) as caught:
        await place.list.erase()
    await place.list.erase(confirm=caught.value.token)


async def test_unseen_erasure_deletes_the_file(place: Place, mirror: ListSync) -> None:
    await erased(place)
    await resync(mirror)
    assert not place.file.exists()
    await place.list.add("new")
    await resync(mirror)
    assert [task["title"] for task in place.read()["tasks"]] == ["new"]


async def test_erased_conversation_deletes_its_file(place: Place, mirror: ListSync) -> None:
    await erased(place)
    await mirror.erase()
    assert not place.file.exists()


async def test_serial_and_clearing_lists_match_their_files(place: Place) -> None:
    settings = SettingsPatch(execution="serial", auto_clear="when_done")
    await place.list.open(settings=settings)
    await place.list.add_many(["a", "b"])
    mirror = place.mirrored()
    await mirror.sync()
    place.edit(lambda value: value["tasks"][0].update(done=True))
    await mirror.sync()
    assert [task.status for task in await place.list.list()] == ["completed", "in_progress"]
    place.edit(lambda value: value["tasks"][1].update(done=True))
    await mirror.sync()
    assert place.read()["tasks"] == await place.titles() == []


# one file for each task


def _file(place: Place, task: str) -> Path:
    return place.directory / "web" / f"{task}.json"


async def test_task_folder_syncs_both_ways(place: Place) -> None:
    await place.list.add_many(["a", "b", "c"])
    mirror = place.mirrored("claude")
    await mirror.sync()
    value = json.loads(_file(place, "1").read_text())
    value |= {"status": "in_progress", "owner": "bob", "activeForm": "Doing a", "blocks": ["2"], "metadata": {"x": 1}}
    _file(place, "1").write_text(json.dumps(value))
    deleted = json.loads(_file(place, "3").read_text()) | {"status": "deleted"}
    _file(place, "3").write_text(json.dumps(deleted))
    await mirror.sync()
    task = await place.list.get("1")
    assert (task.status, task.owner, task.active_form, task.metadata) == ("in_progress", "bob", "Doing a", {"x": 1})
    assert (await place.list.get("2")).blocked_by == ("1",)
    assert json.loads(_file(place, "2").read_text())["blockedBy"] == ["1"]
    assert not _file(place, "3").exists()
    assert await place.titles() == ["a", "b"]
    assert place.problems == []


async def test_new_files_get_ids_and_keep_edges(place: Place) -> None:
    await place.list.add("a")
    mirror = place.mirrored("claude")
    await mirror.sync()
    await place.list.add("ours, number two")
    for number, subject, blocked_by in (("2", "x", ["3"]), ("3", "y", ["1"])):
        said = {"id": number, "subject": subject, "status": "pending", "blocks": [], "blockedBy": blocked_by}
        _file(place, number).write_text(json.dumps(said))
    await mirror.sync()
    tasks = {task.title: task for task in await place.list.list()}
    assert set(tasks) == {"a", "ours, number two", "x", "y"}
    assert tasks["x"].blocked_by == (tasks["y"].id,)
    assert tasks["y"].blocked_by == ("1",)
    files = {json.loads(path.read_text())["subject"]: path.stem for path in (place.directory / "web").iterdir()}
    assert files == {title: task.id for title, task in tasks.items()}
    assert place.problems == []


async def test_missing_task_file_is_restored(place: Place) -> None:
    await place.list.add_many(["a", "b"])
    mirror = place.mirrored("claude")
    await mirror.sync()
    _file(place, "2").unlink()
    bare = json.loads(_file(place, "1").read_text())
    del bare["punchlist"]
    _file(place, "1").write_text(json.dumps(bare | {"subject": "A"}))
    await mirror.sync()
    assert await place.titles() == ["A", "b"]
    assert _file(place, "2").exists()


async def test_file_of_damaged_list_is_not_written(tmp_path: Path) -> None:
    added = {"type": "TaskAdded", "task": {"id": "1", "title": "still there"}}
    await damaged_log(tmp_path / "data", (3,), added)
    async with running_daemon(tmp_path) as daemon, connect_async(socket=daemon.socket, autostart=False) as client:
        place = Place(daemon, client, tmp_path / "mirror")
        place.directory.mkdir()
        await place.mirrored(conversation="a").sync()
        assert not (place.file.parent / "a.json").exists() and place.kinds() == ["trouble"]
        assert "damaged" in place.problems[0].text
        await place.mirrored(conversation="b").sync()
        assert (place.file.parent / "b.json").exists()


async def test_file_can_not_withdraw_from_approval(place: Place) -> None:
    await place.list.add("a", gate=Gate(yes=True))
    await place.list.add("b")
    mirror = place.mirrored()
    await mirror.sync()
    await place.list.complete("1", "done")
    before = await place.list.get("1")
    await resync(mirror)
    place.edit(lambda value: value["tasks"].pop(0))
    await mirror.sync()
    assert await place.list.get("1") == before
    assert [task["title"] for task in place.read()["tasks"]] == ["a", "b"]
    assert "waits for a person's yes: leave it" in place.problems[-1].text
