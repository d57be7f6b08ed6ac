"""What people do on the page, with the keyboard unless a test says otherwise."""

import re

import pytest
from playwright.sync_api import Page, expect

from punchlist_schemas.params import NewTask
from punchlist_testing.faces_page import Open
from punchlist_testing.stage import Stage, stage

TEXTS = [
    "<script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "<svg onload=\"document.title='pwned'\"><use href='//evil.example/x'/></svg>",
    "</title><iframe src=//evil.example></iframe>",
    "javascript:document.title='pwned'",
    "${document.title='pwned'} {{constructor.constructor('document.title=1')()}}",
    "&lt;b&gt; &#x202e; &amp;",
    "\u202etxt.exe\u202c \u2066hidden\u2069 \u200b\u200d\ufeff",
    "\x1b[31mred\x1b[0m\x07\x00bell",
    "Z\u0351\u0352\u0353\u0354\u0355\u0356\u0357\u0358\u0359\u035a\u035b\u035c\u035d\u035e\u035f\u0360algo",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 and \u05e2\u05d1\u05e8\u05d9\u05ea",
    "\uff37" * 500,
    "a" * 500,
    "__proto__",
    "constructor",
    "url(//evil.example) ;}*{background:url(//evil.example)}",
]


def get_selected_text(page: Page) -> str:
    return page.locator(".row.here").text_content() or ""


