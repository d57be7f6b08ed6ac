"""The chat page in a browser, with a scripted model and a real server. Also draws its pictures."""

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

from punchlist_testing.faces_page import MODES, Open, assert_accessible
from punchlist_testing.scripted_model import Script, honest, serving
from punchlist_testing.stage import Stage, stage
from punchlist_testing.terminal import Terminal, command, environment

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs/pictures"
HOSTILE = [
    "<img src=x onerror=\"document.title='pwned'\">",
    "<script>document.title='pwned'</script>",
    "javascript:document.title='pwned' \u202etxt.exe\u202c",
    "a" * 500,
]

TRIES = 3
"""Number of times the page sends a change that gets no response."""

PATIENCE_MS = 5_000

LOST_REQUESTS = 25
"""Number of requests that fail before the server responds again."""

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
        with stage(tmp_path_factory.mktemp("chat")) as chat_stage:
            yield chat_stage


@pytest.fixture(autouse=True)
def reset_model(model: Script) -> None:
    """Undo the faults that a test has set."""
    model.fault, model.faults = "", 1 << 30


def open_chat(where: Stage, open_page: Open, name: str, mode: str = "light") -> Page:
    """Open the chat page for a list."""
    page = open_page(where, mode=mode)
    page.goto(f"{where.url}/chat?list={name}")
    expect(page.locator("#list")).to_have_value(name)
    return page


def send(page: Page, text: str) -> None:
    page.get_by_label("Say what you want").fill(text)
    page.keyboard.press("Enter")


def get_answers(page: Page) -> Locator:
    return page.locator("#said li.assistant .text")


def list_titles(where: Stage, name: str) -> list[str]:
    return [task.title for task in where.by("ann").conversation(name).list()]


def test_deletion_asks_for_yes_or_no(staged: Stage, open_page: Open) -> None:
    page = open_chat(staged, open_page, "asked")
    send(page, "add milk; bread")
    expect(get_answers(page).last).to_have_text("Created task: milk\nCreated task: bread")
    expect(page.locator(".chips a").last).to_have_text("added #2 bread")
    expect(page.locator(".chips a").last).to_have_attribute("href", "#/list/asked/2")
    for word, answer, left in (("no", "Nothing was changed.", 2), ("yes", "Deleted task: milk", 1)):
        send(page, "delete 1")
        expect(get_answers(page).last).to_have_text("Are you sure you want to delete task 1? (yes/no)")
        page.get_by_role("button", name=word, exact=True).click()
        expect(get_answers(page).last).to_have_text(answer)
        expect(page.locator(".answers")).to_have_count(0)
        assert len(list_titles(staged, "asked")) == left


def test_model_text_appears_until_stopped(staged: Stage, open_page: Open, model: Script) -> None:
    page = open_chat(staged, open_page, "stopped")
    model.fault = "stall-mid"
    send(page, "hello")
    expect(get_answers(page).last).to_have_text("Hello! I'")
    expect(page.get_by_role("button", name="Send")).to_be_hidden()
    page.get_by_role("button", name="Stop").click()
    expect(get_answers(page).last).to_have_text("Stopped.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_reload_resumes_a_running_answer(staged: Stage, open_page: Open, model: Script) -> None:
    page = open_chat(staged, open_page, "reloaded")
    send(page, "add milk")
    expect(get_answers(page).last).to_have_text("Created task: milk")
    model.fault = "stall-mid"
    send(page, "hello")
    expect(get_answers(page).last).to_have_text("Hello! I'")
    page.reload()
    expect(page.locator("#said li")).to_have_count(4)
    expect(get_answers(page).last).to_have_text("Hello! I'")
    page.get_by_role("button", name="Stop").click()
    expect(get_answers(page).last).to_have_text("Stopped.")
    page.reload()
    expect(get_answers(page)).to_have_text(["Created task: milk", "Stopped."])
    assert list_titles(staged, "reloaded") == ["milk"]


def test_two_tabs_show_each_message_once(staged: Stage, open_page: Open) -> None:
    first = open_chat(staged, open_page, "tabs")
    send(first, "add first")
    expect(get_answers(first).last).to_have_text("Created task: first")
    second = open_chat(staged, open_page, "tabs")
    expect(get_answers(second)).to_have_text(["Created task: first"])
    send(first, "add second")
    send(second, "add third")
    expect(get_answers(first).last).to_have_text("Created task: second")
    expect(get_answers(second).last).to_have_text("Created task: third")
    for tab in (first, second):
        tab.evaluate("dispatchEvent(new Event('focus'))")
        expect(tab.locator("#said li.user")).to_have_count(3)
        expect(get_answers(tab)).to_have_count(3)
    assert sorted(list_titles(staged, "tabs")) == ["first", "second", "third"]


def test_message_resent_after_lost_response_runs_once(staged: Stage, open_page: Open) -> None:
    page = open_chat(staged, open_page, "lost")
    send(page, "add milk")
    expect(get_answers(page).last).to_have_text("Created task: milk")

    lost: list[str] = []

    def lose_response(route: Route) -> None:
        """Deliver the message, but drop the response."""
        if route.request.method == "POST" and len(lost) < TRIES:
            lost.append(route.request.post_data or "")
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/api/v1/chats/chat-*", lose_response)
    send(page, "add bread")
    expect(page.locator(".trouble")).to_be_visible()
    expect(page.get_by_label("Say what you want")).to_have_value("add bread")
    expect(get_answers(page).last).to_have_text("Created task: bread")
    expect(page.locator("#said li.user")).to_have_count(2)
    assert len(set(lost)) == 1 and len(lost) == TRIES
    assert list_titles(staged, "lost") == ["milk", "bread"]


def test_stopped_message_stays_in_its_field(staged: Stage, open_page: Open) -> None:
    page = open_chat(staged, open_page, "given-up")
    send(page, "add milk")
    expect(get_answers(page).last).to_have_text("Created task: milk")
    send(page, "delete 1")
    page.route("**/api/v1/chats/chat-*", lambda route: route.abort())
    page.get_by_role("button", name="yes", exact=True).click()
    expect(page.locator(".trouble")).to_contain_text("is not responding")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".trouble")).to_contain_text("Send it again when the server is back")
    expect(page.get_by_label("Say what you want")).to_have_value("yes")
    page.unroute("**/api/v1/chats/chat-*")
    page.get_by_role("button", name="Send").click()
    expect(get_answers(page).last).to_contain_text("Deleted task: milk")


