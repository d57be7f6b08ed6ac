from typing import Any

import pytest

from punchlist.clients.aio import AsyncClient, AsyncConversation
from punchlist_apps.ui.now import Now
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import Gate


async def ask(plan: AsyncConversation, title: str, result: str = "") -> None:
    """Add a task, and complete it so that it waits for approval."""
    task = await plan.add(title, gate=Gate(yes=True))
    await plan.complete(task.id, result)


async def test_first_screen_shows_needs_of_all_lists(client: AsyncClient, show: Any) -> None:
    shop, site = client.conversation("shop"), client.conversation("site")
    await shop.add_many([NewTask(title="Fails"), NewTask(title="Waits"), NewTask(title="Pay \x1b[31m")])
    await shop.edit("2", add_blocked_by=["1"])
    await shop.fail("1", "no idea " * 100)
    await shop.fail("3")
    async with show("", size=(80, 24)) as shown:
        await shown.until("✗ Fails #1")
        assert shown.text.index("Fails") < shown.text.index("Pay"), "what frees the most comes first"
        assert "frees 1" in shown.text
        assert "\\x1b[31m" in shown.text
        assert "no idea" in shown.text
        assert "…" in shown.text
        await ask(site, "Deploy", "**All** tests pass.")
        await shown.until("? Deploy #1")
        assert shown.text.index("Deploy") < shown.text.index("Fails"), "questions come first"
        assert "waits for your yes · site" in shown.text
        assert "3 need you" in shown.lines[0]
        await shop.reopen("1")
        await shown.until(lambda: "Fails" not in shown.text)


async def test_keys_take_failure_to_approval_and_back(client: AsyncClient, show: Any) -> None:
    plan = client.conversation("plan")
    await plan.add("Deploy", gate=Gate(yes=True))
    await plan.fail("1", "timeout")
    async with show("", actor="ann", size=(80, 24)) as shown:
        await shown.until("timeout")
        await shown.press("r")
        await shown.until("#1 Deploy: reopened (u: undo)")
        await shown.until("Nothing needs you.")
        await plan.complete("1", "It works now.")
        await shown.until("It works now.")
        await shown.press("y")
        await shown.until("#1 Deploy: approved (u: undo)")
        await shown.until("Nothing needs you.")
        assert (await plan.get("1")).status == "completed"
        await shown.press("u")
        await shown.until("Undone: ")
        await shown.until("? Deploy #1")
        assert (await plan.get("1")).waits_for == "yes"
        await shown.press("U")
        await shown.until("Redone: ")
        await shown.until("Nothing needs you.")


async def test_answered_card_leaves_and_next_is_selected(plan: AsyncConversation, show: Any) -> None:
    for title in ("First", "Second", "Third"):
        await ask(plan, title)
    async with show("") as shown:
        await shown.until("Third")
        await shown.press("y", "y", "n")
        await shown.type("no tests")
        await shown.press("enter")
        await shown.until("Nothing needs you.")
    assert [task.status for task in await plan.list()] == ["completed", "completed", "pending"]


