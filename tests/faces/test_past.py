"""The past of a list: its history by calls, the time machine, and two versions compared."""

import re
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from punchlist_testing.blocking import eventually
from punchlist_testing.faces_page import MODES, Open, assert_accessible
from punchlist_testing.figures import keep
from punchlist_testing.stage import Stage, stage

TASKS = 40
MAX_NODES = 1_000


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """A stage with a list of which three agents changed something, over some 150 versions."""
    with stage(tmp_path_factory.mktemp("told")) as where:
        where.by("codex/b210").call("conversation.open", {"conversation": "shop", "title": "Shop relaunch"})
        agents = [where.by(name).conversation("shop") for name in ("codex/b210", "claude-code/7f3c", "ann")]
        agents[0].add_many([f"Write part {number} of the menu" for number in range(1, TASKS + 1)])
        for number in range(1, TASKS + 1):
            agent, id = agents[number % 3], str(number)
            agent.start(id)
            if number % 7 == 0:
                agent.fail(id, "2 of 41 tests fail")
            elif number % 2:
                agent.complete(id, "merged")
            if number % 5 == 0:
                agent.edit(id, title=f"Write part {number} of the mobile navigation", priority="high")
        yield where


def get_version(page: Page) -> int:
    return int(page.locator(".handle.of-to").get_attribute("aria-valuenow") or 0)


def open_strip(page: Page) -> dict[str, float]:
    page.get_by_role("button", name="Time machine").click()
    expect(page.locator(".track .bright path").first).to_be_visible()
    box = page.locator(".track").bounding_box()
    assert box
    return dict(box)


