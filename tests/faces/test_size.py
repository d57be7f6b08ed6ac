"""Costs of long lists and frequent changes in the browser, as ratios."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

from playwright.sync_api import Page, expect

from punchlist_testing.faces_page import Open
from punchlist_testing.figures import keep
from punchlist_testing.stage import Stage

LENGTH = 10_000
RATE = 100
SPAN_MS = 2_500
MAX_NODES = 1_000

FRAMES = """ms => new Promise(done => {
  let frames = 0; const end = performance.now() + ms;
  const step = now => now < end ? (frames++, requestAnimationFrame(step)) : done(frames);
  requestAnimationFrame(step);
})"""

DELAYS = """() => {
  window.delays = [];
  new MutationObserver(() => {
    const text = document.querySelector('.row .t')?.textContent ?? '';
    const at = Number(text.split(' ')[1]);
    if (at && at !== window.last) { window.delays.push(Date.now() - at); window.last = at; }
  }).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true });
}"""


class Meter:
    """Adds up the browser's performance counters over its `with` blocks."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")
        self._before: dict[str, float] = {}
        self.spent: Counter[str] = Counter()

    def _read(self) -> dict[str, float]:
        return {metric["name"]: metric["value"] for metric in self._session.send("Performance.getMetrics")["metrics"]}

    def __enter__(self) -> None:
        self._before = self._read()

    def __exit__(self, *error: object) -> None:
        for name, value in self._read().items():
            self.spent[name] += value - self._before[name]  # pyright: ignore[reportArgumentType] - seconds aren't integers


def test_busy_long_list_keeps_its_frame_rate(empty: Stage, open_page: Open) -> None:
    tasks = empty.by("codex").conversation("long")
    tasks.add_many([f"Task number {number}" for number in range(1, LENGTH + 1)])
    page = open_page(empty, "#/list/long/1")
    expect(page.locator(".head .done")).to_have_text(f"0 of {LENGTH}")
    page.evaluate(DELAYS)
    meter = Meter(page)
    idle = busy = changes = 0
    for _ in range(3):
        idle += page.evaluate(FRAMES, SPAN_MS)
        stop = Event()
        writer = Thread(target=change_tasks, args=(empty, stop, counted := [0]))
        writer.start()
        with meter:
            busy += page.evaluate(FRAMES, SPAN_MS)
        stop.set()
        writer.join()
        changes += counted[0]
    nodes = page.evaluate("document.querySelectorAll('*').length")
    delays = sorted(page.evaluate("window.delays"))
    keep(
        nodes=nodes,
        frames_ratio=busy / idle,
        frames_idle=idle / (3 * SPAN_MS / 1000),
        changes_a_second=changes / (3 * SPAN_MS / 1000),
        script_share=meter.spent["ScriptDuration"] / (3 * SPAN_MS / 1000),
        layouts_a_push=meter.spent["LayoutCount"] / (changes / 2),
        write_to_page_ms=delays[len(delays) // 2],
    )
    assert meter.spent["ScriptDuration"] <= 0.2 * 3 * SPAN_MS / 1000
    assert delays[len(delays) // 2] <= 25
    assert nodes <= MAX_NODES
    assert busy >= 0.9 * idle
    page.keyboard.press("G")
    expect(page.locator(".row.here .t")).to_have_text(f"Task number {LENGTH}")
    assert page.evaluate("document.querySelectorAll('*').length") <= MAX_NODES
    for view in ("flow", "graph", "history"):
        page.evaluate("hash => (location.hash = hash)", f"#/list/long/{view}")
        expect(page.locator(f".v-{view} :is(.teach, .chip, .call)").first).to_be_visible()


def change_tasks(stage: Stage, stop: Event, counted: list[int]) -> None:
    tasks = stage.by("codex").conversation("long")
    while not stop.is_set():
        started = time.monotonic()
        tasks.edit("1", title=f"Task {time.time() * 1000:.0f}")
        tasks.edit(str(2 + counted[0] % 15), title=f"Changed {counted[0]} times")
        counted[0] += 2
        stop.wait(max(0, 2 / RATE - (time.monotonic() - started)))


def test_long_list_opens_like_a_short_one(empty: Stage, open_page: Open) -> None:
    for name, length in (("short", 12), ("tall", LENGTH)):
        empty.by("codex").conversation(name).add_many([f"Task {number}" for number in range(length)])
    page = open_page(empty)
    times: dict[str, list[float]] = {"short": [], "tall": []}
    for _ in range(3):
        for name, durations in times.items():
            page.goto("about:blank")
            started = time.monotonic()
            page.goto(f"{empty.url}/#/list/{name}")
            page.wait_for_selector(".row")
            durations.append(time.monotonic() - started)
    short, tall = min(times["short"]), min(times["tall"])
    keep(open_ratio=tall / short)
    assert tall <= 2 * short


def test_page_load_is_small(empty: Stage, open_page: Open) -> None:
    page = open_page(empty)
    # The page's first script makes a call. What a screen loads later is requested after it.
    sizes = page.evaluate(
        """() => {
          const files = performance.getEntries().filter(({ name }) => name.startsWith("http"));
          const first = files.find(({ name }) => name.includes("/api/")).startTime;
          return files.filter(({ startTime }) => startTime < first)
            .map((entry) => [new URL(entry.name).pathname, entry.decodedBodySize]);
        }"""
    )
    keep(loaded_kb=sum(dict(sizes).values()) / 1000)
    assert {path for path, _ in sizes} >= {"/", "/app.js", "/page.css"}
    assert sum(dict(sizes).values()) <= 120_000


def test_large_board_has_few_nodes(empty: Stage, open_page: Open) -> None:
    client = empty.by("codex")
    with ThreadPoolExecutor(32) as pool:  # concurrent calls share commits
        names = ({"conversation": f"session-{number}"} for number in range(2_000))
        list(pool.map(lambda params: client.call("conversation.open", params), names))
    page: Page = open_page(empty, "#/lists")
    page.get_by_role("button", name="Quiet").click()
    expect(page.locator(".card").nth(10)).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") <= MAX_NODES
    page.keyboard.press("F")
    page.keyboard.type("session-1234")
    expect(page.locator(".card")).to_have_count(1)
