"""What needs you on the screens Now and Inbox, and undo without a question."""

import re
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from punchlist_schemas.things import Gate
from punchlist_testing.blocking import eventually
from punchlist_testing.faces_page import MODES, Open, assert_accessible, choose
from punchlist_testing.stage import Stage, stage

BOX = "element => { const { x, y, width, height } = element.getBoundingClientRect(); return [x, y, width, height]; }"
PHONE = {"width": 390, "height": 844}

SPY = """() => {
  window.notifications = [];
  window.tones = 0;
  const Real = window.Notification, Tone = window.OscillatorNode;
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); window.notifications.push([title, options.body, this]); }
  };
  window.OscillatorNode = class extends Tone {
    start(at) { window.tones++; super.start(at); }
  };
}"""
"""Script that records the notifications and tones of the page."""


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with stage(tmp_path_factory.mktemp("now")) as server:
        yield server


def ask(where: Stage, name: str, *titles: str, result: str = "tests pass") -> None:
    """Add tasks that wait for a yes."""
    tasks = where.by("codex/b210").conversation(name)
    for title in titles:
        task = tasks.add(title, gate=Gate(yes=True))
        tasks.complete(task.id, result)


def fail(where: Stage, name: str, *titles: str) -> None:
    tasks = where.by("codex/b210").conversation(name)
    for title in titles:
        tasks.fail(tasks.add(title).id, f"{title}: no luck")


def be_ann(page: Page) -> None:
    """Sign in as the person who runs the server."""
    page.evaluate(
        "() => { const key = 'punchlist.session', session = JSON.parse(localStorage.getItem(key));"
        " localStorage.setItem(key, JSON.stringify({ ...session, person: 'ann' })); }"
    )
    page.reload()


def titles_of(page: Page) -> list[str]:
    return [re.sub(r" #\d+$", "", text) for text in page.locator(".need h3").all_inner_texts()]


def test_cards_come_in_the_order_of_urgency(fresh: Stage, open_page: Open) -> None:
    fail(fresh, "one", "fails first")
    ask(fresh, "two", "asks first", "asks and frees")
    fresh.by("codex/b210").conversation("two").add("waits", blocked_by=["2"])
    page = open_page(fresh)
    expect(page.locator(".need")).to_have_count(3)
    assert titles_of(page) == ["asks and frees", "asks first", "fails first"]
    expect(page.locator(".need").first).to_contain_text("Waits for your yes")
    expect(page.locator(".need").first).to_contain_text("frees 1")
    expect(page.locator(".rail .count-badge")).to_contain_text("3")


def test_keys_answer_one_card_after_the_other(fresh: Stage, open_page: Open) -> None:
    ask(fresh, "gated", "one", "two", "three")
    tasks = fresh.by("ann").conversation("gated")
    page = open_page(fresh)
    expect(page.locator(".need.here")).to_contain_text("one")
    page.keyboard.press("l")
    expect(page.get_by_role("group", name="Agents", exact=True)).to_be_focused()
    page.keyboard.press("h")
    expect(page.locator(".need.here")).to_be_focused()
    page.keyboard.press("y")
    expect(page.locator(".need.here")).to_contain_text("two")
    page.keyboard.press("y")
    expect(page.locator(".need.here")).to_contain_text("three")
    page.keyboard.press("n")
    page.keyboard.type("no tests")
    page.keyboard.press("Enter")
    expect(page.locator(".need.folded").get_by_role("button", name="Undo")).to_have_count(3)
    assert [tasks.get(id).status for id in "123"] == ["completed", "completed", "pending"]
    assert tasks.get("3").fail_reason == "no tests"
    page.locator(".need.folded", has_text="two").get_by_role("button", name="Undo").click()
    expect(page.locator(".need:not(.folded)", has_text="two")).to_be_visible()
    assert eventually(lambda: tasks.get("2").waits_for == "yes")


def test_card_under_the_pointer_never_moves(fresh: Stage, open_page: Open) -> None:
    fail(fresh, "calm", "rests")
    page = open_page(fresh)
    card = page.locator(".need", has_text="rests")
    card.hover()
    before = card.evaluate(BOX)
    for number in range(50):
        ask(fresh, f"list-{number % 10}", f"asks {number}")
    expect(page.locator(".column-head .new")).to_contain_text("10 new")
    assert card.evaluate(BOX) == before
    page.mouse.move(700, 500)
    expect(page.locator(".need").first).to_contain_text("asks")


