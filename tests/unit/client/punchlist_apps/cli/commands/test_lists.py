"""`punch list rm` with a daemon."""

import time
from typing import Any

from punchlist_testing.daemon import Running
from punchlist_testing.terminal import terminal


def names(punch: Any) -> set[str]:
    return {each["conversation"] for each in punch("list", "all", "--json").json["conversations"]}


def test_erasing_needs_consent(punch: Any) -> None:
    punch("-c", "old", "add", "Milk")
    outcome = punch("list", "rm", "old")
    assert (outcome.code, "--yes" in outcome.err) == (2, True)
    assert "old" in names(punch)
    assert punch("list", "rm", "old", "--yes").lines == ["erased old"]
    assert "old" not in names(punch)


def test_unknown_list_is_not_found(punch: Any) -> None:
    assert punch("list", "rm", "nowhere", "--yes").code == 1


def test_erasing_asks_on_terminal(punch: Any, daemon: Running) -> None:
    punch("-c", "old", "add", "Milk")
    for answer, code in (("n", 1), ("y", 0)):
        with terminal("--socket", daemon.socket, "list", "rm", "old") as screen:
            screen.wait_for("Continue? [y/N]")
            screen.type(f"{answer}\n")
            assert screen.finish() == code
        assert ("old" in names(punch)) == (answer == "n")


def test_deleted_list_shows_actor_and_time(punch: Any) -> None:
    punch("-c", "old", "add", "Milk")
    punch("list", "rm", "old", "--yes", "--actor", "bob")
    for words in (("list", "-c", "old"), ("-c", "old")):
        assert f"old  0/0  deleted by bob on {time.strftime('%Y-%m-%d')}" in punch(*words).out
    again = punch("add", "Bread", "-c", "old")
    assert (again.code, "old was deleted by bob on" in again.err) == (0, True)
    assert "this started it again" in again.err
    assert "deleted" not in punch("add", "Milk", "-c", "old").err
    punch("rm", "1", "2", "-c", "old", "--yes")
    assert "no tasks" in (result := punch("list", "-c", "old").out) and "deleted" not in result


def test_cleared_list_is_not_deleted(punch: Any) -> None:
    punch("-c", "old", "add", "Milk")
    punch("-c", "old", "rm", "1", "--yes")
    assert "deleted" not in punch("list", "-c", "old").out
    punch("-c", "old", "list", "clear", "--yes")
    assert "deleted" not in punch("-c", "old", "add", "Milk").err
