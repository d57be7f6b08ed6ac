"""A scene whose point does not hold makes the demo fail. `test_main.py` checks the points themselves."""

from typing import Any

import pytest

from punchlist_apps.common.terminal.style import Style
from punchlist_demo import home as home_module
from punchlist_demo import scenes
from punchlist_demo.cast import CLAUDE, Agent, Cast
from punchlist_demo.home import DemoFailed, Home
from punchlist_demo.stage import Stage

Shown = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Events = list[dict[str, Any]]


def play(cast: Cast, *names: str) -> bool:
    """Play scenes, of which only the last may fail. Return whether it failed."""
    cast.stage.has_failed = False
    for name in names:
        assert not cast.stage.has_failed
        getattr(scenes, name)(cast)
    return cast.stage.has_failed


def marks(shown: Shown, mark: str) -> list[str]:
    """Return the checks with a mark that were shown since the last call."""
    return [line for line in shown.readouterr().out.splitlines() if line.startswith(f"  {mark}  ")]


def do_nothing(*_args: object, **_kwargs: object) -> None:
    """Replace `punch` and kills."""


def test_scene_without_its_effect_fails(cast: Cast, monkeypatch: Patch, capfd: Shown) -> None:
    monkeypatch.setattr(cast, "punch", do_nothing)
    monkeypatch.setattr(cast, "kill_daemon", do_nothing)
    assert not play(cast, "plan", "refuse")
    for name, check in (("note", "took #3"), ("undo", "#4 and #5 are back"), ("kill", "no call failed")):
        capfd.readouterr()
        assert play(cast, name)
        assert [check in line for line in marks(capfd, " NO")] == [True]


def test_unexpected_refusal_ends_the_demo(cast: Cast, monkeypatch: Patch, capfd: Shown) -> None:
    assert not play(cast, "plan")
    with monkeypatch.context() as patched:
        patched.setattr(cast, "codex", cast.claude)
        assert play(cast, "refuse")
    assert "   NO  the update was refused" in capfd.readouterr().out
    # The update ended the task that the agent's next call is to finish.
    assert cast.claude.has_task
    with pytest.raises(DemoFailed, match=f"{CLAUDE}: Refused: you have no task in progress"):
        play(cast, "kill")


def test_missing_reply_ends_the_demo(home: Home, monkeypatch: Patch) -> None:
    agent = Agent(CLAUDE, home, Stage(Style()))
    monkeypatch.setattr(home_module, "STEP_S", 0.0)
    with pytest.raises(DemoFailed, match=f"{CLAUDE} ended, or did not reply in time"):
        agent.receive()


def remove_newest(events: Events) -> Events:
    return events[:-1]


def remove_third(events: Events) -> Events:
    return [*events[:2], *events[3:]]


def repeat_newest(events: Events) -> Events:
    return [*events, {**events[-1], "seq": len(events) + 1, "version": len(events) + 1}]


def test_proof_fails_on_wrong_log(cast: Cast, monkeypatch: Patch, capfd: Shown) -> None:
    assert not play(cast, "plan")
    events = cast.events()
    versions = cast.followed(len(events))
    shown: list[tuple[Events, list[int]]] = [(events, versions)]

    def newest_followed(_count: int) -> list[int]:
        return shown[-1][1]

    monkeypatch.setattr(cast, "events", lambda: shown[-1][0])
    monkeypatch.setattr(cast, "followed", newest_followed)
    assert not play(cast, "prove")
    for log, followed, failed in (
        (remove_newest(events), versions, ["every acknowledged change", "no change was made twice", "another process"]),
        (remove_third(events), versions, ["the versions have no hole", "another process"]),
        (repeat_newest(events), versions, ["no change was made twice", "another process"]),
        (events, versions[:-1], ["another process"]),
        (events, [*versions, versions[-1]], ["another process"]),
        (events, versions[::-1], ["another process"]),
    ):
        shown.append((log, followed))
        capfd.readouterr()
        assert play(cast, "prove")
        marked = marks(capfd, " NO")
        assert [line for line, text in zip(marked, failed, strict=True) if text not in line] == []