def test_answer_applies_only_to_what_was_read(fresh: Stage, open_page: Open) -> None:
    ask(fresh, "gated", "Deploy", result="version 1")
    tasks = fresh.by("codex/b210").conversation("gated")
    page = open_page(fresh)
    card = page.locator(".need", has_text="Deploy")
    card.hover()
    tasks.edit("1", title="Deploy and erase")
    page.keyboard.press("y")
    expect(page.locator(".toast.bad")).to_contain_text("changed since you read it")
    expect(page.locator(".need h3")).to_contain_text("Deploy and erase")
    assert tasks.get("1").waits_for == "yes"
    page.get_by_role("button", name="Approve").click()  # once it can be pressed again
    expect(page.locator(".need.folded").get_by_role("button", name="Undo")).to_be_visible()
    assert tasks.get("1").status == "completed"


def test_failed_tasks_are_retried_together_and_handed_on(fresh: Stage, open_page: Open) -> None:
    fail(fresh, "one", "a", "b")
    fail(fresh, "two", "c")
    page = open_page(fresh)
    page.get_by_role("button", name="Retry 3 failed").click()
    expect(page.locator("dialog .lines li")).to_have_count(3)
    page.keyboard.press("Enter")
    expect(page.locator(".need.folded").get_by_role("button", name="Undo")).to_have_count(3)
    statuses = [task.status for name in ("one", "two") for task in fresh.by("ann").conversation(name).list()]
    assert statuses == ["pending"] * 3
    fail(fresh, "three", "d")
    card = page.locator(".need:not(.folded)", has_text="d")
    card.get_by_role("button", name="Hand to").click()
    page.get_by_label("To").fill("gemini/01aa")
    page.keyboard.press("Enter")
    handed = page.locator(".need.folded", has_text="Handed to gemini/01aa")
    expect(handed.get_by_role("button", name="Undo")).to_be_visible()
    task = fresh.by("ann").conversation("three").get("1")
    assert (task.owner, task.status) == ("gemini/01aa", "pending")


def test_list_of_many_failures_shows_three_of_them(fresh: Stage, open_page: Open) -> None:
    fail(fresh, "many", *(f"task {number}" for number in range(20)))
    page = open_page(fresh)
    expect(page.locator(".need")).to_have_count(3)
    page.get_by_role("link", name="and 17 more in many").click()
    expect(page.locator(".row")).to_have_count(20)


def test_empty_screens_say_what_to_do(fresh: Stage, open_page: Open) -> None:
    page = open_page(fresh)
    page.get_by_role("button", name="Begin a list").click()
    expect(page.locator("dialog")).to_contain_text("New list")
    page.keyboard.press("Escape")
    fresh.by("codex/b210").conversation("calm").add("work")
    expect(page.locator(".needs")).to_contain_text("Nothing needs you")
    page.keyboard.press("9")
    expect(page.locator(".question")).to_contain_text("Nothing needs you")


def test_lanes_and_events_show_who_does_what(fresh: Stage, open_page: Open) -> None:
    fresh.by("gemini/01aa").call("conversation.open", {"conversation": "work"})
    agent = fresh.by("gemini/01aa").conversation("work")
    agent.add_many(["Write the grammar", "Write the parser"])
    page = open_page(fresh)
    lane = page.locator(".lane", has_text="gemini/01aa")
    agent.take("gemini/01aa", "1")
    agent.complete("1", "41 tests pass")
    agent.take("gemini/01aa", "2")
    agent.edit("2", active_form="Reading the grammar")
    expect(lane.locator(".doing-now")).to_contain_text("Write the parser #2")
    expect(lane.locator(".doing-now")).to_contain_text("Reading the grammar")
    expect(lane.locator(".result")).to_contain_text("41 tests pass")
    feed = page.locator(".feed .happened")
    expect(feed.first).to_contain_text("now: Reading the grammar")
    expect(feed.last).to_contain_text("began the list")
    expect(page.locator(".feed .happened", has_text="added")).to_contain_text("and 1 other task")
    lane.get_by_role("link", name="gemini/01aa").click()
    expect(page).to_have_url(f"{fresh.url}/#/agent/gemini%2F01aa")
    expect(page.locator(".agent")).to_contain_text("41 tests pass")
    be_ann(page)
    expect(page.locator(".agent .happened", has_text="finished")).to_contain_text("Write the grammar")
    fresh.by("ann").conversation("work").add("Note it")
    page.keyboard.press("0")
    page.get_by_role("button", name="people").click()
    expect(feed).to_have_count(1)
    expect(feed).to_contain_text("Note it")


