"""A page whose sign-in ends reports it and sends no further requests."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from punchlist_apps.common.http.secret_file import SecretFile
from punchlist_testing.faces_page import Open
from punchlist_testing.stage import stage


@pytest.mark.parametrize("place", ["#/", "#/list/plan"])
def test_page_reports_an_ended_sign_in(tmp_path: Path, open_page: Open, place: str) -> None:
    with stage(tmp_path) as staged:
        staged.by("ann").conversation("plan").add("Look at it")
        page = open_page(staged, place)
        page.clock.install()
        page.reload()
        expect(page.locator(".rail").get_by_text("plan")).to_be_visible()
        expect(page.locator(".status")).to_have_text("live")
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url) if "/api/" in request.url else None)
        SecretFile(str(Path(staged.daemon.data_dir) / "web.token")).rotate()
        expect(page.get_by_role("alert")).to_contain_text("This browser was signed out")
        expect(page.get_by_text("punch web --link")).to_be_visible()
        assert page.evaluate("localStorage.length") == 0
        page.clock.run_for(60_000)
        assert requests == []


@pytest.mark.parametrize("place", ["Send", "yes"])
def test_chat_reports_an_ended_sign_in(tmp_path: Path, open_page: Open, place: str) -> None:
    with stage(tmp_path) as staged:
        staged.by("ann").conversation("plan").add("Look at it")
        page = open_page(staged)
        page.goto(f"{staged.url}/chat?list=plan")
        text = page.get_by_label("Say what you want")
        text.fill("delete 1")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("button", name="yes", exact=True)).to_be_visible()
        text.fill("add milk")
        SecretFile(str(Path(staged.daemon.data_dir) / "web.token")).rotate()
        page.get_by_role("button", name=place, exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("This browser was signed out")
        expect(page.locator(".door .command")).to_contain_text("punch web --link")
        assert page.evaluate("localStorage.length") == 0
