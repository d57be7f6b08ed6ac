import re
from collections.abc import Generator

import pytest

from punchlist import Client, connect
from punchlist.cli.render import cells
from punchlist.cli.style import Style
from punchlist_demo.stage import LiveStage, PlainStage
from punchlist_testing.daemon import Running

Told = pytest.CaptureFixture[str]


@pytest.fixture
def client(daemon: Running) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False) as client:
        yield client


def test_plain_lines_one_below_the_other_without_figures_in_between(capfd: Told) -> None:
    stage = PlainStage(Style())
    stage.say("begin", "task.set_status #1")
    stage.figures("3 calls")
    stage.pause(60_000)
    stage.say("the end")
    assert capfd.readouterr().out == "→ begin  [task.set_status #1]\n→ the end\n"


def test_the_live_list_is_drawn_as_it_is_pushed(client: Client, capfd: Told) -> None:
    stage = LiveStage(Style(width=60), "site")
    stage.follow(client)
    plan = client.conversation("site")
    plan.add("Write")
    plan.start("1")
    shown = ""
    while "● #1 Write" not in shown:  # the test's own timeout bounds it
        stage.pause(20)
        shown += capfd.readouterr().out
    assert "site  0/1  1 in progress" in shown


def test_the_caption_is_drawn_at_once_and_the_figures_with_the_next_news(capfd: Told) -> None:
    stage = LiveStage(Style(), "site")
    stage.figures("3 calls")
    assert capfd.readouterr().out == ""
    stage.pause(1)
    assert "  3 calls" in capfd.readouterr().out
    stage.say("begin", "task.set_status #1")
    drawn = capfd.readouterr().out
    assert drawn.index("→ begin") < drawn.index("  task.set_status #1") < drawn.index("  3 calls")


def test_nothing_new_is_nothing_drawn(capfd: Told) -> None:
    LiveStage(Style(), "site").pause(5)
    assert capfd.readouterr().out == ""


def test_no_line_is_wider_than_the_window(capfd: Told) -> None:
    stage = LiveStage(Style(width=20), "site")
    stage.figures("figures " * 10)
    stage.say("caption 中文 " * 10, "call " * 10)
    drawn = re.sub("\x1b\\[[0-9;?]*[A-Za-z]|\r", "", capfd.readouterr().out)
    assert "…" in drawn
    assert [line for line in drawn.splitlines() if cells(line) > 20] == []