def test_message_sent_while_threads_load_stays(staged: Stage, open_page: Open) -> None:
    page = open_page(staged)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/chats?list=early", hold)
    page.goto(f"{staged.url}/chat?list=early")
    expect(page.locator("#list")).to_have_value("early")
    send(page, "add milk")
    expect(get_answers(page)).to_have_text(["Created task: milk"])
    with page.expect_response("**/api/v1/chats?list=early"):
        held[0].fulfill(json={"threads": []})
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(get_answers(page)).to_have_text(["Created task: milk"])


@pytest.mark.parametrize("place", ["**/turns/*", "**/api/v1/chats", "**/api/v1/chats/chat-*"])
def test_chat_waits_for_its_server(staged: Stage, open_page: Open, place: str) -> None:
    name = f"away-{len(place)}"
    page = open_chat(staged, open_page, name)
    page.clock.install()
    lost: list[str] = []

    def lose_request(route: Route) -> None:
        if len(lost) < LOST_REQUESTS:
            lost.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route(place, lose_request)
    send(page, "add milk")
    while len(lost) < LOST_REQUESTS:
        with page.expect_request(place, timeout=PATIENCE_MS):
            page.clock.run_for(PATIENCE_MS)
    expect(page.locator(".trouble")).to_contain_text("the answer arrives when it is back")
    page.clock.run_for(PATIENCE_MS)
    expect(get_answers(page)).to_have_text(["Created task: milk"])
    expect(page.locator(".trouble")).to_be_hidden()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert list_titles(staged, name) == ["milk"]


def test_reload_keeps_list_and_thread(staged: Stage, open_page: Open) -> None:
    page = open_chat(staged, open_page, "first")
    staged.by("ann").conversation("second").add("bread knife")
    page.get_by_label("The list").select_option("second")
    expect(page.locator("#list")).to_have_value("second")
    send(page, "add milk")
    expect(get_answers(page)).to_have_text(["Created task: milk"])
    place = page.url
    page.get_by_role("button", name="New thread").click()
    send(page, "add bread")
    expect(get_answers(page)).to_have_text(["Created task: bread"])
    for address, title in ((page.url, "bread"), (place, "milk")):
        page.goto(address)
        page.reload()
        expect(page.locator("#list")).to_have_value("second")
        expect(get_answers(page)).to_have_text([f"Created task: {title}"])
    page.goto(place.replace("chat-", "chat-0"))
    expect(get_answers(page)).to_have_text(["Created task: bread"])


@pytest.mark.parametrize("title", HOSTILE, ids=lambda title: title[:12])
def test_hostile_title_is_shown_as_text(staged: Stage, open_page: Open, title: str) -> None:
    name = f"hostile-{HOSTILE.index(title)}"
    staged.by("mallory").conversation(name).add(title)
    page = open_chat(staged, open_page, name)
    send(page, f"add {title}")
    expect(get_answers(page).last).to_contain_text(title[:32])
    send(page, "delete 1")
    expect(page.locator("#said li.assistant .hush")).to_contain_text(title[:32])
    assert page.title() == "Chat · punchlist"
    assert page.locator("#said img, #said script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no horizontal overflow"


def test_chat_without_session_shows_how_to_sign_in(staged: Stage, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{staged.url}/chat")
    expect(page.locator(".door .command")).to_contain_text("punch web --link")
    page.close()


def open_question(where: Stage, open_page: Open, mode: str) -> Page:
    """Open the chat page and ask to delete a task."""
    name = f"kitchen-{mode}"
    page = open_chat(where, open_page, name, mode)
    for text, answer in (
        ("add buy milk; call Ann", "Created task: buy milk\nCreated task: call Ann"),
        ("complete 1", "Completed task: buy milk"),
        ("hello", "Hello! I'm doing well, thank you."),
        ("delete 2", "Are you sure you want to delete task 2? (yes/no)"),
    ):
        send(page, text)
        expect(get_answers(page).last).to_have_text(answer)
    return page


@pytest.mark.parametrize("mode", MODES)
def test_chat_is_accessible(staged: Stage, open_page: Open, mode: str) -> None:
    page = open_question(staged, open_page, mode)
    assert_accessible(page)


def save_picture(data: bytes, name: str, colours: int) -> None:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.quantize(colours, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


@pictures
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_chat_pictures(staged: Stage, open_page: Open, mode: str) -> None:
    page = open_question(staged, open_page, mode)
    page.set_viewport_size({"width": 760, "height": 720})
    save_picture(page.screenshot(animations="disabled", scale="css"), f"chat-{mode}", 96)


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
    save_picture(data, "chat-terminal", 64)
