"""A scene whose point does not hold makes the demo fail. `test_main.py` holds the points themselves."""

from typing import Any

import pytest

from punchlist_demo import scenes
from punchlist_demo.cast import CLAUDE, Agent, Cast
from punchlist_demo.home import Home

Shown = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def play(cast: Cast, *played: str) -> bool:
    """Play scenes; whether the last one failed, and no other."""
    for name in played:
        assert not cast.stage.has_failed
        getattr(scenes, name)(cast)
    return cast.stage.has_failed


def does_nothing(*_what: object, **_how: object) -> None:
    """Stands for `punch` and for kills."""


def test_update_that_is_not_refused_fails(cast: Cast, home: Home, capfd: Shown) -> None:
    cast.codex = Agent(CLAUDE, home, cast.stage)
    assert play(cast, "plan", "refuse")
    assert "   NO  the update was refused" in capfd.readouterr().out


def test_note_or_undo_that_does_not_happen_fails(cast: Cast, monkeypatch: Patch, capfd: Shown) -> None:
    monkeypatch.setattr(cast, "punch", does_nothing)
    assert play(cast, "plan", "refuse", "note")
    cast.stage.has_failed = False
    assert play(cast, "undo")
    shown = capfd.readouterr().out
    assert shown.count("   NO  ") == 2
    assert "   NO  #4 and #5 are back" in shown


def test_work_without_kills_fails(cast: Cast, monkeypatch: Patch) -> None:
    monkeypatch.setattr(cast, "kill_daemon", does_nothing)
    assert play(cast, "plan", "kill")


def missing_newest(events: list[Any]) -> list[Any]:
    return events[:-1]


def missing_middle(events: list[Any]) -> list[Any]:
    return [*events[:2], *events[3:]]


def repeated(events: list[Any]) -> list[Any]:
    again = {**events[-1], "seq": len(events) + 1, "version": len(events) + 1}
    return [*events, again]


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (missing_newest, ["every acknowledged change is in the log", "no change was made twice", "another process"]),
        (missing_middle, ["the versions have no hole", "another process"]),
        (repeated, ["no change was made twice", "another process"]),
    ],
)
def test_proof_fails_on_wrong_log(cast: Cast, monkeypatch: Patch, capfd: Shown, change: Any, failed: list[str]) -> None:
    monkeypatch.setattr(scenes, "_CATCH_UP_S", 0.01)
    play(cast, "plan")
    events = cast.events()
    assert cast.witness.wait_for(len(events), 30)
    assert not play(cast, "prove")
    capfd.readouterr()
    monkeypatch.setattr(cast, "events", lambda: change(events))
    assert play(cast, "prove")
    marked = [line for line in capfd.readouterr().out.splitlines() if line.startswith("   NO  ")]
    assert [line for line, text in zip(marked, failed, strict=True) if text not in line] == []
