import re
from typing import Any

import pytest

from punchlist.clients.aio import AsyncConversation
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import Gate, Shared


async def test_list_shows_changes_of_others(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Write")
    await plan.add("Read", blocked_by=["1"], priority="high", owner="ann")
    async with show() as shown:
        await shown.until("▸ #2 ! Read")
        assert re.search(r"▸ #2 ! Read +← #1 +@ann +now", shown.text)
        await plan.edit("1", active_form="Writing")
        await plan.start("1")
        await shown.until(lambda: re.search(r"Write  Writing +0s", shown.text))
        assert "0/2 · 1 in progress · 1 blocked" in shown.lines[0]
        await plan.complete("1")
        await shown.until("☐ #2")
        await plan.delete("2")
        await shown.until(lambda: "Read" not in shown.text)


async def test_shared_list_shows_unreachable_space(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Write")
    async with show() as shown:
        await shown.until("Write")
        shown.app.screen.rows.shared = Shared("team", "offline")
        shown.app.screen.draw_frame()
        await shown.until("team: offline, changes are refused")


async def test_keys_change_tasks_and_show_errors(plan: AsyncConversation, show: Any) -> None:
    async with show() as shown:
        await shown.until("press a to add one")
        await shown.press("a")
        await shown.type("Bake bread")
        await shown.press("enter")
        await shown.until("☐ #1   Bake bread")
        await plan.add("Eat it", blocked_by=["1"])
        await shown.until("#2")
        await shown.press("G", "s")
        await shown.until("Task #2 waits for #1")
        await shown.press("g", "s")
        await shown.until("1 in progress")
        await shown.press("d")
        await shown.type("two loaves")
        await shown.press("enter")
        await shown.until("▸ Done 1")
        await shown.press("g", "f")
        await shown.type("mouldy")
        await shown.press("enter")
        await shown.until("✗ #2   Eat it  mouldy")
    done, failed = await plan.list()
    assert (done.result_summary, failed.fail_reason) == ("two loaves", "mouldy")


async def test_timer_runs_only_with_visible_progress(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(["a", "b"])
    async with show() as shown:
        await shown.until("#2")
        assert shown.timers() == []
        await plan.start("1")
        await shown.until(lambda: shown.timers() == ["spinner"])
        await shown.press("?")
        await shown.until(lambda: shown.timers() == [])
        await shown.press("escape")
        await shown.until(lambda: shown.timers() == ["spinner"])
        await plan.pause("1")
        await shown.until(lambda: shown.timers() == [])


async def test_invisible_running_tasks_are_shown_below(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many([f"task {n}." for n in range(1, 41)])
    async with show(size=(60, 14)) as shown:
        await shown.until("task 5.")
        await shown.press("G")
        await plan.start("33")
        await shown.until(lambda: "#33   task 33." in shown.lines[-2])
        await plan.start("34")
        await shown.press("G")
        await shown.until("+1 more")
        await shown.press("g")
        await shown.until(lambda: "+1 more" not in shown.text and "Running 2" in shown.text)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
async def test_a_list_fits_into_every_window(plan: AsyncConversation, show: Any, size: tuple[int, int]) -> None:
    await plan.add_many([NewTask(title="wide 中文 " * 6, description="Everything about it.") for _ in range(30)])
    await plan.start("2")
    async with show(size=size) as shown:
        await shown.until("#2")
        assert len(shown.lines) == size[1]
        assert "q quit" in shown.text or size[0] < 200
        await shown.until(lambda: ("Everything about it." in shown.text) == (size[0] >= 110))
        if size[0] < 110:
            await shown.press("enter")
            await shown.until("#2 · in progress")
            await shown.press("pagedown")
            await shown.until("Everything about it.")


async def test_filter_is_typed_kept_and_cleared(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many([NewTask(title="Read", owner="ann"), NewTask(title="Write"), NewTask(title="Rest")])
    await plan.start("2")
    async with show() as shown:
        await shown.until("#3")
        await shown.press("F")
        await shown.type("@ann re")
        await shown.until(lambda: "Rest" not in shown.text and "Read" in shown.text)
        await shown.press("enter", "escape")
        await shown.until("Rest")
        for expected in ("[is:open]", "[is:ready]", "[is:blocked]"):
            await shown.press("tab")
            await shown.until(expected)
        await shown.until("No task matches the filter")


async def test_own_changes_are_undone_and_redone_without_question(plan: AsyncConversation, show: Any) -> None:
    ann = plan.client.conversation(plan.id, actor="ann")
    await ann.add("Keep")
    await ann.add("Slip")
    await plan.complete("1", "hours of work")
    async with show(actor="ann") as shown:
        await shown.until("Slip")
        await shown.press("u")
        await shown.until('Undone: removed #2 "Slip" (U: redo)')
        await shown.until(lambda: "☐ #2" not in shown.text)
        await shown.press("U")
        await shown.until("Redone: ")
        await shown.until("☐ #2   Slip")
    assert [task.title for task in await plan.list()] == ["Keep", "Slip"]
    changes = await plan.client.read(0, plan.id)
    assert [change.actor for change in changes[-3:]] == ["codex", "ann", "ann"], "the undo and the redo are ann's"


async def test_undo_that_loses_result_asks_first(plan: AsyncConversation, show: Any) -> None:
    ann = plan.client.conversation(plan.id, actor="ann")
    await ann.add("Read")
    await ann.complete("1", "hours of work")
    async with show(actor="ann") as shown:
        await shown.until("Done 1")
        await shown.press("u")
        await shown.until("Undo your last change?")
        assert "lost: its result 'hours of work'" in shown.text
        await plan.add("Meanwhile")
        await shown.press("escape")
        await shown.until("Meanwhile")
        assert (await plan.get("1")).status == "completed"
        await shown.press("u")
        await shown.until("Undo your last change?")
        await shown.press("enter")
        await shown.until("Undone: ")
    assert (await plan.get("1")).status == "pending"


async def test_undo_reports_newer_change_of_others(plan: AsyncConversation, show: Any) -> None:
    ann = plan.client.conversation(plan.id, actor="ann")
    await ann.add("Slip")
    await plan.start("1")
    async with show(actor="ann") as shown:
        await shown.until("Slip")
        await shown.press("u")
        await shown.until("of codex")
    assert [task.status for task in await plan.list()] == ["in_progress"]


async def test_another_actors_change_is_undone_from_the_history(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Read")
    await plan.complete("1", "hours of work")
    async with show(actor="ann") as shown:
        await shown.until("Done 1")
        await shown.press("u")
        await shown.until("You have nothing to undo here")
        await shown.press("4")
        await shown.until("what happened, newest first")
        await shown.press("u")
        await shown.until("Undo this change by codex?")
        assert "lost: its result 'hours of work'" in shown.text
        await shown.press("enter")
        await shown.until("Undone: ")
    assert [task.status for task in await plan.list()] == ["pending"]
    assert [change.actor for change in await plan.client.read(0, plan.id)][-1] == "ann"


async def test_past_versions_are_shown_unchangeable(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Read")
    await plan.start("1")
    async with show() as shown:
        await shown.until("#1")
        await shown.press("[")
        await shown.until("version 2 of 3")
        assert "#1 added" in shown.lines[0]
        await shown.until("☐ #1")
        await shown.press("s")
        await shown.until("which can't be changed")
        await shown.press("n")
        await shown.until("1 in progress")
        await shown.press("4")
        await shown.until("pending → in_progress")
        await shown.press("j", "enter")
        await shown.until("version 2 of 3")
        await shown.press("]")
        await shown.until("1 in progress")


async def test_rejected_tasks_stay_marked(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(["a", "b", "c"])
    await plan.complete("1")
    async with show() as shown:
        await shown.until("#3")
        await shown.press("O", "O", "O")
        await shown.until("✓ #1")
        await shown.press("*", "f", "enter")
        await shown.until("2 failed   ")
        await shown.until("▎✓ #1")
        await shown.press("escape", "j", "r")
        await shown.until("1 failed")
        await shown.press("k", ".")
        await shown.until(lambda: "✗" not in shown.text)


async def test_marked_tasks_are_completed_before_their_parents(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(
        [NewTask(title="a", ref="a"), NewTask(title="b", ref="b", parent="a"), NewTask(title="c", parent="b"), "d"]
    )
    async with show() as shown:
        await shown.until("#4")
        await shown.press("*", "d", "enter")
        await shown.until("4 done")
    assert {task.status for task in await plan.list()} == {"completed"}


async def test_a_read_only_screen_changes_nothing(plan: AsyncConversation, show: Any) -> None:
    await plan.add("a")
    async with show(read_only=True) as shown:
        await shown.until("#1")
        for key in ("s", "x", "a", "u", "!"):
            await shown.press(key)
            await shown.until("Changes are disabled")
            await shown.press("k")
    assert (await plan.info()).version == 2


async def test_why_and_graph_show_dependencies(plan: AsyncConversation, show: Any) -> None:
    await plan.add("First")
    await plan.add("Second", blocked_by=["1"])
    await plan.add("Third", blocked_by=["2"])
    async with show() as shown:
        await shown.until("#3")
        await shown.press("g", "j", "w")
        await shown.until("waits for #1 First (pending)")
        assert "Done, it frees #3" in shown.text
        await shown.press("escape", "3")
        await shown.until("Frees, when it is done")
        assert "▸ #3 Third" in shown.text


async def test_open_details_follow_changes(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(["a", "b"])
    async with show() as shown:
        await shown.until("#2")
        await shown.press("enter")
        await shown.until("#1 · pending")
        await plan.note("1", "the oven is cold")
        await shown.until("the oven is cold")
        await plan.delete("1")
        await plan.start("2")
        await shown.press("escape")
        await shown.until(lambda: "#1" not in shown.text)


async def test_a_task_is_edited_moved_claimed_and_deleted(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(["a", "b"])
    async with show(owner="ann") as shown:
        await shown.until("#2")
        await shown.press("+", "J")
        await shown.until(lambda: "#1 ! a" in shown.lines[4])
        await shown.press("e")
        await shown.until("Edit #1")
        await shown.type("bc")
        await shown.press("enter")
        await shown.until("☐ #1 ! abc")
        await shown.press("e")
        await shown.until("Edit #1")
        shown.field("labels").value = "web, needs a look"
        shown.field("due").value = "soon"
        await shown.press("enter")
        await shown.until("'soon' is not a time")
        shown.field("due").value = "2030-12-24 18:00"
        await shown.press("enter")
        await shown.until(lambda: re.search(r"abc +\+web \+needs a look +2030-12", shown.text))
        await shown.press("m")
        await shown.type("the oven is cold")
        await shown.press("enter")
        await shown.until(lambda: "Note, which stays" not in shown.text)
        await shown.press("enter")
        await shown.until("the oven is cold")
        await shown.press("escape")
        await shown.press("c")
        await shown.until("@ann")
        await shown.press("R")
        await shown.until(lambda: "@ann" not in shown.text)
        await shown.press("x")
        await shown.until("Delete 1 task?")
        await shown.press("y")
        await shown.until(lambda: "abc" not in shown.text)
    assert [task.title for task in await plan.list()] == ["b"]


async def test_repeat_changes_marked_tasks(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(["a", "b", "c"])
    async with show() as shown:
        await shown.until("#3")
        await shown.press(".")
        await shown.until("No change to repeat yet.")
        await shown.press("s")
        await shown.until("1 in progress")
        await shown.press("*")
        await shown.until("3 marked")
        await shown.press("*")
        await shown.until(lambda: "marked" not in shown.text)
        await shown.press("*")
        await shown.until("3 marked")
        await shown.press("escape")
        await shown.until(lambda: "marked" not in shown.text)
        await shown.press("G", ".")
        await shown.until("2 in progress")
    assert [task.status for task in await plan.list()] == ["in_progress", "pending", "in_progress"]


async def test_task_is_copied_with_number_and_title(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Bake bread")
    async with show() as shown:
        await shown.until("#1")
        await shown.press("Y")
        await shown.until("Copied #1 and its title.")
        assert shown.app.clipboard == "#1 Bake bread"


async def test_task_keys_do_nothing_without_task(plan: AsyncConversation, show: Any) -> None:
    async with show() as shown:
        await shown.until("press a to add one")
        before = shown.text
        await shown.press(
            "enter", "s", "d", "w", "v", "x", "y", "n", "e", "D", "J", "K", "!", "space", "b", "h", "l", "@", "g", "G"
        )
        assert shown.text == before
    assert await plan.list() == []


async def test_key_finishes_command_line_claim(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Bake bread")
    await plan.take("ann", "1", keep=True)
    async with show(actor="ann", owner="ann") as shown:
        await shown.until("@ann")
        await shown.press("d")
        await shown.press("enter")
        await shown.until("✓ #1")


async def test_key_approves_waiting_task(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Deploy", gate=Gate(yes=True))
    await plan.complete("1", "deployed")
    async with show(size=(140, 30)) as shown:
        await shown.until("? #1   Deploy  waits for your yes")
        await shown.until("Done, and waits for your yes")
        for key in ("s", "r", "d", "f", "p", "c"):
            await shown.press(key)
            await shown.until("#1 waits for your yes: y approves it, n rejects it with a reason.")
        assert (await plan.get("1")).waits_for == "yes"
        await shown.press("y")
        await shown.until("#1 approved")
        await shown.until("Done 1")
    assert (await plan.get("1")).result_summary == "deployed"


async def test_rejection_needs_reason(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Deploy", gate=Gate(by="ann"))
    await plan.complete("1", "deployed")
    async with show() as shown:
        await shown.until("waits for ann's yes")
        await shown.press("n", "enter")
        await shown.press("y")
        await shown.until("Approve #1 Deploy?")
        assert "deployed" in shown.text
        await shown.press("y")
        await shown.until("Only ann can approve task #1")
        await shown.press("n")
        await shown.until("Why not?")
        await shown.type("no tests")
        await shown.press("enter")
        await shown.until("☐ #1")
    assert (await plan.get("1")).fail_reason == "no tests"


async def test_owner_sees_pending_approval(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Deploy", gate=Gate(yes=True), owner="punch ui")
    await plan.complete("1")
    async with show() as shown:
        await shown.until("waits for your yes")
        await shown.press("y", "enter")
        await shown.until("so someone else has to approve it")


async def test_board_marks_list_waiting_for_approval(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many([NewTask(title="Deploy", gate=Gate(yes=True)), NewTask(title="Later")])
    await plan.pause("2")
    async with show(None) as shown:
        await shown.until("1 paused")
        await plan.complete("1")
        await shown.until("1 asks")
        await plan.reject("1", "no")
        await shown.until(lambda: "1 asks" not in shown.text)


async def test_form_overwrites_newer_text_only_when_saved_again(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Read")
    async with show() as shown:
        await shown.until("☐ #1")
        await shown.press("e")
        await shown.until("Edit #1")
        await shown.type(" mine")
        await plan.edit("1", title="Theirs")
        await shown.until(lambda: shown.app.screen_stack[-2].rows.by_id["1"].title == "Theirs")
        await shown.press("enter")
        await shown.until("was changed meanwhile: Theirs; save again")
        assert (await plan.get("1")).title == "Theirs"
        await shown.press("enter")
        await shown.until("☐ #1   Read mine")
