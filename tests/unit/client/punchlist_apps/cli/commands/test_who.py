"""`punch who`, and the output of other commands about tasks whose owner has left."""

from collections.abc import Generator
from typing import Any

import pytest

from punchlist import Client, connect
from punchlist_apps.cli.printing.next_step import format_next_step
from punchlist_testing.daemon import Running

A = "claude-code/7f3c1a"


@pytest.fixture
def agent(daemon: Running) -> Generator[Client]:
    """A connected session that has claimed #1."""
    with connect(socket=daemon.socket, autostart=False, name="host") as client:
        client.conversation("default").add_many(["one", "two"])
        client.call("agent.enter", {"agent": A, "host": "claude-code", "directory": "/srv/site", "branch": "main"})
        client.conversation("default", actor=A).take(A, "1", lease_ms=7_200_000, keep=True)
        yield client


@pytest.fixture(autouse=True)
def _person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "zed")


def leave(agent: Client) -> None:
    agent.call("agent.leave", {"agent": A})


def test_agents_and_users_are_shown(punch: Any, agent: Client) -> None:
    punch("add", "mine")
    outcome = punch("who")
    lines = outcome.lines
    assert lines, outcome.err
    assert lines[0].startswith(f"● {A}  here for ")
    assert lines[0].endswith(" · /srv/site (main)")
    assert lines[1] == "    default #1 one"
    assert [line for line in lines if line.startswith("☐ zed  last call ") and line.endswith(" · default")]
    assert not [line for line in lines if " punch " in line], "the command itself isn't listed"
    leave(agent)
    lines = punch("who").lines
    assert f"☐ {A}  left " in "\n".join(lines)
    assert [line for line in lines if line.startswith("    default #1 one  free at ")]


def test_departed_agents_without_tasks_are_counted(punch: Any, agent: Client, daemon: Running) -> None:
    for name in ("bot/1", "bot/2"):
        agent.call("agent.enter", {"agent": name})
        agent.call("agent.leave", {"agent": name})
    shown = punch("who").out
    assert "2 others left in the last hours\n" in shown
    assert "bot" not in shown
    assert "● claude-code/7f3c1a" in shown
    assert "bot/2" in punch("who", "--json").out


def test_tasks_have_path_and_short_list_name(punch: Any, agent: Client) -> None:
    website = agent.conversation("website-0123456789ab", actor=A)
    website.add("Backend")
    website.add("tests", parent="1")
    website.take(A, "2", keep=True)
    assert "    website #2 Backend › tests" in punch("who").lines


def test_host_is_shown_unless_named(punch: Any, agent: Client) -> None:
    agent.call("agent.enter", {"agent": "ann", "host": "codex", "directory": "/srv/site"})
    lines = punch("who").lines
    assert [line for line in lines if line.startswith("● ann  ") and line.endswith(" · /srv/site · codex")]
    assert not [line for line in lines if line.endswith("claude-code")]


def test_who_filters_by_list(punch: Any, agent: Client) -> None:
    punch("add", "there", "-c", "other")
    assert A in punch("who", "-c", "default").out
    result = punch("who", "-c", "other", "--json").json
    assert [each["name"] for each in result["agents"]] == ["zed"]
    assert result["machines"] == []
    assert punch("who", "-c", "nowhere").code == 1


def test_empty_roster_is_reported(punch: Any) -> None:
    assert punch("who").lines == ["no agent or person has been here since the daemon started"]


def test_names_are_escaped(punch: Any, daemon: Running) -> None:
    with connect(socket=daemon.socket, autostart=False, name="\x1b[2Jx") as client:
        client.call("agent.enter", {"agent": "\x1b[2Ja", "directory": "/\x1b[2Jb"})
        assert "\x1b" not in punch("who").out


def test_task_of_departed_session_is_marked(punch: Any, agent: Client) -> None:
    assert "left" not in punch("list", "--all").out
    assert "claim: until " in punch("show", "1").out
    leave(agent)
    assert "left at " in punch("list", "--all").out
    assert " free at " in punch("list", "--all").out
    assert "claim: left at " in punch("show", "1").out
    why = punch("why", "1").out
    assert f"it is in progress with {A}, left at " in why
    assert why.endswith(": punch start 1 takes it\n")
    assert punch("why", "1", "--json").json["reasons"][0]["text"] in why


def test_all_commands_give_same_advice(punch: Any, agent: Client) -> None:
    leave(agent)
    outcome = punch("done", "1")
    assert outcome.err.startswith(f"error: #1 belongs to {A}, left ")
    assert outcome.err.endswith("\n  punch start 1 takes it\n")
    punch("done", "2")
    nothing = punch("next")
    assert nothing.code == 1
    assert nothing.err.endswith(": punch start 1 takes it\n")
    taken = punch("start", "1")
    assert (taken.code, taken.lines) == (0, ["  ● #1 one  @zed"])
    assert punch("done", "1").code == 0


def test_advice_for_present_agents_is_consistent(punch: Any, agent: Client) -> None:
    assert punch("start", "1").err.endswith("\n  free it for others: punch reopen 1\n")
    assert "punch reopen 1 frees it for others" in punch("why", "1").out


def test_bare_punch_offers_departed_task(punch: Any, agent: Client) -> None:
    punch("done", "2")
    leave(agent)
    result = punch("list", "--json").json
    explained = punch("daemon", "call", "task.explain", "conversation=default").json
    assert "next: punch start 1  (one) takes it over (left at " in format_next_step(result["tasks"], explained, "zed")


@pytest.mark.parametrize("is_there", [True, False])
def test_resumed_task_returns_to_session_or_is_free(punch: Any, agent: Client, is_there: bool) -> None:
    punch("pause", "1")
    if not is_there:
        leave(agent)
    shown = punch("resume", "1").out
    task = punch("show", "1", "--json").json["task"]
    if is_there:
        assert (task["owner"], task["status"], task["lease_expires_at"] > 0) == (A, "in_progress", True)
        assert "free for all" not in shown
        leave(agent)
        assert "left at" in punch("list").out
    else:
        assert (task.get("owner"), task["status"]) == (None, "pending")
        assert "    its session has left: anyone can claim it" in shown
        assert punch("next", "--take").code == 0


def test_reservation_of_departed_session_is_marked(punch: Any, agent: Client) -> None:
    punch("assign", "2", A)
    leave(agent)
    for command in (("list",), ("show", "2"), ("why", "2")):
        shown = punch(*command).out
        assert ("left " in shown.partition("two")[2]) and "free at" in shown, shown
    why = punch("why", "2").out
    assert f"it is reserved for {A}, left at " in why and ": punch start 2 takes it" in why
    assert punch("start", "2").code == 0
