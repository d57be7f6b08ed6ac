"""Neovim and Emacs in a terminal, as a person sees them; PICTURES=1 draws the pictures of docs/editors.md."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from punchlist import connect
from punchlist_testing.daemon import Spawned
from punchlist_testing.editor_screens import Emacs, Neovim
from punchlist_testing.optional import has_package, needs

PICTURES = Path(__file__).parents[3] / "docs/pictures"

pytestmark = needs("pyte", has_package("pyte"))


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Spawned]:
    process = Spawned(tmp_path / "daemon")
    process.start()
    try:
        yield process
    finally:
        process.kill()


def planned(client: Any) -> Any:
    """A list on which work has begun, with finished, claimed and blocked tasks."""
    plan = client.conversation("website")
    plan.add("Agree on the grammar", description="See the notes of Monday.")
    plan.add("Write the parser src/parser.py:12", priority="high", blocked_by=["1"])
    plan.add("Its tests", parent="2", blocked_by=["2"])
    plan.add("Publish the draft")
    plan.add("Ask for a review", owner="ann", blocked_by=["4"])
    plan.add("Colours of the board")
    plan.complete("1", actor="ann")
    plan.take("claude-code/7f3c")
    plan.start("4", actor="codex")
    plan.fail("4", "the server refuses the certificate", actor="codex")
    plan.start("6", actor="ann")
    plan.pause("6", actor="ann")
    return plan


@needs("nvim")
def test_neovim_shows_agents_work_and_conflict_as_diff(daemon: Spawned, tmp_path: Path) -> None:
    with connect(socket=daemon.socket, autostart=False, name="agent") as client:
        plan = planned(client)
        screen = Neovim(daemon.socket, tmp_path)
        try:
            screen.open(plan.id)
            screen.type("\r:set laststatus=2 statusline=%f\\ \\ %{v:lua.require'punchlist'.statusline()}\r")
            screen.shows("[/] #2 Write the parser src/parser.py:12   !high  @claude-code/7f3c")
            screen.shows("the server refuses the certificate")
            screen.shows("website 4/6")
            screen.type("oTry it on a phone\x1b0i[ ] \x1b")
            screen.shows("[ ] Try it on a phone")
            plan.edit("5", title="Ask two people for a review")
            screen.shows("others have changed the list")
            screen.type(":w\r")
            screen.shows("#7 Try it on a phone")
            screen.shows("#5 Ask two people for a review")
            screen.type("gg")
            if "PICTURES" in os.environ:
                screen.draw(PICTURES / "neovim.svg", "nvim")
            screen.type("\\E")
            screen.shows("See the notes of Monday.")
            screen.type("A And of Tuesday.\x1b")
            screen.shows("And of Tuesday.")
            plan.edit("1", description="See the notes of Monday.\nThey are in docs/.")
            screen.shows("#1 was changed by someone else")
            screen.type(":w\r")
            screen.shows("They are in docs/.")
            screen.shows("And of Tuesday.")
        finally:
            screen.close()


@needs("emacs")
def test_emacs_shows_list_that_agents_work_on(daemon: Spawned, tmp_path: Path) -> None:
    with connect(socket=daemon.socket, autostart=False, name="agent") as client:
        plan = planned(client)
        screen = Emacs(daemon.socket, tmp_path)
        try:
            screen.open(plan.id)
            screen.type("\r")
            screen.shows("website  4 of 6 open")
            screen.shows("[/] #2 Write the parser src/parser.py:12  !high  @claude-code/7f3c")
            screen.type("\x1bxpunchlist-mode-line-mode\r")
            screen.shows("website 4/6")
            screen.type("\x18" + "1")
            screen.type("\x1b>\x1b[A" + "a")
            screen.shows("New task:")
            screen.type("Try it on a phone\r")
            screen.shows("#7 Try it on a phone")
            plan.edit("5", title="Ask two people for a review")
            screen.shows("#5 Ask two people for a review")
            if "PICTURES" in os.environ:
                screen.draw(PICTURES / "emacs.svg", "emacs")
            screen.type("u")
            screen.shows('Undone: removed #7 "Try it on a phone" (U: redo)')
            assert [task.id for task in plan.list()] == list("123456")
        finally:
            screen.close()
