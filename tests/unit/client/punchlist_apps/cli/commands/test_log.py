import json
import signal
from typing import Any

import pytest

from punchlist import connect
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import spawned


@pytest.mark.usefixtures("home")
def test_follow_continues_after_past_events(daemon: Running) -> None:
    with connect(name="tester") as client, spawned("log", "--follow") as process:
        plan = client.conversation("default", actor="ada")
        plan.add("a")
        assert process.stdout is not None
        assert process.stdout.readline().startswith("   1  opened  by ada · ")
        assert process.stdout.readline().startswith("   2  #1 added  a  by ada · ")
        client.conversation("other").add("not shown")
        plan.complete("1")
        assert process.stdout.readline().startswith("   3  #1 pending → completed  a  by ada · ")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.usefixtures("home")
def test_follow_starts_with_last_events(daemon: Running) -> None:
    with connect(name="tester") as client:
        plan = client.conversation("default", actor="ada")
        plan.add("a")
        plan.start("1")
        with spawned("log", "--follow", "-n", "1") as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("   3  #1 pending → in_progress  a  by ada · ")
            plan.complete("1")
            assert process.stdout.readline().startswith("   4  #1 in_progress → completed  a  by ada · ")


def test_log_is_limited_and_covers_all_lists(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "-c", "other")
    assert [line.partition("  by ")[0] for line in punch("log", "-n", "1").lines] == ["   2  #1 added  a"]
    assert [json.loads(line)["seq"] for line in punch("log", "--json", "--all-conversations").lines] == [1, 2, 3, 4]
    assert punch("log", "--all-conversations").lines[3].startswith("other     2  #1 added  b")
    assert punch("log", "-c", "nothing").out == ""


def test_json_events_match_wire(punch: Any) -> None:
    punch("add", "a\x1b[2J", "--actor", "ada")
    outcome = punch("log", "--json")
    assert "\x1b" not in outcome.out
    added = json.loads(outcome.lines[1])
    assert (added["version"], added["actor"], added["event"]["type"]) == (2, "ada", "TaskAdded")
    assert added["event"]["task"]["title"] == "a\x1b[2J"


@pytest.mark.parametrize("words", [("log", "-n", "-1"), ("undo", "-n", "0"), ("list", "-n", "0"), ("undo", "0")])
def test_limit_out_of_bounds_is_usage_error(run: Any, words: tuple[str, ...]) -> None:
    outcome = run(*words)
    assert outcome.code == 2
    assert f"{words[-1]!r} must be " in outcome.err


def test_log_without_matches_is_noted(punch: Any) -> None:
    punch("add", "a")
    outcome = punch("log", "--task", "99")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "no matching events; to see all: punch log\n"
    for everywhere in ((), ("--all-conversations",)):
        assert "no agent or person named 'unknown'" in punch("log", "--actor", "unknown", *everywhere).err
    assert punch("log", "--task", "1").err == ""
    assert punch("log", "--task", "99", "-n", "0").err == ""