def test_keyboard_journey(  # noqa: PLR0915 - a journey has many steps
    planned: Stage, open_page: Open
) -> None:
    page = open_page(planned, "#/lists")
    assert "ticket" not in page.url
    expect(page.locator(".card").first).to_be_visible()
    page.keyboard.press("F")
    page.keyboard.type("inbox")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Inbox")
    expect(page.locator(".row")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert get_selected_text(page).startswith("#2Book the train, ready")
    page.keyboard.press("s")
    expect(page.locator(".row.here")).to_have_class("row r-in_progress here")
    page.keyboard.press("d")
    expect(page.locator("dialog input")).to_be_focused()
    page.keyboard.type("seat 4A")
    page.keyboard.press("Enter")
    expect(page.locator(".row.here")).to_have_class("row r-completed here")
    inbox = planned.by("ann").conversation("inbox")
    assert (inbox.get("2").status, inbox.get("2").result_summary) == ("completed", "seat 4A")
    page.keyboard.press("u")
    expect(page.locator("dialog .lines")).to_contain_text("Book the train")
    page.keyboard.press("Enter")
    expect(page.locator(".row.here")).to_have_class("row r-in_progress here")
    page.keyboard.press("a")
    expect(page.get_by_label("New task")).to_be_focused()
    page.keyboard.type("Feed the cat")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".row.here .t")).to_have_text("Feed the cat")
    page.keyboard.press("K")
    expect(page.locator(".row .t").nth(2)).to_have_text("Feed the cat")
    page.keyboard.press("+")
    expect(page.locator(".row.here .p-high")).to_be_visible()
    page.keyboard.press("e")
    expect(page.locator(".editor input")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Feed both cats")
    page.keyboard.press("Enter")
    expect(page.locator(".row.here .t")).to_have_text("Feed both cats")
    page.keyboard.press("x")
    expect(page.locator("dialog")).to_contain_text("Feed both cats")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(3)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Now")


def test_labels_times_links_and_notes(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("errands")
    tasks.add_many(["Bread", "Milk"])
    page = open_page(planned, "#/list/errands/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("E")
    page.get_by_label("Labels").fill("shop, on the way")
    page.get_by_label("Due").fill("2001-02-03")
    page.get_by_label("Estimate").fill("soon")
    page.get_by_label("Links").fill("https://bakery.example/?a=b\nsrc/a b.py\nrelates-to=2")
    page.keyboard.press("Control+Enter")
    expect(page.locator("dialog [role=alert]")).to_contain_text("“soon” is not a duration")
    page.get_by_label("Estimate").fill("90m")
    page.keyboard.press("Control+Enter")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".row.here .label")).to_have_text(["shop", "on the way"])
    expect(page.locator(".row.here .day.bad")).to_contain_text("due Feb 3, 2001")
    expect(page.locator(".detail .lead a")).to_have_attribute("href", "https://bakery.example/?a=b")
    page.keyboard.press("m")
    page.keyboard.type("The oven is cold.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".detail .note")).to_contain_text("The oven is cold.")
    page.locator(".detail").get_by_role("button", name="Filter by label on the way").click()
    expect(page.locator("#filter")).to_have_value("+on.the.way")
    expect(page.locator(".row")).to_have_count(1)
    task = tasks.get("1")
    assert (task.labels, task.estimate_ms, len(task.links), task.notes[0].text) == (
        ("shop", "on the way"),
        5_400_000,
        3,
        "The oven is cold.",
    )
    page.keyboard.press("E")
    expect(page.get_by_label("Labels")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator("dialog")).to_have_count(0)
    assert tasks.get("1").version == task.version, "saving an unchanged form writes nothing"


def test_marked_tasks_change_together(planned: Stage, open_page: Open) -> None:
    one, two = NewTask(title="one", ref="one"), NewTask(title="two", ref="two", parent="one")
    planned.by("bob").conversation("many").add_many([one, two, NewTask(title="three", parent="two")])
    page = open_page(planned, "#/list/many")
    expect(page.locator(".row")).to_have_count(3)
    page.keyboard.press("*")
    expect(page.locator(".marked-bar")).to_contain_text("3 marked")
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(page.locator(".row.r-completed")).to_have_count(3)
    assert {task.status for task in planned.by("bob").conversation("many").list()} == {"completed"}


def test_errors_show_the_daemons_message(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/list/release-1.0/4")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("s")
    expect(page.locator(".toast.bad")).to_contain_text("#2")


def test_history_undoes_another_actors_change(planned: Stage, open_page: Open) -> None:
    agent = planned.by("codex").conversation("theirs")
    agent.add("one")
    agent.complete("1", "hours of work")
    page = open_page(planned, "#/list/theirs/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("4")
    expect(page.locator(".call").first).to_be_visible()
    page.locator(".call").first.hover()
    page.get_by_role("button", name="Take back version 3").click()
    expect(page.locator("dialog h2")).to_contain_text("codex")
    expect(page.locator("dialog .lines")).to_contain_text("lost: its result 'hours of work'")
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_have_count(0)
    assert agent.get("1").status == "pending"


def test_past_is_shown_and_read_only(planned: Stage, open_page: Open) -> None:
    agent = planned.by("codex").conversation("story")
    agent.add("one")
    agent.start("1")
    agent.complete("1")
    page = open_page(planned, "#/list/story/1")
    expect(page.locator(".row.r-completed")).to_be_visible()
    page.keyboard.press("[")
    expect(page.locator(".row.r-in_progress")).to_be_visible()
    shown = page.get_by_role("slider", name="Version shown")
    expect(shown).to_have_attribute("aria-valuetext", re.compile(r"version 3, codex began #1$"))
    page.keyboard.press("d")
    expect(page.locator(".toast.bad")).to_contain_text("The past")
    agent.add("two")
    expect(shown).to_have_attribute("aria-valuemax", "5")
    page.keyboard.press("n")
    expect(page.locator(".row")).to_have_count(2)
    page.keyboard.press("4")
    expect(page.locator(".call")).to_have_count(4)
    expect(page.locator(".call").first).to_contain_text("two added")


def test_read_only_link_changes_nothing(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/list/website", scope={"mode": "ro"})
    expect(page.locator(".row").first).to_be_visible()
    expect(page.locator(".head .primary")).to_have_count(0)
    page.keyboard.press("a")
    expect(page.locator(".toast.bad")).to_contain_text("This link is read-only")
    only = open_page(planned, "#/list/website", scope={"mode": "ro", "list": "parser"})
    expect(only.locator("h1")).to_have_text("Parser in Rust")


def test_hostile_texts_are_harmless(empty: Stage, open_page: Open) -> None:
    agent = empty.by("<b>agent</b>")
    agent.call("conversation.open", {"conversation": "hostile", "title": TEXTS[0] + TEXTS[7]})
    tasks = agent.conversation("hostile")
    for text in TEXTS:
        tasks.add(text, description=text, owner=text[:500], active_form=text[:500], metadata={text: text})
    for number, text in enumerate(TEXTS, 1):
        tasks.edit(str(number), description=text * 2)
        tasks.start(str(number))
        if number % 3 == 0:
            tasks.fail(str(number), text)
        elif number % 3 == 1:
            tasks.complete(str(number), result=text)
    for screen in (
        "#/",
        "#/lists",
        *(f"#/list/hostile{view}" for view in ("", "/graph", "/flow", "/history", "/timeline")),
    ):
        page = open_page(empty, screen)
        page.wait_for_selector(".need, .card, .row, .chip, .call, .time-lane, .teach")
        for number in range(1, len(TEXTS) + 1) if screen == "#/list/hostile" else ():
            page.evaluate("hash => (location.hash = hash)", f"#/list/hostile/{number}")
            expect(page.locator("aside.detail .id").first).to_have_text(f"#{number}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "pwned" not in page.title().replace(TEXTS[0], "").replace("document.title='pwned'", "")
        assert page.locator("#app script, #app iframe, #app img[src=x], #app b:text-is('agent')").count() == 0
        shown = page.locator("body").inner_text()
        assert not set(shown) & set("\u202e\u2066\u200b\ufeff\x1b\x07\x00")


def test_page_recovers_from_killed_daemons(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("killed")
    tasks.add("before")
    page = open_page(empty, "#/list/killed")
    expect(page.locator(".row")).to_have_count(1)
    for round in range(3):
        empty.daemon.kill()
        expect(page.locator(".away-banner")).to_be_visible()
        expect(page.locator(".row")).to_have_count(round + 1)  # the last known rows stay
        empty.daemon.start()
        tasks.add(f"round {round}")
        expect(page.locator(".row")).to_have_count(round + 2)
        expect(page.locator(".status")).to_have_text("live")
    assert [row.inner_text() for row in page.locator(".row .t").all()] == ["before", "round 0", "round 1", "round 2"]


def test_ten_tabs_stay_live(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("tabs")
    tasks.add("one")
    first = open_page(empty, "#/list/tabs")
    tabs = [first, *(first.context.new_page() for _ in range(9))]
    for tab in tabs[1:]:
        tab.goto(f"{empty.url}/#/list/tabs")
    for tab in tabs:
        expect(tab.locator(".row")).to_have_count(1)
    tasks.add("two")
    for tab in tabs:
        expect(tab.locator(".row")).to_have_count(2)


def test_empty_board_starts_a_list(tmp_path_factory: pytest.TempPathFactory, open_page: Open) -> None:
    with stage(tmp_path_factory.mktemp("nothing")) as nothing:
        page = open_page(nothing)
        expect(page.locator(".teach")).to_contain_text("punch setup")
        page.keyboard.press("a")
        expect(page.locator("dialog input").first).to_be_focused()
        page.keyboard.type("errands")
        page.keyboard.press("Enter")
        expect(page.locator(".teach")).to_contain_text("Nothing to do here")
        page.goto(f"{nothing.url}/#/list/unknown")
        expect(page.locator(".teach")).to_contain_text("does not exist")
        nothing.by("codex").conversation("unknown").add("now there is")
        expect(page.locator(".row")).to_have_count(1)


def test_sign_in_screen_and_used_link(planned: Stage, open_page: Open) -> None:
    page = open_page(planned)
    link = planned.link()
    page.evaluate("localStorage.clear()")
    page.goto("about:blank")
    page.goto(planned.url)
    expect(page.locator(".door")).to_contain_text("punch web --link")
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".rail")).to_be_visible()
    page.evaluate("localStorage.clear()")
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".door .bad")).to_contain_text("already used")


def test_page_shows_other_followers(planned: Stage, open_page: Open) -> None:
    page, other = open_page(planned, "#/list/inbox"), open_page(planned, "#/list/inbox")
    expect(page.locator(".present")).to_have_text("with punch web")
    with planned.by("ann").conversation("inbox").watch():
        expect(page.locator(".present")).to_contain_text("ann")
        other.evaluate("location.hash = '#/'")
        expect(page.locator(".present")).to_have_text("with ann")
    expect(page.locator(".present")).to_have_count(0)
