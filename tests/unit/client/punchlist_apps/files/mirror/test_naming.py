import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from punchlist.taskfiles.config import Entry
from punchlist.taskfiles.file_names import stems_of
from punchlist_apps.files.mirror import sync as module
from punchlist_apps.files.mirror.sync import ListSync
from punchlist_testing.mirrors import Place, older_daemon

DIGITS = "0f9619ff8b8611d0b42d00c04fc964ff"
GUID = "0f9619ff-8b86-11d0-b42d-00c04fc964ff"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WRITE_PAUSE_S", "UNREADABLE_S", "MISSING_S"):
        monkeypatch.setattr(module, name, 0.0)


def file_of(place: Place, stem: str) -> Path:
    return place.file.with_name(f"{stem}.json")


def titles(file: Path) -> list[str]:
    return [task["title"] for task in json.loads(file.read_text())["tasks"]]


async def hashed(place: Place, monkeypatch: pytest.MonkeyPatch, conversation: str = DIGITS) -> Path:
    """Create a list with one task, and its file under the name that an earlier version used. Return the file."""
    with older_daemon():
        await place.client.conversation(conversation).add("a")
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", no_links)
        file = file_of(place, stems_of(conversation)[-1])
        file.parent.mkdir(parents=True)
        file.touch()
        await place.mirrored(conversation=conversation).sync()
    assert titles(file) == ["a"]
    return file


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


async def test_lists_of_one_guid_get_separate_files(place: Place) -> None:
    taken: list[ListSync] = []
    for spelling in (DIGITS, GUID, GUID.upper()):
        with older_daemon():
            await place.client.conversation(spelling).add(spelling)
        entry = Entry(str(place.directory))
        taken.append(ListSync(place.client, entry, spelling, place.report, lambda: {one.stem for one in taken}))
        await taken[-1].sync()
    assert [one.stem for one in taken] == [DIGITS, stems_of(GUID)[-1], stems_of(GUID.upper())[-1]]
    for one in reversed(taken):
        again = place.mirrored(conversation=one.conversation)
        await again.sync()
        assert (again.stem, titles(file_of(place, again.stem))) == (one.stem, [one.conversation])
    assert place.problems == []


async def test_guid_digits_name_the_file(place: Place) -> None:
    for spelling in (DIGITS, GUID.upper(), f"{{{GUID}}}"):
        await place.client.conversation(spelling).add(spelling)
    await place.mirrored(conversation=GUID).sync()
    assert titles(file_of(place, DIGITS)) == [DIGITS, GUID.upper(), f"{{{GUID}}}"]


async def test_chosen_name_is_reserved_before_the_first_write(place: Place) -> None:
    empty = place.mirrored(conversation=DIGITS)
    await empty.sync()
    await place.client.conversation(GUID).add("a")
    second = ListSync(place.client, Entry(str(place.directory)), GUID, place.report, lambda: {empty.stem})
    await second.sync()
    assert (empty.stem, second.stem) == (DIGITS, stems_of(GUID)[-1])


async def test_file_of_another_list_is_never_changed(place: Place) -> None:
    await place.client.conversation(GUID).add("theirs")
    await place.mirrored(conversation=GUID).sync()
    file = file_of(place, DIGITS)
    before = file.read_bytes()
    with older_daemon():
        await place.client.conversation(DIGITS).add("ours")
    mirror = place.mirrored(conversation=DIGITS)
    await mirror.sync()
    assert file.read_bytes() == before
    assert titles(file_of(place, mirror.stem)) == ["ours"]


async def test_file_without_list_name_is_adopted(place: Place) -> None:
    file = file_of(place, DIGITS)
    file.parent.mkdir(parents=True)
    file.write_text('{"tasks": [{"id": "0af3", "title": "older"}]}')
    await place.client.conversation(DIGITS).add("a")
    await place.mirrored(conversation=DIGITS).sync()
    assert titles(file) == ["a", "older"]


async def test_file_of_earlier_version_is_renamed_to_digits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    old = await hashed(place, monkeypatch)
    old.write_bytes(old.read_bytes().replace(b'"a"', b'"A"'))  # edited while no mirror was running
    inode = old.stat().st_ino
    guid = place.client.conversation(DIGITS)
    with old.open("r+b") as writer:  # an editor still has the file open
        mirror = place.mirrored(conversation=DIGITS)
        await mirror.sync()
        assert titles(file_of(place, DIGITS)) == ["A"] == [task.title for task in await guid.list()]
        if os.fstat(writer.fileno()).st_ino == inode:
            writer.write(file_of(place, DIGITS).read_bytes().replace(b'"A"', b'"B"'))
    await mirror.sync()
    assert [task.title for task in await guid.list()] == ["B"]
    assert os.listdir(place.file.parent) == [f"{DIGITS}.json"]
    assert place.problems == []


async def test_a_crash_between_the_two_names_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    old = await hashed(place, monkeypatch)
    file = file_of(place, DIGITS)
    os.link(old, file)
    await place.mirrored(conversation=DIGITS).sync()
    assert os.listdir(place.file.parent) == [file.name]
    assert titles(file) == ["a"]
    assert place.problems == []


async def test_different_file_under_old_name_is_copied(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    old = await hashed(place, monkeypatch)
    data = old.read_bytes()
    file = file_of(place, DIGITS)
    file.write_text('{"tasks": [{"id": "x", "title": "b"}]}')
    await place.mirrored(conversation=DIGITS).sync()
    assert titles(file) == ["a", "b"]
    [copy] = file.parent.glob("*.conflict")
    assert copy.read_bytes() == data and not old.exists()
    assert place.kinds() == ["conflict"]


def broken(place: Place, old: Path) -> None:
    old.unlink()
    old.symlink_to(place.directory / "elsewhere")


def foreign(place: Place, old: Path) -> None:
    old.write_bytes(old.read_bytes().replace(f'"conversation": "{DIGITS}"'.encode(), b'"conversation": "other"'))


@pytest.mark.parametrize("change", [broken, foreign], ids=lambda change: change.__name__)
async def test_unrelated_file_keeps_its_name(
    place: Place, monkeypatch: pytest.MonkeyPatch, change: Callable[[Place, Path], None]
) -> None:
    old = await hashed(place, monkeypatch)
    change(place, old)
    before = os.lstat(old)
    await place.mirrored(conversation=DIGITS).sync()
    assert os.lstat(old).st_ino == before.st_ino


async def test_old_name_stays_without_hard_links(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    old = await hashed(place, monkeypatch)
    monkeypatch.setattr(os, "link", no_links)
    mirror = place.mirrored(conversation=DIGITS)
    await mirror.sync()
    await place.client.conversation(DIGITS).add("b")
    mirror.is_stale = True
    await mirror.sync()
    assert os.listdir(place.file.parent) == [old.name]
    assert titles(old) == ["a", "b"]
