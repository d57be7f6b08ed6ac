"""The recording of agents and a person at work, and the pictures of `punch ui`. PICTURES=1 draws them."""

import asyncio
import io
import os
import re
import time
from pathlib import Path
from threading import Event, Thread

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from punchlist_apps.common.terminal.style import UNICODE_GLYPHS
from punchlist_apps.ui.app import PunchApp
from punchlist_apps.ui.program import Setup
from punchlist_schemas.things import Gate
from punchlist_testing.faces_page import Open
from punchlist_testing.stage import Stage

PICTURES = Path(__file__).parents[2] / "docs/pictures"
FRAME_MS, SECONDS = 400, 10
SIZE = (120, 32)

pytestmark = pytest.mark.skipif("PICTURES" not in os.environ, reason="PICTURES=1 draws the pictures of the documents")

STEPS = """
website complete 2; website start 3; parser complete 4; parser start 5; release-1.0 complete 2; docs complete 5;
inbox start 1; migration complete 3; migration start 4; release-1.0 complete 3; release-1.0 start 4;
website complete 3; website start 4; parser complete 5; parser start 6; benchmarks start 3; inbox complete 1;
garden start 2; migration complete 4; release-1.0 complete 4; release-1.0 start 5; website complete 4
"""
"""Steps of the agents, in order: list, change, task."""

WHO = {"website": "ann", "parser": "claude-code", "release-1.0": "codex", "migration": "gemini", "docs": "claude-code"}


def run_steps(stage: Stage, stop: Event) -> None:
    """Run the steps, evenly spaced over the recording."""
    steps = [step.split() for step in STEPS.replace("\n", " ").split(";")]
    for name, change, task in steps:
        if stop.wait(SECONDS / (len(steps) + 1)):
            return
        who = WHO.get(name, "ann")
        tasks = stage.by(who).conversation(name)
        if change == "start":
            tasks.edit(task, owner=who)
            tasks.start(task)
        else:
            tasks.complete(task)


async def draw_ui(stage: Stage, name: str | None, keys: str) -> str:
    """Return `punch ui` as SVG after pressing the keys."""
    app = PunchApp(Setup({"socket": stage.daemon.socket, "autostart": False, "name": "ann"}, UNICODE_GLYPHS, name))
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(40):
            await pilot.pause(0.05)
        await pilot.press(*keys.split())
        await pilot.pause(0.5)
        return app.export_screenshot(title="punch ui")


@pytest.mark.parametrize(
    ("picture", "name", "keys"),
    [("ui-now", None, ""), ("ui-board", None, "8"), ("ui-list", "release-1.0", "g j j j")],
)
def test_ui_pictures(planned: Stage, browser: Browser, picture: str, name: str | None, keys: str) -> None:
    drawing: list[str] = []
    # Playwright runs an event loop in this thread, so the loop of the terminal UI needs another thread.
    thread = Thread(target=lambda: drawing.append(asyncio.run(draw_ui(planned, name, keys))))
    thread.start()
    thread.join()
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", drawing[0]).replace("Fira Code", "DejaVu Sans Mono")
    page = browser.new_page(viewport={"width": 1480, "height": 900})
    page.set_content(f"<body style='margin:0;background:#fff'>{svg}</body>")
    data = page.locator("svg").first.screenshot()
    page.close()
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.quantize(160, dither=Image.Dither.NONE).save(PICTURES / f"{picture}.png", optimize=True)


def test_recording_of_agents_and_a_person(planned: Stage, open_page: Open) -> None:
    deploys = planned.by("gemini").conversation("deploys")
    deploys.add("Deploy the shop to staging", owner="gemini", gate=Gate(yes=True))
    deploys.start("1")
    page = open_page(planned, mode="light")
    page.set_viewport_size({"width": 1180, "height": 700})
    expect(page.locator(".need").first).to_be_visible()
    expect(page.locator(".lane").first).to_be_visible()
    page.mouse.move(0, 0)
    # The person chooses the question, and says yes.
    acts = [(2.0, lambda: deploys.complete("1", "Staging answers in 90 ms; the old version stays for a day.")),
            (5.0, lambda: page.keyboard.press("g")), (7.0, lambda: page.keyboard.press("y"))]  # fmt: skip
    frames: list[Image.Image] = []
    stop = Event()
    worker = Thread(target=run_steps, args=(planned, stop))
    worker.start()
    started = time.monotonic()
    try:
        while (now := time.monotonic() - started) < SECONDS:
            if acts and now >= acts[0][0]:
                acts.pop(0)[1]()
            frames.append(Image.open(io.BytesIO(page.screenshot(scale="css"))).convert("RGB"))
            page.wait_for_timeout(max(0, len(frames) * FRAME_MS - now * 1000))
    finally:
        stop.set()
        worker.join()
    palette = frames[-1].quantize(64, dither=Image.Dither.NONE)
    shown = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    PICTURES.mkdir(exist_ok=True)
    shown[0].save(
        PICTURES / "now.gif", save_all=True, append_images=shown[1:], duration=FRAME_MS, loop=0, optimize=True
    )
    assert deploys.get("1").status == "completed"
    assert len(frames) >= SECONDS * 1000 / FRAME_MS * 0.5