async def test_refused_answer_brings_card_back(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Deploy", gate=Gate(by="ann"))
    await plan.complete("1")
    async with show("") as shown:
        await shown.until("waits for ann's yes")
        await shown.press("y")
        await shown.until("Only ann can approve task #1")
        await shown.until("? Deploy #1")


async def test_changed_question_is_not_answered(plan: AsyncConversation, show: Any) -> None:
    await ask(plan, "Deploy")
    async with show("") as shown:
        await shown.until("? Deploy #1")
        shown.app.workers.cancel_group(shown.app, "board")
        await plan.edit("1", title="Deploy on Friday")
        await shown.press("y")
        await shown.until("version")
        assert "? Deploy #1" in shown.text
    assert (await plan.get("1")).waits_for == "yes"


async def test_failure_is_handed_to_another_agent(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Write", owner="codex")
    await plan.fail("1", "stuck")
    async with show("", actor="ann") as shown:
        await shown.until("stuck")
        await shown.press("@")
        await shown.until("Who shall do it?")
        await shown.type("gemini")
        await shown.press("enter")
        await shown.until("handed over")
    task = await plan.get("1")
    assert (task.status, task.owner) == ("pending", "gemini")


async def test_list_that_fails_by_hundreds_takes_little_room(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many([f"task {n}" for n in range(1, 21)])
    for n in range(1, 21):
        await plan.fail(str(n))
    async with show("", size=(80, 30)) as shown:
        await shown.until("and 17 more failed in plan")
        await shown.press("G", "enter")
        await shown.until("Needs you 20")


async def test_agents_stand_beside_needs_in_wide_window(client: AsyncClient, show: Any) -> None:
    plan = client.conversation("plan")
    await plan.add_many([NewTask(title=f"Task {n}") for n in range(1, 31)])
    for n in range(1, 31):
        await plan.take(f"bot/{n}", str(n), keep=True)
    async with show("", size=(140, 60)) as shown:
        await shown.until("AGENTS 8")
        await shown.until(lambda: shown.timers() == ["spinner"])
        assert "NEEDS YOU" in shown.text
    async with show("", size=(100, 24)) as shown:
        await shown.until("Nothing needs you.")
        assert "AGENTS" not in shown.text
        await shown.press("tab")
        await shown.until("AGENTS 8")
        assert "NEEDS YOU" not in shown.text
        await shown.press("j", "enter")
        await shown.until("Running 30")


@pytest.mark.parametrize("size", [(20, 8), (40, 12), (80, 24), (110, 30), (140, 40), (200, 60)])
@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_every_window_shows_the_first_need(plan: AsyncConversation, show: Any, size: Any, theme: str) -> None:
    await ask(plan, "中文 wide " * 50, "مرحبا " * 100)
    async with show("", size=size, theme=theme) as shown:
        await shown.until("▌? 中文")
        assert len(shown.lines) == size[1]
        await shown.press("enter")
        await shown.until("Needs you 1")


async def test_home_key_returns_to_first_screen(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Read")
    async with show() as shown:
        await shown.until("☐ #1")
        await shown.press("8")
        await shown.until("Waiting 1")
        await shown.press("enter", "4")
        await shown.until("what happened")
        await shown.press("0")
        await shown.until(lambda: isinstance(shown.app.screen, Now))
        await shown.press("escape")
        await shown.until("Nothing needs you.")


async def test_board_is_followed_while_a_list_is_open(client: AsyncClient, show: Any) -> None:
    await client.conversation("plan").add("Read")
    async with show() as shown:
        await shown.until("☐ #1")
        await client.conversation("bread").add_many(["Bake", "Eat"])
        await client.conversation("bread").complete("1")
        await shown.until(lambda: "bread" in shown.app.cards and shown.app.cards["bread"].counts.completed)
        await shown.press(":")
        await shown.until("list bread · 1 done")


async def test_bell_rings_for_question(plan: AsyncConversation, show: Any) -> None:
    async with show("", bell=True) as shown:
        rings: list[int] = []
        shown.app.bell = lambda: rings.append(1)
        await ask(plan, "Deploy")
        await shown.until("? Deploy #1")
        await plan.edit("1", title="Deploy it")
        await shown.until("Deploy it")
        assert len(rings) == 1


async def test_read_only_first_screen_changes_nothing(plan: AsyncConversation, show: Any) -> None:
    await ask(plan, "Deploy")
    async with show("", read_only=True) as shown:
        await shown.until("? Deploy #1")
        for key in ("y", "n", "r", "@", "R", "u", "U", "a"):
            await shown.press(key)
            await shown.until("Changes are disabled")
            await shown.press("k")
    assert (await plan.get("1")).waits_for == "yes"


@pytest.mark.parametrize("key", ["r", "@"])
async def test_question_is_only_approved_or_rejected(plan: AsyncConversation, show: Any, key: str) -> None:
    await ask(plan, "Deploy", "It works.")
    async with show("") as shown:
        await shown.until("? Deploy #1")
        await shown.press(key)
        await shown.until("y approves it, n rejects it")
    assert (await plan.get("1")).waits_for == "yes"


async def test_running_task_is_not_approved(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Write")
    await plan.take("codex", "1", keep=True)
    async with show("") as shown:
        await shown.press("tab")
        await shown.until("Write #1")
        await shown.press("g", "y")
        await shown.until("#1 doesn't wait for a yes")
        await shown.press("n")
        await shown.until("#1 doesn't wait for a yes")


async def test_key_meant_for_a_vanished_card_changes_no_other(plan: AsyncConversation, show: Any) -> None:
    await ask(plan, "First")
    await ask(plan, "Second")
    async with show("") as shown:
        await shown.until("? Second #2")
        await plan.approve("1")
        await shown.until(lambda: "First" not in shown.text)
        await shown.press("y")
        await shown.until("Press the key again")
        assert (await plan.get("2")).waits_for == "yes"
        await shown.press("y")
        await shown.until("#2 Second: approved")


async def test_chosen_event_stays_chosen(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(["Read", "Write"])
    async with show("", size=(80, 24)) as shown:
        await shown.press("tab")
        await shown.until("began a list")
        await shown.press("G")
        chosen = shown.app.screen.lines.key
        for title in ("Send", "Sleep"):
            await plan.add(title)
            await plan.start("1")
            await plan.pause("1")
            await shown.until(lambda title=title: f"added {title}" in shown.text)
        assert shown.app.screen.lines.key == chosen
