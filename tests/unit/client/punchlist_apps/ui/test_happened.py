import re
from typing import Any

from punchlist.base.text import is_safe
from punchlist.clients.aio import AsyncClient
from punchlist_apps.ui.happened import Happened
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import Gate

SIZE = (140, 40)


async def read(client: AsyncClient) -> tuple[Happened, list[str]]:
    """Return what happened, and its sentences, newest first."""
    happened = Happened()
    for change in await client.read(limit=500, about=True):
        happened.take(change)
    return happened, ["".join(words for _, words in line.parts) for line in happened.lines]


async def test_changes_are_told_as_sentences(client: AsyncClient) -> None:
    plan = client.conversation("plan")
    await plan.add_many(
        [NewTask(title="Read \x1b[31m"), NewTask(title="Write", gate=Gate(yes=True)), NewTask(title="Go")]
    )
    await plan.take("bot/1", "1")
    await plan.edit("1", active_form="Reading")
    await plan.fail("1", "no \x07 light")
    await plan.complete("2", "two pages")
    await plan.note("3", "later")
    await plan.edit("3", add_blocked_by=["2"], labels=("x",))
    await plan.delete("3")
    happened, lines = await read(client)
    assert lines == [
        "deleted Go",
        "let #2 block Go",
        "edited Go",
        "wrote a note on Go",
        "asks for a yes to Write: two pages",
        "failed Read \\x1b[31m: no \\x07 light",
        "took Read \\x1b[31m",
        "added 3 tasks",
        "began a list plan",
    ]
    assert all(is_safe(char) for line in lines for char in line)
    assert [result.style for result in happened.results["codex"]] == ["asks", "failed"]
    await client.conversation("plan", actor="ann").approve("2")
    happened, _ = await read(client)
    assert [result.style for result in happened.results["codex"]] == ["completed", "failed"]
    assert "ann" not in happened.results, "the answer isn't her work"
    assert happened.count_today("codex") == (1, 1)


async def test_memory_is_bounded(client: AsyncClient) -> None:
    plan = client.conversation("plan")
    for n in range(1, 41):
        bot = client.conversation("plan", actor=f"bot/{n}")
        await plan.add(f"task {n}")
        for _ in range(2):
            await bot.complete(str(n))
            await bot.reopen(str(n))
    happened, lines = await read(client)
    assert len(happened.results) == 30
    assert "bot/40" in happened.results
    assert len(lines) == 150


async def test_first_screen_follows_what_happens(client: AsyncClient, show: Any) -> None:
    plan = client.conversation("plan")
    await plan.add("Read")
    async with show("", size=SIZE, actor="ann") as shown:
        await shown.until("■ codex added Read")
        bot = client.conversation("plan", actor="bot/1")
        await bot.take("bot/1", "1", keep=True)
        await shown.until("■ bot/1 took Read")
        await bot.complete("1", "42 pages")
        await shown.until(lambda: re.search(r"✓ Read   42 pages +\d+s", shown.text))
        await shown.until("■ bot/1  1 done today")
        await client.conversation("plan", actor="ann").reopen("1")
        await shown.until("● you reopened Read")
        await shown.press("tab", "G", "enter")
        await shown.until("☐ #1   Read")


async def test_what_happens_survives_daemon_restart(daemon: Any, client: AsyncClient, show: Any) -> None:
    await client.conversation("plan").add("Read")
    async with show("", size=SIZE, timeout_s=0.2) as shown:
        await shown.until("■ codex added Read")
        daemon.app.stop()
        await shown.until("● away")
        assert "■ codex added Read" in shown.text
