from pathlib import Path

import pytest

from punchlist import Client, connect
from punchlist.tools import Toolbox, ToolCaller, agent_memory
from punchlist.tools.agent_memory import Memory
from punchlist_testing.daemon import spawned_daemon


def test_state_is_kept_per_agent_list_and_log() -> None:
    state = Memory().state_of
    shared = Memory()
    shared.state_of("log", "work", "ann").seen = 7
    assert shared.state_of("log", "work", "ann").seen == 7
    others = [("log", "work", "bob"), ("log", "home", "ann"), ("restored", "work", "ann")]
    assert [shared.state_of(*other).seen for other in others] == [None, None, None]
    assert state("log", "work", "ann").claims == {}


def test_least_recently_used_state_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_memory, "_MAX_STATES", 3)
    shared = Memory()
    for actor in ("a", "b", "c", "a", "d"):
        state = shared.state_of("log", "work", actor)
        state.seen = (state.seen or 0) + 1
    assert [shared.state_of("log", "work", actor).seen for actor in ("a", "d", "b")] == [2, 1, None]


def test_position_of_another_log_is_ignored(client: Client, tmp_path: Path) -> None:
    shared, caller = Memory(), ToolCaller("work", "ann")
    box = Toolbox(client, caller, shared)
    box.call("native", "plan", {"tasks": [f"task {number}" for number in range(50)]})
    box.call("native", "next")
    (tmp_path / "other").mkdir(0o700)
    with (
        spawned_daemon(tmp_path / "other") as daemon,
        connect(socket=daemon.socket, data_dir=daemon.data_dir, autostart=False) as other,
    ):
        other.conversation("work", actor="zed").add_many(["one", "two"])
        there = Toolbox(other, caller, shared)
        assert there.call("native", "tasks", {"since": "last"}).data["tasks"][0]["title"] == "one"
        assert "Now #1: one" in there.call("native", "next").text, "the claim from the first log isn't used here"
    assert "You are at it already.\nNow #1: task 0" in box.call("native", "next").text


def test_claims_are_saved_without_current_tasks() -> None:
    memory = Memory()
    memory.state_of("log", "work", "ann").claims = {"1": 7}
    memory.state_of("log", "work", "bob").seen = 9
    restored = Memory(memory.save_work())
    assert restored.state_of("log", "work", "ann").claims == {"1": 7}
    assert [part.actor for part in memory.save_work()] == ["ann"]
