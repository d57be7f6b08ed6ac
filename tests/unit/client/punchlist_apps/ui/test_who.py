from typing import Any

from punchlist.clients.aio import AsyncClient

A = "claude-code/7f3c1a"


async def test_who_screen_follows_departures(client: AsyncClient, show: Any) -> None:
    website = client.conversation("website-0123456789ab", actor=A)
    await website.add("Backend")
    await website.add("tests", parent="1")
    for name in (A, "bot/1"):
        await client.call("agent.enter", {"agent": name, "directory": "/srv/site", "branch": "main"})
    await website.take(A, "2", keep=True)
    async with show(None) as shown:
        await shown.until("1 lists")
        await shown.press("W")
        await shown.until(f"● {A}  here for ")
        assert " · /srv/site (main)" in shown.text
        assert "     website #2 Backend › tests" in shown.text
        await client.call("agent.leave", {"agent": A})
        await client.call("agent.leave", {"agent": "bot/1"})
        await shown.until("website #2 Backend › tests  free at ")
        assert f"☐ {A}  left " in shown.text
        assert "1 other left in the last hours" in shown.text
        await shown.press("F")
        await shown.type("backend")
        await shown.press("enter", "g", "down", "enter")
        await shown.until("☐ #1")
        await shown.press("W")
        await shown.until("who is there")
        await shown.press("escape")
        await shown.until("☐ #1")


async def test_names_are_escaped(client: AsyncClient, show: Any) -> None:
    await client.call("agent.enter", {"agent": "\x1b[2Ja", "directory": "/\x1b[2Jb"})
    async with show(None) as shown:
        await shown.press("W")
        await shown.until("2Ja")
        assert "\x1b" not in shown.text


async def test_palette_opens_who_screen(client: AsyncClient, show: Any) -> None:
    async with show(None) as shown:
        await shown.press(":")
        await shown.type("who is")
        await shown.until("key W")
        await shown.press("down", "enter")
        await shown.until(" connected")
