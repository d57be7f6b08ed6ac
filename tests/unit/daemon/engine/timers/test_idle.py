"""Lists that are cleared when they are finished and idle."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_schemas.vocabulary import MCP_CLIENT
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlistd.engine.timers.idle import Idle

C = {"conversation": "c"}
SOON = 0.05
NEVER = 3_600.0


async def finished(peer: Peer, **settings: Any) -> int:
    """Finish a list; return its version."""
    await peer.result("conversation.open", **C, settings={"auto_clear": "idle", **settings})
    await peer.result("task.add_many", **C, tasks=[{"title": "a"}, {"title": "b"}])
    await peer.result("task.set_status", **C, task="1", status="completed")
    done = await peer.result("task.set_status", **C, task="2", status="completed")
    return done["version"]


async def shown(peer: Peer) -> list[str]:
    return [task["status"] for task in (await peer.result("task.list", **C))["tasks"]]


async def cleared(running: Engine) -> dict[str, Any]:
    """Wait for the first clear event in any list, and return it. A call that names the list would load it."""
    watcher = await running.connect()
    position = 0
    with anyio.fail_after(30):
        while True:
            found = await watcher.result("event.wait", after=position, timeout_ms=5_000)
            position = found["next"]
            for event in found["events"]:
                if event["event"]["type"] == "ListCleared":
                    return event


async def test_finished_list_is_cleared_once_idle(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=SOON) as running:
        peer = await running.connect()
        version = await finished(peer)
        event = await cleared(running)
        assert (event["version"], event["actor"]) == (version + 1, "punchlistd")
        assert (await peer.result("task.add", **C, title="next"))["task"]["id"] == "1"
        assert len(running.idle) == 0


async def test_finished_list_is_complete_until_cleared(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=NEVER) as running:
        peer = await running.connect()
        await finished(peer)
        assert await shown(peer) == ["completed", "completed"]
        assert len(running.idle) == 1


async def test_changes_restart_and_new_work_ends_idle_time(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=NEVER) as running:
        peer = await running.connect()
        await finished(peer)
        idle = running.idle
        (before,) = idle._timers.values()  # pyright: ignore[reportPrivateUsage]
        await peer.result("message.append", **C, role="user", content="thanks")
        (after,) = idle._timers.values()  # pyright: ignore[reportPrivateUsage]
        assert before.cancelled()
        assert after.when() > before.when()
        await peer.result("task.add", **C, title="more")
        assert after.cancelled()
        assert len(idle) == 0


async def test_earlier_change_prevents_the_clear(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=NEVER) as running:
        peer = await running.connect()
        version = await finished(peer)
        await peer.result("task.edit", **C, task="1", title="renamed")
        running.idle._clear("c", version)  # pyright: ignore[reportPrivateUsage]
        assert await shown(peer) == ["completed", "completed"]


async def test_end_of_turn_clears_idle_lists_immediately(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=NEVER) as running:
        peer = await running.connect(confirm=True)
        assert (await peer.result("turn.end", **C))["cleared"] == 0
        assert (await peer.result("conversation.list"))["conversations"] == []
        await finished(peer)
        await peer.result("task.set_status", **C, task="2", status="pending")
        assert (await peer.result("turn.end", **C))["cleared"] == 0
        await peer.result("task.set_status", **C, task="2", status="completed")
        await peer.result("conversation.configure", **C, settings={"auto_clear": "never"})
        assert (await peer.result("turn.end", **C))["cleared"] == 0
        await peer.result("conversation.configure", **C, settings={"auto_clear": "idle"})
        assert (await peer.result("turn.end", **C))["cleared"] == 2
        assert await shown(peer) == []


async def test_stopped_queue_keeps_the_list(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=NEVER) as running:
        peer = await running.connect()
        await finished(peer, on_failure="stop")
        for status in ("pending", "failed"):
            await peer.result("task.set_status", **C, task="1", status=status)
        assert len(running.idle) == 0
        await peer.result("conversation.configure", **C, settings={"on_failure": "continue"})
        assert len(running.idle) == 1


async def test_undone_clear_is_not_repeated(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=NEVER) as running:
        peer = await running.connect()
        await finished(peer)
        await peer.result("turn.end", **C)
        await peer.result("list.undo", **C)
        assert await shown(peer) == ["completed", "completed"]
        assert len(running.idle) == 0


@pytest.mark.parametrize("kill", [True, False])
async def test_restart_restarts_the_idle_time(tmp_path: Path, log: TouchyLog, kill: bool) -> None:
    async with engine(tmp_path, log, kill=kill, idle_clear_s=NEVER) as before:
        peer = await before.connect()
        version = await finished(peer)
    async with engine(tmp_path, log, idle_clear_s=SOON) as after:
        assert (await cleared(after))["version"] == version + 1


async def test_closed_timer_clears_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=NEVER) as running:
        peer = await running.connect()
        await finished(peer)
        running.idle.close()
        await peer.result("task.edit", **C, task="1", title="renamed")
        assert len(running.idle) == 0
    assert len(Idle(NEVER, lambda _write: None)) == 0


AGENT: dict[str, Any] = {"client": {"name": MCP_CLIENT, "version": "1"}}


async def test_list_is_not_cleared_during_an_agents_turn(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=SOON) as running:
        agent, person = await running.connect(**AGENT), await running.connect()
        await finished(agent)
        looked: list[str] = []
        look = running.idle._on_timer  # pyright: ignore[reportPrivateUsage]

        def counted(name: str, version: int, until: float) -> None:
            looked.append(name)
            look(name, version, until)

        running.idle._on_timer = counted  # pyright: ignore[reportPrivateUsage]
        await person.result("task.edit", **C, task="1", title="renamed")
        await until(lambda: len(looked) > 3)
        assert await shown(person) == ["completed", "completed"]
        assert (await agent.result("turn.end", **C))["cleared"] == 2


async def test_list_is_cleared_once_the_agent_left(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=SOON) as running:
        agent = await running.connect(**AGENT)
        version = await finished(agent)
        agent.close()
        event = await cleared(running)
        assert (event["version"], event["actor"]) == (version + 1, "punchlistd")


async def test_present_agent_delays_clear_for_limited_time(tmp_path: Path) -> None:
    async with engine(tmp_path, idle_clear_s=SOON) as running:
        running.idle._agents_s = 2 * SOON  # pyright: ignore[reportPrivateUsage]
        await finished(await running.connect(**AGENT))
        assert (await cleared(running))["actor"] == "punchlistd"
