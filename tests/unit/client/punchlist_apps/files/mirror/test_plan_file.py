"""Syncs a Markdown plan and its list, both ways."""

import os
import shlex
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import Gate
from punchlist.taskfiles.config import Config
from punchlist_apps.files.mirror import plan_file
from punchlist_apps.files.mirror.plan_file import PlanFile
from punchlist_apps.files.mirror.runner import Runner
from punchlist_testing.mirrors import Place

PLAN = """# Release

Some prose that nobody may touch.

## Build

- [ ] Write the parser
  It must be quick.
- [x] Agree on the name
- a plain bullet

## Ship

1. [ ] Tag it
   - [ ] Sign the tag

The end.
"""


class Desk:
    """A plan file and its mirror."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.path = place.directory / "PLAN.md"
        self.file = PlanFile(place.client, str(self.path), "web", place.daemon.data_dir, place.report)

    def write(self, text: str) -> None:
        self.path.write_text(text)
        os.utime(self.path, (1, time.time() - 10))  # as if the last write was some time ago

    @property
    def text(self) -> str:
        return self.path.read_text()

    async def edit(self, old: str, new: str) -> None:
        assert old in self.text
        self.write(self.text.replace(old, new))
        await self.file.sync()

    async def outline(self) -> list[tuple[str, str]]:
        return [(task.title, task.status) for task in await self.place.list.list()]

    async def id_of(self, title: str) -> str:
        return next(task.id for task in await self.place.list.list() if task.title == title)


@pytest.fixture
async def desk(place: Place) -> Desk:
    made = Desk(place)
    made.write(PLAN)
    await made.file.sync()
    return made


async def test_first_sync_imports_without_changing_the_file(desk: Desk) -> None:
    assert desk.text == PLAN
    assert await desk.outline() == [
        ("Build", "pending"),
        ("Write the parser", "pending"),
        ("Agree on the name", "completed"),
        ("Ship", "pending"),
        ("Tag it", "pending"),
        ("Sign the tag", "pending"),
    ]
    await desk.file.sync()
    assert desk.text == PLAN
    assert desk.place.problems == []


async def test_list_changes_only_boxes_titles_and_new_lines(desk: Desk) -> None:
    tasks = desk.place.list
    await tasks.complete(await desk.id_of("Write the parser"))
    await tasks.pause(await desk.id_of("Tag it"))
    await tasks.edit(await desk.id_of("Sign the tag"), title="Sign it twice")
    await tasks.add("Check it", parent=await desk.id_of("Build"))
    await tasks.add("Below it", parent=await desk.id_of("Write the parser"))
    await tasks.add("Somewhere")
    await desk.file.sync()
    assert desk.text == (
        PLAN.replace(
            "- [ ] Write the parser\n  It must be quick.",
            "- [x] Write the parser\n  It must be quick.\n  - [ ] Below it",
        )
        .replace("1. [ ] Tag it", "1. [=] Tag it")
        .replace("Sign the tag\n", "Sign it twice\n- [ ] Somewhere\n")
        .replace("- a plain bullet\n", "- [ ] Check it\n- a plain bullet\n")
    )
    before = desk.text
    await desk.file.sync()
    assert (desk.text, len(await desk.outline())) == (before, 9)


async def test_file_edits_become_calls(desk: Desk) -> None:
    parser, name = await desk.id_of("Write the parser"), await desk.id_of("Agree on the name")
    await desk.edit(
        "- [ ] Write the parser\n  It must be quick.", "- [x] Write the lexer\n  It must be slow.\n- [/] New one"
    )
    await desk.edit("[x] Agree on the name\n", "[ ] Agree on the name\n")
    tasks = {task.id: task for task in await desk.place.list.list()}
    assert (tasks[parser].title, tasks[parser].status, tasks[parser].description) == (
        *("Write the lexer", "completed"),
        "It must be slow.",
    )
    assert tasks[name].status == "pending"
    assert [title for title, _ in await desk.outline()][:4] == [
        "Build",
        "Write the lexer",
        "New one",
        "Agree on the name",
    ]
    assert tasks[await desk.id_of("New one")].parent == await desk.id_of("Build")
    assert "- [x] Write the lexer\n  It must be slow.\n- [/] New one\n" in desk.text
    events = (await desk.place.client.call("event.read", {"after": 0, "conversation": "web"}))["events"]
    assert events[-1]["actor"] == "file:PLAN.md"


async def test_moved_lines_keep_their_tasks(desk: Desk) -> None:
    before = {title: await desk.id_of(title) for title, _ in await desk.outline()}
    moved = desk.text.replace("- [x] Agree on the name\n", "").replace(
        "## Ship\n", "## Ship\n\n- [x] Agree on the name\n"
    )
    desk.write(moved.replace("   - [ ] Sign the tag\n", ""))
    await desk.file.sync()
    after = {task.title: task.id for task in await desk.place.list.list()}
    assert after == {title: task for title, task in before.items() if title != "Sign the tag"}


async def test_deleted_tasks_lose_their_lines_unless_completed(desk: Desk) -> None:
    for title in ("Write the parser", "Agree on the name"):
        await desk.place.list.delete(await desk.id_of(title))
    await desk.file.sync()
    assert "Write the parser" not in desk.text
    assert "- [x] Agree on the name\n" in desk.text
    await desk.file.sync()
    assert "Agree on the name" not in [title for title, _ in await desk.outline()]


async def test_conflict_keeps_the_lists_value_and_is_reported(desk: Desk) -> None:
    task = await desk.id_of("Write the parser")
    await desk.place.list.edit(task, title="Write the grammar")
    await desk.edit("Write the parser", "Write the lexer")
    assert "- [ ] Write the grammar" in desk.text
    assert [problem.kind for problem in desk.place.problems] == ["conflict"]
    assert "the file has 'Write the lexer', the list 'Write the grammar'" in desk.place.problems[0].text


async def test_rejected_box_is_restored_and_reported(desk: Desk) -> None:
    task, other = await desk.id_of("Tag it"), await desk.id_of("Write the parser")
    await desk.place.list.edit(task, add_blocked_by=[other])
    await desk.edit("1. [ ] Tag it", "1. [x] Tag it")
    assert "waits for" in desk.place.problems[-1].text
    assert "1. [ ] Tag it" in desk.text
    assert (await desk.outline())[4] == ("Tag it", "pending")
    await desk.file.sync()
    assert desk.place.shown == ["conflict"]
    await desk.edit("The end.", "- [ ] Other")
    assert desk.place.shown == []


async def test_edit_during_sync_is_not_lost(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = plan_file.rewrite_text

    def interrupted(*args: Any) -> Any:
        monkeypatch.setattr(plan_file, "rewrite_text", real)
        desk.write(desk.text.replace("The end.", "The end?\n\n- [ ] Late"))
        return real(*args)

    await desk.place.list.complete(await desk.id_of("Write the parser"))
    monkeypatch.setattr(plan_file, "rewrite_text", interrupted)
    await desk.edit("- [ ] Write the parser\n", "- [ ] Write the parser\n- [ ] Early\n")
    assert [title for title, _ in await desk.outline()].count("Early") == 1
    assert "- [x] Write the parser" in desk.text
    assert "The end?\n\n- [ ] Late" in desk.text
    assert (await desk.outline())[-1] == ("Late", "pending")


async def test_partly_written_file_deletes_nothing(desk: Desk) -> None:
    desk.write(desk.text[:60])
    await desk.file.sync()
    assert len(await desk.outline()) == 6
    assert "tasks are missing in the file" in desk.place.problems[-1].text


async def test_missing_or_binary_file_is_reported_until_restored(desk: Desk) -> None:
    desk.path.rename(desk.path.with_suffix(".old"))
    await desk.file.sync()
    told = desk.place.problems[-1]
    assert (told.kind, told.text) == (
        "trouble",
        f"file not found; restore it, or end its mirror: punch mirror remove {shlex.quote(str(desk.path))}",
    )
    desk.path.write_bytes(b"- [ ] \0")
    os.utime(desk.path, (1, 1))
    await desk.file.sync()
    assert desk.place.problems[-1].kind == "unread"
    desk.path.with_suffix(".old").rename(desk.path)
    await desk.edit("1. [ ] Tag it", "1. [x] Tag it")
    assert ("Tag it", "completed") in await desk.outline()


async def test_exported_list_can_be_mirrored(place: Place) -> None:
    desk = Desk(place)
    await place.list.add("a", priority="high")
    desk.write('- [ ] a <!-- punchlist: {"priority": "high"} -->\n')
    await desk.file.sync()
    await place.list.edit("1", title="b")
    await desk.file.sync()
    assert desk.text == '- [ ] b <!-- punchlist: {"priority": "high"} -->\n'
    assert await desk.outline() == [("b", "pending")]


async def test_file_without_boxes_gets_the_lists_tasks(place: Place) -> None:
    desk = Desk(place)
    desk.write("# Notes\n\n- a bullet\n- another\n")
    await desk.file.sync()
    assert await desk.outline() == []
    await place.list.add("Hostile [x] `- [ ] y` <!-- z")
    for _ in range(3):
        await desk.file.sync()
    assert desk.text == "# Notes\n\n- a bullet\n- another\n- [ ] Hostile [x] `- [ ] y` <!-- z\n"
    assert len(await desk.outline()) == 1


async def test_line_ends_and_byte_order_marks_stay(place: Place) -> None:
    desk = Desk(place)
    desk.path.write_bytes(b"\xef\xbb\xbf- [ ] a\r\n- [ ] b\r\n")
    os.utime(desk.path, (1, 1))
    await desk.file.sync()
    await place.list.complete("1")
    await desk.file.sync()
    assert desk.path.read_bytes() == b"\xef\xbb\xbf- [x] a\r\n- [ ] b\r\n"


@pytest.mark.parametrize("step", ["parse_entries", "build_proposal", "rewrite_text", "compare", "decode"])
async def test_a_plan_is_parsed_outside_the_loop(place: Place, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    real, threads = getattr(plan_file, step), set[int]()

    def noted(*args: Any, **members: Any) -> Any:
        threads.add(threading.get_ident())
        return real(*args, **members)

    monkeypatch.setattr(plan_file, step, noted)
    desk = Desk(place)
    desk.write(PLAN)
    await desk.file.sync()
    assert threads and threading.get_ident() not in threads


async def test_plan_above_size_limit_is_reported(desk: Desk) -> None:
    desk.write("- [ ] a\n" + "x" * plan_file.MAX_BYTES)
    await desk.file.sync()
    told = desk.place.problems[-1]
    assert told.kind == "unread" and "at most 1,048,576; split it" in told.text


async def test_blank_line_is_mirrored(place: Place) -> None:
    desk = Desk(place)
    blanks = " " * 300_000
    desk.write(f"- [ ] a{blanks}b\n{blanks}\n- [ ] c\n")
    with anyio.fail_after(30):
        await desk.file.sync()
    assert [title for title, _ in await desk.outline()] == ["a b", "c"]


async def test_a_plan_is_followed_live_both_ways(place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plan_file, "SETTLED_S", 0.05)
    desk = Desk(place)
    desk.write("- [ ] a\n")
    Config(place.daemon.data_dir).set_plan(str(desk.path), "web")
    async with anyio.create_task_group() as group:
        group.start_soon(Runner(place.client, place.daemon.data_dir, place.report, reconcile_s=0.5).run)
        await place.list.wait(lambda tasks: [task.title for task in tasks] == ["a"], timeout_s=15)
        with anyio.fail_after(30):
            await place.list.complete("1")
            while desk.text != "- [x] a\n":  # noqa: ASYNC110 - a file sends no events
                await anyio.sleep(0.02)
        desk.path.write_text("- [x] a\n- [ ] b\n")
        await place.list.wait(lambda tasks: [task.title for task in tasks] == ["a", "b"], timeout_s=15)
        Config(place.daemon.data_dir).set_plan(str(desk.path), None)
        group.cancel_scope.cancel()


@pytest.mark.parametrize("line", ["1. [/] Tag it", "1. [ ] Tag it", ""])
async def test_plan_keeps_tasks_that_wait_for_approval(desk: Desk, line: str) -> None:
    task = await desk.id_of("Tag it")
    await desk.place.list.edit(task, gate=Gate(yes=True))
    await desk.place.list.complete(task, force=True)
    await desk.file.sync()
    before = await desk.place.list.get(task)
    await desk.edit("1. [=] Tag it", line)
    assert await desk.place.list.get(task) == before
    assert "waits for a person's yes: leave it" in desk.place.problems[-1].text
