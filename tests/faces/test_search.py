"""The palette, the table of lists, and the search of keys."""

from playwright.sync_api import Page, Route, expect

from punchlist_schemas.params import NewTask
from punchlist_testing.faces_page import MODES, Open
from punchlist_testing.stage import Stage


def type_in_palette(page: Page, text: str, key: str = "Control+k") -> None:
    page.keyboard.press(key)
    expect(page.locator("dialog").get_by_role("combobox")).to_be_focused()
    page.keyboard.type(text)


def test_search_finds_tasks_of_all_lists(planned: Stage, open_page: Open) -> None:
    for name in ("shop", "api"):
        planned.by("ann").conversation(name).add(f"Pay out a refund in {name}", description="never twice")
    planned.by("ann").conversation("docs").add("Policy", description="When a Refund arrives, say so")
    page = open_page(planned, "#/list/api")
    expect(page.locator(".row")).to_have_count(1)
    type_in_palette(page, "refun", key="/")
    hits = page.locator("#found [role=option]", has=page.locator(".list"))
    expect(hits).to_have_count(3)
    expect(hits.first.locator(".list")).to_have_text("api")
    expect(hits.first.locator("mark")).to_have_text("refun")
    expect(hits.filter(has_text="Policy").locator("small mark")).to_have_text("Refun")
    page.get_by_role("button", name="This list").click()
    expect(hits).to_have_count(1)
    page.keyboard.press("Alt+/")
    expect(hits).to_have_count(3)
    hits.filter(has_text="in shop").click()
    expect(page).to_have_url(f"{planned.url}/#/list/shop/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#found [role=option]").first).to_contain_text("Pay out a refund in shop")


def test_a_slow_answer_does_not_replace_a_newer_one(planned: Stage, open_page: Open) -> None:
    planned.by("ann").conversation("slow").add_many(["First answer", "Second answer"])
    page = open_page(planned)
    held: list[Route] = []
    page.route("**/api/v1/search?query=first*", lambda route: held.append(route))  # noqa: PLW0108 - bound methods fail
    with page.expect_request("**/api/v1/search?query=first*"):
        type_in_palette(page, "first")
    page.locator("dialog").get_by_role("combobox").fill("second")
    hits = page.locator("#found [role=option]", has_text="answer")
    expect(hits).to_have_text(["#2Second answerslow"])
    held[0].continue_()
    page.locator("dialog").get_by_role("combobox").fill("second answer")
    expect(hits).to_have_text(["#2Second answerslow"])


def test_palette_adds_filters_and_runs(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("acts")
    tasks.add_many([NewTask(title=title, owner="codex/b2") for title in ("Paint", "Wallpaper")])
    page = open_page(planned, "#/list/acts")
    expect(page.locator(".row")).to_have_count(2)
    type_in_palette(page, "<b>sand</b>")
    expect(page.locator("#found")).to_contain_text("Add “<b>sand</b>” to this list")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".row", has_text="<b>sand</b>")).to_be_visible()
    type_in_palette(page, "wall")
    page.keyboard.press("Tab")
    expect(page.locator("#filter")).to_have_value("wall")
    expect(page.locator(".row")).to_have_count(1)
    type_in_palette(page, ">who is")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Who is there")
    page.go_back()
    type_in_palette(page, "@codex/b")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{planned.url}/#/agent/codex%2Fb2")


def test_palette_of_a_link_for_one_list_stays_in_it(planned: Stage, open_page: Open) -> None:
    planned.by("ann").conversation("mine").add("A secret here")
    planned.by("ann").conversation("theirs").add("A secret there")
    page = open_page(planned, scope={"list": "mine"})
    expect(page.locator(".row")).to_have_count(1)
    type_in_palette(page, "secret")
    expect(page.locator("#found [role=option]").first).to_contain_text("A secret here")
    expect(page.locator("#found")).not_to_contain_text("there")


def test_lists_keep_their_places_under_the_pointer(empty: Stage, open_page: Open) -> None:
    agent = empty.by("codex")
    for name in ("one", "two", "three"):
        agent.conversation(name).add("Read")
    page = open_page(empty, "#/lists")
    names = page.locator(".card b")
    expect(names).to_have_text(["three", "two", "one"])
    page.locator(".card").first.hover()
    agent.conversation("one").start("1")
    expect(page.locator(".card", has_text="one").locator(".moved")).to_have_text("•")
    expect(names).to_have_text(["three", "two", "one"])
    page.locator("h1").hover()
    expect(names).to_have_text(["one", "three", "two"])
    expect(page.locator(".running")).to_contain_text("Read")
    page.get_by_role("button", name="by name").click()
    expect(names).to_have_text(["one", "three", "two"])
    page.reload()
    expect(page).to_have_url(f"{empty.url}/#/lists?sort=name")
    expect(names).to_have_text(["one", "three", "two"])


def test_help_opens_at_its_top_and_finds_keys(planned: Stage, open_page: Open) -> None:
    for mode in MODES:
        page = open_page(planned, "#/lists", mode=mode)
        expect(page.locator(".card").first).to_be_visible()
        page.keyboard.press("?")
        expect(page.locator("dialog h2")).to_be_focused()
        expect(page.locator("dialog h2")).to_be_in_viewport()
    page.get_by_label("Search the keys").fill("undo")
    expect(page.locator("dialog dd")).to_have_text(["undo your last change, or in the history the chosen one"])
    page.get_by_label("Search the keys").fill("no such key")
    expect(page.locator("dialog")).to_contain_text("No key does that.")
