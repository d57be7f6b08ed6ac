"""The graph of dependencies, and the details of a task."""

from playwright.sync_api import Page, expect

from punchlist_schemas.params import NewTask
from punchlist_schemas.things import Gate
from punchlist_testing.faces_page import Open
from punchlist_testing.stage import Stage


def drag(page: Page, start: str, end: str) -> None:
    """Draw an edge from the grip of one task to another task."""
    page.locator(start).hover()
    box, goal = page.locator(f"{start} .edge-grip").bounding_box(), page.locator(end).bounding_box()
    assert box
    assert goal
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(goal["x"] + 30, goal["y"] + 20, steps=4)
    page.mouse.move(goal["x"] + 40, goal["y"] + 30)
    page.mouse.up()


def test_graph_shows_what_holds_things_up(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("codex/b2").conversation("held")
    tasks.add_many([
        NewTask(title="Schema", ref="a", estimate_ms=3_600_000),
        NewTask(title="Server", blocked_by=("a",), ref="b", estimate_ms=7_200_000),
        NewTask(title="Page", blocked_by=("b",), ref="c"),
        NewTask(title="Done before", ref="d"),
        NewTask(title="Docs", blocked_by=("a", "d")),
        NewTask(title="Alone"),
    ])  # fmt: skip
    tasks.complete("4")
    tasks.fail("1", "no disk")
    page = open_page(planned, "#/list/held/graph")
    expect(page.locator(".node")).to_have_count(4)
    expect(page.locator(".node.critical .id")).to_have_text(["#1", "#2", "#3"])
    expect(page.locator('.node[data-task="1"] .frees')).to_have_text("frees 3")
    expect(page.locator(".legend")).to_contain_text("1 task waits for nothing")
    page.get_by_role("button", name="With done").click()
    expect(page.locator(".node")).to_have_count(5)
    page.locator(".culprits li", has_text="Schema").get_by_role("button", name="Retry").click()
    expect(page.locator('.node[data-task="1"]')).to_have_class("node r-pending here critical")
    assert tasks.get("1").status == "pending"


def test_edges_are_drawn_and_removed_by_hand(planned: Stage, open_page: Open) -> None:
    tasks = planned.by("codex/b2").conversation("drawn")
    tasks.add_many([
        NewTask(title="One", ref="a"), NewTask(title="Two", blocked_by=("a",), ref="b"),
        NewTask(title="Three", blocked_by=("b",)), NewTask(title="Four", blocked_by=("a",)),
    ])  # fmt: skip
    page = open_page(planned, "#/list/drawn/graph")
    expect(page.locator(".node")).to_have_count(4)
    drag(page, '.node[data-task="4"]', '.node[data-task="3"]')
    expect(page.locator(".edge")).to_have_count(4)
    assert set(tasks.get("3").blocked_by) == {"2", "4"}
    drag(page, '.node[data-task="3"]', '.node[data-task="1"]')
    expect(page.locator(".toast.bad")).to_contain_text("#1 can't wait for #3: #1 → #2 → #3 → #1 would be a circle")
    assert tasks.get("1").blocked_by == ()
    page.locator(".edge", has_text="#4 waits for #1").locator(".hit").dispatch_event("click")
    expect(page.locator(".edge")).to_have_count(3)
    assert tasks.get("4").blocked_by == ()


def test_large_graph_zooms_fits_and_keeps_few_nodes(empty: Stage, open_page: Open) -> None:
    chain = [NewTask(title=f"Task {n}", ref=str(n), blocked_by=(str(n - 5),) if n > 5 else ()) for n in range(1, 301)]
    empty.by("codex").conversation("wide").add_many(chain)
    page = open_page(empty, "#/list/wide/graph")
    expect(page.locator(".overview rect")).to_have_count(301)
    assert page.evaluate("document.querySelectorAll('*').length") <= 1_500
    width = "document.querySelector('.node').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.get_by_role("button", name="Larger").click()
    assert page.evaluate(width) > before
    page.locator(".graph").evaluate("graph => graph.scrollTo(graph.scrollWidth, 0)")
    expect(page.locator('.node[data-task="300"]')).to_be_visible()
    page.keyboard.press("v")
    assert page.evaluate(width) < before
    box = "(({scrollWidth, clientWidth}) => scrollWidth / clientWidth)(document.querySelector('.graph'))"
    assert page.evaluate(box) < 5


def test_detail_shows_markdown_and_what_a_yes_frees(planned: Stage, open_page: Open) -> None:
    agent = planned.by("codex/b2").conversation("told")
    agent.add("Port", description="see #2 and <b>this</b>\n\n- `retry.legacy`\n- [docs](https://docs.example/a)")
    agent.add("Migrate", gate=Gate(yes=True))
    agent.add("Delete", blocked_by=["2"])
    agent.complete("2", "Moved **14** kinds")
    page = open_page(planned, "#/list/told/1")
    prose = page.locator(".detail .prose")
    expect(prose.locator("li code")).to_have_text("retry.legacy")
    expect(prose.locator("li a")).to_have_attribute("href", "https://docs.example/a")
    expect(prose).to_contain_text("<b>this</b>")
    prose.get_by_role("button", name="Source").click()
    expect(prose).to_contain_text("- `retry.legacy`")
    prose.get_by_role("button", name="Show as Markdown").click()
    prose.get_by_role("button", name="#2").click()
    expect(page.locator(".detail h2")).to_have_text("Migrate")
    expect(page.locator(".question")).to_contain_text("waits for your yes. The yes frees #3.")
    expect(page.locator(".detail strong")).to_have_text("14")
    handle = page.get_by_role("separator", name="Width of the details")
    handle.focus()
    before = page.locator(".detail").bounding_box()
    page.keyboard.press("ArrowLeft")
    after = page.locator(".detail").bounding_box()
    assert before
    assert after
    assert abs(after["width"] - before["width"] - 20) < 1  # The rows take nearly all of the rest.
    page.get_by_role("button", name="Close the details").click()
    expect(page.locator(".detail")).to_have_count(0)