def test_question_shows_what_happened_since_the_last_look(fresh: Stage, open_page: Open) -> None:
    ask(fresh, "gated", "Deploy")
    page = open_page(fresh, "#/inbox/gated/1")
    expect(page.locator(".question h2")).to_have_text("Deploy")
    page.keyboard.press("0")
    fresh.by("codex/b210").conversation("gated").note("1", "the oven is cold")
    page.keyboard.press("9")
    expect(page.locator(".question .box").first).to_contain_text("noted: the oven is cold")


def test_read_only_link_has_no_buttons_of_change(fresh: Stage, open_page: Open) -> None:
    ask(fresh, "gated", "Deploy")
    page = open_page(fresh, scope={"mode": "ro"})
    expect(page.locator(".need").get_by_role("button")).to_have_count(1)
    page.keyboard.press("y")
    expect(page.locator(".toast.bad")).to_contain_text("read-only")
    page.evaluate("location.hash = '#/list/gated/1'")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator(".toast.bad")).to_contain_text("read-only")


def test_phone_approves_in_two_taps_within_reach(fresh: Stage, open_page: Open) -> None:
    ask(fresh, "gated", "Deploy", "Release")
    page = open_page(fresh, mode="phone")
    page.set_viewport_size(PHONE)
    page.locator(".tabs a", has_text="Inbox").tap()
    expect(page.locator(".question h2")).to_have_text("Deploy")
    for name in ("Approve", "Reject"):
        box = page.locator(".thumbs").get_by_role("button", name=name).bounding_box()
        assert box and box["height"] >= 54 and box["y"] > PHONE["height"] * 2 / 3
    page.locator(".thumbs").get_by_role("button", name="Approve").tap()
    expect(page.locator(".question h2")).to_have_text("Release")
    assert fresh.by("ann").conversation("gated").get("1").status == "completed"
    page.locator(".toast").get_by_role("button", name="Undo").tap()
    assert eventually(lambda: fresh.by("ann").conversation("gated").get("1").waits_for == "yes")


def test_question_of_another_person_names_them(fresh: Stage, open_page: Open) -> None:
    tasks = fresh.by("codex/b210").conversation("theirs")
    tasks.add("Release", gate=Gate(yes=True, by="bob"))
    tasks.complete("1", "ready")
    page = open_page(fresh, "#/inbox/theirs/1")
    be_ann(page)
    expect(page.locator(".question")).to_contain_text("Only bob can say yes")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.locator(".rail .count-badge")).to_have_count(0)


