"""Each screen in light mode, in dark mode and on a phone: accessibility, names for screen readers, and the pictures."""

import io
import os
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from punchlist_testing.faces_page import MODES, Open, assert_accessible
from punchlist_testing.stage import Stage

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs/pictures"

SCREENS: dict[str, tuple[str, str, str]] = {
    "lists": ("#/lists", "", ".card"),
    "list": ("#/list/release-1.0/4", "", ".detail"),
    "flow": ("#/list/release-1.0/flow", "", ".chip"),
    "graph": ("#/list/release-1.0/graph", "", ".node"),
    "timeline": ("#/list/release-1.0/timeline", "", ".time-lane"),
    "history": ("#/list/release-1.0/history", "", ".call"),
    "now": ("#/", "", ".need"),
    "inbox": ("#/inbox", "", ".question h2"),
}
"""Screens with pictures: address, key to press, and an element that shows that the screen is open."""

FURTHER = {
    "help": ("#/lists", "?", "dialog"),
    "palette": ("#/lists", "Control+k", "dialog [role=option]"),
    "add": ("#/list/release-1.0", "a", ".inline-add input"),
    "edit": ("#/list/release-1.0/4", "E", "dialog form"),
    "blockers": ("#/list/release-1.0/4", "b", "dialog.picker"),
    "delete": ("#/list/release-1.0/4", "x", "dialog .danger"),
    "by_label": ("#/list/release-1.0?group=label&sort=frees", "", ".group-head"),
    "tree": ("#/list/release-1.0?group=parent", "", ".row"),
    "no_fit": ("#/list/release-1.0?q=nothing+like+it", "", ".teach"),
    "why": ("#/list/release-1.0/4", "w", ".reasons"),
    "past": ("#/list/release-1.0", "[", ".time-machine"),
    "marked": ("#/list/release-1.0", "*", ".marked-bar"),
    "who": ("#/who", "", ".who li"),
    "nothing": ("#/list/nowhere", "", ".teach"),
    "refused": ("#/list/release-1.0/4", "s", ".toast.bad"),
}


def show(page: Page, screen: str) -> None:
    where, key, sign = {**SCREENS, **FURTHER}[screen]
    page.evaluate("hash => (location.hash = hash)", where)
    if key:
        page.wait_for_selector(".detail" if where[-1].isdigit() and "/release-1.0/" in where else ".card, .row")
        page.keyboard.press(key)
    expect(page.locator(sign).first).to_be_visible()


@pytest.mark.parametrize("screen", [*SCREENS, *FURTHER])
@pytest.mark.parametrize("mode", MODES)
def test_screens_are_accessible(planned: Stage, open_page: Open, mode: str, screen: str) -> None:
    page = open_page(planned, mode=mode)
    show(page, screen)
    assert_accessible(page)


@pytest.mark.parametrize("mode", MODES)
def test_claimed_tasks_are_accessible(empty: Stage, open_page: Open, mode: str) -> None:
    host = empty.by("host")
    for agent in ("bot/1", "bot/2"):
        host.call("agent.enter", {"agent": agent, "directory": "/srv/site", "branch": "main"})
        for title in ("Backend", "Tests"):
            task = host.conversation("site", actor=agent).add(title)
            host.conversation("site", actor=agent).take(agent, task.id, keep=True)
    host.call("agent.leave", {"agent": "bot/2"})
    page = open_page(empty, "#/who", mode=mode)
    expect(page.locator(".who li a")).to_have_count(2 * (1 + [*MODES].index(mode)) * 2)
    assert_accessible(page)


def test_screen_reader_reads_each_task_in_one_sentence(planned: Stage, open_page: Open) -> None:
    page = open_page(planned)
    show(page, "list")
    snapshot = page.locator("main").aria_snapshot()
    assert 'group "Blocked, 8"' in snapshot
    assert 'option "#4 Draw the board , blocked, labels page, needs a look frees 7 waits for #2 #3 due ' in snapshot
    assert 'option "#2 Serve tasks over HTTP , in progress, high priority Serving tasks frees 8 codex ' in snapshot
    assert 'button "Edit E"' in page.locator("aside").aria_snapshot()
    page.evaluate("location.hash = '#/lists'")
    board = page.locator("main")
    expect(board.locator("h2").first).to_be_visible()
    assert 'heading "Needs you 2" [level=2]' in board.aria_snapshot()


@pytest.mark.skipif("PICTURES" not in os.environ, reason="PICTURES=1 draws the pictures of the documents")
@pytest.mark.parametrize("mode", MODES)
def test_documentation_pictures(planned: Stage, open_page: Open, mode: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    for screen in SCREENS:
        page = open_page(planned, mode=mode)
        show(page, screen)
        page.evaluate("document.fonts.ready")
        page.mouse.move(0, 0)
        data = page.screenshot(animations="disabled", scale="css")
        image = Image.open(io.BytesIO(data)).convert("RGB").quantize(96, dither=Image.Dither.NONE)
        image.save(PICTURES / f"{screen}-{mode}.png", optimize=True)
