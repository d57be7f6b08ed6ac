"""Mouse, drag and drop, palette, notifications, forced colors, recovery, approvals and the roster."""

from playwright.sync_api import expect

from punchlist_schemas.things import Gate
from punchlist_testing.blocking import eventually
from punchlist_testing.faces_page import Open, choose
from punchlist_testing.stage import Stage

SPY = """() => {
  window.notifications = [];
  const Real = window.Notification;
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); window.notifications.push([title, options.body]); }
  };
}"""
"""Script that records the notifications shown by the page."""


def test_part_that_failed_to_load_is_loaded_again(planned: Stage, open_page: Open) -> None:
    page = open_page(planned)
    page.context.route("**/graph-*.js", lambda route: route.abort())
    page.goto("about:blank")
    page.goto(f"{planned.url}/#/list/release-1.0/graph")
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    page.keyboard.press("1")
    expect(page.locator(".row").first).to_be_visible()
    page.context.unroute_all()
    page.keyboard.press("3")
    expect(page.locator(".node").first).to_be_visible()


def test_task_is_reachable_by_mouse(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/lists")
    page.locator(".card", has_text="Inbox").click()
    expect(page.locator("h1")).to_have_text("Inbox")
    page.locator(".row", has_text="Answer the landlord").click()
    expect(page.locator(".detail h2")).to_have_text("Answer the landlord")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".row.r-in_progress .t")).to_have_text("Answer the landlord")
    page.get_by_role("button", name="Add a").click()
    page.get_by_label("New task").fill("Call the bank")
    page.get_by_role("button", name="Stop adding").click()
    expect(page.locator(".row")).to_have_count(3)
    page.get_by_role("link", name="History").click()
    expect(page.locator(".call").first).to_contain_text("began")
    page.get_by_role("link", name="List", exact=True).click()
    page.get_by_role("button", name="Running").click()
    expect(page.locator(".row")).to_have_count(1)