def get_middle(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"]


def list_events(where: Stage) -> list[dict[str, Any]]:
    return where.by("codex/b210").call("event.read", {"conversation": "shop", "after": 0, "limit": 1000})["events"]


def test_dragged_handle_stays_under_the_pointer(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop")
    track = open_strip(page)
    places = {name: get_middle(page, name) for name in (".time-machine", ".round[aria-label='Time machine']", "h1")}
    x, y = get_middle(page, ".handle.of-to")
    target = track["x"] + 0.6 * track["width"]
    page.mouse.move(x, y + 20)
    page.mouse.down()
    page.mouse.move(target, y + 20, steps=6)
    moved = get_middle(page, ".handle.of-to")
    assert abs(moved[0] - target) <= 1
    assert moved[1] == y
    page.mouse.up()
    assert abs(get_middle(page, ".handle.of-to")[0] - target) <= 1
    assert {name: get_middle(page, name) for name in places} == places, "nothing moved when the past was shown"
    events = list_events(told)
    bars = told.by("ann").call("event.histogram", {"conversation": "shop", "buckets": 120})["buckets"]
    step = bars[1]["at"] - bars[0]["at"] if len(bars) > 1 else 1
    end = bars[0]["at"] + len(bars) * step
    moment = bars[0]["at"] + 0.6 * (end - bars[0]["at"])
    # A bar lasts at least a second, and may begin before the first event.
    expected = max((event["version"] for event in events if event["at"] <= moment), default=1)
    per_bar = max(sum(count for _, count in bar["by"]) for bar in bars)
    assert abs(get_version(page) - expected) <= max(0.01 * len(events), per_bar)


def test_address_names_the_versions(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop")
    expect(page.locator(".row").first).to_be_visible()
    page.keyboard.press("[")
    page.locator(".handle.of-to").focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    version = get_version(page)
    expect(page).to_have_url(re.compile(f"at={version}$"))
    states = page.locator(".row").evaluate_all("rows => rows.map(row => row.className)")
    page.reload()
    expect(page.get_by_role("slider", name="Version shown")).to_have_attribute("aria-valuenow", str(version))
    eventually(lambda: page.locator(".row").evaluate_all("rows => rows.map(row => row.className)") == states)
    page.keyboard.press("n")
    expect(page).not_to_have_url(re.compile("at="))
    page.evaluate("location.hash = '#/list/shop?at=100..90'")
    expect(page.locator(".chips b").first).to_have_text("version 90 → 100")


@pytest.mark.parametrize("text", ["9999", "0", "yesterday", "1..9999", "-3", "1e3", "5..x"])
def test_address_of_no_version_shows_the_present(told: Stage, open_page: Open, text: str) -> None:
    page = open_page(told, f"#/list/shop?at={text}")
    expect(page.locator(".toast.bad")).to_contain_text(f"a version that is not there: {text}")
    expect(page).not_to_have_url(re.compile("at="))
    expect(page.locator(".row").first).to_be_visible()
    expect(page.locator(".head .primary")).to_be_visible()


def test_handles_follow_the_keyboard(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop")
    open_strip(page)
    newest = list_events(told)[-1]["version"]
    page.locator(".handle.of-to").focus()
    page.keyboard.press("ArrowLeft")
    assert get_version(page) == newest - 1
    expect(page.locator(".handle.of-to")).to_have_attribute(
        "aria-valuetext", re.compile(rf"version {newest - 1}, \S+ \w+")
    )
    page.keyboard.press("PageDown")
    assert get_version(page) < newest - 1
    page.keyboard.press("Home")
    assert get_version(page) == 1
    page.keyboard.press("End")
    expect(page.locator(".handle.of-to")).to_have_attribute("aria-valuetext", "now")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    by = {event["version"]: event["actor"] for event in list_events(told)}
    assert by[get_version(page)] != by[newest - 1]
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowLeft")
    assert get_version(page) <= TASKS, "before the first call there is nothing"
    page.keyboard.press("n")
    expect(page.locator(".past-pill")).to_have_count(0)


def test_compared_versions_show_what_differs(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop?at=41..")
    heads = page.locator(".change-head")
    expect(heads.first).to_have_text("Failed 5")
    expect(page.locator(".change.g-failed").first).to_contain_text("2 of 41 tests fail")
    expect(page.locator(".past-pill")).to_have_text("Read only: two versions")
    page.get_by_role("button", name="Reworded").click()
    expect(heads).to_have_text(["Reworded 8"])
    row = page.locator(".change").first
    expect(row.locator("del")).to_have_text(["menu", "normal"])
    expect(row.locator("ins")).to_have_text(["mobile navigation", "high"])
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h2")).to_contain_text("mobile navigation")
    page.keyboard.press("d")
    expect(page.locator(".toast.bad")).to_contain_text("The past")


def test_playing_moves_through_the_versions(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop?at=42")
    expect(page.locator(".track .bright path").first).to_be_visible()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.locator(".handle.of-to")).to_have_attribute("aria-valuetext", "now")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_list_becomes_what_it_was(empty: Stage, open_page: Open) -> None:
    agent = empty.by("codex").conversation("restored")
    agent.add("one")
    agent.add("two")
    agent.complete("1", "hours of work")
    page = open_page(empty, "#/list/restored?at=2")
    page.get_by_role("button", name="Make the list what it was").click()
    expect(page.locator("dialog .lines li")).to_have_count(2)
    agent.add("three")
    page.get_by_role("button", name="Make it so").click()
    expect(page.locator("dialog .bad")).to_contain_text("has changed since")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Make the list what it was").click()
    expect(page.locator("dialog .lines li")).to_have_count(3)
    page.get_by_role("button", name="Make it so").click()
    expect(page.locator(".toast")).to_contain_text("The list is what it was")
    assert [task.title for task in agent.list()] == ["one"]
    readonly = open_page(empty, "#/list/restored?at=2", scope={"mode": "ro"})
    expect(readonly.locator(".handle.of-to")).to_be_visible()
    expect(readonly.get_by_role("button", name="Make the list what it was")).to_have_count(0)


def test_history_tells_calls_in_words(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop/history")
    expect(page.locator(".day-head").first).to_contain_text("Today")
    calls = page.locator(".call .told")
    expect(calls.first).to_contain_text("reworded, high priority")
    text = page.locator(".calls").inner_text()
    assert not re.search(r"in_progress|active_form|StatusChanged|edited", text)
    page.get_by_role("button", name="Added", exact=False).click()
    expect(calls).to_have_count(1)
    expect(calls.first).to_contain_text(f"added {TASKS} tasks")
    page.get_by_role("button", name=re.compile(f"^The {TASKS} events")).click()
    expect(page.locator(".call.part").first).to_contain_text("#1")


def test_history_filters_by_agent_and_leads_to_the_past(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop/history")
    page.get_by_role("button", name=re.compile("^ann")).click()
    actors = page.locator(".call .actor")
    expect(actors.first).to_have_text("ANann")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".call.here")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/list/shop/\d+\?at=\d+$"))
    expect(page.locator(".time-machine .past-pill")).to_have_text("Read only: as it was")
    page.go_back()
    expect(page.locator(".call").first).to_be_visible()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("screen", ["history", "?at=100", "?at=41..100"])
def test_views_of_the_past_are_accessible(told: Stage, open_page: Open, mode: str, screen: str) -> None:
    page = open_page(told, f"#/list/shop{'/' if screen == 'history' else ''}{screen}", mode=mode)
    sign = {"history": ".call", "?at=100": ".bright path", "?at=41..100": ".change"}[screen]
    expect(page.locator(sign).first).to_be_visible()
    assert_accessible(page)


def test_long_history_has_few_nodes(empty: Stage, open_page: Open) -> None:
    agent = empty.by("codex").conversation("versions")
    agent.add_many([f"Task {number}" for number in range(1, 501)])
    for turn in range(4):
        agent.apply(
            [{"method": "task.edit", "task": str(number), "active_form": f"turn {turn}"} for number in range(1, 501)]
        )
    page = open_page(empty, "#/list/versions/history")
    expect(page.locator(".call").first).to_be_visible()
    page.get_by_role("button", name="Time machine").click()
    expect(page.locator(".track .bright path").first).to_be_visible()
    nodes = page.evaluate("document.querySelectorAll('*').length")
    keep(history_nodes=nodes)
    assert nodes <= MAX_NODES


def test_styles_of_other_screens_leave_the_time_machine_alone(told: Stage, open_page: Open) -> None:
    page = open_page(told)
    sheets = page.locator("link[rel=stylesheet]")
    expect(sheets).to_have_count(5)
    page.evaluate("location.hash = '#/list/shop/3?at=100'")
    expect(page.locator(".track .bright path").first).to_be_visible()
    heights = page.evaluate(
        "['.time-machine', '.track', '.track .handle']"
        ".map(name => document.querySelector(name).getBoundingClientRect().height)"
    )
    assert heights[0] > heights[1] > 50
    assert heights[1] < heights[2] < heights[0]


def test_filter_of_the_history_stays_while_the_past_is_shown(told: Stage, open_page: Open) -> None:
    page = open_page(told, "#/list/shop/history")
    ann = page.get_by_role("button", name=re.compile("^ann"))
    ann.click()
    page.get_by_role("button", name="Time machine").click()
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile("at="))
    expect(ann).to_have_attribute("aria-pressed", "true")
