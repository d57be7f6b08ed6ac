import os
import re
import signal
import time

import msgspec
import pytest

from punchlist.calls.cursor import TaskList
from punchlist_apps.common.terminal.render import cells
from punchlist_apps.common.terminal.style import Style
from punchlist_demo.stage import Stage
from punchlist_schemas.things import Counts, Task

Shown = pytest.CaptureFixture[str]
WIDE = "a line 中文 " * 20


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The recorded pauses; no test sleeps."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def tasks(*titles: str) -> TaskList:
    members = {"priority": "normal", "created_at": 1, "updated_at": 1, "status_changed_at": 1, "version": 1}
    rows = enumerate(titles, 1)
    listed = [
        msgspec.convert({"id": str(number), "title": title, "status": "in_progress", **members}, Task)
        for number, title in rows
    ]
    return TaskList(listed, Counts(in_progress=len(listed)), version=1, seq=1, total=len(listed))


def play(stage: Stage, title: str = "Write") -> None:
    stage.heading("1. A scene")
    stage.action("codex", "calls next()")
    stage.reply("Refused: no", refused=True)
    stage.output("one\n\ntwo\nthree\n", 2)
    stage.show_list("site", tasks(title))
    with stage.redrawn():
        for number in range(9):
            stage.output(f"call {number}")
            stage.show_list("site", tasks(f"{title} {number}"))
    stage.check("it holds", True)


def test_pipe_gets_each_line_once_without_pauses(capfd: Shown, pauses: list[float]) -> None:
    stage = Stage(Style())
    play(stage)
    shown = capfd.readouterr().out
    head = "\n1. A scene\ncodex calls next()\n  Refused: no\n  …\ntwo\nthree\nsite  0/1  1 in progress\n  ● #1 Write\n"
    assert shown.startswith(f"{head}call 0\n")
    assert shown.endswith("call 8\nsite  0/1  1 in progress\n  ● #1 Write 8\n  yes  it holds\n")
    assert (shown.count("#1 Write"), pauses, stage.has_failed) == (2, [], False)


def test_list_is_redrawn_in_place_on_a_terminal(capfd: Shown, pauses: list[float]) -> None:
    play(Stage(Style(width=60), is_live=True))
    shown = capfd.readouterr().out
    assert [shown.count(f"call {number}\n") for number in range(9)] == [1] * 9
    *_, frame, _last = shown.split("\x1b[J")
    assert "call" not in frame
    assert "● #1 Write 8" in frame
    assert 5 < sum(pauses) < 10


@pytest.mark.parametrize(("rows", "shown"), [(24, 13), (10, 6), (3, 1), (1, 1)])
def test_list_leaves_rows_to_the_lines_above(
    capfd: Shown, pauses: list[float], monkeypatch: pytest.MonkeyPatch, rows: int, shown: int
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size((60, rows)))  # pyright: ignore
    stage = Stage(Style(width=60), is_live=True)
    with stage.redrawn():
        stage.show_list("site", tasks(*map(str, range(12))))
    assert pauses
    assert capfd.readouterr().out.count("\x1b[K\n") == shown


def test_cursor_is_shown_again_after_an_interrupt(capfd: Shown) -> None:
    with pytest.raises(KeyboardInterrupt), Stage(Style(), is_live=True).redrawn():
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().out.endswith("\x1b[?25h")


def test_failed_check_is_remembered(capfd: Shown) -> None:
    stage = Stage(Style())
    stage.check("it holds", False)
    stage.check("this too", True)
    assert stage.has_failed
    assert capfd.readouterr().out == "   NO  it holds\n  yes  this too\n"


def test_actors_have_colours_of_their_own() -> None:
    stage = Stage(Style(colour=True))
    painted = [stage.actor(name) for name in ("codex", "ann", "codex")]
    assert painted == ["\x1b[1;36mcodex\x1b[0m", "\x1b[35mann\x1b[0m", "\x1b[1;36mcodex\x1b[0m"]


@pytest.mark.parametrize("is_live", [True, False])
def test_no_line_is_wider_than_the_window(capfd: Shown, pauses: list[float], is_live: bool) -> None:
    stage = Stage(Style(width=20), is_live=is_live)
    play(stage, WIDE)
    for show in (stage.heading, stage.reply, stage.output):
        show(WIDE)
    stage.action("codex", WIDE)
    stage.check(WIDE, True)
    drawn = re.sub("\x1b\\[[0-9;?]*[A-Za-z]|\r", "", capfd.readouterr().out)
    assert "…" in drawn
    assert [line for line in drawn.splitlines() if cells(line) > 20] == []
    assert bool(pauses) == is_live
