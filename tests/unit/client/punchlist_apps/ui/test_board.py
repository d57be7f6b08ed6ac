import re
from typing import Any

from punchlist.clients.aio import AsyncClient


async def test_board_follows_lists_in_sections(client: AsyncClient, show: Any) -> None:
    await client.conversation("quiet").open(title="A quiet one")
    await client.conversation("plan").add("Read")
    async with show(None) as shown:
        await shown.until("Quiet 1")
        assert "A quiet one" in shown.text
        await client.conversation("plan").edit("1", active_form="Reading", owner="ann")
        await client.conversation("plan").start("1")
        await shown.until("· Reading @ann 0s")
        await shown.until(lambda: shown.timers() == ["spinner"])
        await client.conversation("plan").fail("1")
        await shown.until("Needs you 1")
        await shown.until(lambda: shown.timers() == [])
        await client.conversation("late").add("x")
        await shown.until("3 lists")
        await shown.press("F")
        await shown.type("late")
        await shown.until(lambda: "plan " not in shown.text)
        await shown.press("enter", "enter")
        await shown.until("☐ #1   x")
        await shown.press("escape")
        await shown.until("3 lists")


async def test_the_board_shows_that_an_owner_has_left(client: AsyncClient, show: Any) -> None:
    await client.conversation("plan").add("Read")
    await client.call("agent.enter", {"agent": "bot/1"})
    await client.conversation("plan", actor="bot/1").take("bot/1", keep=True)
    async with show(None) as shown:
        await shown.until("@bot/1")
        await client.call("agent.leave", {"agent": "bot/1"})
        await shown.until(lambda: re.search(r"  left \d{1,2} s ago, free at ", shown.text) is not None)
        await client.call("agent.enter", {"agent": "bot/1"})
        await shown.until(lambda: "left" not in shown.text)
        await shown.press("enter")
        await shown.until("#1")
        await client.call("agent.leave", {"agent": "bot/1"})
        await shown.until("free at ")
        await shown.press("escape")
        await shown.until("1 lists")
        await shown.until("free at ")


async def test_first_list_is_created_on_empty_board(client: AsyncClient, show: Any) -> None:
    async with show(None) as shown:
        await shown.until("No lists yet.")
        await shown.press("a")
        await shown.type("bread")
        await shown.press("enter")
        await shown.until("This list has no tasks yet; press a to add one.")


async def test_the_palette_finds_lists_and_commands(client: AsyncClient, show: Any) -> None:
    await client.conversation("bread").add("Bake")
    async with show(None) as shown:
        await shown.until("1 lists")
        await shown.press(":")
        await shown.until("list bread")
        await shown.type("bread")
        await shown.until("list bread")
        await shown.press("down", "enter")
        await shown.until("☐ #1   Bake")


async def test_screen_survives_daemon_restart(daemon: Any, client: AsyncClient, show: Any) -> None:
    await client.conversation("plan").add("Read")
    async with show(timeout_s=0.2) as shown:
        await shown.until("#1")
        daemon.app.stop()
        await shown.until("● away")
        assert "#1   Read" in shown.text
        await shown.until("This is the last picture.")
