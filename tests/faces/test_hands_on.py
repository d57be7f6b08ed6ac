"""Adding, dragging, picking and editing on the page."""

import json
from pathlib import Path

from playwright.sync_api import Page, Route, expect

from punchlist_testing.faces_page import Open
from punchlist_testing.page_modules import run_in_node
from punchlist_testing.stage import Stage

SHORTHAND = Path(__file__).parents[1] / "golden/shorthand.json"


def test_shorthand_reads_the_golden_lines() -> None:
    golden = json.loads(SHORTHAND.read_text("utf-8"))
    lines = [line for line, _, _ in golden["lines"]]
    [answers] = run_in_node({"shorthand": {"lines": lines, "now": golden["now"], "tasks": golden["tasks"]}})
    for (line, members, problems), answer in zip(golden["lines"], answers, strict=True):
        found = [f"{token['text']}: {token['problem']}" for token in answer["tokens"] if token["problem"]]
        assert (answer["members"], found) == (members, problems), line


def test_tasks_are_added_in_one_line(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("line")
    tasks.add_many(["First", "Second"])
    tasks.edit("1", labels=["bug"])
    page = open_page(planned, "#/list/line")
    expect(page.locator(".row")).to_have_count(2)
    page.keyboard.press("a")
    field = page.get_by_label("New task")
    expect(field).to_be_focused()
    page.keyboard.type("Fix <b>it</b> !high +b")
    expect(page.locator("#offers [role=option]")).to_have_text(["bug"])
    page.keyboard.press("Tab")
    page.keyboard.type("<fir")
    page.keyboard.press("Tab")
    page.keyboard.type("@codex")
    expect(page.locator(".token.t-blocked_by")).to_have_text("<1 First")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(3)
    expect(field).to_be_focused()
    task = tasks.get("3")
    assert (task.title, task.priority, task.labels, task.blocked_by, task.owner) == (
        "Fix <b>it</b>", "high", ("bug",), ("1",), "codex",
    )  # fmt: skip
    page.keyboard.type("Wait <999")
    expect(page.locator(".inline-add .bad")).to_have_text("there is no task #999")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(3)
    field.fill("")
    page.evaluate(PASTE, "Parent\n  - [ ] Child !low\nOther")
    expect(page.locator("dialog h2")).to_have_text("Add 3 tasks?")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(6)
    assert (tasks.get("5").title, tasks.get("5").parent, tasks.get("5").priority) == ("Child", "4", "low")
    page.get_by_role("button", name="Stop adding").click()
    expect(field).to_have_count(0)


PASTE = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
}"""
IS_ON_TOP = """element => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return element.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}"""


def drag_row(page: Page, task: str, over: str, *, share: float, right: int = 0) -> None:
    page.locator(f"#t-{task}").hover()
    grip, row = page.locator(f"#t-{task} .grip").bounding_box(), page.locator(f"#t-{over}").bounding_box()
    assert grip
    assert row
    x = grip["x"] + grip["width"] / 2
    page.mouse.move(x, grip["y"] + grip["height"] / 2)
    page.mouse.down()
    page.mouse.move(x + right, row["y"] + row["height"] * share, steps=5)


def test_rows_are_dragged_into_order_dependencies_and_parts(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("rows")
    tasks.add_many(["One", "Two", "Three", "Four"])
    page = open_page(planned, "#/list/rows?group=none")
    expect(page.locator(".row")).to_have_count(4)
    drag_row(page, "4", "1", share=0.1)
    expect(page.locator(".drop-words")).to_have_text("#4 before #1")
    page.mouse.up()
    expect(page.locator(".row .t").first).to_have_text("Four")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator(".row .t").first).to_have_text("One")
    drag_row(page, "3", "1", share=0.5)
    expect(page.locator(".drop-words")).to_have_text("#3 waits for #1")
    page.mouse.up()
    expect(page.locator("#t-3")).to_contain_text("#1")
    drag_row(page, "1", "3", share=0.5)
    page.mouse.up()
    expect(page.locator(".toast.bad")).to_contain_text("#1 can't wait for #3: #1 → #3 → #1 would be a circle")
    drag_row(page, "4", "2", share=0.5, right=60)
    expect(page.locator(".drop-words")).to_have_text("#4 is part of #2")
    page.keyboard.press("Escape")
    page.mouse.up()
    assert tasks.get("4").parent is None
    drag_row(page, "4", "2", share=0.5, right=60)
    page.mouse.up()
    expect(page.locator(".toast")).to_contain_text("#4 is part of #2")
    assert (tasks.get("3").blocked_by, tasks.get("4").parent) == (("1",), "2")


def test_blockers_are_picked_by_words(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("picked")
    tasks.add_many(["Schema", "Server", "Page"])
    tasks.edit("1", add_blocked_by=["3"])
    page = open_page(planned, "#/list/picked/3")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("b")
    expect(page.get_by_label("Find a task")).to_be_focused()
    expect(page.locator("dialog").get_by_role("option", name="Schema")).to_contain_text(
        "would wait for itself: #3 → #1 → #3"
    )
    page.keyboard.type("serv")
    page.keyboard.press("Enter")
    expect(page.locator(".picker .chosen .label")).to_contain_text("#2")
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".row.here")).to_contain_text("#2")
    assert tasks.get("3").blocked_by == ("2",)


def test_text_is_edited_in_place_and_a_conflict_shows_both(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("placed")
    tasks.add("Old title", description="old text")
    page = open_page(planned, "#/list/placed/1")
    expect(page.locator(".detail h2")).to_have_text("Old title")
    page.keyboard.press("e")
    field = page.locator(".editor input")
    expect(field).to_be_focused()
    field.fill("New title")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h2")).to_have_text("New title")
    page.get_by_role("button", name="Edit the description").click()
    page.locator(".editor textarea").fill("mine")
    tasks.edit("1", description="theirs")
    expect(page.locator(".detail")).to_contain_text("version 4")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".editor .note")).to_contain_text("theirs")
    assert tasks.get("1").description == "theirs"
    page.get_by_role("button", name="Keep mine").click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".detail .prose")).to_have_text("mine")
    assert tasks.get("1").description == "mine"


def test_a_refused_form_shows_why_beside_its_buttons(planned: Stage, open_page: Open) -> None:
    planned.by("ann").conversation("form").add("Itself")
    page = open_page(planned, "#/list/form/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("E")
    page.get_by_label("Waits for").fill("1")
    page.get_by_role("button", name="Save").click()
    alert = page.locator("dialog [role=alert]")
    expect(alert).to_be_focused()
    expect(alert).to_be_in_viewport(ratio=1)
    assert alert.evaluate(IS_ON_TOP)


def test_picker_keeps_what_others_add_in_between(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("between")
    tasks.add_many(["Schema", "Server", "Page"])
    page = open_page(planned, "#/list/between/3")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("b")
    expect(page.get_by_label("Find a task")).to_be_focused()
    tasks.edit("3", add_blocked_by=["1"])
    expect(page.locator("#t-3")).to_contain_text("#1")
    page.keyboard.type("serv")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("#3 waits for #1 #2")
    assert tasks.get("3").blocked_by == ("1", "2")


def test_form_asks_before_it_replaces_what_others_wrote(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("formed")
    tasks.add("Old", description="old")
    page = open_page(planned, "#/list/formed/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("E")
    page.locator("#f-title").fill("Mine")
    tasks.edit("1", title="Theirs", description="theirs")
    expect(page.locator("#t-1")).to_contain_text("Theirs")
    page.keyboard.press("Control+Enter")
    expect(page.locator("dialog [role=alert]")).to_contain_text("Changed while you wrote: Title: “Theirs”")
    assert tasks.get("1").title == "Theirs"
    page.get_by_role("button", name="Save").click()
    expect(page.locator("dialog")).to_have_count(0)
    assert (tasks.get("1").title, tasks.get("1").description) == ("Mine", "theirs")


def test_edit_in_place_ignores_changes_of_other_members(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("members")
    tasks.add("Old title")
    page = open_page(planned, "#/list/members/1")
    expect(page.locator(".detail h2")).to_have_text("Old title")
    page.keyboard.press("e")
    page.locator(".editor input").fill("New title")
    tasks.edit("1", active_form="Writing")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h2")).to_have_text("New title")
    assert tasks.get("1").title == "New title"


def test_next_task_is_typed_before_the_answer(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("quick")
    tasks.add("First")
    page = open_page(planned, "#/list/quick")
    expect(page.locator(".row")).to_have_count(1)
    held: list[Route] = []
    page.route("**/conversations/quick/tasks", lambda route: held.append(route))  # noqa: PLW0108 - bound methods fail
    page.keyboard.press("a")
    field = page.get_by_label("New task")
    field.fill("Second")
    with page.expect_request("**/conversations/quick/tasks"):
        page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.keyboard.type("Third")
    held[0].continue_()
    expect(page.locator(".row")).to_have_count(2)
    expect(page.locator(".toast")).to_contain_text("Added #2 Second")
    expect(field).to_have_value("Third")
    assert len(held) == 1


def test_change_of_many_tasks_stays_in_its_list(planned: Stage, open_page: Open) -> None:
    tasks, others = (planned.by("ann").conversation(name) for name in ("many", "others"))
    for each in (tasks, others):
        each.add_many(["One", "Two"])
    page = open_page(planned, "#/list/many")
    expect(page.locator(".row")).to_have_count(2)
    held: list[Route] = []
    page.route("**/tasks/1/status", lambda route: held.append(route))  # noqa: PLW0108 - bound methods fail
    page.keyboard.press("*")
    with page.expect_request("**/tasks/1/status"):
        page.keyboard.press("p")
    page.evaluate("location.hash = '#/list/others'")
    expect(page.locator("h1")).to_have_text("others")
    with page.expect_response("**/tasks/2/status"):
        held[0].continue_()
    assert [task.status for task in tasks.list()] == ["paused", "paused"]
    assert [task.status for task in others.list()] == ["pending", "pending"]


def test_form_closes_with_its_list(planned: Stage, open_page: Open) -> None:
    planned.by("ann").conversation("left").add("Here")
    page = open_page(planned, "#/list/left/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("m")
    expect(page.locator("dialog")).to_be_visible()
    page.go_back()
    expect(page.locator("dialog")).to_have_count(0)
