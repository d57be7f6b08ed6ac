"""Mirrors plans of each Markdown form, with their marks, in their encodings."""

import codecs
import os

import pytest

from punchlist_apps.files.mirror.plan_file import PlanFile, read_form_name
from punchlist_schemas.things import Task
from punchlist_testing.mirrors import Place
from punchlist_testing.plan_samples import SAMPLES


class Plan:
    """A mirrored file."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.list = place.list
        self.path = place.directory / "tasks.md"
        self.file = PlanFile(place.client, str(self.path), "web", place.daemon.data_dir, place.report)

    async def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(self.path, (1, 1))
        await self.file.sync()

    async def edit(self, old: str, new: str) -> None:
        assert old in self.text
        await self.write(self.text.replace(old, new))

    @property
    def text(self) -> str:
        return self.path.read_bytes().decode()

    @property
    def form(self) -> str:
        return read_form_name(str(self.path), "web", self.place.daemon.data_dir)

    async def find(self, start: str) -> Task:
        return next(task for task in await self.list.list() if task.title.startswith(start))


@pytest.fixture
def plan(place: Place) -> Plan:
    return Plan(place)


@pytest.mark.parametrize(
    ("form", "title", "old", "new", "renamed"),
    [
        ("kiro", "1.1", "- [ ]* 1.1", "- [x]* 1.1", "- [x]* 1.1 New"),
        ("spec-kit", "T004", "- [ ] T004 [US1] Write the service (depends on T002-T003)", "- [x] T004 [US1]", "New"),
        ("openspec", "2.1.1", "  - [ ] 2.1.1 Translate it", "  - [x] 2.1.1 Translate it", "New"),
        ("obsidian", "Pay", "- [ ] Pay rent #home 🔺 📅", "- [x] Pay rent #home 🔺 📅", "- [x] New #home 🔺 📅"),
        ("kanban", "Second", "- [ ] Second", "- [x] Second", "- [x] New"),
        ("logseq", "Write", "\t- TODO [#A] Write it", "\t- DONE [#A] Write it", "\t- DONE [#A] New"),
    ],
)
async def test_tick_and_rename_keep_the_marks(
    plan: Plan, form: str, title: str, old: str, new: str, renamed: str
) -> None:
    await plan.write(SAMPLES[form])
    assert (plan.text, plan.form) == (SAMPLES[form], form)
    task = await plan.find(title)
    for blocker in task.blocked_by:
        await plan.list.complete(blocker, force=True)
    await plan.file.sync()
    before = plan.text
    await plan.list.complete(task.id, force=True)
    await plan.file.sync()
    changed = [(one, other) for one, other in zip(before, plan.text, strict=True) if one != other]
    assert new in plan.text and (changed == [(" ", "x")] or form == "logseq")
    ticked = plan.text
    lead = "T004 " if form == "spec-kit" else "1.1 " if form == "kiro" else ""
    await plan.list.edit(task.id, title=f"{lead}New")
    await plan.file.sync()
    assert renamed in plan.text
    assert len(plan.text.split("\n")) == len(ticked.split("\n"))
    await plan.write(plan.text)
    assert plan.place.problems == []
    assert (await plan.find(f"{lead}New")).status == "completed"
    assert old not in plan.text


@pytest.mark.parametrize(
    ("form", "title", "line"),
    [
        ("kiro", "1.1", "- [-]* 1.1 Write tests\n"),
        ("openspec", "1.2", "- [ ] 1.2 Migrate"),
        ("obsidian", "Ask", "- [/] Ask"),
        ("logseq", "Else", "- NOW Else\n"),
    ],
)
async def test_started_task_shows_where_the_form_can(plan: Plan, form: str, title: str, line: str) -> None:
    await plan.write(SAMPLES[form])
    await plan.list.start((await plan.find(title)).id)
    await plan.file.sync()
    assert line in plan.text
    await plan.write(plan.text)
    assert (await plan.find(title)).status == "in_progress"


async def test_marks_edited_in_the_file_change_the_task(plan: Plan) -> None:
    await plan.write(SAMPLES["spec-kit"])
    await plan.edit("(depends on T002-T003)\n", "(depends on T001)\n- [ ] T006 [P] [US2] Extra (depends on T004)\n")
    await plan.edit("- [ ] T005 Measure", "- [ ] T005 Measure (depends on T006)")
    titles = {task.id: task.title.split()[0] for task in await plan.list.list()}
    waits = {task.title.split()[0]: {titles[one] for one in task.blocked_by} for task in await plan.list.list()}
    assert (waits["T004"], waits["T005"]) == ({"T001", "Phase"}, {"T003", "T006", "Phase"})
    assert waits["T006"] == {"T004", "Phase"}
    assert (await plan.find("T006")).labels == ("parallel", "US2")
    await plan.edit("[P] [US2] Extra", "[US3] Extra")
    assert (await plan.find("T006")).labels == ("US3",)
    assert plan.place.problems == []


async def test_dates_edited_in_the_file_change_the_task(plan: Plan) -> None:
    await plan.write(SAMPLES["obsidian"])
    await plan.edit("🔺 📅 2099-12-01 🆔 rent", "⏳ 2099-11-01 🔁 every month 🆔 rent")
    rent = await plan.find("Pay")
    assert (rent.due_day, rent.not_before_day, rent.priority) == (None, "2099-11-01", "normal")
    assert rent.metadata and rent.metadata["recurrence"] == "every month"
    await plan.list.edit(rent.id, priority="low")
    await plan.edit("every month", "every year")
    assert (await plan.find("Pay")).priority == "low"


async def test_ticking_an_important_task_keeps_its_priority(plan: Plan) -> None:
    await plan.write("- [!] a\n")
    await plan.edit("[!]", "[x]")
    await plan.edit("[x]", "[-]")
    task = await plan.find("a")
    assert (task.status, task.priority, task.labels) == ("completed", "high", ("cancelled",))


async def test_rejected_marks_are_reported(plan: Plan) -> None:
    await plan.write("- [ ] T001 a\n- [ ] T002 b\n")
    await plan.list.edit((await plan.find("T001")).id, add_blocked_by=[(await plan.find("T002")).id])
    await plan.edit("T002 b", "T002 b (depends on T001)")
    assert plan.place.problems[-1].kind == "conflict" and "add_blocked_by" in plan.place.problems[-1].text


async def test_new_cards_go_to_the_lane_of_their_status(plan: Plan) -> None:
    await plan.write(SAMPLES["kanban"].replace("- [ ] Second\n", ""))
    await plan.list.add("Todo")
    await plan.list.add("Now")
    await plan.list.start((await plan.find("Now")).id)
    await plan.file.sync()
    assert "@@{10:30}\n- [ ] Todo\n" in plan.text
    assert "In Progress (1)\n- [ ] Now\n" in plan.text
    await plan.edit("- [ ] Todo\n", "")
    await plan.edit("- [ ] Now\n", "- [ ] Now\n- [ ] Moved\n")
    assert (await plan.find("Moved")).status == "in_progress"
    await plan.edit("- [ ] Moved\n", "")
    assert [task.title for task in await plan.list.list() if task.status == "in_progress"] == ["Now"]


async def test_cards_without_a_lane_go_to_an_open_one(plan: Plan) -> None:
    await plan.write(
        "---\nkanban-plugin: basic\n---\n## Inbox\n\n## Doing\n- [ ] a\n\n## Done\n- [x] b\n\n## Archive\n- [x] c\n"
    )
    await plan.list.add("New")
    paused, done = await plan.list.add("Paused"), await plan.list.add("Finished")
    await plan.list.pause(paused.id)
    await plan.list.complete(done.id)
    await plan.file.sync()
    assert "## Inbox\n- [ ] New\n- [ ] Paused\n\n## Doing\n" in plan.text
    assert "- [x] b\n- [x] Finished\n\n## Archive\n- [x] c\n" in plan.text
    statuses = {task.title: task.status for task in await plan.list.list()}
    await plan.write(plan.text)
    assert {task.title: task.status for task in await plan.list.list()} == statuses


@pytest.mark.parametrize(
    ("old", "title", "new"),
    [
        ("- TODO D", "E", "- TODO E"),
        ("- [x] x", "y", "- [x] y"),
        ("1. [ ] 1", "2", "1. [ ] 2"),
        ("1. 1\n   - [ ] a", "2", "1. 2\n   - [ ] a"),
        ("- [ ] a\n- [ ] T001 [US1] T", "T001 b", "- [ ] a\n- [ ] T001 [US1] b"),
        ("- [ ] #e e 📅 2099-12-24", "b", "- [ ] #e b 📅 2099-12-24"),
        ("- TODO [#A] A", "b", "- TODO [#A] b"),
    ],
)
async def test_rename_changes_only_the_title(plan: Plan, old: str, title: str, new: str) -> None:
    await plan.write(f"{old}\n")
    task = next(task for task in await plan.list.list() if task.title != "a")
    await plan.list.edit(task.id, title=title)
    await plan.file.sync()
    assert plan.text == f"{new}\n"


async def test_marks_that_name_removed_lines_change(plan: Plan) -> None:
    await plan.write("- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c (depends on T001, T002)\n")
    await plan.write("- [ ] T001 a (depends on T003)\n- [ ] T003 [US2] c\n")
    assert plan.place.problems == []
    tasks = [(task.labels, len(task.blocked_by)) for task in await plan.list.list()]
    assert tasks == [((), 1), (("US2",), 0)]


async def test_stray_byte_changes_no_titles(plan: Plan) -> None:
    await plan.write("- [ ] Café\n- [ ] Über\n")
    await plan.write("- [ ] Café\n- [ ] Über\n".encode() + b"caf\xe9\n")
    assert [task.title for task in await plan.list.list()] == ["Café", "Über"]
    assert "byte 0xe9 in line 3 is not UTF-8, unlike the rest" in plan.place.problems[-1].text
    await plan.write("- [ ] Café\n- [ ] Übung „Spaß“\n".encode("cp1252"))
    assert [task.title for task in await plan.list.list()] == ["Café", "Übung „Spaß“"]


async def test_form_stays_while_another_reading_would_change_tasks(plan: Plan) -> None:
    await plan.write(SAMPLES["logseq"])
    count = len(await plan.list.list())
    await plan.write("- [ ] A box\n" + plan.text)
    assert (plan.form, len(await plan.list.list())) == ("logseq", count + 1)
    assert [problem.kind for problem in plan.place.problems] == ["form"]
    assert "still read as logseq; as markdown" in plan.place.problems[0].text
    await plan.edit("- [ ] A box\n", "")
    assert len(await plan.list.list()) == count
    await plan.write("- [ ] 1.1 a\n- [ ] 1.2 b\n")
    assert "tasks are missing" in plan.place.problems[-1].text
    assert len(await plan.list.list()) == count


async def test_form_follows_a_file_with_the_same_tasks(plan: Plan) -> None:
    await plan.write("- [ ] 1.1 a\n- [ ] 1.2 b\n")
    assert plan.form == "markdown"
    await plan.edit("1.2 b\n", "1.2 b\n  - _Requirements: 1_\n")
    assert (plan.form, plan.place.problems) == ("kiro", [])


async def test_task_of_backlog_is_not_mirrored(plan: Plan) -> None:
    await plan.write("---\nid: task-1\ntitle: a\nstatus: To Do\ndependencies: []\n---\n- [ ] #1 b\n")
    assert await plan.list.list() == []
    assert plan.place.problems[-1].kind == "unread" and "punch import backlog" in plan.place.problems[-1].text


@pytest.mark.parametrize(
    ("mark", "encoding", "end"),
    [
        (codecs.BOM_UTF8, "utf-8", "\r\n"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "\n"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "\r\n"),
        (b"", "utf-16-le", "\n"),
        (codecs.BOM_UTF32_LE, "utf-32-le", "\n"),
        (b"", "latin-1", "\n"),
        (b"", "utf-8", "\r"),
    ],
)
async def test_all_other_bytes_stay(plan: Plan, mark: bytes, encoding: str, end: str) -> None:
    def encode(text: str) -> bytes:
        # The first two line ends and the missing last one differ from the rest.
        return mark + text.replace("\n", "\v", 2).replace("\n", end).replace("\v", "\r\n").encode(encoding)

    text = "# Café \x81\n\n- [ ] T001 a\n\tindented\n- [ ] T002 b  \n \nEnd"
    await plan.write(encode(text))
    await plan.list.complete((await plan.find("T001")).id)
    await plan.list.add("T003 c")
    await plan.file.sync()
    new = text.replace("[ ] T001", "[x] T001").replace("b  \n", "b  \n- [ ] T003 c\n")
    assert plan.path.read_bytes() == encode(new)
    assert plan.place.problems == []


async def test_character_missing_in_the_encoding_is_reported(plan: Plan) -> None:
    await plan.write(b"# Caf\xe9\n\n- [ ] T001 a\n")
    await plan.list.edit((await plan.find("T001")).id, title="T001 ✓")
    await plan.file.sync()
    assert plan.path.read_bytes() == b"# Caf\xe9\n\n- [ ] T001 a\n"
    assert "its encoding cp1252 has no “✓”; save it as UTF-8" in plan.place.problems[-1].text


async def test_failed_write_adds_a_new_task_once(plan: Plan) -> None:
    await plan.write(b"- [ ] Caf\xe9\n- [x] b\n")
    await plan.list.add("Ship ✓")
    await plan.write(plan.path.read_bytes().replace(b"[x] b", b"[ ] b") + b"- [ ] New\n")
    for _ in range(2):
        await plan.file.sync()
    expected = [("Café", "pending"), ("b", "pending"), ("New", "pending"), ("Ship ✓", "pending")]
    assert sorted((task.title, task.status) for task in await plan.list.list()) == sorted(expected)
    assert plan.place.shown == ["unread"]
    await plan.write(plan.path.read_bytes().decode("cp1252"))
    assert plan.text == "- [ ] Café\n- [ ] b\n- [ ] New\n- [ ] Ship ✓\n"
    assert len(await plan.list.list()) == 4
