"""A list in the browser: its groups, order, filters, saved views and columns."""

import random
import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from punchlist import PunchlistError
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import Gate
from punchlist_testing.blocking import eventually
from punchlist_testing.faces_page import Open
from punchlist_testing.stage import Stage, midnight

HEADS = ".group-head"
SMALL_TARGETS = """() => [...document.querySelectorAll('.row, .group-head, .head :is(button, select, input, a)')]
  .map(element => [element.getBoundingClientRect(), element])
  .filter(([box]) => box.width && box.right > 0 && box.left < innerWidth && (box.width < 44 || box.height < 44))
  .map(([box, element]) => [element.outerHTML.slice(0, 80), box.width, box.height])"""


def read_groups(page: Page) -> dict[str, int]:
    """Return the numbers of tasks by the titles of the groups."""
    heads = [
        (head.locator(".cut").inner_text(), head.locator(".count").inner_text()) for head in page.locator(HEADS).all()
    ]
    return {title: int(count.split(",")[0]) for title, count in heads}


def read_titles(page: Page) -> list[str]:
    return page.locator(".row .t").all_inner_texts()


def plan_checkout(stage: Stage, name: str, count: int = 20) -> Any:
    """Add tasks of which the first half is done, and return the list."""
    tasks = stage.by("codex").conversation(name)
    tasks.add_many([f"Task {number}" for number in range(1, count + 1)])
    for number in range(1, count // 2 + 1):
        tasks.complete(str(number))
    return tasks


def test_list_opens_on_running_tasks(empty: Stage, open_page: Open) -> None:
    tasks = plan_checkout(empty, "relaunch", 94)
    tasks.start("90")
    tasks.fail("80", "timeout after 300 s")
    page = open_page(empty, "#/list/relaunch")
    page.set_viewport_size({"width": 1280, "height": 720})
    expect(page.locator(".row").first).to_contain_text("Task 90")
    expect(page.locator(".row .why")).to_have_text("timeout after 300 s")
    expect(page.locator(HEADS).last).to_contain_text("Done")
    expect(page.locator(HEADS).last).to_be_in_viewport()
    expect(page.locator(HEADS).last).to_contain_text(re.compile(r"47, the newest \d\d:\d\d"))
    assert page.locator(".row.r-completed").count() == 0


def test_chips_count_what_the_groups_hold(empty: Stage, open_page: Open) -> None:
    dice = random.Random(7)
    tasks = empty.by("codex").conversation("random")
    tasks.add_many(
        [NewTask(title=f"Task {number}", gate=Gate(yes=True) if number % 9 == 0 else None) for number in range(1, 41)]
    )
    page = open_page(empty, "#/list/random")
    page.set_viewport_size({"width": 1280, "height": 2000})
    expect(page.locator(".row").first).to_be_visible()
    changes = [tasks.start, tasks.pause, tasks.complete, tasks.fail, tasks.reopen]
    for _ in range(200):
        one, other = (str(dice.randint(1, 40)) for _ in range(2))
        with suppress(PunchlistError):  # Some random changes are rejected.
            if dice.random() < 0.3:
                edit = dice.choice([{"add_blocked_by": [other]}, {"parent": other}, {"remove_blocked_by": [other]}])
                tasks.edit(one, **edit)
            else:
                dice.choice(changes)(one)
    tasks.add("The last one")
    expect(page.locator(".head .done")).to_contain_text("of 41")
    groups = read_groups(page)
    for word, title in (("needs", "Needs you"), ("running", "Running"), ("ready", "Ready"), ("blocked", "Blocked")):
        expect(page.locator(f".c-{word} b")).to_have_text(str(groups.get(title, 0)))
        page.locator(f".c-{word}").click()
        expect(page.locator(HEADS)).to_have_count(1 if groups.get(title) else 0)
        page.locator(f".c-{word}").click()
    assert sum(groups.values()) == 41


def test_address_holds_filter_grouping_and_order(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/list/release-1.0")
    page.locator(".c-blocked").click()
    page.get_by_label("Group", exact=True).select_option("label")
    page.get_by_label("Sort", exact=True).select_option("frees")
    expect(page).to_have_url(re.compile(r"q=is%3Ablocked&group=label&sort=frees$"))
    expect(page.locator(HEADS)).to_have_count(3)
    titles = read_titles(page)
    assert titles.count("Draw the board") == 2, "a task with two labels stands in both groups"
    assert page.locator("#t-4").count() == 1
    other = open_page(planned, page.evaluate("location.hash"))
    expect(other.locator(HEADS)).to_have_count(3)
    assert read_titles(other) == titles
    page.keyboard.press("2")
    expect(page.locator(".column", has_text="Blocked").locator(".chip")).to_have_count(8)
    page.evaluate("location.hash = '#/list/website'")
    expect(page.locator(".c-blocked")).to_have_attribute("aria-pressed", "false")
    page.go_back()
    expect(page.locator(".c-blocked")).to_have_attribute("aria-pressed", "true")


def test_keys_group_sort_and_fold(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("keys")
    tasks.add_many(
        [
            NewTask(title="One", ref="one"),
            NewTask(title="Two", priority="urgent", owner="bob"),
            NewTask(title="Three", blocked_by=("one",)),
            NewTask(title="Part", parent="one"),
        ]
    )
    page = open_page(empty, "#/list/keys")
    expect(page.locator(HEADS)).to_have_count(2)
    assert read_groups(page) == {"Ready": 2, "Blocked": 2}
    expect(page.locator(".row", has_text="Part").locator(".parent")).to_have_text("One ›")
    page.keyboard.press("j")
    page.keyboard.press("h")
    expect(page.locator(".row")).to_have_count(3)  # The task at the cursor stays visible.
    page.reload()
    expect(page.locator(".row")).to_have_count(3)
    page.keyboard.press("l")
    expect(page.locator(".row")).to_have_count(4)
    page.keyboard.press("o")
    assert eventually(lambda: read_titles(page)[0] == "Two")
    page.keyboard.press("J")
    expect(page.locator(".toast.bad")).to_contain_text("Sort by order")
    page.keyboard.press("O")
    assert eventually(lambda: list(read_groups(page)) == ["bob", "nobody"])
    page.evaluate("location.hash = '#/list/keys?group=parent'")
    expect(page.locator(HEADS)).to_have_count(0)
    assert read_titles(page) == ["One", "Part", "Two", "Three"]
    page.evaluate("location.hash = '#/list/keys?group=nonsense&sort=%00'")
    expect(page.locator(HEADS)).to_have_count(2)


def test_cursor_stays_at_its_height_and_goes_on(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("steady")
    tasks.add_many([f"Task {number}" for number in range(1, 61)])
    page = open_page(empty, "#/list/steady/40")
    row = page.locator(".row.here")
    expect(row).to_be_in_viewport()
    before = row.bounding_box()
    for number in range(1, 11):
        tasks.start(str(number))
    expect(page.locator(".c-running b")).to_have_text("10")
    assert row.bounding_box() == before
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(page.locator(".detail .pill")).to_have_text("done")
    page.keyboard.press("j")
    expect(row.locator(".t")).to_have_text("Task 41")
    row.click()
    expect(page.locator(".detail")).to_have_count(0)
    page.locator(".row").first.click()
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".detail")).to_have_count(0)


def test_frees_counts_open_dependents(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("frees")
    chain = [NewTask(title=f"Link {n}", ref=f"r{n}", blocked_by=(f"r{n - 1}",) if n else ()) for n in range(120)]
    tasks.add_many([*chain, NewTask(title="Alone")])
    page = open_page(empty, "#/list/frees?sort=frees")
    expect(page.locator(".row", has_text="Link 0").locator(".facts")).to_contain_text("frees 99+")
    expect(page.locator(".row", has_text="Alone").locator(".facts")).not_to_contain_text("frees")
    tasks.edit("2", remove_blocked_by=["1"])
    expect(page.locator(".row", has_text="Link 0").locator(".facts")).not_to_contain_text("frees")


def test_dates_are_relative(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("dates")
    tasks.add_many(
        [
            NewTask(title="A", due=midnight(1)),
            NewTask(title="B", due=midnight(-3)),
            NewTask(title="C", due=midnight(90)),
            NewTask(title="D", not_before=midnight(1)),
        ]
    )
    page = open_page(empty, "#/list/dates?group=none")
    days = page.locator(".row .day")
    expect(days).to_have_text(["due tomorrow", "3 days late", re.compile(r"due \w+ \d+"), "from tomorrow"])
    expect(days.nth(1)).to_have_attribute("title", re.compile(r"\w+ \d+"))
    page.locator(".c-late").click()
    expect(page.locator(".row")).to_have_count(1)


def test_filters_of_one_kind_add_up(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("filters")
    tasks.add_many(
        [
            NewTask(title="A", labels=("bug",)),
            NewTask(title="B", labels=("needs a look",)),
            NewTask(title="C", labels=("bug",), owner="bob"),
            NewTask(title="D"),
        ]
    )
    tasks.start("3")
    page = open_page(empty, "#/list/filters")
    offers = page.get_by_label("Add a filter")
    offers.focus()
    expect(offers.locator("optgroup")).to_have_count(3)
    expect(offers.locator("optgroup").first.locator("option")).to_have_text(["bug (2)", "needs a look (1)"])
    offers.select_option("+bug")
    expect(page.locator(".row")).to_have_count(2)
    offers.select_option("+needs.a.look")
    expect(page.locator(".row")).to_have_count(3)
    expect(page.locator(".c-ready b")).to_have_text("2")
    page.locator(".c-running").click()
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".c-ready b")).to_have_text("2")
    page.locator(".c-running").click()
    offers.focus()
    offers.select_option("@bob")
    expect(page.locator(".row")).to_have_count(1)
    page.locator("#filter").fill("label +bug")
    expect(page.locator(".teach")).to_contain_text("4 tasks are hidden")
    page.locator("#filter").fill("nothing like it")
    expect(page.locator(".teach")).to_contain_text("4 tasks are hidden by nothing like it")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".row")).to_have_count(4)


@pytest.mark.parametrize("word", ["<b>", "%", "w" * 500, "is:", "+", "#", "\u202e", "is:constructor", "p:"])
def test_odd_filter_words_are_harmless(planned: Stage, open_page: Open, word: str) -> None:
    page = open_page(planned, "#/list/release-1.0")
    page.locator("#filter").fill(word)
    expect(page.locator("main :is(.row, .teach)").first).to_be_visible()
    page.reload()
    expect(page.locator("main :is(.row, .teach)").first).to_be_visible()
    page.locator("#filter").fill("@")
    expect(page.locator(".row").first).to_be_visible()


def test_views_are_private_or_shared(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("views")
    tasks.add_many([NewTask(title="A", labels=("bug",)), "B"])
    metadata = {"views": [{"name": 7}, "x", {"name": "<b>theirs", "q": "+bug"}], "other": "kept"}
    tasks.configure(metadata=metadata)
    page, other = open_page(empty, "#/list/views"), open_page(empty, "#/list/views")
    expect(page.get_by_role("link", name="<b>theirs")).to_have_count(1)
    page.get_by_label("Group", exact=True).select_option("owner")
    page.get_by_role("button", name="Save view").click()
    page.get_by_label("Name").fill("By owner")
    page.get_by_label("For").select_option("everyone, in this list")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("button", name="Delete view")).to_be_visible()
    other.get_by_role("link", name="By owner").click()
    expect(other.locator(HEADS)).to_have_text(re.compile("nobody"))
    stored = empty.by("codex").call("conversation.get", {"conversation": "views"})["conversation"]["metadata"]
    assert stored == {
        "other": "kept",
        "views": [{"name": "<b>theirs", "q": "+bug"}, {"name": "By owner", "group": "owner"}],
    }
    page.get_by_role("button", name="Delete view").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(other.get_by_role("link", name="By owner")).to_have_count(0)
    page.get_by_role("button", name="Save view").click()
    page.get_by_label("Name").fill("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    rail = page.get_by_role("navigation", name="Screens", exact=True)
    expect(rail.get_by_role("link", name="Mine")).to_have_attribute("aria-current", "true")
    empty.by("codex").conversation("elsewhere").add("C")
    page.evaluate("location.hash = '#/list/elsewhere'")
    rail.get_by_role("link", name="Mine").click()
    expect(page).to_have_url(re.compile("elsewhere.group=owner$"))
    expect(other.get_by_role("link", name="Mine")).to_have_count(0)


def test_phone_shows_reasons_and_large_targets(empty: Stage, open_page: Open) -> None:
    tasks = plan_checkout(empty, "phone")
    tasks.fail("11", "the disk is full")
    tasks.edit("12", add_blocked_by=["13"], due=midnight(1), labels=["bug"])
    page = open_page(empty, "#/list/phone", mode="phone")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".row", has_text="Task 11")).to_contain_text("the disk is full")
    expect(page.locator(".row", has_text="Task 12").locator(".narrow")).to_have_text("waits for #13")
    expect(page.locator(".row .day")).to_be_hidden()
    assert page.evaluate(SMALL_TARGETS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("View", exact=True).select_option("flow")
    expect(page.locator(".column").first).to_be_visible()


def test_going_back_on_a_phone_closes_the_details(empty: Stage, open_page: Open) -> None:
    empty.by("codex").conversation("phone-back").add_many(["One", "Two"])
    page = open_page(empty, "#/lists", mode="phone")
    page.locator(".card", has_text="phone-back").tap()
    page.locator("#t-2").tap()
    expect(page.locator(".detail h2")).to_have_text("Two")
    page.go_back()
    expect(page.locator(".detail")).to_have_count(0)
    expect(page).to_have_url(f"{empty.url}/#/list/phone-back")


def test_rows_stop_growing_on_wide_screens(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/list/release-1.0")
    page.set_viewport_size({"width": 2560, "height": 1000})
    expect(page.locator(".row").first).to_be_visible()
    box = page.locator(".row").first.bounding_box()
    assert box is not None
    assert box["width"] <= 1720


def test_columns_show_reasons_and_newest_results(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("columns")
    tasks.add_many(
        [
            "First",
            "Second",
            NewTask(title="Third", labels=("bug",), due=midnight(1)),
            "Fourth",
            "Fifth",
            NewTask(title="Sixth", gate=Gate(yes=True)),
        ]
    )
    for number in ("1", "2", "6"):
        tasks.complete(number)
    tasks.fail("4", "no luck")
    tasks.pause("5")
    page = open_page(empty, "#/list/columns/flow")
    column = {
        name: page.locator(".column", has=page.get_by_role("heading", name=name))
        for name in ("Ready", "Blocked", "Running", "Waits for a yes", "Paused", "Done", "Failed")
    }
    expect(column["Done"].locator(".t bdi")).to_have_text(["Second", "First"])
    expect(column["Ready"].locator(".chip")).to_contain_text("bug")
    expect(column["Ready"].locator(".chip")).to_contain_text("tomorrow")
    expect(column["Failed"].locator(".chip")).to_contain_text("no luck")
    expect(column["Paused"].locator(".chip")).to_contain_text("Fifth")
    expect(column["Waits for a yes"].locator(".chip")).to_contain_text("waits for your yes")
    column["Ready"].locator(".chip").drag_to(column["Blocked"])
    column["Ready"].locator(".chip").click()
    page.keyboard.press("l")
    expect(page.locator(".chip.here")).to_contain_text("Sixth")
    page.keyboard.press("h")
    expect(page.locator(".chip.here")).to_contain_text("Third")
    assert tasks.get("3").status == "pending"
