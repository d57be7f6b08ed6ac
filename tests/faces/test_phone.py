"""The page on a phone: everything that is touched is large enough, and nothing is wider than the screen."""

from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from punchlist_testing.stage import Stage, stage

HEIGHT = 844

LONG = "Ünïcode 漢字 " + "W" * 480
HOSTILE = "<img src=x onerror=alert(1)> \u202egnp.exe **bold** [link](javascript:alert(1)) https://example.org"

# Each screen: its address, a selector that shows that it is there, and keys that open something on it.
SCREENS = {
    "now": ("#/", ".need", ""),
    "inbox": ("#/inbox", ".question h2", ""),
    "answer": ("#/inbox/shop/4", ".thumbs button", ""),
    "lists": ("#/lists", ".board a, .board [role=row], .card", ""),
    "list": ("#/list/shop", ".row", ""),
    "flow": ("#/list/shop/flow", ".column .chip", ""),
    "graph": ("#/list/shop/graph", ".node", ""),
    "list timeline": ("#/list/shop/timeline", ".plane", ""),
    "history": ("#/list/shop/history", ".call", ""),
    "detail": ("#/list/shop/3", ".detail .actions button", ""),
    "time machine": ("#/list/shop?at=10", ".track .bright path", ""),
    "comparison": ("#/list/shop?at=8..", ".change", ""),
    "add": ("#/list/shop", ".row", "a"),
    "palette": ("#/list/shop", ".row", "/"),
    "timeline": ("#/timeline", ".plane", ""),
    "chat": ("#/chat", ".chat form", ""),
    "agent": ("#/agent/codex%2Fb210", ".agent .happened", ""),
    "help": ("#/", ".need", "?"),
}

# Links in sentences are as high as their line. The handles of the time machine and the bars of the timeline are drawn
# small; a handle has a large area around it, and a bar leads to a task that has a row of its own.
FIND_SMALL = """() => {
  const touched = 'a, button, select, input, textarea, summary, [role=option], .row, .chip, .card';
  const excepted = '.sr, .skip, .prose :is(a, :is(p, li, td) .text), .happened a, .block, input[type=checkbox]';
  const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document;
  return [...top.querySelectorAll(touched)].flatMap(element => {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.closest(excepted)) return [];
    const { width, height } = element.getBoundingClientRect();
    const name = element.getAttribute('aria-label') ?? element.textContent.trim().slice(0, 30);
    const isLarge = width > 43.5 && height > 43.5;
    return isLarge ? [] : [`${element.className} ${name}: ${width.toFixed()}x${height.toFixed()}`];
  });
}"""

# Only what a box that scrolls or cuts holds may be wider than the screen.
FIND_WIDE = """() => {
  const isCut = element => {
    for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== 'visible' && box.getBoundingClientRect().right <= innerWidth) return true;
    return false;
  };
  return [...document.querySelectorAll('body *')].flatMap(element => {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.closest('svg, .sr, .skip')) return [];
    const { left, right, width } = element.getBoundingClientRect();
    if (!width || (right <= innerWidth + .5 && left >= -.5) || isCut(element)) return [];
    return [`${element.className}: ${left.toFixed()} to ${right.toFixed()}`];
  });
}"""


def fill(where: Stage) -> None:
    """Add a list that has every state, and texts that are long or hostile."""
    client = where.by("codex/b210")
    client.call("conversation.open", {"conversation": "shop", "title": f"Shop {LONG}"})
    tasks = client.conversation("shop")
    tasks.add_many([f"Write part {number}" for number in range(1, 20)])
    table = f"|a|b|\n|-|-|\n|{LONG}|2|"
    tasks.add(LONG, description=f"{HOSTILE}\n\n- one\n- `{LONG}`\n\n{table}", labels=["bug", "W" * 60])
    links = [{"kind": "pr", "to": f"https://example.org/{'w' * 200}"}]
    tasks.edit("3", title=HOSTILE, description=HOSTILE, gate={}, labels=["bug", "checkout"], links=links)
    for number in range(1, 9):
        tasks.start(str(number))
    tasks.complete("1", "merged")
    tasks.complete("3", HOSTILE)
    tasks.fail("4", LONG)
    tasks.edit("10", add_blocked_by=["4", "9"])
    tasks.edit("20", add_blocked_by=["10"])
    tasks.note("3", LONG)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with stage(tmp_path_factory.mktemp("shop")) as where:
        fill(where)
        yield where


def open_phone(browser: Any, where: Stage, width: int, screen: str) -> tuple[BrowserContext, Page]:
    hash, sign, keys = SCREENS[screen]
    viewport = {"width": width, "height": HEIGHT}
    context = browser.new_context(viewport=viewport, has_touch=True, is_mobile=True, device_scale_factor=2)
    page = context.new_page()
    page.goto(where.link())
    page.wait_for_selector("header.top-bar")
    page.evaluate("hash => (location.hash = hash)", hash)
    expect(page.locator(sign).first).to_be_visible()
    if keys:
        page.keyboard.press(keys)
        expect(page.locator("dialog[open], .inline-add").first).to_be_visible()
    return context, page


@pytest.mark.parametrize("screen", SCREENS)
def test_what_is_touched_is_large_enough(shop: Stage, browser: Any, screen: str) -> None:
    context, page = open_phone(browser, shop, 390, screen)
    assert page.evaluate(FIND_SMALL) == []
    context.close()


@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_is_wider_than_the_screen(shop: Stage, browser: Any, screen: str, width: int) -> None:
    context, page = open_phone(browser, shop, width, screen)
    assert page.evaluate(FIND_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
