"""The plugin in a real Neovim, with a real daemon, while another client changes the list."""

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, Gate, connect
from punchlist.base.text import safe
from punchlist_apps.files.exporters.markdown import BOX_OF
from punchlist_schemas.things import SettingsPatch
from punchlist_testing.daemon import Raw, Running, Spawned
from punchlist_testing.nvim import PLUGIN, Editor
from punchlist_testing.optional import needs

pytestmark = needs("nvim")

COUNT = "vim.api.nvim_buf_line_count(0) == given[1]"
NOTICED = "table.concat(vim.b.punchlist_notices or {}, ' '):find(given[1], 1, true)"


@pytest.fixture
def nvim(daemon: Running, tmp_path: Path) -> Iterator[Editor]:
    with Editor(daemon.socket, tmp_path) as nvim:
        yield nvim


def opened(nvim: Editor, plan: Any, *titles: str) -> Editor:
    for title in titles:
        plan.add(title)
    nvim.command(f"edit punchlist://{plan.id}")
    nvim.until(COUNT, len(titles))
    nvim.until("require('punchlist.view').of(0).model.ready")
    return nvim


def test_project_list_opens_and_follows_an_agent(nvim: Editor, plan: Any, tmp_path: Path) -> None:
    (tmp_path / ".punchlist.toml").write_text(f'conversation = "{plan.id}"\n')
    nvim.command("Punch")
    nvim.until("vim.fn.bufname() == given[1]", f"punchlist://{plan.id}")
    for number in range(50):
        plan.add(f"Task {number + 1}", parent="1" if number in (3, 4) else None)
    for number in range(10, 20):
        plan.start(str(number))
        plan.complete(str(number))
    plan.start("30")
    plan.fail("30", "no paper")
    children = ["  [ ] #4 Task 4", "  [ ] #5 Task 5"]
    rows = [
        f"[{'x' if 10 <= n < 20 else '✗' if n == 30 else ' '}] #{n} Task {n}" for n in range(2, 51) if n not in (4, 5)
    ]
    nvim.shows(["[ ] #1 Task 1", *children, *rows])
    assert nvim.lua("return require('punchlist').statusline()") == f"{plan.id} 39/50"


def test_push_writes_only_changed_lines(nvim: Editor, plan: Any) -> None:
    plan.add_many([{"title": f"Task {number}"} for number in range(1000)])
    nvim.command(f"edit punchlist://{plan.id}")
    nvim.until(COUNT, 1000)
    redrawn = "return require('punchlist.view').of(0).redrawn"
    before = nvim.lua(redrawn)
    assert before <= 1001
    plan.start("500")
    nvim.until("vim.fn.getline(500):sub(1, 3) == '[/]'")
    plan.add("One more")
    nvim.until(COUNT, 1001)
    assert nvim.lua(redrawn) - before == 2


HOSTILE = [
    "می\u200cخواهم 👩\u200d👧 So\u00adfa",
    "\x1b[31mred",
    "left \u202egnp",
    "%#Error#%{1}",
    "`rm -rf`  !high",
    "<b>b</b>  @ann <- #1",
    "a" * 500,
    "🙂 \u200b",
    "#1 [x]",
]


def test_hostile_titles_are_escaped_and_saved_unchanged(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, *HOSTILE)
    lines = nvim.lines()
    assert lines[0] == f"[ ] #1 {HOSTILE[0]}"
    assert lines[1] == "[ ] #2 \\x1b[31mred"
    assert lines[2] == "[ ] #3 left \\u202egnp"
    assert lines[4] == "[ ] #5 `rm -rf`  !high"
    assert lines[7] == "[ ] #8 🙂 \\u200b"
    started = [line.replace("[ ]", "[/]") for line in lines]
    nvim.write(started)
    nvim.shows(started)
    assert [(task.title, task.status, task.priority) for task in plan.list()] == [
        (title, "in_progress", "normal") for title in HOSTILE
    ]
    nvim.write([*started[:2], started[2] + "!", *started[3:]])
    assert "line 3: the title has characters shown as escapes" in nvim.said()[-1]


def test_escapes_equal_those_of_python(nvim: Editor, odd_texts: list[str]) -> None:
    texts = [*HOSTILE, *odd_texts]
    shown = nvim.lua("return vim.tbl_map(require('punchlist.text').safe, ...)", texts)
    assert shown == [safe(text) for text in texts]


def test_boxes_equal_those_of_markdown_files(nvim: Editor, plan: Any) -> None:
    assert nvim.lua("return require('punchlist.text').BOX_OF") == BOX_OF
    opened(nvim, plan, "One", "Two", "Three", "Four")
    nvim.write(["[~] #1 One", "[!] #2 Two", "[-] #3 Three", "[X] #4 Four"])
    nvim.shows(["[/] #1 One", "[✗] #2 Two", "[=] #3 Three", "[x] #4 Four"])
    assert nvim.said() == []


