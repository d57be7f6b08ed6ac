"""Groups, orders, the search, and the dialog about what a task waits for, by keys."""

from pathlib import Path
from typing import Any

from punchlist.clients.aio import AsyncClient, AsyncConversation
from punchlist_apps.ui.memory import Memory
from punchlist_apps.ui.picker import Picker
from punchlist_schemas.params import NewTask
from punchlist_testing.daemon import Running


async def test_groups_are_folded_sorted_and_kept(plan: AsyncConversation, show: Any, tmp_path: Path) -> None:
    await plan.add_many([NewTask(title="Low", priority="low"), NewTask(title="High", priority="high", owner="ann")])
    await plan.add("Done")
    await plan.complete("3", "ok")
    memory = tmp_path / "ui.toml"
    async with show(memory=memory) as shown:
        await shown.until("▸ Done 1")
        await shown.press("h")
        await shown.until("▸ Ready 2")
        assert "Low" not in shown.text
        await shown.press("l")
        await shown.until("▾ Ready 2")
        await shown.press("o")
        await shown.until("!▾task")
        assert shown.text.index("High") < shown.text.index("Low")
        await shown.press("J")
        await shown.until("Tasks can be moved in list order")
        await shown.press("O")
        await shown.until("▾ @ann 1")
        await shown.press("G", "h")
        await shown.until("▸ nobody 2")
    async with show(memory=memory) as shown:
        await shown.until("▸ nobody 2")
        await shown.press("F")
        await shown.type("done")
        await shown.until("✓ #3")
    assert Memory(memory).arrangement.sort == "priority"


async def test_task_with_two_labels_stands_in_both_groups(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Both", labels=("bug", "web"))
    async with show() as shown:
        await shown.until("☐ #1")
        await shown.press("O", "O")
        await shown.until("▾ +web 1")
        assert shown.text.count("☐ #1") == 2
        await shown.press("G", "s")
        await shown.until("1 in progress")
        await plan.edit("1", title="Renamed")
        await shown.until(lambda: shown.text.count("Renamed") == 2)
        await shown.press("space")
        await shown.until("1 marked")


async def test_subtask_shows_its_parent(plan: AsyncConversation, show: Any) -> None:
    await plan.add("Checkout")
    await plan.add("Pay", parent="1")
    async with show() as shown:
        await shown.until("Checkout › Pay")
        assert "Blocked 1" in shown.text, "no agent works on a task with open subtasks"
        await plan.complete("2")
        await shown.until(lambda: "Blocked" not in shown.text)


async def test_search_finds_tasks_of_all_lists(client: AsyncClient, show: Any) -> None:
    await client.conversation("plan").add("Send the invoice")
    await client.conversation("site").add("Print it", description="The invoice needs \x1b[31m ink.")
    await client.conversation("site").add("Old invoice")
    await client.conversation("site").complete("2")
    async with show("") as shown:
        await shown.press("/")
        await shown.type("invo")
        await shown.until("3 tasks")
        assert shown.text.index("Send") < shown.text.index("Old invoice"), "unfinished tasks come first"
        assert "\\x1b[31m" in shown.text
        await shown.press("down", "down", "enter")
        await shown.until("Done 1")
        await shown.until("✓ #2   Old invoice")
        await shown.press("/")
        await shown.type("nothing like it")
        await shown.until("No task has “nothing like it”.")
        await shown.type("x" * 600)
        await shown.until("at most 500 characters")
        await shown.press("escape")
        await shown.until("✓ #2   Old invoice")


async def test_blockers_are_chosen_by_words(plan: AsyncConversation, show: Any) -> None:
    await plan.add_many(["Deploy", "Write the docs", "Test it", "Announce"])
    await plan.edit("1", add_blocked_by=["3"])
    await plan.edit("4", add_blocked_by=["1"])
    async with show(size=(110, 30)) as shown:
        await shown.until("← #3")
        await shown.press("F")
        await shown.type("deploy")
        await shown.press("enter", "b")
        await shown.until("What #1 waits for")
        await shown.until("[x] ☐ #3 Test it")
        await shown.type("docs")
        await shown.until(lambda: "[x] ☐ #3" not in shown.text)
        await shown.press("enter")
        await shown.until("[x] ☐ #2 Write the docs")
        await shown.type("announce")
        await shown.until("would wait for itself")
        await shown.press("enter")
        await shown.until("#4 would wait for itself.")
        await shown.press("escape")
        assert (await plan.get("1")).blocked_by == ("3",)
        await shown.press("b")
        await shown.type("docs")
        await shown.press("enter", "enter")
        await shown.until(lambda: not isinstance(shown.app.screen, Picker))
        await shown.until("← #2 #3")
    assert set((await plan.get("1")).blocked_by) == {"2", "3"}


async def test_theme_is_switched_and_kept(daemon: Running, show: Any, tmp_path: Path) -> None:
    memory = tmp_path / "ui.toml"
    async with show("", memory=memory) as shown:
        await shown.press(":")
        await shown.type("dark or")
        await shown.until("dark or light")
        await shown.press("down", "enter")
        await shown.until(lambda: shown.app.theme == "light")
    assert Memory(memory).theme == "light"
