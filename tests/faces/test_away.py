"""A server that hangs, changes without a response, and addresses of things that are gone."""

import signal
from pathlib import Path

from playwright.sync_api import Route, expect

from punchlist_testing.faces_page import Open
from punchlist_testing.stage import Stage, stage

SILENCE_MS = 20_000


def test_hanging_server_keeps_a_change_pending(tmp_path: Path, open_page: Open) -> None:
    with stage(tmp_path) as staged:
        staged.by("ann").conversation("plan").add("Look at it")
        page = open_page(staged, "#/list/plan/1")
        expect(page.locator(".row.here")).to_be_visible()
        expect(page.locator(".status")).to_have_text("live")
        assert staged.process is not None
        staged.process.send_signal(signal.SIGSTOP)
        try:
            page.keyboard.press("s")
            expect(page.locator(".row.here .saving")).to_be_visible(timeout=1_000)
            expect(page.locator(".pending")).to_have_text("Saving…", timeout=1_000)
            expect(page.get_by_role("alert")).to_contain_text("Not answering", timeout=4_000)
            expect(page.locator(".status")).to_have_text("not answering")
            expect(page.locator(".pending")).to_contain_text("Still waiting", timeout=4_000)
        finally:
            staged.process.send_signal(signal.SIGCONT)
        expect(page.locator(".row.here")).to_have_class("row r-in_progress here")
        expect(page.locator(".pending")).to_be_hidden()
        expect(page.locator(".status")).to_have_text("live")
        assert staged.by("ann").conversation("plan").get("1").status == "in_progress"
        page.close()


def test_change_is_repeated_with_its_key(empty: Stage, open_page: Open) -> None:
    empty.by("ann").conversation("repeated").add("Look at it")
    page = open_page(empty, "#/list/repeated/1")
    expect(page.locator(".row.here")).to_be_visible()
    keys: list[str | None] = []

    def record_and_lose_first(route: Route) -> None:
        keys.append(route.request.headers.get("idempotency-key"))
        if len(keys) == 1:
            route.abort()
        else:
            route.continue_()

    page.route("**/tasks/1/status", record_and_lose_first)
    page.keyboard.press("s")
    expect(page.locator(".row.here")).to_have_class("row r-in_progress here")
    assert len(keys) == 2 and keys[0] and keys[0] == keys[1]


def test_silent_stream_is_reported(tmp_path: Path, open_page: Open) -> None:
    with stage(tmp_path) as staged:
        staged.by("ann").conversation("plan").add("Look at it")
        page = open_page(staged)
        page.clock.install()
        page.reload()
        expect(page.locator(".status")).to_have_text("live")
        assert staged.process is not None
        staged.process.send_signal(signal.SIGSTOP)
        try:
            page.clock.run_for(SILENCE_MS)
            expect(page.locator(".status")).to_have_text("not answering")
        finally:
            staged.process.send_signal(signal.SIGCONT)
        expect(page.locator(".status")).to_have_text("live")
        page.close()


def test_address_of_a_missing_task_is_reported(empty: Stage, open_page: Open) -> None:
    empty.by("ann").conversation("short").add("Look at it")
    page = open_page(empty, "#/list/short/99")
    expect(page.locator(".toast.bad")).to_have_text("The address names a task that is not there: #99")
    assert page.url.endswith("#/list/short")


def test_address_of_a_missing_chat_is_reported(empty: Stage, open_page: Open) -> None:
    page = open_page(empty, "#/chat/chat-none")
    expect(page.locator(".toast.bad")).to_have_text("The address names a chat that is not there: chat-none")
    expect(page.get_by_label("Say what you want")).to_be_visible()