def test_keys_work_as_in_punch_ui(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    nvim.keys("1G\\s")
    nvim.until("vim.fn.getline(1) == '[/] #1 One'")
    nvim.keys("\\d")
    nvim.until("vim.fn.getline(1) == '[x] #1 One'")
    nvim.lua("_G.answers = {'no paper', 'Four', 'Zwei'}")
    nvim.keys("2G\\f")
    nvim.until("vim.fn.getline(2) == '[✗] #2 Two'")
    assert plan.get("2").fail_reason == "no paper"
    nvim.keys("3G\\a")
    nvim.until("vim.fn.getline(4) == '[ ] #4 Four'")
    nvim.keys("2G\\e")
    nvim.until("vim.fn.getline(2) == '[✗] #2 Zwei'")
    nvim.keys("3G\\J")
    nvim.until("vim.fn.getline(3) == '[ ] #4 Four'")
    nvim.keys("3G\\+")
    nvim.displays(["[x] #1 One", "[✗] #2 Zwei  no paper", "[ ] #4 Four  !high", "[ ] #3 Three"])
    nvim.keys("4G\\c")
    nvim.until("vim.fn.getline(4) == '[/] #3 Three'")
    nvim.until("_G.displayed()[4]:find('  @nvim/ann  claimed until ', 1, true)")
    nvim.command("Punch done 3")
    nvim.until("vim.fn.getline(4) == '[x] #3 Three'")
    assert nvim.said() == []
    nvim.keys("4G\\s")
    nvim.until("#_G.asked == 4")
    assert nvim.lua("return _G.asked[4]") == "Start #3 Three again? It is done."


def test_gated_task_is_approved_and_rejected(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "Deploy")
    plan.edit("1", gate=Gate(yes=True))
    plan.complete("1", "deployed")
    nvim.until(COUNT, 1)
    nvim.displays(["[?] #1 Deploy  waits for your yes  deployed"])
    refusal = "#1 waits for your yes: :Punch approve 1, or :Punch reject 1 WHY"
    nvim.keys("1G\\s")
    assert nvim.said() == [f"punchlist: {refusal}"]
    nvim.write(["[x] #1 Deploy"])
    assert "#1 waits for a yes: \\y approves it, \\n rejects it" in nvim.said()[-1]
    nvim.command("edit!")
    nvim.lua("_G.answers = {'no tests'}")
    nvim.keys("\\n")
    nvim.until("vim.fn.getline(1) == '[ ] #1 Deploy'")
    assert plan.get("1").fail_reason == "no tests"
    plan.complete("1", "deployed again")
    nvim.until("vim.fn.getline(1) == '[?] #1 Deploy'")
    nvim.keys("\\y")
    nvim.until("vim.fn.getline(1) == '[x] #1 Deploy'")


def test_now_leads_to_a_task_that_needs_a_person(nvim: Editor, plan: Any) -> None:
    plan.add_many(["One", "Two", "Deploy"])
    plan.edit("3", gate=Gate(yes=True))
    plan.complete("3", "deployed")
    nvim.lua("vim.ui.select = function(items, options, done) _G.items, _G.done = items, done end")
    nvim.command("Punch now")
    nvim.until("_G.items")
    lines = nvim.lua("return vim.tbl_map(function(need) return need.line end, _G.items)")
    line = f"{plan.id}  #3 Deploy  waits for your yes: deployed"
    assert line in lines
    nvim.lua("_G.done(_G.items[...])", lines.index(line) + 1)
    nvim.until("vim.fn.getline('.') == '[?] #3 Deploy'")


def test_presence_is_shown(nvim: Editor, daemon: Running, plan: Any) -> None:
    opened(nvim, plan, "One")
    assert nvim.lua("return require('punchlist').presence()") == ""
    peer = Raw(daemon.socket)
    try:
        peer.result("daemon.hello", client={"name": "claude\x1b 100%"})
        peer.result("event.subscribe", conversation=plan.id, view="rows")
        nvim.until("require('punchlist').presence() == given[1]", "claude\\x1b 100%%")
        banner = """return vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace("punchlist_banner"), 0, -1,
            { details = true })[1][4].virt_text[2][1]"""
        assert nvim.lua(banner) == "  also here: claude\\x1b 100%"
    finally:
        peer.close()
    nvim.until("require('punchlist').presence() == ''")


def test_mark_stays_with_its_task(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    plan.fail("2", "no paper")
    nvim.until("vim.fn.getline(2) == '[✗] #2 Two'")
    marks = """return vim.tbl_map(function(mark) return { mark[2], mark[4].virt_text[1][1] } end,
        vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace("punchlist"), 0, -1, { details = true }))"""
    plan.move("2", after="3")
    nvim.shows(["[ ] #1 One", "[ ] #3 Three", "[✗] #2 Two"])
    assert nvim.lua(marks) == [[2, "  no paper"]]
    nvim.write(["[✗] #2 Two", "[ ] New", "[ ] #1 One", "[ ] #3 Three"])
    nvim.shows(["[✗] #2 Two", "[ ] #4 New", "[ ] #1 One", "[ ] #3 Three"])
    assert nvim.lua(marks) == [[0, "  no paper"]]


def echoed(nvim: Editor, text: str) -> None:
    """Wait until the editor has shown a message with this text."""
    nvim.until("vim.fn.execute('messages'):find(given[1], 1, true)", text)


def test_undo_and_redo_affect_own_changes(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One")
    plan.add("Two", actor="ann")
    plan.complete("1", "hours of work")
    nvim.command("Punch undo")
    nvim.shows(["[x] #1 One"])
    echoed(nvim, 'Undone: removed #2 "Two" (\\U: redo)')
    nvim.command("Punch redo")
    nvim.shows(["[x] #1 One", "[ ] #2 Two"])
    echoed(nvim, "(\\u: undo)")
    nvim.command("Punch done 2")
    nvim.shows(["[x] #1 One", "[x] #2 Two"])
    assert plan.client.read(0, plan.id)[-1].actor == "ann"
    assert nvim.lua("return _G.asked") == []


def test_undo_that_loses_a_result_asks(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One")
    plan.complete("1", "hours of work", actor="ann")
    nvim.lua("_G.answers = {'Cancel', 'Yes'}")
    nvim.command("Punch undo")
    nvim.until("#_G.asked == 1")
    assert "lost: its result 'hours of work'" in nvim.lua("return _G.asked[1]")
    assert plan.get("1").status == "completed"
    nvim.command("Punch undo")
    nvim.shows(["[ ] #1 One"])


def test_rejected_undo_names_the_reason(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One")
    plan.add("Two", actor="ann")
    plan.start("2")
    nvim.until(COUNT, 2)
    nvim.command("Punch undo")
    nvim.until("#_G.said == 1")
    assert "agent depends on it" in nvim.said()[0]


def test_version_undoes_another_actors_change(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One")
    plan.complete("1", "hours of work")
    nvim.command("Punch undo")
    nvim.until("table.concat(_G.said):find('you have nothing to undo here')")
    nvim.lua("_G.answers = {'Yes'}")
    nvim.command("Punch log")
    nvim.until('vim.fn.getline(2):find("#1 done: hours of work")')
    nvim.keys("2Gx")
    nvim.until("#_G.asked == 1")
    nvim.command(f"edit punchlist://{plan.id}")
    nvim.shows(["[ ] #1 One"])
    question = nvim.lua("return _G.asked[1]")
    assert ", by agent on " in question and "lost: its result 'hours of work'" in question


def test_agents_claim_is_respected(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One")
    plan.take("claude/7")
    nvim.until("vim.fn.getline(1) == '[/] #1 One'")
    nvim.command("Punch done 1")
    nvim.until("#_G.said == 1")
    assert "claude/7" in nvim.said()[0]
    nvim.write(["[x] #1 One"])
    nvim.until("#_G.said == 2")
    assert "nothing was changed" in nvim.said()[1]
    assert plan.get("1").status == "in_progress"


def test_saved_lines_become_the_list(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three", "Four")
    nvim.write(
        ["[/] #3 Three", "[ ] New", "  [ ] Below it  !low <- #1,#3", "[x] #1 Uno", "  [-] #4 Four", ""], force=True
    )
    nvim.displays(
        ["[/] #3 Three", "[ ] #5 New", "  [.] #6 Below it  !low  <- #3", "[x] #1 Uno", "  [=] #4 Four"],
    )
    assert plan.get("6").blocked_by == ("1", "3")
    nvim.write(["[ ] #3 Three", "[ ] #5 New", "[.] #6 Below it", "[ ] #1 Uno", "[-] #4 Four"])
    nvim.displays(["[ ] #3 Three", "[ ] #5 New", "[.] #6 Below it  !low  <- #1 #3", "[ ] #1 Uno", "[=] #4 Four"])
    assert nvim.said() == []
    assert [(task.id, task.parent) for task in plan.list()] == [(one, None) for one in "35614"]


def test_save_is_one_call_and_one_undo(nvim: Editor, plan: Any) -> None:
    before = opened(nvim, plan, "One", "Two", "Three").lines()
    nvim.write(["[x] #3 Drei", "  [x] New  !high <- #3", "[x] #1 One"], force=True)
    nvim.shows(["[x] #3 Drei", "  [x] #4 New", "[x] #1 One"])
    echoed(nvim, "saved: 1 added, 1 reworded, 2 done, 1 moved, 1 deleted (\\u: undo)")
    (preview,) = [plan.client.call("list.undo", {"conversation": plan.id, "preview": True})]
    assert preview["calls"] == [5]
    plan.undo()
    nvim.shows(before)


def test_statuses_are_saved_in_dependency_order(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    plan.edit("1", add_blocked_by=["3"])
    nvim.shows(["[.] #1 One", "[ ] #2 Two", "[ ] #3 Three"])
    nvim.write(["[x] #1 One", "[ ] #2 Deux", "[ ] #3 Three"])
    nvim.until("#_G.said == 1")
    assert "line 1: Task #1 waits for #3" in nvim.said()[0] and "nothing was changed" in nvim.said()[0]
    nvim.write(["[x] #1 One", "[ ] #2 Deux", "[x] #3 Three"])
    nvim.shows(["[x] #1 One", "[ ] #2 Deux", "[x] #3 Three"])
    nvim.write(["[✗] #1 One", "[ ] #2 Deux", "[-] #3 Three"])
    nvim.shows(["[✗] #1 One", "[ ] #2 Deux", "[=] #3 Three"])


@pytest.mark.parametrize("parents", ["never", "auto"])
def test_parent_and_children_change_in_one_save(nvim: Editor, plan: Any, parents: Any) -> None:
    plan.configure(settings=SettingsPatch(complete_parents=parents))
    opened(nvim, plan, "One", "Two", "Three")
    nvim.write(["[ ] #1 One", "  [ ] #2 Two", "    [ ] #3 Three"])
    nvim.shows(["[ ] #1 One", "  [ ] #2 Two", "    [ ] #3 Three"])
    for box in "x ":
        lines = [f"[{box}] #1 One", f"  [{box}] #2 Two", f"    [{box}] #3 Three"]
        nvim.write(lines)
        nvim.shows(lines)
    nvim.write(["[x] #1 One"], force=True)
    nvim.shows(["[x] #1 One"])
    assert nvim.said() == []


def test_task_and_parent_swap_in_one_save(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two")
    for lines in (["[ ] #1 One", "  [ ] #2 Two"], ["[ ] #2 Two", "  [ ] #1 One"], ["[ ] #1 One", "  [ ] #2 Two"]):
        nvim.write(lines)
        nvim.shows(lines)


def untick(lines: list[str]) -> list[str]:
    """Untick each line that is above an open child."""
    kept: list[str] = []
    is_open = False
    for line in reversed(lines):
        if line.startswith("  "):
            is_open = is_open or not line.startswith("  [x]")
            kept.append(line)
        else:
            kept.append(line.replace("[x]", "[ ]", 1) if is_open else line)
            is_open = False
    return kept[::-1]


def test_random_edits_become_the_list(nvim: Editor, plan: Any) -> None:
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print("seed", seed)
    chance = random.Random(seed)
    opened(nvim, plan, *(f"Task {number}" for number in range(12)))
    last = 12
    for _ in range(12):
        lines = nvim.lines()
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(lines))
            match chance.randrange(5):
                case 0:
                    lines.insert(chance.randrange(len(lines) + 1), lines.pop(at))
                case 1:
                    lines.insert(at, f"{'  ' * chance.randrange(2)}[ ] New {chance.randrange(100)}")
                case 2 if len(lines) > 5:
                    lines.pop(at)
                case 3:
                    lines[at] = re.sub(r"\[.\]", f"[{chance.choice(' x=')}]", lines[at])
                case _:
                    lines[at] = "  " + lines[at].lstrip() if chance.random() < 0.5 else lines[at].lstrip()
        lines[0] = lines[0].lstrip()
        lines = untick(lines)
        nvim.write(lines, force=True)
        expected: list[str] = []
        for line in lines:
            last += " #" not in line
            expected.append(line if " #" in line else line.replace("] ", f"] #{last} ", 1))
        nvim.shows(expected)
    assert nvim.said() == []


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[ ] #1 One", "Two"], "line 2: expected [ ] Title"),
        (["[?] #1 One", "[ ] #2 Two"], "line 1: #1 does not wait for a yes"),
        (["[ ] #1 One", "[ ] #1 One"], "line 2: #1 is already on line 1"),
        (["[ ] #1 Eins", "[ ] #2 Two", "[ ] #7 Seven"], "line 3: no task #7 in this list"),
        (["[ ] #1 Eins", "[ ] " + "a" * 501], "line 2: the title has more than 500 characters"),
        (["[x] #1 One", "[ ] #2 a\tb"], "line 2: the title has control characters"),
        (["[x] #1 One", "[ ] #2 "], "line 2: "),
        (["[ ] #1 One", "[ ] #2 Two", "[ ] Three  @ann"], "line 3: a new task can't have an owner"),
        (["[ ] #1 One", "[ ] #2 Two", "[ ] Three  !hihg"], 'line 3: "!hihg" would be a part of the title'),
        (["[ ] #1 One", "[ ] #2 Two", "[ ] Three  <- 1"], 'line 3: "<- 1" would be a part of the title'),
        (["[x] #1 One", "[ ] #2 Two", "[ ] Three  <- #9"], "There is no task '9'"),
        (["[ ] #1 One", "[ ] #2 Two", "[?] Three"], "line 3: a new task can't wait for a yes"),
    ],
)
def test_unreadable_line_rejects_the_save(nvim: Editor, plan: Any, lines: list[str], message: str) -> None:
    opened(nvim, plan, "One", "Two")
    nvim.write(lines)
    nvim.until("#_G.said > 0")
    assert message in nvim.said()[0]
    assert "nothing was changed" in nvim.said()[0]
    assert nvim.lines() == lines
    assert nvim.lua("return {vim.bo.modified, vim.bo.modifiable}") == [True, True]
    assert [task.version for task in plan.list()] == [2, 3]


SHOWN = ["[ ] #1 One", "[ ] #2 Two", "[.] #3 Deploy it  !high  <- #1 #2  +ops  @ann", "[ ] #4 Four"]
WROTE = "vim.fn.execute('messages'):find('saved: ', 1, true) or #_G.said > 0 or not vim.bo.modified"

EDITS: list[tuple[str, list[tuple[str, ...]]]] = [
    ("3GA now", [("TaskEdited", "3", "Deploy it now")]),
    ("3GA!", [("TaskEdited", "3", "Deploy it!")]),
    ("3GA  !low", [("TaskEdited", "3", "Deploy it  !low")]),
    ("3GA <lt>- #4", [("TaskEdited", "3", "Deploy it <- #4")]),
    ("3GA  @bob", [("TaskEdited", "3", "Deploy it  @bob")]),
    ("3GfDiRe", [("TaskEdited", "3", "ReDeploy it")]),
    ("3GfDcwShip", [("TaskEdited", "3", "Ship it")]),
    ("3GfDC+now @ann !high", [("TaskEdited", "3", "+now @ann !high")]),
    ("3GfDdw", [("TaskEdited", "3", "it")]),
    ("3G$x", [("TaskEdited", "3", "Deploy i")]),
    ("3G$r!", [("TaskEdited", "3", "Deploy i!")]),
    ("3GfD~", [("TaskEdited", "3", "deploy it")]),
    ("3GA now<Esc>4G.", [("TaskEdited", "3", "Deploy it now"), ("TaskEdited", "4", "Four now")]),
    (":%s/o/0/<CR>", [("TaskEdited", "2", "Tw0"), ("TaskEdited", "3", "Depl0y it"), ("TaskEdited", "4", "F0ur")]),
    ("1G$<C-v>jA?", [("TaskEdited", "1", "One?"), ("TaskEdited", "2", "Two?")]),
    ("1G07l<C-v>jIa ", [("TaskEdited", "1", "a One"), ("TaskEdited", "2", "a Two")]),
    ("1GJ", [("TaskEdited", "1", "One [ ] #2 Two"), ("Deleted", "2")]),
    ("3Gdd", [("Deleted", "3")]),
    ("3GddGp", [("TaskMoved", "4")]),
    ("3GddggP", [("TaskMoved", "3")]),
    (":3m0<CR>", [("TaskMoved", "3")]),
    ("3G>>", [("TaskEdited", "3", "")]),
    ("3Gyyp:s/#3 //<CR>", [("TaskAdded", "5")]),
    ("4Go[ ] New  !low", [("TaskAdded", "5")]),
    ("3GA now<Esc>u", []),
    ("3Gddu", []),
    ("3GfDi#", [("TaskEdited", "3", "#Deploy it")]),
    ("3G0f.rx", []),
    ("3Gyyp", []),
    ("3Gcc[ ] Ship it", []),
    ("3G0fDF#dt D", []),
]


@pytest.mark.parametrize(("keys", "expected"), EDITS)
def test_edit_makes_only_its_own_events(nvim: Editor, plan: Any, keys: str, expected: list[tuple[str, ...]]) -> None:
    opened(nvim, plan, "One", "Two")
    plan.add_many(
        [
            {"title": "Deploy it", "priority": "high", "blocked_by": ["1", "2"], "labels": ["ops"], "owner": "ann"},
            {"title": "Four"},
        ]
    )
    nvim.displays(SHOWN)
    before = plan.client.read(0, plan.id)[-1].seq
    nvim.lua("_G.answers = {'Delete'}")
    nvim.keys(f"{keys}<Esc>")
    nvim.command("write")
    nvim.until(WROTE)
    events = [entry.event for entry in plan.client.read(before, plan.id)]
    made = [
        (
            type(e).__name__,
            getattr(e.task, "id", e.task),
            *([e.title or ""] if type(e).__name__ == "TaskEdited" else []),
        )
        for e in events
    ]
    assert made == expected, (events, nvim.said(), nvim.lines())


def test_no_title_changes_another_member(nvim: Editor, plan: Any) -> None:
    print("seed", seed := int(os.environ.get("SEED") or random.randrange(1 << 32)))
    chance = random.Random(seed)
    pieces = [
        "!high",
        "!low",
        "!normal",
        "<- #1",
        "<- #1,#2",
        "@bob",
        "+ops",
        "#1",
        "[x]",
        "due fri",
        "^1",
        " ",
        "  ",
        "a",
        "漢",
    ]
    opened(nvim, plan, "One", "Two")
    plan.add_many([{"title": "Deploy", "priority": "high", "blocked_by": ["2"], "labels": ["ops"], "owner": "ann"}])
    nvim.until(COUNT, 3)
    before = plan.get("3")
    for _ in range(40):
        title = "".join(chance.choices(pieces, k=chance.randrange(1, 6)))
        nvim.write(["[ ] #1 One", "[ ] #2 Two", f"[.] #3 x{title}"])
        nvim.until("not vim.bo.modified")
        after = plan.get("3")
        assert after.title == f"x{title}".rstrip()
        for member in ("priority", "blocked_by", "labels", "owner", "status", "parent", "due", "description"):
            assert getattr(after, member) == getattr(before, member), title
    assert nvim.said() == []


def test_virtual_text_stays_with_its_line(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    plan.edit("2", priority="high")
    nvim.displays(["[ ] #1 One", "[ ] #2 Two  !high", "[ ] #3 Three"])
    for keys, lines in (
        ("1Gdd", ["[ ] #2 Two  !high", "[ ] #3 Three"]),
        ("u", ["[ ] #1 One", "[ ] #2 Two  !high", "[ ] #3 Three"]),
        ("2Gdd", ["[ ] #1 One", "[ ] #3 Three"]),
        ("ggP", ["[ ] #2 Two  !high", "[ ] #1 One", "[ ] #3 Three"]),
        ("uu", ["[ ] #1 One", "[ ] #2 Two  !high", "[ ] #3 Three"]),
        ("2GA more<Esc>", ["[ ] #1 One", "[ ] #2 Two more  !high", "[ ] #3 Three"]),
    ):
        nvim.keys(keys)
        nvim.displays(lines)


def test_member_typed_into_a_title_names_its_key(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two")
    nvim.write(["[ ] #1 One  !high", "[ ] #2 Two <- #1"])
    nvim.shows(["[ ] #1 One  !high", "[ ] #2 Two <- #1"])
    echoed(
        nvim, "!high is only text in the title of #1: \\+ sets it; <- #1 is only text in the title of #2: \\b sets it"
    )
    assert [(task.priority, task.blocked_by) for task in plan.list()] == [("normal", ())] * 2


def test_line_without_its_number_is_refused(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two")
    plan.edit("2", priority="high", add_blocked_by=["1"])
    nvim.displays(["[ ] #1 One", "[.] #2 Two  !high  <- #1"])
    nvim.write(["[ ] #1 One", "[ ] Zwei"])
    assert "line 2: the line has no number, and #2 would lose !high  <- #1: put #2 before the title" in nvim.said()[0]
    nvim.write(["[ ] #1 One", "[ ] Zwei"], force=True)
    nvim.shows(["[ ] #1 One", "[ ] #3 Zwei"])


def test_task_is_shown_in_full(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One")
    plan.edit("1", description="Why\n- **how**", links=[{"kind": "url", "to": "https://a.example"}])
    plan.note("1", "seen \x1b[31m")
    plan.complete("1", "all of it")
    nvim.displays(["[x] #1 One  all of it"])
    nvim.keys("1GKK")
    nvim.until("vim.api.nvim_win_get_config(0).relative ~= ''")
    shown = "\n".join(nvim.lines())
    for text in (
        "#1 One",
        "Why\n- **how**",
        "Result",
        "all of it",
        "Note by agent",
        "seen \\x1b[31m",
        "https://a.example",
    ):
        assert text in shown, shown


def test_reasons_are_one_a_line(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    plan.edit("3", add_blocked_by=["1", "2"])
    nvim.until("vim.fn.getline(3) == '[.] #3 Three'")
    nvim.keys("3G\\w")
    nvim.until("vim.bo.buftype == 'nofile'")
    assert nvim.lines() == [
        "#3 Three",
        "  #3 waits for #1 One (pending)",
        "  #3 waits for #2 Two (pending)",
    ]


def test_conflicting_edits_are_left_to_the_person(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    nvim.type(["[ ] #1 Eins", "[ ] #2 Two", "[ ] #3 Three", "[ ] Four"])
    plan.edit("2", title="Deux")
    plan.start("1")
    nvim.until("require('punchlist.view').of(0).waiting == 2")
    nvim.until(NOTICED, "others have changed the list")
    assert nvim.lines()[1] == "[ ] #2 Two"
    nvim.command("write")
    nvim.shows(["[/] #1 Eins", "[ ] #2 Deux", "[ ] #3 Three", "[ ] #4 Four"])
    nvim.type(["[/] #1 Eins", "[ ] #2 Zwei", "[x] #3 Three", "[ ] #4 Four"])
    plan.edit("2", title="Dos")
    nvim.until(NOTICED, "others have changed the list")
    nvim.command("write")
    assert "line 2: #2 was changed by someone else to: [ ] #2 Dos" in nvim.said()[-1]
    assert plan.get("3").status == "pending"
    nvim.command("write!")
    nvim.shows(["[/] #1 Eins", "[ ] #2 Zwei", "[x] #3 Three", "[ ] #4 Four"])


def test_two_editors_keep_edits_and_cursors(nvim: Editor, daemon: Running, plan: Any, tmp_path: Path) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    nvim.command("split")
    nvim.lua("vim.api.nvim_win_set_cursor(0, {3, 4})")
    with Editor(daemon.socket, tmp_path) as other:
        other.command(f"edit punchlist://{plan.id}")
        other.shows(["[ ] #1 One", "[ ] #2 Two", "[ ] #3 Three"])
        other.type(["[ ] #1 One", "[ ] Between", "[ ] #2 Two", "[/] #3 Three"])
        nvim.write(["[ ] #1 Eins", "[ ] #2 Two", "[ ] #3 Three"])
        nvim.shows(["[ ] #1 Eins", "[ ] #2 Two", "[ ] #3 Three"])
        nvim.lua("vim.api.nvim_win_set_cursor(0, {3, 4})")
        other.until(NOTICED, "others have changed the list")
        other.command("write")
        for editor in (other, nvim):
            editor.shows(["[ ] #1 Eins", "[ ] #4 Between", "[ ] #2 Two", "[/] #3 Three"])
        assert other.said() == nvim.said() == []
    rows = "return vim.tbl_map(function(w) return vim.api.nvim_win_get_cursor(w)[1] end, vim.api.nvim_list_wins())"
    assert nvim.lua(rows) == [4, 1]


def test_one_line_of_ten_thousand_is_saved(nvim: Editor, plan: Any) -> None:
    for first in range(0, 10_000, 1000):
        plan.add_many([f"Task {first + at}" for at in range(1000)])
    nvim.command(f"edit punchlist://{plan.id}")
    nvim.until(COUNT, 10_000)
    lines = nvim.lines()
    nvim.lua("vim.api.nvim_buf_set_lines(0, 4999, 5000, false, {'[x] #5000 done', '[ ] New'})")
    before = nvim.lua("return require('punchlist.view').of(0).redrawn")
    nvim.command("write")
    nvim.shows([*lines[:4999], "[x] #5000 done", "[ ] #10001 New", *lines[5000:]])
    assert nvim.lua("return require('punchlist.view').of(0).redrawn") - before == 1
    assert nvim.said() == []


def test_unseen_change_rejects_the_save(nvim: Editor, plan: Any, tmp_path: Path) -> None:
    opened(nvim, plan, "One", "Two")
    os.mkfifo(tmp_path / "go")
    code = (
        "io.open('go'):read(); vim.api.nvim_buf_set_lines(0, 0, 1, false, {'[x] #1 One', '[ ] New'}); vim.cmd('write')"
    )
    nvim.send("nvim_exec_lua", code, [])
    plan.start("2")
    (tmp_path / "go").write_text("now\n")
    nvim.receive()
    nvim.until("#_G.said == 1")
    assert "the list has just changed; :w again (nothing was changed)" in nvim.said()[0]
    assert plan.get("1").status == "pending"
    nvim.command("write")
    nvim.shows(["[x] #1 One", "[ ] #3 New", "[/] #2 Two"])


def test_deleted_lines_delete_after_one_question(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    nvim.lua("_G.answers = {'Cancel', 'Delete'}")
    nvim.write(["[ ] #2 Two"])
    nvim.until("#_G.said == 1")
    assert nvim.lua("return _G.asked") == ["Delete #1, #3?"]
    assert len(plan.list()) == 3
    nvim.command("write")
    nvim.shows(["[ ] #2 Two"])
    assert [task.id for task in plan.list()] == ["2"]


def described(nvim: Editor, plan: Any) -> Editor:
    opened(nvim, plan, "One")
    plan.edit("1", description="Why\nand how")
    nvim.until("require('punchlist.view').of(0).model.by_id['1'].description")
    nvim.keys("1G\\\\E")
    nvim.shows(["Why", "and how"])
    assert nvim.lua("return {vim.fn.bufname(), vim.bo.filetype}") == [f"punchlist://{plan.id}/1", "markdown"]
    return nvim


def test_description_follows_the_task_and_is_saved(nvim: Editor, plan: Any) -> None:
    described(nvim, plan)
    plan.edit("1", description="Why not")
    nvim.shows(["Why not"])
    nvim.write(["Mine", "", "- [ ] `x` \x1b[31m"])
    nvim.until("not vim.bo.modified")
    assert plan.get("1").description == "Mine\n\n- [ ] `x` \x1b[31m"
    assert nvim.said() == []


def test_description_never_overwrites_anothers_change(nvim: Editor, plan: Any) -> None:
    described(nvim, plan)
    nvim.type(["Mine"])
    plan.edit("1", description="Theirs")
    nvim.until("#_G.said == 1")
    assert "#1 was changed by someone else; :w shows both" in nvim.said()[0]
    assert nvim.lines() == ["Mine"]
    nvim.command("write")
    nvim.until("#vim.api.nvim_list_wins() == 2 and #_G.said == 2")
    assert "not saved: compare with the other description of #1" in nvim.said()[1]
    windows = """return vim.tbl_map(function(window)
        return { vim.wo[window].diff, vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false) }
    end, vim.api.nvim_list_wins())"""
    assert nvim.lua(windows) == [[True, ["Mine"]], [True, ["Theirs"]]]
    assert plan.get("1").description == "Theirs" and nvim.lua("return vim.bo.modified") is True
    nvim.command("write")
    nvim.until("not vim.bo.modified")
    assert plan.get("1").description == "Mine"
    plan.delete("1")
    nvim.until("#_G.said == 3")
    nvim.write(["More"])
    nvim.until("#_G.said == 4")
    assert nvim.said()[3].endswith("(nothing was saved, and your text stays)") and nvim.lines() == ["More"]


def test_log_follows_and_opens_earlier_versions(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One\x1b", "Two")
    plan.edit("2", parent="1")
    plan.start("2")
    nvim.command("Punch log")
    nvim.until("vim.api.nvim_buf_line_count(0) == 6")
    day, *lines = nvim.lines()
    assert re.fullmatch(r"\w+ \d\d \w+ \d{4}", day)
    assert [re.sub(r"^ *\d+  [\d:]{8}  (\S+) +", r"\1: ", line) for line in lines] == [
        "agent: #2 started",
        "agent: #2 edited: parent 1",
        "agent: #2 added: Two",
        "agent: #1 added: One\\x1b",
        "agent: began the list",
    ]
    plan.complete("2")
    nvim.until("vim.fn.getline(2):find('#2 done', 1, true)")
    assert nvim.lines()[0] == day and len(nvim.lines()) == 7
    nvim.keys("5G")
    nvim.keys(chr(13))
    nvim.until("vim.fn.getline(1) ~= ''")
    assert nvim.lines() == ["[ ] #1 One\\x1b", "[ ] #2 Two"]
    nvim.command(f"edit punchlist://{plan.id}")
    nvim.command("Punch at 4")
    nvim.until("vim.fn.getline(1) ~= ''")
    assert nvim.lines() == ["[ ] #1 One\\x1b", "  [ ] #2 Two"]
    assert nvim.lua("return {vim.bo.modifiable, vim.fn.bufname()}") == [False, f"punchlist://{plan.id}/@4"]


def test_notifications_follow_the_option(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two", "Three")
    plan.edit("2", owner="nvim/ann", add_blocked_by=["1"])
    plan.edit("3", owner="nvim/ann")
    nvim.until("vim.fn.getline(2) == '[.] #2 Two'")
    nvim.command("Punch fail 3 our own doing")
    nvim.shows(["[ ] #1 One", "[.] #2 Two", "[✗] #3 Three"])
    assert nvim.said() == []
    plan.complete("1")
    nvim.until("#_G.said == 1")
    plan.start("2", actor="claude")
    plan.fail("2", "no paper")
    nvim.until("#_G.said == 3")
    assert nvim.said() == [
        "punchlist: #2 Two can start now",
        "punchlist: #2 Two failed: no paper",
        f"punchlist: all tasks of {plan.id} are finished",
    ]
    nvim.lua("_G.said = {}; require('punchlist').setup({ notify = 'off' })")
    plan.reopen("1")
    plan.fail("1", "no ink")
    nvim.until("vim.fn.getline(1) == '[✗] #1 One'")
    assert nvim.said() == []
    nvim.lua("require('punchlist').setup({ notify = 'all' })")
    plan.reopen("1")
    plan.fail("1", "no ink")
    nvim.until("#_G.said == 2")
    assert nvim.said()[-1] == f"punchlist: all tasks of {plan.id} are finished"


def test_selected_code_becomes_a_task(nvim: Editor, client: Client, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    plan = client.conversation(client.call("conversation.resolve", {"path": str(tmp_path)})["conversation"])
    (tmp_path / "a.py").write_text("one\n    return cache  # TODO: mend this\n    call(two)\n")
    nvim.command("edit a.py")
    nvim.lua("_G.answers = {'Mend it', 'Call it'}")
    nvim.keys("2GV:Punch add<CR>")
    nvim.until("#_G.asked == 1")
    nvim.keys("3GVG:Punch add<CR>")
    nvim.until("#_G.asked == 2")
    nvim.command("Punch")
    nvim.shows(["[ ] #1 Mend it", "[ ] #2 Call it"])
    assert [task.links[0].to for task in plan.list()] == ["a.py:2", "a.py:3"]
    nvim.lua("_G.answers = {'1'}")
    nvim.keys("2G\\\\b")
    nvim.shows(["[ ] #1 Mend it", "[.] #2 Call it"])


def test_text_undo_keeps_others_changes(nvim: Editor, plan: Any) -> None:
    opened(nvim, plan, "One", "Two")
    plan.start("1")
    nvim.until("vim.fn.getline(1) == '[/] #1 One'")
    nvim.keys("u")
    assert nvim.lines() == ["[/] #1 One", "[ ] #2 Two"]


def test_places_fill_the_quickfix_list(nvim: Editor, plan: Any, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a%b.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "src/a.txt").write_text("one\ntwo\nthree\n")
    opened(nvim, plan, "Fix src/a.txt:2, not gone.txt:3", "Nowhere")
    plan.add("By link", links=[{"kind": "path", "to": "src/a.txt:3"}])
    nvim.until(COUNT, 3)
    nvim.command("Punch quickfix")
    items = nvim.lua(
        "return vim.tbl_map(function(i) return {vim.fn.bufname(i.bufnr), i.lnum, i.text} end, vim.fn.getqflist())"
    )
    assert [(os.path.basename(name), line, text) for name, line, text in items] == [
        ("a.txt", 2, "#1 Fix src/a.txt:2, not gone.txt:3"),
        (plan.id, 2, "#2 Nowhere"),
        ("a.txt", 3, "#3 By link"),
    ]
    nvim.command("wincmd p")
    nvim.keys("1Ggf")
    assert nvim.lua("return {vim.fn.expand('%:t'), vim.fn.line('.')}") == ["a.txt", 2]
    nvim.command("2Punch add Two is wrong")
    nvim.command(f"buffer punchlist://{plan.id}")
    nvim.until(COUNT, 4)
    assert plan.get("4").links[0].to.endswith("src/a.txt:2")


@pytest.mark.parametrize(
    "call",
    [
        "require('punchlist.links').places(('a'):rep(200000))",
        "require('punchlist.text').parse_line('[ ] a' .. (' '):rep(200000) .. 'b')",
        "require('punchlist.text').parse_line('[ ] a  !high' .. (' '):rep(200000) .. '<')",
    ],
)
def test_long_lines_are_parsed_quickly(nvim: Editor, call: str) -> None:
    assert nvim.lua(f"local began = os.clock(); {call}; return os.clock() - began") < 2


def test_restarted_daemon_loses_nothing(tmp_path: Path) -> None:
    process = Spawned(tmp_path)
    try:
        with Editor(process.socket, tmp_path) as nvim:
            nvim.command("edit punchlist://website")
            nvim.until(NOTICED, "away: no daemon listens on")
            process.start()
            with connect(socket=process.socket, autostart=False) as client:
                client.conversation("website").add("One")
            nvim.shows(["[ ] #1 One"])
            process.kill()
            nvim.until(NOTICED, "away, showing the last known list")
            assert nvim.lines() == ["[ ] #1 One"]
            nvim.write(["[x] #1 One"])
            assert "no connection to the daemon; nothing was changed" in nvim.said()[-1]
            process.start()
            nvim.until("require('punchlist.transport').connected")
            # A suspended daemon doesn't block the editor. Its unanswered change is sent again to the next daemon.
            assert process.process is not None
            process.process.send_signal(signal.SIGSTOP)
            nvim.write(["[ ] #1 One", "[ ] Two"])
            assert nvim.lua("return 1") == 1
            process.restart()
            nvim.shows(["[ ] #1 One", "[ ] #2 Two"])
            with connect(socket=process.socket, autostart=False) as client:
                website = client.conversation("website")
                assert [task.title for task in website.list()] == ["One", "Two"]
                website.add("Three")
            nvim.shows(["[ ] #1 One", "[ ] #2 Two", "[ ] #3 Three"])
    finally:
        process.kill()


def test_saves_between_kills_happen_once(tmp_path: Path) -> None:
    process = Spawned(tmp_path)
    kills = int(os.environ.get("KILLS") or 5)
    try:
        process.start()
        with Editor(process.socket, tmp_path) as nvim, connect(socket=process.socket, autostart=False) as client:
            nvim.command("edit punchlist://website")
            nvim.until("require('punchlist.transport').connected")
            lines = list[str]()
            for number in range(1, kills + 1):
                title = f"Task {number}"
                nvim.until("require('punchlist.transport').connected and require('punchlist.view').of(0).model.ready")
                nvim.write([*lines, f"[ ] {title}"])
                process.kill()  # at a random time: before or after the response, or before the push
                process.start()
                lines.append(f"[ ] #{number} {title}")
                nvim.shows(lines)
            assert [task.title for task in client.conversation("website").list()] == [
                f"Task {number}" for number in range(1, kills + 1)
            ]
            assert nvim.said() == []
    finally:
        process.kill()


def test_missing_daemon_is_started(tmp_path: Path) -> None:
    beside = os.path.dirname(sys.executable)
    env = {
        "PUNCHLIST_AUTOSTART": "1",
        "PUNCHLIST_DATA_DIR": str(tmp_path / "data"),
        "PATH": f"{beside}:{os.environ['PATH']}",
    }
    with Editor(str(tmp_path / "run/daemon.sock"), tmp_path, env=env) as nvim:
        nvim.command("edit punchlist://website")
        nvim.until("require('punchlist.view').of(0).model.ready")
        nvim.write(["[ ] One"])
        nvim.shows(["[ ] #1 One"])
        nvim.lua("require('punchlist').config.autostart = false")
        nvim.lua("require('punchlist.transport').request('daemon.shutdown', vim.empty_dict(), function() end)")
        nvim.until(NOTICED, "away, showing the last known list")


def test_checkhealth_reports_connection_and_its_failure(nvim: Editor, daemon: Running, tmp_path: Path) -> None:
    nvim.command("checkhealth punchlist")
    said = "\n".join(nvim.lines()).replace("OK: ", "OK ")  # newer versions print no colon
    assert f"OK the socket is {daemon.socket}" in said
    assert "OK connected to punchlistd" in said
    assert "ERROR" not in said
    with Editor(str(tmp_path / "nobody.sock"), tmp_path) as lonely:
        lonely.command("checkhealth punchlist")
        assert re.search("ERROR:? not connected: no daemon listens on", "\n".join(lonely.lines()))


def test_list_of_another_project_is_not_opened(nvim: Editor, plan: Any, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    opened(nvim, plan, "One")
    nvim.command("enew")
    (tmp_path / ".punchlist.toml").write_text(f'conversation = "{plan.id}"\n')
    nvim.command("Punch")
    nvim.until("#_G.said == 1")
    assert "punch init --trust" in nvim.said()[0]


def test_unknown_command_and_invalid_name_are_reported(nvim: Editor) -> None:
    nvim.command("Punch dance")
    nvim.command("edit punchlist://-no")
    assert nvim.said() == [
        "punchlist: unknown command :Punch dance; see :help punchlist",
        "punchlist: not a valid name of a list: punchlist://-no",
    ]
    assert nvim.lua("return require('punchlist').complete('re', 'Punch re')") == ["redo", "reject", "release", "reopen"]


def test_only_the_health_report_blocks() -> None:
    waiting = re.compile(r"vim\.wait|:wait\(|uv\.run|uv\.sleep|vim\.fn\.system|io\.popen|os\.execute")
    files = [path.name for path in PLUGIN.rglob("*.lua") if waiting.search(path.read_text("utf-8"))]
    assert files == ["health.lua"]
