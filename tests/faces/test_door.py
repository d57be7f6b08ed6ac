"""Signing a browser in: the command, the reasons why a link fails, codes, and links opened in another tab."""

from collections.abc import Callable, Generator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from punchlist_apps.common.http.codes import Codes
from punchlist_apps.common.http.keys import Scope
from punchlist_testing.faces_page import MODES, Open, assert_accessible
from punchlist_testing.stage import Stage

PATIENCE_MS = 20_000
MIN_TARGET_PX = 44


@pytest.fixture
def context(browser: Browser) -> Generator[BrowserContext]:
    """A browser without a session."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


def open_door(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    expect(page.locator(".door")).to_be_visible()
    return page


def test_door_shows_the_command_for_its_address(planned: Stage, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = open_door(context, planned.url)
    command = f"punch web --link --port {planned.port}"
    expect(page.locator(".door .command code")).to_have_text(command)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == command
    context.clear_permissions()


def test_shared_link_has_the_port(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/list/inbox")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
    page.keyboard.type("share")
    page.keyboard.press("Enter")
    command = f"punch web --link --read-only --only inbox --port {planned.port}"
    expect(page.locator("dialog .command code")).to_have_text(command)


def test_failed_links_report_their_reasons(
    planned: Stage, context: BrowserContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = planned.link()
    assert planned.keys.redeem(used.partition("#ticket=")[2]) is not None
    monkeypatch.setattr("punchlist_apps.common.http.keys.TICKET_S", -1)
    reasons: dict[str, Callable[[], str]] = {
        "already used": lambda: used,
        "older than a minute": planned.link,
        "did not make this link": lambda: f"{planned.url}/#ticket=x.y",
    }
    for reason, build_link in reasons.items():
        expect(open_door(context, build_link()).get_by_role("alert")).to_contain_text(reason)


def test_link_in_another_tab_signs_this_tab_in(planned: Stage, context: BrowserContext) -> None:
    waiting = open_door(context, f"{planned.url}/#/list/inbox")
    expect(waiting.get_by_role("status")).to_have_text("Waiting…")
    context.new_page().goto(planned.link())
    expect(waiting.locator("h1")).to_have_text("Inbox")
    waiting.evaluate("localStorage.clear()")


def test_link_in_this_tab_signs_it_in(planned: Stage, context: BrowserContext) -> None:
    page = open_door(context, planned.url)
    page.goto(planned.link())  # Only the part after # changes, so the page isn't loaded again.
    expect(page.get_by_role("navigation").first).to_be_visible()
    assert "ticket" not in page.url
    page.goto(f"{planned.url}/#ticket=x.y")
    expect(page.get_by_text("did not make this link")).to_be_visible()
    assert "ticket" not in page.url


def test_code_signs_this_browser_in(planned: Stage, context: BrowserContext) -> None:
    page = open_door(context, planned.url)
    code = Codes(planned.keys).issue(Scope("ro", "inbox"))
    field = page.get_by_label("Or enter the six digits")
    field.fill(f"{(int(code) + 1) % 10**6:06}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This code is wrong")
    field.fill(f"{code[:3]} {code[3:]}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Inbox")


@pytest.mark.parametrize("mode", MODES)
def test_door_is_accessible(planned: Stage, browser: Browser, mode: str) -> None:
    context = browser.new_context(**MODES[mode])
    page = open_door(context, f"{planned.url}/#ticket=x.y")
    expect(page.get_by_role("alert")).to_be_visible()
    assert_accessible(page)
    if mode == "phone":
        heights = page.locator(".door button, .door input").evaluate_all("all => all.map(one => one.offsetHeight)")
        assert min(heights) >= MIN_TARGET_PX
    context.close()


@pytest.mark.parametrize("path", ["/", "/chat"])
def test_page_without_javascript_is_readable(planned: Stage, browser: Browser, path: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(planned.url + path)
    expect(page.get_by_role("heading", name="punchlist")).to_be_in_viewport()
    expect(page.locator("noscript p").first).to_be_in_viewport()
    context.close()
