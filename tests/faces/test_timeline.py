"""The timeline of agents, on its own screen and as a view of a list, and the forecast in a list's head."""

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from punchlist_testing.faces_page import MODES, Open, assert_accessible
from punchlist_testing.figures import keep
from punchlist_testing.stage import Stage

MAX_NODES = 1_200
HOUR_MS = 3_600_000


def span(number: int, owner: str, begin: int, end: int | None, outcome: str) -> dict[str, Any]:
    """Return a span of work as the server does."""
    ended = {} if end is None else {"to_at": end}
    task = {"conversation": "website", "task": "1", "title": f"Task {number}", "version": number}
    return {**task, "owner": owner, "from_at": begin, "outcome": outcome, **ended}


def answer_with(page: Page, spans: list[dict[str, Any]], totals: list[dict[str, int]]) -> None:
    """Let the page read these spans. A real history of hours can't be made in a test, as the daemon sets the times."""

    def answer(route: Route) -> None:
        body = json.dumps({"spans": spans, "totals": totals, "cut": False})
        route.fulfill(status=200, content_type="application/json", body=body)

    page.route("**/api/v1/spans?*", answer)


def get_constant_totals(now: int) -> list[dict[str, int]]:
    """Return two hours in which one task is done every six minutes, of 40."""
    return [{"at": now - 2 * HOUR_MS + at * HOUR_MS // 10, "all": 40, "done": at, "failed": 0} for at in range(21)]


def test_lanes_show_what_agents_worked_on(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/timeline")
    lanes = page.locator(".time-lane")
    expect(lanes.filter(has_text="codex").get_by_role("link", name="Serve tasks over HTTP")).to_be_visible()
    expect(lanes.filter(has_text="gemini")).to_have_attribute("aria-label", re.compile(r"gemini, \d+ % busy, \d+ task"))
    expect(page.locator(".figures")).to_contain_text("too few results for a forecast")
    page.get_by_label("Lists", exact=True).last.select_option("website")
    expect(page).to_have_url(re.compile(r"lists=website$"))
    expect(lanes.filter(has_text="gemini")).to_have_count(0)
    page.get_by_role("button", name="week").click()
    expect(page).to_have_url(re.compile(r"span=week"))
    page.locator(".time-lane").get_by_role("link").first.click()
    expect(page.locator("h1")).to_have_text("Website")


def test_timeline_of_a_list_can_be_enlarged(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/list/release-1.0/timeline")
    chart = page.locator(".chart")
    expect(chart).to_be_visible()
    box = chart.bounding_box()
    assert box
    y = box["y"] + 60
    page.mouse.move(box["x"] + 100, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, y, steps=4)
    expect(page.locator(".selected")).to_be_visible()
    page.mouse.up()
    fit = page.get_by_role("button", name="Fit")
    expect(fit).to_be_enabled()
    page.keyboard.press("v")
    expect(fit).to_be_disabled()


def test_wheel_shows_at_most_the_whole_time(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/timeline?span=constructor")
    chart = page.locator(".chart")
    expect(chart).to_be_visible()
    chart.hover(position={"x": 200, "y": 60})
    page.keyboard.down("Shift")
    fit = page.get_by_role("button", name="Fit")
    page.mouse.wheel(0, -100)
    expect(fit).to_be_enabled()
    for _ in range(4):
        page.mouse.wheel(0, 100)
    expect(fit).to_be_disabled()


def test_many_spans_have_few_nodes(planned: Stage, open_page: Open) -> None:
    page = open_page(planned)
    now = round(time.time() * 1000)
    outcomes = ("completed", "failed", "waits", "released")
    spans = [
        span(
            at,
            f"agent-{at % 12}",
            now - 6 * HOUR_MS + at * 4_000,
            now - 6 * HOUR_MS + at * 4_000 + 30_000,
            outcomes[at % 4],
        )
        for at in range(5_000)
    ]
    answer_with(page, spans, get_constant_totals(now))
    page.evaluate("location.hash = '#/timeline'")
    expect(page.locator(".time-lane")).to_have_count(12)
    expect(page.locator(".block", has_text=re.compile(r"^\d+ tasks$")).first).to_be_visible()
    nodes = page.evaluate("document.querySelectorAll('*').length")
    keep(timeline_nodes=nodes)
    assert nodes <= MAX_NODES


def test_head_says_when_the_list_is_ready(planned: Stage, open_page: Open) -> None:
    page = open_page(planned)
    now = round(time.time() * 1000)
    answer_with(page, [span(1, "codex", now - HOUR_MS, None, "running")], get_constant_totals(now))
    page.evaluate("location.hash = '#/list/website'")
    clock = "at => new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })"
    expected = page.evaluate(clock, round((now + 2 * HOUR_MS) / 300_000) * 300_000)
    expect(page.locator(".top-bar .ready b")).to_contain_text(expected)
    page.keyboard.press("5")
    expect(page.locator(".figures")).to_contain_text("10 an hour")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("screen", ["#/timeline", "#/list/release-1.0/timeline"])
def test_timelines_are_accessible(planned: Stage, open_page: Open, mode: str, screen: str) -> None:
    page = open_page(planned, screen, mode=mode)
    expect(page.locator(".time-lane").first).to_be_visible()
    assert_accessible(page)
