"""The panel of `punch chat` in a browser, before a scripted model and a real server, and its pictures."""

import io
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Route, expect
from rich.console import Console
from rich.text import Text

from punchlist_testing.faces_page import MODES, Open
from punchlist_testing.scripted_model import Script, honest, serving
from punchlist_testing.stage import Stage, stage
from punchlist_testing.terminal import Terminal, command, environment

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build/faces/node_modules/axe-core/axe.min.js"
PICTURES = ROOT / "docs/pictures"
HOSTILE = [
    "<img src=x onerror=\"document.title='pwned'\">",
    "<script>document.title='pwned'</script>",
    "javascript:document.title='pwned' \u202etxt.exe\u202c",
    "a" * 500,
]

TRIES = 3
"""So often the page sends a change that is answered by silence."""

PATIENCE_MS = 5_000

AWAY = 25
"""So often the page asks for an answer in vain."""

pictures = pytest.mark.skipif("PICTURES" not in os.environ, reason="PICTURES=1 draws the pictures of the documents")


@pytest.fixture(scope="module")
def model() -> Generator[Script]:
    with serving(honest) as script:
        yield script


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory, model: Script) -> Generator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUNCHLIST_CHAT_MODEL", "scripted")
        patch.setenv("PUNCHLIST_CHAT_BASE_URL", model.url)
        with stage(tmp_path_factory.mktemp("chat")) as made:
            yield made


@pytest.fixture(autouse=True)
def well(model: Script) -> None:
    """The model answers, whatever a test has done to it."""
    model.fault, model.faults = "", 1 << 30


def panel(where: Stage, open_page: Open, name: str, mode: str = "light") -> Page:
    """The panel about a list."""
    page = open_page(where, mode=mode)
    page.goto(f"{where.url}/chat?list={name}")
    expect(page.locator("#list")).to_have_value(name)
    return page


def say(page: Page, text: str) -> None:
    page.get_by_label("Say what you want").fill(text)
    page.keyboard.press("Enter")


def answers(page: Page) -> Locator:
    return page.locator("#said li.assistant .text")


def titles(where: Stage, name: str) -> list[str]:
    return [task.title for task in where.by("ann").conversation(name).list()]


def test_deletion_asks_for_yes_or_no(staged: Stage, open_page: Open) -> None:
    page = panel(staged, open_page, "asked")
    say(page, "add milk; bread")
    expect(answers(page).last).to_have_text("Created task: milk\nCreated task: bread")
    expect(page.locator(".chips span").last).to_have_text(re.compile(r"^TaskAdded #2 · seq \d+$"))
    for word, told, left in (("no", "Nothing was changed.", 2), ("yes", "Deleted task: milk", 1)):
        say(page, "delete 1")
        expect(answers(page).last).to_have_text("Are you sure you want to delete task 1? (yes/no)")
        page.get_by_role("button", name=word, exact=True).click()
        expect(answers(page).last).to_have_text(told)
        expect(page.locator(".answers")).to_have_count(0)
        assert len(titles(staged, "asked")) == left


