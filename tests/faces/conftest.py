"""The page in a real browser: `make faces` brings Playwright and axe-core, and takes the system's Chromium."""

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
        made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield made
        made.close()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """A stage without lists."""
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """The stage with the lists of the pictures."""
    with stage(tmp_path_factory.mktemp("planned")) as made:
        plan(made)
        yield made


@pytest.fixture
def open_page(browser: Browser) -> Generator[Open]:
    """Opens a page that is signed in; at the end nobody has logged anything or asked for anything elsewhere."""
    contexts: list[BrowserContext] = []
    seen: list[str] = []
    homes: list[str] = []

    def asked(request: Request) -> None:
        if not any(request.url.startswith((home, "data:")) for home in homes):
            seen.append(f"asked for {request.url}")

    def logged(message: ConsoleMessage) -> None:
        # Chromium itself logs each request that fails, as they do while the server is away.
        if not message.text.startswith("Failed to load resource"):
            seen.append(message.text)

    def opened(where: Stage, hash: str = "#/", *, mode: str = "light", scope: dict[str, Any] | None = None) -> Page:
        homes.append(where.url)
        context = browser.new_context(**MODES[mode])
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", logged)
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("request", asked)
        page.goto(where.link(**(scope or {})))
        page.wait_for_selector("header.top-bar")
        if hash != "#/":
            page.evaluate("hash => (location.hash = hash)", hash)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert seen == []
