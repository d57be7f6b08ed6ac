"""Deferred tasks wake by the daemon's timer and the wall clock, and are pushed like any change."""

import time
from pathlib import Path
from typing import Any

import anyio

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer, engine
from punchlistd.domain.state import State, initial_state
from punchlistd.engine.calls import Write
from punchlistd.engine.timers.deferrals import Deferrals

C = {"conversation": "c"}
SOON_MS = 80
RESTART_MS = 400
FAR = 1 << 50


def now() -> int:
    return time.time_ns() // 1_000_000


async def woken(watcher: Peer, after: int = 0) -> dict[str, Any]:
    """Wait for the next wake event in any list, and return it. A call that names the list would load it."""
    with anyio.fail_after(30):
        while True:
            found = await watcher.result("event.wait", after=after, timeout_ms=5_000)
            after = found["next"]
            for event in found["events"]:
                if event["event"]["type"] == "TaskWoken":
                    return event


async def test_deferred_task_becomes_ready_for_a_waiting_claim(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        peer = await running.connect()
        at = now() + SOON_MS
        tasks = [{"title": "a", "not_before": at}, {"title": "b", "not_before": FAR}]
        await peer.result("task.add_many", **C, tasks=tasks)
        assert (await peer.result("task.list", **C, ready=True))["tasks"] == []
        assert (await peer.result("conversation.get", **C))["conversation"]["wakes_at"] == at
        claim = await peer.result("task.claim", **C, owner="o", wait_ms=5_000)
        assert claim["task"]["id"] == "1"
        event = await woken(await running.connect())
        assert (event["event"]["task"], event["actor"], event["at"] >= at) == ("1", "punchlistd", True)
        assert (await peer.result("conversation.get", **C))["conversation"]["wakes_at"] == FAR
        assert running.deferrals.due == {"c": FAR}
        await peer.result("task.edit", **C, task="2", not_before=None)
        assert running.deferrals.due == {}


async def test_unloaded_list_wakes_after_a_restart(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        await peer.result("task.add", **C, title="a", not_before=now() + RESTART_MS)
        peer.close()
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        assert (await woken(peer))["conversation"] == "c"
        peer.close()


def deferred(at: int) -> State:
    state = initial_state("c")
    state.deferred["1"] = at
    return state


async def test_clock_set_back_delays_a_deferred_task() -> None:
    submitted: list[Write] = []
    clock = [1_000]
    deferrals = Deferrals(submitted.append, lambda: clock[0])
    deferrals.follow(deferred(2_000))
    clock[0] = 500
    deferrals.check()
    assert submitted == []
    clock[0] = 2_000
    deferrals.check()
    assert [each.command.at for each in submitted] == [2_000]
    deferrals.follow(initial_state("c"))
    deferrals.check()
    assert len(submitted) == 1
    deferrals.close()


async def test_failed_wake_is_retried() -> None:
    submitted: list[Write] = []
    deferrals = Deferrals(submitted.append, lambda: 2_000)
    deferrals.follow(deferred(1_000))
    deferrals.check()
    deferrals.check()
    assert len(submitted) == 2
    deferrals.close()