def test_model_text_appears_until_stopped(staged: Stage, open_page: Open, model: Script) -> None:
    page = panel(staged, open_page, "stopped")
    model.fault = "stall-mid"
    say(page, "hello")
    expect(answers(page).last).to_have_text("Hello! I'")
    expect(page.get_by_role("button", name="Send")).to_be_hidden()
    page.get_by_role("button", name="Stop").click()
    expect(answers(page).last).to_have_text("Stopped.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_reload_resumes_a_running_answer(staged: Stage, open_page: Open, model: Script) -> None:
    page = panel(staged, open_page, "reloaded")
    say(page, "add milk")
    expect(answers(page).last).to_have_text("Created task: milk")
    model.fault = "stall-mid"
    say(page, "hello")
    expect(answers(page).last).to_have_text("Hello! I'")
    page.reload()
    expect(page.locator("#said li")).to_have_count(4)
    expect(answers(page).last).to_have_text("Hello! I'")
    page.get_by_role("button", name="Stop").click()
    expect(answers(page).last).to_have_text("Stopped.")
    page.reload()
    expect(answers(page)).to_have_text(["Created task: milk", "Stopped."])
    assert titles(staged, "reloaded") == ["milk"]


def test_two_tabs_show_each_message_once(staged: Stage, open_page: Open) -> None:
    one = panel(staged, open_page, "tabs")
    say(one, "add first")
    expect(answers(one).last).to_have_text("Created task: first")
    two = panel(staged, open_page, "tabs")
    expect(answers(two)).to_have_text(["Created task: first"])
    say(one, "add second")
    say(two, "add third")
    expect(answers(one).last).to_have_text("Created task: second")
    expect(answers(two).last).to_have_text("Created task: third")
    for tab in (one, two):
        tab.evaluate("dispatchEvent(new Event('focus'))")
        expect(tab.locator("#said li.user")).to_have_count(3)
        expect(answers(tab)).to_have_count(3)
    assert sorted(titles(staged, "tabs")) == ["first", "second", "third"]


def test_message_resent_after_lost_response_runs_once(staged: Stage, open_page: Open) -> None:
    page = panel(staged, open_page, "lost")
    say(page, "add milk")
    expect(answers(page).last).to_have_text("Created task: milk")

    lost: list[str] = []

    def lose(route: Route) -> None:
        """The message arrives, its answer does not."""
        if route.request.method == "POST" and len(lost) < TRIES:
            lost.append(route.request.post_data or "")
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/api/v1/chats/chat-*", lose)
    say(page, "add bread")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Say what you want")).to_have_value("add bread")
    expect(answers(page).last).to_have_text("Created task: bread")
    expect(page.locator("#said li.user")).to_have_count(2)
    assert len(set(lost)) == 1 and len(lost) == TRIES
    assert titles(staged, "lost") == ["milk", "bread"]


def test_stopped_message_stays_in_its_field(staged: Stage, open_page: Open) -> None:
    page = panel(staged, open_page, "given-up")
    say(page, "add milk")
    expect(answers(page).last).to_have_text("Created task: milk")
    say(page, "delete 1")
    page.route("**/api/v1/chats/chat-*", lambda route: route.abort())
    page.get_by_role("button", name="yes", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("is not responding")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("alert")).to_contain_text("Send it again when the server is back")
    expect(page.get_by_label("Say what you want")).to_have_value("yes")
    page.unroute("**/api/v1/chats/chat-*")
    page.get_by_role("button", name="Send").click()
    expect(answers(page).last).to_contain_text("Deleted task: milk")


def test_message_sent_while_threads_load_stays(staged: Stage, open_page: Open) -> None:
    page = open_page(staged)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/chats?list=early", hold)
    page.goto(f"{staged.url}/chat?list=early")
    expect(page.locator("#list")).to_have_value("early")
    say(page, "add milk")
    expect(answers(page)).to_have_text(["Created task: milk"])
    with page.expect_response("**/api/v1/chats?list=early"):
        held[0].fulfill(json={"threads": []})
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(answers(page)).to_have_text(["Created task: milk"])


@pytest.mark.parametrize("place", ["**/turns/*", "**/api/v1/chats", "**/api/v1/chats/chat-*"])
def test_chat_waits_for_its_server(staged: Stage, open_page: Open, place: str) -> None:
    name = f"away-{len(place)}"
    page = panel(staged, open_page, name)
    page.clock.install()
    lost: list[str] = []

    def lose(route: Route) -> None:
        """The server is away for longer than a person waits."""
        if len(lost) < AWAY:
            lost.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route(place, lose)
    say(page, "add milk")
    while len(lost) < AWAY:
        with page.expect_request(place, timeout=PATIENCE_MS):
            page.clock.run_for(PATIENCE_MS)
    expect(page.get_by_role("alert")).to_contain_text("the answer arrives when it is back")
    page.clock.run_for(PATIENCE_MS)
    expect(answers(page)).to_have_text(["Created task: milk"])
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert titles(staged, name) == ["milk"]


def test_a_reload_keeps_list_and_thread(staged: Stage, open_page: Open) -> None:
    page = panel(staged, open_page, "first")
    page.get_by_label("The list").fill("second")
    page.keyboard.press("Tab")
    say(page, "add milk")
    expect(answers(page)).to_have_text(["Created task: milk"])
    place = page.url
    page.get_by_role("button", name="New thread").click()
    say(page, "add bread")
    expect(answers(page)).to_have_text(["Created task: bread"])
    for address, told in ((page.url, "bread"), (place, "milk")):
        page.goto(address)
        page.reload()
        expect(page.locator("#list")).to_have_value("second")
        expect(answers(page)).to_have_text([f"Created task: {told}"])
    page.goto(place.replace("chat-", "chat-0"))
    expect(answers(page)).to_have_text(["Created task: bread"])


@pytest.mark.parametrize("title", HOSTILE, ids=lambda title: title[:12])
def test_hostile_title_is_shown_as_text(staged: Stage, open_page: Open, title: str) -> None:
    name = f"hostile-{HOSTILE.index(title)}"
    staged.by("mallory").conversation(name).add(title)
    page = panel(staged, open_page, name)
    say(page, f"add {title}")
    expect(answers(page).last).to_contain_text(title[:40])
    say(page, "delete 1")
    expect(page.locator("#said li.assistant .hush")).to_contain_text(title[:40])
    assert page.title() == "chat · punchlist"
    assert page.locator("#said img, #said script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"


def test_chat_without_session_shows_how_to_sign_in(staged: Stage, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{staged.url}/chat")
    expect(page.get_by_role("alert")).to_have_text("To sign this browser in, run: punch web --link")
    page.close()


def spoken(where: Stage, open_page: Open, mode: str) -> Page:
    """The panel with a question open."""
    name = f"kitchen-{mode}"
    page = panel(where, open_page, name, mode)
    for text, told in (
        ("add buy milk; call Ann", "Created task: buy milk\nCreated task: call Ann"),
        ("complete 1", "Completed task: buy milk"),
        ("hello", "Hello! I'm doing well, thank you."),
        ("delete 2", "Are you sure you want to delete task 2? (yes/no)"),
    ):
        say(page, text)
        expect(answers(page).last).to_have_text(told)
    return page


@pytest.mark.parametrize("mode", MODES)
def test_chat_is_accessible(staged: Stage, open_page: Open, mode: str) -> None:
    page = spoken(staged, open_page, mode)
    page.evaluate(AXE.read_text())
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = page.evaluate("tags => axe.run({ runOnly: tags })", tags)
    told = [(each["id"], [node["html"][:160] for node in each["nodes"][:3]]) for each in found["violations"]]
    assert told == []
    assert len(found["passes"]) > 10
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"


def saved(data: bytes, name: str, colours: int) -> None:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.quantize(colours, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


@pictures
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_chat_pictures(staged: Stage, open_page: Open, mode: str) -> None:
    page = spoken(staged, open_page, mode)
    page.set_viewport_size({"width": 760, "height": 720})
    page.locator("#list").evaluate("(field) => (field.value = 'kitchen')")
    saved(page.screenshot(animations="disabled", scale="css"), f"chat-{mode}", 96)


@pictures
def test_terminal_pictures(staged: Stage, browser: Browser) -> None:
    words = ["chat", "--rules", "-c", "terminal", "--socket", staged.daemon.socket, "--no-autostart"]
    terminal = Terminal(command(*words), environment(TERM="xterm-256color"), columns=84, rows=40)
    shown = terminal.wait_for("› ")
    for text in ("add eggs; flour", "done with flour", "show my tasks", "delete all my tasks", "yes", "undo that"):
        terminal.type(f"{text}\n")
        shown += terminal.wait_for("› ")
    terminal.type("\n")
    assert terminal.finish() == 0
    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("$ punch chat\n" + shown.replace("\r\n", "\n").removesuffix("› ").rstrip()))
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", console.export_svg(title="punch chat"))
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.set_content(f"<body style='margin:0;background:#fff'>{svg.replace('Fira Code', 'DejaVu Sans Mono')}</body>")
    data: Any = page.locator("svg").first.screenshot()
    page.close()
    saved(data, "chat-terminal", 64)