def test_hostile_texts_stay_text(fresh: Stage, open_page: Open) -> None:
    ask(fresh, "hostile", "<img src=x onerror=alert(1)>\u202e" + "wide\uff37" * 90, result="\u202e<b>bold</b>\n# no")
    fail(fresh, "hostile", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 " * 60)
    for where in ("#/", "#/inbox"):
        for mode in ("light", "phone"):
            page = open_page(fresh, where, mode=mode)
            expect(page.locator(".need h3, .question h2").first).to_contain_text("<img")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert "\u202e" not in page.locator("main").inner_text()
            assert page.locator("main :is(img, script)").count() == 0


def test_notification_names_the_task_and_leads_to_it(fresh: Stage, open_page: Open) -> None:
    fresh.by("codex/b210").conversation("gated").add("work")
    page = open_page(fresh)
    page.context.grant_permissions(["notifications"], origin=fresh.url)
    page.evaluate(SPY)
    expect(page.locator(".needs")).to_contain_text("Nothing needs you")
    choose(page, "notify me")
    expect(page.locator(".toast")).to_contain_text("you get a notification")
    ask(fresh, "gated", "Deploy")
    # Don't use wait_for_function: it polls with eval, which the page's policy forbids.
    assert eventually(lambda: page.evaluate("window.notifications.map(each => each.slice(0, 2))"))
    assert page.evaluate("window.notifications.map(each => each.slice(0, 2))") == [
        ["gated", "2 Deploy waits for your yes"]
    ]
    page.evaluate("window.notifications[0][2].onclick()")
    expect(page.locator(".question h2")).to_have_text("Deploy")


def test_sound_is_off_until_asked_and_rests_between(fresh: Stage, open_page: Open) -> None:
    fresh.by("codex/b210").conversation("gated").add("work")
    page = open_page(fresh)
    page.evaluate(SPY)
    ask(fresh, "gated", "quiet")
    expect(page.locator(".need")).to_have_count(1)
    assert page.evaluate("window.tones") == 0
    choose(page, "play a sound")
    expect(page.locator(".toast")).to_contain_text("two soft tones")
    assert page.evaluate("window.tones") == 2
    fail(fresh, "loud", *(f"burst {number}" for number in range(20)))
    expect(page.locator(".need")).to_have_count(4)
    assert page.evaluate("window.tones") == 2


def test_undo_takes_back_own_changes_without_a_question(fresh: Stage, open_page: Open) -> None:
    agent = fresh.by("codex").conversation("race")
    agent.add("one")
    page = open_page(fresh, "#/list/race/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator(".toast")).to_contain_text("nothing to undo")
    page.keyboard.press("s")
    expect(page.locator(".row.r-in_progress")).to_be_visible()
    agent.add("two")
    page.keyboard.press("u")
    expect(page.locator(".row.r-in_progress")).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text('Undone: #1 "one": in_progress → pending')
    page.keyboard.press("U")
    expect(page.locator(".row.r-in_progress")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".row.r-in_progress")).to_have_count(0)
    page.locator(".toast").get_by_role("button", name="Redo").click()
    expect(page.locator(".row.r-in_progress")).to_be_visible()
    expect(page.locator("dialog")).to_have_count(0)
    assert len(agent.list()) == 2


def test_undo_works_while_an_agent_changes_other_tasks(fresh: Stage, open_page: Open) -> None:
    agent = fresh.by("codex").conversation("busy")
    agent.add_many(["mine", *(f"task {number}" for number in range(40))])
    page = open_page(fresh, "#/list/busy/1")
    expect(page.locator(".row.here")).to_be_visible()
    for number in range(2, 42, 2):
        page.keyboard.press("s")
        agent.complete(str(number), "hours of work")
        expect(page.locator(".row.here.r-in_progress")).to_be_visible()
        page.keyboard.press("u")
        agent.edit(str(number + 1), title=f"changed {number}")
        expect(page.locator(".row.here.r-pending")).to_be_visible()
    assert {agent.get(str(number)).result_summary for number in range(2, 42, 2)} == {"hours of work"}


def test_undo_of_a_task_that_changed_since_says_by_whom(fresh: Stage, open_page: Open) -> None:
    agent = fresh.by("codex").conversation("refused")
    agent.add_many(["one", "two"])
    page = open_page(fresh, "#/list/refused/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("s")
    expect(page.locator(".row.r-in_progress")).to_be_visible()
    agent.complete("1")
    page.keyboard.press("j")
    page.keyboard.press("u")
    expect(page.locator(".toast.bad")).to_contain_text("Not undone: codex changed #1 since.")
    page.keyboard.press("F6")
    page.keyboard.press("Enter")
    expect(page.locator(".detail .id").first).to_have_text("#1")
    assert agent.get("1").status == "completed"


def test_undo_asks_before_it_drops_a_result(fresh: Stage, open_page: Open) -> None:
    tasks = fresh.by("ann").conversation("results")
    tasks.add("one")
    page = open_page(fresh, "#/list/results/1")
    expect(page.locator(".row.here")).to_be_visible()
    page.keyboard.press("d")
    page.keyboard.type("seat 4A")
    page.keyboard.press("Enter")
    expect(page.locator(".row.r-completed")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("dialog .lines")).to_contain_text("lost: its result 'seat 4A'")
    page.keyboard.press("Enter")
    expect(page.locator(".row.r-pending")).to_be_visible()


def test_toasts_of_changes_undo_them_and_go_with_their_screen(fresh: Stage, open_page: Open) -> None:
    tasks = fresh.by("codex").conversation("many")
    tasks.add_many(["one", "two", "three"])
    page = open_page(fresh, "#/list/many")
    expect(page.locator(".row")).to_have_count(3)
    page.keyboard.press("*")
    page.keyboard.press("p")
    expect(page.locator(".toast")).to_contain_text("Paused: 3 tasks")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".row.r-pending")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(2)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".row")).to_have_count(3)
    expect(page.locator(".toast")).to_contain_text("Undone")
    page.keyboard.press("0")
    expect(page.locator(".toast")).to_be_hidden()
    page.keyboard.press("u")  # the list that this tab changed last
    expect(page.locator(".toast")).to_contain_text("in many")


