"""The page in a real browser. `make faces` installs Playwright and axe-core and uses the system's Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*"]
else:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from punchlist_testing.faces_page import MODES, Open
from punchlist_testing.stage import Stage, plan, stage

PATIENCE_MS = 20_000


@pytest.fixture(scope="session")
def browser() -> Generator[Browser]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """A stage without any lists."""
    with stage(tmp_path_factory.mktemp("stage")) as empty_stage:
        yield empty_stage


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """A stage with the lists that the pictures show."""
    with stage(tmp_path_factory.mktemp("planned")) as planned_stage:
        plan(planned_stage)
        yield planned_stage


@pytest.fixture
def open_page(browser: Browser) -> Generator[Open]:
    """Opens signed-in pages; fails if they logged anything or sent a request to another server."""
    contexts: list[BrowserContext] = []
    problems: list[str] = []
    urls: list[str] = []

    def on_request(request: Request) -> None:
        if not any(request.url.startswith((url, "data:")) for url in urls):
            problems.append(f"request to {request.url}")

    def on_console(message: ConsoleMessage) -> None:
        # Chromium logs failed requests itself. They are expected while the server is down.
        if not message.text.startswith("Failed to load resource"):
            problems.append(message.text)

    def open_signed_in(
        where: Stage, hash: str = "#/", *, mode: str = "light", scope: dict[str, Any] | None = None
    ) -> Page:
        urls.append(where.url)
        context = browser.new_context(**MODES[mode])
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", on_console)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", on_request)
        page.goto(where.link(**(scope or {})))
        page.wait_for_selector("header.top-bar")
        if hash != "#/":
            page.evaluate("hash => (location.hash = hash)", hash)
        return page

    yield open_signed_in
    for context in contexts:
        context.close()
    assert problems == []