def test_dragged_task_moves_unless_rejected(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("dragged")
    tasks.add("First")
    tasks.add("Second", blocked_by=["1"])
    page = open_page(planned, "#/list/dragged/flow")
    page.locator(".chip", has_text="First").drag_to(page.locator(".column", has_text="Running"))
    expect(page.locator(".column", has_text="Running").locator(".chip")).to_contain_text("First")
    assert tasks.get("1").status == "in_progress"
    page.locator(".chip", has_text="Second").drag_to(page.locator(".column", has_text="Running"))
    expect(page.locator(".toast.bad")).to_contain_text("#1")
    expect(page.locator(".column", has_text="Blocked").locator(".chip")).to_contain_text("Second")


def test_only_enabled_notifications_report_failures(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("codex").conversation("watched")
    tasks.add_many(["one", "two"])
    page = open_page(planned, "#/lists")
    page.context.grant_permissions(["notifications"], origin=planned.url)
    expect(page.locator(".card", has_text="watched")).to_be_visible()
    page.evaluate(SPY)
    tasks.fail("1", "no luck")
    expect(page.locator(".card", has_text="watched")).to_contain_text("1 failed")
    assert page.evaluate("window.notifications") == []
    choose(page, "notify me")
    expect(page.locator(".toast")).to_contain_text("you get a notification")
    tasks.fail("2", "no luck either")
    # Don't use wait_for_function: it polls with eval, which the page's policy forbids.
    assert eventually(lambda: bool(page.evaluate("window.notifications.length")))
    assert page.evaluate("window.notifications") == [["watched", "2 two failed"]]
    expect(page).to_have_title("(3) Lists · punchlist")


def test_selection_is_visible_in_forced_colors(planned: Stage, open_page: Open) -> None:
    page = open_page(planned, "#/list/release-1.0/4")
    expect(page.locator(".row.here")).to_be_visible()
    page.emulate_media(forced_colors="active")
    get_outline = "row => getComputedStyle(row).outlineStyle"
    assert page.locator(".row.here").evaluate(get_outline) == "solid"
    assert page.locator(".row").first.evaluate(get_outline) == "none"


def test_page_survives_a_server_restart(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("codex").conversation("left")
    tasks.add_many(["one", "two", "three"])
    page = open_page(planned, "#/list/left/2")
    page.locator("#filter").fill("o")
    expect(page.locator(".row")).to_have_count(2)
    planned.stop()
    expect(page.locator(".away-banner")).to_contain_text("last known state")
    expect(page.locator(".row")).to_have_count(2)
    page.locator(".rows").focus()
    page.keyboard.press("s")
    expect(page.locator(".toast.bad")).to_contain_text("is not responding")
    tasks.add("another one")
    planned.start()
    expect(page.locator(".row")).to_have_count(3)
    expect(page.locator(".away-banner")).to_have_count(0)
    expect(page.locator("#filter")).to_have_value("o")
    expect(page.locator(".row.here .t")).to_have_text("two")
    page.locator("#filter").press("Escape")
    expect(page.locator("#filter")).to_have_value("")
    expect(page.locator(".row")).to_have_count(4)
    expect(page.locator(".row.here .t")).to_have_text("two")


def test_page_answers_tasks_waiting_for_a_yes(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("ann").conversation("gated")
    tasks.add("Deploy", gate=Gate(yes=True))
    tasks.add("Release", gate=Gate(by="nobody-here"))
    tasks.complete("1", "deployed")
    page = open_page(planned, "#/lists")
    expect(page.locator(".card", has_text="gated")).to_contain_text("1 waits for a yes")
    page.locator(".card", has_text="gated").click()
    expect(page.locator(".row", has_text="Deploy")).to_contain_text("waits for your yes")
    page.locator(".row", has_text="Deploy").click()
    expect(page.locator(".detail")).to_contain_text("Done, and waits for your yes")
    expect(page.get_by_role("button", name="Start")).to_have_count(0)
    for key in ("s", "r", "f"):
        page.keyboard.press(key)
        expect(page.locator(".toast.bad")).to_contain_text("#1 waits for your yes: y approves it")
    assert tasks.get("1").waits_for == "yes"
    page.keyboard.press("n")
    page.get_by_label("Why not?").fill("no tests")
    page.get_by_role("button", name="Reject").last.click()
    expect(page.locator(".detail")).to_contain_text("no tests")
    assert (tasks.get("1").status, tasks.get("1").fail_reason) == ("pending", "no tests")
    tasks.complete("1", "deployed again")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".row.r-completed")).to_contain_text("Deploy")
    tasks.complete("2")
    page.locator(".row", has_text="Release").click()
    expect(page.locator(".row", has_text="Release")).to_contain_text("waits for nobody-here's yes")
    page.keyboard.press("y")
    expect(page.locator(".toast.bad")).to_contain_text("Only nobody-here can approve")


def test_roster_follows_agents(empty: Stage, open_page: Open) -> None:
    host = empty.by("host")
    for agent, work in (("bot/1", "mine"), ("bot/2", "hidden")):
        host.call("agent.enter", {"agent": agent, "directory": f"/srv/{work}", "branch": "main"})
        parent = host.conversation(work, actor=agent).add("Backend")
        task = host.conversation(work, actor=agent).add(f"test {work}", parent=parent.id)
        host.conversation(work, actor=agent).take(agent, task.id, keep=True)
    page = open_page(empty, "#/lists")
    expect(page.locator(".card")).to_have_count(2)
    page.keyboard.press("W")
    expect(page).to_have_url(f"{empty.url}/#/who")
    expect(page).to_have_title("Who is there · punchlist")
    mine = page.locator(".who li", has_text="bot/1").first
    expect(mine).to_contain_text("bot/1, here here for ")
    expect(mine).to_contain_text("/srv/mine (main)")
    expect(mine.locator("a")).to_have_text("mine #2 Backend › test mine")
    host.call("agent.leave", {"agent": "bot/1"})
    expect(mine).to_contain_text("free at ")
    expect(mine).to_contain_text("bot/1, not here left ")
    host.call("agent.enter", {"agent": "bot/3"})
    host.call("agent.leave", {"agent": "bot/3"})
    expect(page.locator(".who")).to_contain_text("1 other left in the last hours", timeout=20_000)
    page.keyboard.press("8")
    lost = page.locator('.running[href^="#/list/mine"] .owner')
    expect(lost).to_contain_text("@bot/1, left at ")
    host.call("agent.enter", {"agent": "bot/1"})
    expect(lost).to_have_text("@bot/1")
    choose(page, "who is")
    mine.locator("a").click()
    expect(page).to_have_url(f"{empty.url}/#/list/mine/2")
    expect(page.locator(".detail")).to_be_visible()

    only = open_page(empty, "#/who", scope={"list": "mine"})
    expect(only.locator(".who li a")).to_have_text(["mine #2 Backend › test mine"])
    assert not {word for word in ("hidden", "bot/2", "/srv", "main)") if word in only.locator(".who").inner_text()}
    only.reload()
    expect(only).to_have_url(f"{empty.url}/#/who")
    only.keyboard.press("Escape")
    expect(only.locator("h1")).to_have_text("mine")