@pytest.mark.parametrize("mode", MODES)
def test_now_and_inbox_are_accessible(fresh: Stage, open_page: Open, mode: str) -> None:
    ask(fresh, "gated", "Deploy", "Release")
    fail(fresh, "gated", "Build")
    agent = fresh.by("gemini/01aa").conversation("work")
    agent.add("Write the parser", active_form="Reading the grammar")
    agent.take("gemini/01aa", "1")
    for where in ("#/", "#/inbox", "#/agent/gemini%2F01aa"):
        page = open_page(fresh, where, mode=mode)
        expect(page.locator(".lane, .question h2, .agent h2").first).to_be_visible()
        assert_accessible(page)
    page = open_page(fresh, mode=mode)
    page.get_by_role("button", name="Approve").first.click()
    expect(page.locator(".need.folded")).to_be_visible()
    assert_accessible(page)


def test_thirty_agents_and_thousands_of_lists_need_few_nodes(fresh: Stage, open_page: Open) -> None:
    client = fresh.by("codex/b210")
    with ThreadPoolExecutor(32) as pool:  # concurrent calls share commits
        names = ({"conversation": f"session-{number}"} for number in range(2_000))
        list(pool.map(lambda params: client.call("conversation.open", params), names))
    for number in range(30):
        tasks = client.conversation(f"session-{number}")
        tasks.add_many(["Write the parser", "Build", "Deploy"])
        tasks.take(f"agent-{number}/1", "1")
        tasks.fail("2", "no luck")
    page = open_page(fresh)
    expect(page.locator(".lane")).to_have_count(30)
    expect(page.locator(".need")).to_have_count(10)
    assert page.evaluate("document.querySelectorAll('*').length") <= 1_000


SCREENS = {
    "#/": ["page", "inbox"],
    "#/inbox": ["page", "inbox"],
    "#/agent/codex%2Fb210": ["page", "inbox"],
    "#/timeline": ["page", "timeline"],
    "#/lists": ["page", "late"],
    "#/list/styled/1": ["page", "late"],
    "#/list/styled/flow": ["page", "late"],
    "#/list/styled/graph": ["page", "late"],
    "#/list/styled/history": ["page", "late", "past"],
}
"""The screens and the style sheets that each loads."""

MEASURE = """own => {
  const measure = () => [...document.querySelectorAll('#app *')].map((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    const { color, backgroundColor, display } = getComputedStyle(element);
    return [element.outerHTML.slice(0, 80), [x, y, width, height].map(Math.round), color, backgroundColor, display];
  }).filter(([, , , , display]) => display !== 'none');
  const all = measure();
  const others = [...document.styleSheets].filter(({ href }) => !own.some((name) => href.endsWith(`/${name}.css`)));
  for (const sheet of others) sheet.disabled = true;
  const alone = measure();
  for (const sheet of others) sheet.disabled = false;
  return all.map((each, at) => [each, alone[at]])
    .filter(([each, other]) => JSON.stringify(each) !== JSON.stringify(other)).slice(0, 3);
}"""
"""Script that returns the elements that look different without the style sheets of other screens."""


@pytest.mark.parametrize("mode", ["light", "phone"])
def test_screen_looks_the_same_after_others_were_loaded(fresh: Stage, open_page: Open, mode: str) -> None:
    tasks = fresh.by("codex/b210").conversation("styled")
    fail(fresh, "styled", "Build")
    tasks.add("Test", blocked_by=["1"], gate=Gate(yes=True))
    ask(fresh, "styled", "Deploy")
    tasks.claim(tasks.add("Write").id)
    page = open_page(fresh, mode=mode)
    page.wait_for_function("() => document.styleSheets.length === 5")
    for address, own in SCREENS.items():
        page.evaluate("address => (location.hash = address)", address)
        expect(page.locator("main")).to_be_visible()
        expect(page.get_by_text("Opening…")).to_have_count(0)
        assert page.evaluate(MEASURE, own) == [], address
