"""The screen Chat without a model: its list, its sentences, and its size on a phone."""

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from punchlist_testing.faces_page import MODES, Open, assert_accessible
from punchlist_testing.stage import Stage

MIN_TARGET_PX = 44


def open_chat(where: Stage, open_page: Open, name: str, mode: str = "light") -> Page:
    page = open_page(where, f"#/chat?list={name}", mode=mode)
    expect(page.locator("#list")).to_have_value(name)
    return page


def send(page: Page, text: str) -> None:
    page.get_by_label("Say what you want").fill(text)
    page.keyboard.press("Enter")


def get_answers(page: Page) -> Locator:
    return page.locator("#said li.assistant .text")


def test_picker_begins_with_the_list_one_came_from(empty: Stage, open_page: Open) -> None:
    for name in ("came-from", "other"):
        empty.by("ann").conversation(name).add("milk")
    page = open_page(empty, "#/list/came-from")
    expect(page.locator(".row")).to_have_count(1)
    page.locator(".rail").get_by_role("link", name="Chat").click()
    expect(page.locator("#list")).to_have_value("came-from")
    expect(page.get_by_label("The list").get_by_role("option", name="other")).to_have_count(1)
    page.get_by_role("button", name="what is left?").click()
    expect(get_answers(page).last).to_contain_text("#1 milk")
    page.goto("about:blank")
    page.goto(f"{empty.url}/#/chat")
    expect(page.locator("#list")).to_have_value("came-from")
    expect(get_answers(page).last).to_contain_text("#1 milk")


def test_question_about_another_list_is_asked_there(empty: Stage, open_page: Open) -> None:
    empty.by("ann").conversation("there").add("bread")
    page = open_chat(empty, open_page, "here")
    send(page, "what is left in there?")
    page.get_by_role("button", name="Ask in there").click()
    expect(get_answers(page).last).to_contain_text("#1 bread")
    expect(page.locator("#list")).to_have_value("there")


def test_late_response_leaves_the_chosen_list(empty: Stage, open_page: Open) -> None:
    for name in ("chosen", "left"):
        empty.by("ann").conversation(name).add("milk")
    page = open_chat(empty, open_page, "left")
    send(page, "what is left?")
    expect(get_answers(page).last).to_contain_text("#1 milk")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/chats/*", hold)
    with page.expect_request("**/api/v1/chats/*"):
        page.evaluate("dispatchEvent(new Event('focus'))")
    page.locator("#list").select_option("chosen")
    expect(page.locator(".empty-chat")).to_be_visible()
    with page.expect_response("**/api/v1/chats/*"):
        held[0].continue_()
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.locator("#list")).to_have_value("chosen")
    expect(page.locator(".empty-chat")).to_be_visible()


def test_help_and_unclear_messages_offer_sentences(empty: Stage, open_page: Open) -> None:
    page = open_chat(empty, open_page, "offered")
    send(page, "help")
    expect(page.locator("#said dl dt").first).to_have_text("add buy milk")
    send(page, "what on earth failed here")
    page.locator(".sentences").get_by_role("button", name="what failed?").click()
    expect(get_answers(page).last).to_have_text("You have no failed tasks.")
    page.locator("#said dl").get_by_role("button", name="add buy milk").click()
    expect(page.get_by_label("Say what you want")).to_have_value("add buy milk")


@pytest.mark.parametrize("width", [320, 390])
def test_chat_fits_a_phone(empty: Stage, open_page: Open, width: int) -> None:
    page = open_chat(empty, open_page, f"phone-{width}", "phone")
    page.set_viewport_size({"width": width, "height": 640})
    for text in (f"add {'w' * 60} and a long title with words", "help", "delete 1"):
        send(page, text)
        expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator(".answers")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no horizontal overflow"
    targets = page.locator(":is(.chat, .chat-head) :is(a, button, select, textarea)")
    sides = targets.evaluate_all("all => all.flatMap((one) => [one.offsetHeight, one.offsetWidth])")
    assert min(sides) >= MIN_TARGET_PX
    composer = page.get_by_label("Say what you want").bounding_box()
    tabs = page.locator(".tabs").bounding_box()
    assert composer is not None and tabs is not None and composer["y"] + composer["height"] <= tabs["y"]


def test_read_only_link_shows_the_chat(empty: Stage, open_page: Open) -> None:
    page = open_page(empty, "#/chat?list=shown", scope={"mode": "ro"})
    expect(page.locator(".chat")).to_contain_text("This link is read-only")
    expect(page.locator("#text")).to_have_count(0)


@pytest.mark.parametrize("mode", MODES)
def test_sentences_are_accessible(empty: Stage, open_page: Open, mode: str) -> None:
    page = open_chat(empty, open_page, f"accessible-{mode}", mode)
    expect(page.locator(".sentences button")).to_have_count(4)
    assert_accessible(page)
    for text in ("help", "what on earth failed here"):
        send(page, text)
        expect(get_answers(page).last).to_be_visible()
    expect(page.locator("#said .sentences button")).to_have_count(3)
    assert_accessible(page)
